"""Where each tensor of a Hugging Face file lies in our networks.

Their queries, keys and values of BERT are three matrices, ours one; their GPTs store matrices
transposed; their table of tokens ends with the vocabulary, ours is padded. Names are kept without
the leading `bert.` or `transformer.`, which some files have and others do not.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from sememe.networks.bert import BERTNetwork
from sememe.networks.gpt import GPTNetwork

Network = BERTNetwork | GPTNetwork


class Place(NamedTuple):
    """A part of one of our tensors."""

    name: str  # of our parameter
    first_row: int = 0
    num_rows: int | None = None  # None: all
    is_transposed: bool = False

    def of(self, tensors: dict[str, Tensor]) -> Tensor:
        """The part itself, as the other file has it; writing to it writes to the network."""
        tensor = tensors[self.name]
        if self.num_rows is not None:
            tensor = tensor[self.first_row : self.first_row + self.num_rows]
        return tensor.T if self.is_transposed else tensor


def tensors_of(network: nn.Module) -> dict[str, Tensor]:
    """Our parameters and tables by name."""
    return {name: tensor.detach() for name, tensor in network.state_dict(keep_vars=True).items()}


def places_of(network: Network) -> dict[str, Place]:
    """Their names, without the leading part, and where each tensor lies in our network."""
    return _bert_places(network) if isinstance(network, BERTNetwork) else _gpt_places(network)


def prefix_of(network: Network, name: str) -> str:
    """The leading part that `transformers` gives a name in its own files."""
    if isinstance(network, GPTNetwork):
        return "transformer."
    return "" if name.startswith("cls.") else "bert."


def _affine(theirs: str, ours: str) -> dict[str, Place]:
    return {f"{theirs}.{part}": Place(f"{ours}.{part}") for part in ("weight", "bias")}


def _bert_places(network: BERTNetwork) -> dict[str, Place]:
    vocab_size, width = network.config.vocab_size, network.config.width
    places = {
        "embeddings.word_embeddings.weight": Place("embedding.tokens.weight", 0, vocab_size),
        "embeddings.position_embeddings.weight": Place("embedding.positions.weight"),
        "embeddings.token_type_embeddings.weight": Place("embedding.segments.weight"),
        **_affine("embeddings.LayerNorm", "embedding.norm"),
    }
    for index in range(network.config.num_layers):
        theirs, ours = f"encoder.layer.{index}", f"stack.blocks.{index}"
        for number, part in enumerate(("query", "key", "value")):
            for kind in ("weight", "bias"):
                places[f"{theirs}.attention.self.{part}.{kind}"] = Place(
                    f"{ours}.attention.projection.{kind}", number * width, width
                )
        places |= _affine(f"{theirs}.attention.output.dense", f"{ours}.attention.output")
        places |= _affine(f"{theirs}.attention.output.LayerNorm", f"{ours}.attention_norm")
        places |= _affine(f"{theirs}.intermediate.dense", f"{ours}.feed_forward.inner")
        places |= _affine(f"{theirs}.output.dense", f"{ours}.feed_forward.output")
        places |= _affine(f"{theirs}.output.LayerNorm", f"{ours}.feed_forward_norm")
    return {
        **places,
        **_affine("pooler.dense", "pooler"),
        "cls.predictions.bias": Place("masked_bias", 0, vocab_size),
        **_affine("cls.predictions.transform.dense", "masked_transform"),
        **_affine("cls.predictions.transform.LayerNorm", "masked_norm"),
        **_affine("cls.seq_relationship", "next_head"),
    }


def _conv(theirs: str, ours: str) -> dict[str, Place]:
    return {
        f"{theirs}.weight": Place(f"{ours}.weight", is_transposed=True),
        f"{theirs}.bias": Place(f"{ours}.bias"),
    }


def _gpt_places(network: GPTNetwork) -> dict[str, Place]:
    is_gpt2 = network.config.norm == "pre"
    tokens, positions = ("wte", "wpe") if is_gpt2 else ("tokens_embed", "positions_embed")
    places = {
        f"{tokens}.weight": Place("embedding.tokens.weight", 0, network.config.vocab_size),
        f"{positions}.weight": Place("embedding.positions.weight"),
    }
    for index in range(network.config.num_layers):
        theirs, ours = f"h.{index}", f"stack.blocks.{index}"
        places |= _affine(f"{theirs}.ln_1", f"{ours}.attention_norm")
        places |= _conv(f"{theirs}.attn.c_attn", f"{ours}.attention.projection")
        places |= _conv(f"{theirs}.attn.c_proj", f"{ours}.attention.output")
        places |= _affine(f"{theirs}.ln_2", f"{ours}.feed_forward_norm")
        places |= _conv(f"{theirs}.mlp.c_fc", f"{ours}.feed_forward.inner")
        places |= _conv(f"{theirs}.mlp.c_proj", f"{ours}.feed_forward.output")
    return places | (_affine("ln_f", "norm") if is_gpt2 else {})

"""Where each tensor of a `transformers` file belongs in our networks, by family.

In their BERT, queries, keys and values are three matrices, in ours one; their GPTs store matrices
transposed; their embedding table ends with the vocabulary, ours is padded. Names are stored without
the leading `bert.` or `transformer.`, which some files have and others do not.
"""

import re
from typing import NamedTuple

from torch import Tensor, nn

from sememe.models.bert.network import BERTNetwork
from sememe.models.gpt.network import GPTNetwork

Network = BERTNetwork | GPTNetwork


class Place(NamedTuple):
    """A part of one of our tensors."""

    name: str  # of our parameter
    first_row: int = 0
    num_rows: int | None = None  # None: all
    is_transposed: bool = False

    def of(self, tensors: dict[str, Tensor]) -> Tensor:
        """The part as a view in the other file's layout; writing to it writes to the network."""
        tensor = tensors[self.name]
        if self.num_rows is not None:
            tensor = tensor[self.first_row : self.first_row + self.num_rows]
        return tensor.T if self.is_transposed else tensor


Places = dict[str, Place]


def tensors_of(network: nn.Module) -> dict[str, Tensor]:
    """Our parameters and tables by name."""
    return {name: tensor.detach() for name, tensor in network.state_dict(keep_vars=True).items()}


def places_of(network: Network) -> Places:
    """Their names, without the prefix, and the part of our network for each tensor."""
    if isinstance(network, GPTNetwork):
        return _gpt_places(network)
    family = network.config.family
    body = {"distilbert": _distilbert, "albert": _albert, "modernbert": _modernbert}
    own = body.get(family, _bert)(network)
    if network.embedding.positions is not None:
        own["embeddings.position_embeddings.weight"] = Place("embedding.positions.weight")
    if network.embedding.segments is not None:
        own["embeddings.token_type_embeddings.weight"] = Place("embedding.segments.weight")
    if network.embedding.projection is not None:
        is_albert = family == "albert"
        name = "encoder.embedding_hidden_mapping_in" if is_albert else "embeddings_project"
        own |= _affine(name, "embedding.projection")
    pooler = "pooler" if family == "albert" else "pooler.dense"
    return own | _affine(pooler, "pooler") | _heads(network)


# What `transformers` puts before the names of a family's encoder.
_PREFIXES = {
    "bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta.", "distilbert": "distilbert.",
    "electra": "electra.", "albert": "albert.", "modernbert": "model.",
}  # fmt: skip


def prefix_of(network: Network, name: str) -> str:
    """The prefix that `transformers` gives a name in its own files."""
    if isinstance(network, GPTNetwork):
        return "transformer."
    if head_of(name) in ("masked head", "next head", "replaced head"):
        return ""
    inner = "transformer." if name.startswith("layer.") else ""
    return class_prefix_of(network) + inner


def class_prefix_of(network: Network) -> str:
    """What the names of an encoder start with in a class that puts a head on it."""
    if isinstance(network, GPTNetwork):
        return "transformer."
    return _PREFIXES[network.config.family]


_PREFIX = re.compile(
    r"^(module\.)?((bert|roberta|distilbert|electra|albert|model)\.)?(transformer\.)?"
)


def plain_name(name: str) -> str:
    """A tensor's name without what differs between files.

    Some files were written from inside a larger module, and the first BERTs, which came from
    TensorFlow, call the weights of a normalisation gamma and beta.
    """
    name = _PREFIX.sub("", name)
    if name.endswith((".gamma", ".beta")):
        return name.replace(".gamma", ".weight").replace(".beta", ".bias")
    # The bias of the tied head goes by two names.
    return re.sub(r"^((cls\.)?predictions|lm_head)\.decoder\.bias$", r"\1.bias", name)


# Parts of BERT that a file may lack, because it was saved without them.
HEADS = {
    "pooler.": "pooler",
    **dict.fromkeys(
        ("cls.predictions.", "lm_head.", "vocab_", "generator_", "predictions.", "head.",
         "decoder."),
        "masked head",
    ),
    **dict.fromkeys(("cls.seq_", "sop_classifier."), "next head"),
    "discriminator_predictions.": "replaced head",
}  # fmt: skip


def pretraining_heads(network: Network) -> list[str]:
    """The heads that pre-training alone uses."""
    has_replaced = getattr(network.config, "has_replaced_head", False)
    return ["masked head", "next head", *(["replaced head"] if has_replaced else [])]


def head_of(name: str) -> str | None:
    """The head of BERT that a tensor belongs to, or None."""
    return next((head for start, head in HEADS.items() if name.startswith(start)), None)


def _affine(theirs: str, ours: str) -> Places:
    return {f"{theirs}.{part}": Place(f"{ours}.{part}") for part in ("weight", "bias")}


def _weight(theirs: str, ours: str) -> Places:
    return {f"{theirs}.weight": Place(f"{ours}.weight")}


def _tokens(network: BERTNetwork, name: str) -> Places:
    return {name: Place("embedding.tokens.weight", 0, network.config.vocab_size)}


def _block(network: BERTNetwork, theirs: str, index: int, names: tuple[str, ...]) -> Places:
    """The tensors of a post-norm block by their names for its eight layers."""
    ours, width = f"stack.blocks.{index}", network.config.width
    places: Places = {}
    for number, part in enumerate(names[:3]):
        for kind in ("weight", "bias"):
            places[f"{theirs}.{part}.{kind}"] = Place(
                f"{ours}.attention.projection.{kind}", number * width, width
            )
    own = ("attention.output", "attention_norm", "feed_forward.inner", "feed_forward.output",
           "feed_forward_norm")  # fmt: skip
    for part, our_part in zip(names[3:], own, strict=True):
        places |= _affine(f"{theirs}.{part}", f"{ours}.{our_part}")
    return places


_BERT_NAMES = (
    "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
    "output.LayerNorm",
)  # fmt: skip
_DISTILBERT_NAMES = (
    "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm",
    "ffn.lin1", "ffn.lin2", "output_layer_norm",
)  # fmt: skip
_ALBERT_NAMES = (
    "attention.query", "attention.key", "attention.value", "attention.dense",
    "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm",
)  # fmt: skip


def _stacked(network: BERTNetwork, pattern: str, names: tuple[str, ...]) -> Places:
    places = _tokens(network, "embeddings.word_embeddings.weight")
    places |= _affine("embeddings.LayerNorm", "embedding.norm")
    for index in range(len(network.stack.blocks)):
        places |= _block(network, pattern.format(index), index, names)
    return places


def _bert(network: BERTNetwork) -> Places:
    """BERT, RoBERTa, XLM-R and ELECTRA."""
    return _stacked(network, "encoder.layer.{}", _BERT_NAMES)


def _distilbert(network: BERTNetwork) -> Places:
    return _stacked(network, "layer.{}", _DISTILBERT_NAMES)


def _albert(network: BERTNetwork) -> Places:
    return _stacked(network, "encoder.albert_layer_groups.{}.albert_layers.0", _ALBERT_NAMES)


def _modernbert(network: BERTNetwork) -> Places:
    places = _tokens(network, "embeddings.tok_embeddings.weight")
    places |= _weight("embeddings.norm", "embedding.norm") | _weight("final_norm", "norm")
    for index in range(network.config.num_layers):
        theirs, ours = f"layers.{index}", f"stack.blocks.{index}"
        if index:
            places |= _weight(f"{theirs}.attn_norm", f"{ours}.attention_norm")
        places |= _weight(f"{theirs}.attn.Wqkv", f"{ours}.attention.projection")
        places |= _weight(f"{theirs}.attn.Wo", f"{ours}.attention.output")
        places |= _weight(f"{theirs}.mlp_norm", f"{ours}.feed_forward_norm")
        places |= _weight(f"{theirs}.mlp.Wi", f"{ours}.feed_forward.inner")
        places |= _weight(f"{theirs}.mlp.Wo", f"{ours}.feed_forward.output")
    return places


class _HeadNames(NamedTuple):
    """Their names for the masked head."""

    bias: str
    transform: str
    norm: str


_MASKED = {
    "bert": _HeadNames(
        "cls.predictions.bias", "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
    ),
    "roberta": _HeadNames("lm_head.bias", "lm_head.dense", "lm_head.layer_norm"),
    "xlm-roberta": _HeadNames("lm_head.bias", "lm_head.dense", "lm_head.layer_norm"),
    "distilbert": _HeadNames("vocab_projector.bias", "vocab_transform", "vocab_layer_norm"),
    "electra": _HeadNames(
        "generator_lm_head.bias", "generator_predictions.dense", "generator_predictions.LayerNorm"
    ),
    "albert": _HeadNames("predictions.bias", "predictions.dense", "predictions.LayerNorm"),
    "modernbert": _HeadNames("decoder.bias", "head.dense", "head.norm"),
}  # fmt: skip


def _heads(network: BERTNetwork) -> Places:
    """The masked head, and those for next sentences and replaced tokens, if the family has them."""
    config = network.config
    names, layer = _MASKED[config.family], _weight if config.is_modern else _affine
    places = {names.bias: Place("masked_bias", 0, config.vocab_size)}
    places |= layer(names.transform, "masked_transform") | layer(names.norm, "masked_norm")
    if config.has_next_head:
        theirs = "cls.seq_relationship" if config.family == "bert" else "sop_classifier.classifier"
        places |= _affine(theirs, "next_head")
    if config.has_replaced_head:  # for ModernBERT, a head that sememe alone has
        places |= _affine("discriminator_predictions.dense", "replaced_transform")
        places |= _affine("discriminator_predictions.dense_prediction", "replaced_head")
    return places


def _conv(theirs: str, ours: str) -> Places:
    return {
        f"{theirs}.weight": Place(f"{ours}.weight", is_transposed=True),
        f"{theirs}.bias": Place(f"{ours}.bias"),
    }


def _gpt_places(network: GPTNetwork) -> Places:
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

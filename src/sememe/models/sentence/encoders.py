"""The network below a sentence vector while it is trained, and bases that are no BERT or GPT.

`open_encoder` gives the trainable encoder of any model: its texts as ids, one vector per token, and
what the sentence model keeps after training. `BackboneVectors` is such a base for word vectors,
ELMo and ULMFiT, which have files of their own.

B texts, N tokens of all texts concatenated, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sememe.contract import KINDS
from sememe.errors import OptionError
from sememe.examples.batches import TokenSequence
from sememe.models.sentence.config import SentenceConfig
from sememe.models.sentence.token_vectors import TokenVectors
from sememe.nn.encoders import HEAD, Backbone, Encoder, Inputs, inputs_of, means
from sememe.nn.layers import drop_out
from sememe.nn.rows import grouped, windows
from sememe.storage.tensors import write_tensors
from sememe.training.device import choose_device, to_device
from sememe.training.weights import arrays_of, take_weights, tensors_in, weights_of

_TOKENS_AT_ONCE = {"cuda": 65_536, "cpu": 4_096, "mps": 16_384}
_WINDOW = 512  # words that a network without positions reads at once
_WORD_RATE = 0.03  # of word vectors: few batches contain a given word


def pooled(tokens_ND: Tensor, inputs: Inputs, pool: str) -> Tensor:
    """One vector per text: the mean or maximum over its tokens, or its first one, (B, D)."""
    rows = inputs.rows
    if pool == "mean":
        return means(tokens_ND, inputs)
    if pool == "cls":
        return tokens_ND.index_select(0, rows.first_tokens(tokens_ND.device))
    assert rows.is_token_BT is not None
    is_empty_BT1 = ~rows.is_token_BT[..., None]
    return rows.padded(tokens_ND).masked_fill(is_empty_BT1, float("-inf")).amax(1)


def sequences_of(ids: Sequence[np.ndarray]) -> Inputs:
    """Texts as ids, concatenated."""
    return inputs_of([TokenSequence(own, np.zeros(len(own), np.int8)) for own in ids])


class Trainable(NamedTuple):
    """What a training changes, and what it makes of it."""

    encoder: Any  # an Encoder: ids in, one vector per token out
    ids: Callable[[Sequence[str]], list[np.ndarray]]  # of texts, special tokens included
    room: int  # the most ids of a text
    base: Callable[[], Any]  # what the sentence model keeps
    description: str
    has_cls: bool = False
    default_rate: float = 1e-3
    learn_rows: Callable[[int], None] = lambda seed: None  # once all rows are encoded
    fingerprints: Callable[[], dict[str, str]] = dict
    is_word_start_V: np.ndarray | None = None  # for a network that can be a decoder, too


def open_encoder(base: Any, config: SentenceConfig) -> Trainable:
    """The trainable copy of a base: token vectors, or any model that can be fine-tuned."""
    if isinstance(base, TokenVectors):
        return _of_table(base, config)
    if isinstance(base, BackboneVectors):
        return _of_backbone(base.backbone.again(base.backbone.encoder, "text", config))
    backbone = base.encoder("text", config)
    if not backbone.has_model:
        return _of_backbone(backbone)
    encoder, tokenizer = backbone.encoder, backbone.coder.tokenizer
    is_bert = not backbone.coder.is_gpt
    encoder.leave_pooler()
    before, after = ([tokenizer.cls_id], [tokenizer.sep_id]) if is_bert else ([], [])
    room = min(config.length, encoder.network.seen_length) - len(before) - len(after)

    def ids(texts: Sequence[str]) -> list[np.ndarray]:
        framed = ([*before, *own[:room], *after] for own in tokenizer.ids_batch(texts))
        return [np.array(own or [tokenizer.end_id], np.int32) for own in framed]

    def kept() -> Any:
        encoder.uncompile()
        encoder.network.to("cpu").eval()
        encoder.precision = torch.float32
        model = backbone.model()
        model.text = base.text
        return model

    return Trainable(
        encoder, ids, room + 2 * is_bert, kept, backbone.description, has_cls=is_bert,
        default_rate=backbone.defaults(config)[0],
        is_word_start_V=~np.asarray(tokenizer.is_continuation) if is_bert else None,
    )  # fmt: skip


# ---- word vectors, ELMo, ULMFiT ----------------------------------------------------------------


def _of_backbone(backbone: Backbone) -> Trainable:
    coder = backbone.coder
    backbone.encoder.leave_pooler()

    def ids(texts: Sequence[str]) -> list[np.ndarray]:
        return [coder.frame(own.ids).sequence.ids_T for own in coder.encode(texts)]

    def kept() -> BackboneVectors:
        backbone.encoder.to("cpu").eval()
        backbone.encoder.precision = torch.float32
        return BackboneVectors(backbone)

    return Trainable(
        backbone.encoder, ids, coder.length, kept, backbone.description,
        default_rate=_WORD_RATE if backbone.network == "vectors" else backbone.encoder.default_rate,
        learn_rows=backbone.learn_rows,
        fingerprints=backbone.fingerprints,
    )  # fmt: skip


class BackboneVectors:
    """Texts in, pooled vectors out, of a trained backbone that is no Transformer."""

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone
        self.kind = backbone.network
        self.text = backbone.coder.text  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"BackboneVectors({self.backbone.description})"

    @property
    def dim(self) -> int:
        """The dimensions of a pooled vector."""
        return int(self.backbone.encoder.word_width)

    @torch.inference_mode()
    def embed(
        self, texts: Sequence[str], *, pool: str = "mean", layers: Any = "last"
    ) -> np.ndarray:
        """One vector per text; a long one is pooled over its parts of 512 words."""
        if pool not in ("mean", "max") or layers != "last":
            raise OptionError(f"The {KINDS[self.kind].title} was trained with mean or max pooling.")
        coder, encoder = self.backbone.coder, self.backbone.encoder
        coder.length = _WINDOW + len(coder.marks.before) + len(coder.marks.after)
        parts: list[tuple[int, np.ndarray]] = []
        for index, own in enumerate(coder.encode(texts)):
            cuts = windows(len(own.ids), _WINDOW, 0)
            parts += [(index, coder.frame(own.ids[c.first : c.last]).sequence.ids_T) for c in cuts]
        device = next(encoder.parameters()).device
        order = sorted(range(len(parts)), key=lambda number: len(parts[number][1]))
        sums_BD = np.full((len(texts), self.dim), 0 if pool == "mean" else -np.inf, np.float32)
        counts_B = np.zeros(len(texts), np.int64)
        most = _TOKENS_AT_ONCE[device.type]
        for group in grouped(order, lambda number: len(parts[number][1]), most):
            inputs = to_device(sequences_of([parts[number][1] for number in group]), device)
            found = pooled(encoder.tokens(inputs), inputs, pool).float().cpu().numpy()
            for number, vector_D in zip(group, found, strict=True):
                index, ids = parts[number]
                if pool == "mean":
                    sums_BD[index] += len(ids) * vector_D
                    counts_B[index] += len(ids)
                else:
                    sums_BD[index] = np.maximum(sums_BD[index], vector_D)
        return sums_BD / counts_B[:, None] if pool == "mean" else sums_BD

    def num_longer(self, texts: Sequence[str]) -> int:
        """How many texts have more than 512 words."""
        long = [text for text in texts if len(text) > _WINDOW]  # a word has a character or more
        return sum(len(own.ids) > _WINDOW for own in self.backbone.coder.encode(long))

    def encoder(self, reads: Any, config: Any) -> Any:
        """What fine-tuning builds on."""
        return self.backbone.again(self.backbone.encoder, reads, config)

    def to(self, device: str) -> BackboneVectors:
        """Move the network to a device."""
        self.backbone.encoder.to(choose_device(device))
        return self

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the files of the base; return what sememe.json says about it."""
        self.backbone.write(folder)
        write_tensors(folder / HEAD, arrays_of(weights_of(self.backbone.encoder)))
        return self.backbone.manifest(None)

    @classmethod
    def read(
        cls, folder: Path, manifest: dict[str, Any], config: SentenceConfig
    ) -> BackboneVectors:
        """Open what `write` wrote."""
        backbone = KINDS[manifest["network"]].backbone_class().read(folder, manifest, config)
        with torch.no_grad():
            take_weights(backbone.encoder, tensors_in(folder / HEAD), str(folder / HEAD))
        backbone.encoder.eval()
        return cls(backbone)


# ---- token vectors ------------------------------------------------------------------------------


class TableEncoder(Encoder):
    """Static token vectors, each trained."""

    is_standard, num_depths, default_rate = False, 1, 0.0

    def __init__(self, base: TokenVectors, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(
            torch.from_numpy(base.table_VD.copy()), freeze=False
        )
        self.dropout, self.width, self.precision = dropout, base.dim, torch.float32

    def tokens(self, inputs: Inputs) -> Tensor:
        """One vector per token, (N, D)."""
        return drop_out(self.table(inputs.ids_N), self.dropout if self.training else 0.0)

    def sequences(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """The mean over the tokens of each text, (B, D)."""
        return means(tokens_ND, inputs)

    def depth_of(self, name: str) -> int:
        """There is one layer."""
        return 0


def _of_table(base: TokenVectors, config: SentenceConfig) -> Trainable:
    encoder, tokenizer, room = TableEncoder(base, config.dropout), base.tokenizer, config.length

    def ids(texts: Sequence[str]) -> list[np.ndarray]:
        found = [np.array(own, np.int32) for own in tokenizer.ids_batch(texts)]
        return [own[own != base.unknown_id][:room] for own in found]

    def kept() -> TokenVectors:
        table_VD = encoder.table.weight.detach().cpu().numpy()
        return TokenVectors(tokenizer, table_VD, base.unknown_id)

    description = f"Vectors of {len(base.table_VD):,} tokens × {base.dim}"
    return Trainable(encoder, ids, room, kept, description, default_rate=5e-3)

"""Between texts and tensors for translation models: one sub-word vocabulary for both languages.

Rows are concatenated, without padding. B rows, T positions, N tokens. Batches are built on the host
by the thread that prepares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.examples.pair_batches import PairBatch
from sememe.examples.parallel import Pair
from sememe.nn.rows import RowLayout, unpadded_rows
from sememe.progress import SILENT, Reporter
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import Encoding, Kind, SubwordTokenizer
from sememe.training.device import mapped

_WORDS = re.compile(r"\S+")


class PairCoder:
    """Adds start and end to the sub-word tokens of texts, and decodes them."""

    def __init__(self, tokenizer: SubwordTokenizer, *, lowercase: bool) -> None:
        self.tokenizer, self.lowercase = tokenizer, lowercase
        # Byte-level BPE has one special token: what ends a text also starts the next one.
        self.start_id: int = tokenizer.cls_id if tokenizer.is_framed else tokenizer.end_id
        self.end_id: int = tokenizer.end_id

    @cached_property
    def barred(self) -> list[int]:
        """The ids that no translation holds."""
        return sorted(self.tokenizer.special_ids - {self.end_id})

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """The sub-word tokens of texts, with their positions in these texts.

        A name such as [SEP] in a text is plain text.
        """
        has_space = self.tokenizer.kind == "bpe"
        return [
            placed_in(text, own, has_space=has_space, lowercase=self.lowercase)
            for text, own in zip(texts, self._encode(texts), strict=True)
        ]

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        own = [prepared(text, self.tokenizer.kind, self.lowercase) for text in texts]
        return self.tokenizer.encode_batch(own, specials=False)

    def sources(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Texts as encoder inputs: with an end."""
        return [np.append(own.ids, self.end_id) for own in self._encode(texts)]

    def targets(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Texts as decoder outputs: with a start and an end."""
        return [
            np.concatenate([[self.start_id], own.ids, [self.end_id]]) for own in self._encode(texts)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """Write ids as text."""
        return " ".join(self.tokenizer.decode(ids).split())


def prepared(text: str, kind: str, lowercase: bool) -> str:
    """A normalized text: one space between words, and one before the first of them.

    Byte-level BPE treats the space as part of a word: without it the first word of a text would
    have different tokens.
    """
    text = " ".join(text.split())
    text = text.lower() if lowercase else text
    return f" {text}" if text and kind == "bpe" else text


def placed_in(text: str, encoding: Encoding, *, has_space: bool, lowercase: bool) -> Encoding:
    """The same tokens with positions in the original text instead of the normalized one."""
    starts: list[int] = []  # where the characters of the prepared text start and end
    ends: list[int] = []
    for match in _WORDS.finditer(text):
        if starts or has_space:  # a space before a word is not part of it
            starts.append(match.start())
            ends.append(match.start())
        for index in range(*match.span()):
            # A few letters, such as İ, are two in lower case.
            size = len(text[index].lower()) if lowercase else 1
            starts += [index] * size
            ends += [index + 1] * size
    if not starts:
        return encoding
    dtype = encoding.starts.dtype
    return encoding._replace(
        starts=np.array(starts, dtype)[encoding.starts],
        ends=np.array(ends, dtype)[encoding.ends - 1],
    )


def train_coder(
    pairs: Iterable[Pair],
    *,
    kind: Kind,
    vocab_size: int,
    lowercase: bool,
    progress: Reporter = SILENT,
) -> PairCoder:
    """Train a tokenizer on both sides together."""

    def texts() -> Iterator[str]:
        for pair in pairs:
            yield prepared(pair.source, kind, lowercase)
            yield prepared(pair.target, kind, lowercase)

    tokenizer = SubwordTokenizer.train(
        texts(), kind=kind, vocab_size=vocab_size, accents="keep",
        text=TextSettings(lowercase=lowercase), progress=progress,
    )  # fmt: skip
    return PairCoder(tokenizer, lowercase=lowercase)


# ---- as tensors -----------------------------------------------------------------------------


class PackedText(NamedTuple):
    """Texts concatenated."""

    ids_N: Tensor
    positions_N: Tensor
    rows: RowLayout
    lengths: tuple[int, ...]  # of the rows, on the host

    def to(self, device: torch.device) -> PackedText:
        """The same texts on a device."""
        return mapped(self, lambda tensor: tensor.to(device))


class TranslationInputs(NamedTuple):
    """A batch of pairs: the decoder reads the target after a start and predicts up to its end."""

    source: PackedText
    target: PackedText
    targets_N: Tensor
    weight: float  # 0 where the batch is a placeholder


def text_of(rows: Sequence[np.ndarray]) -> PackedText:
    """Concatenate rows of ids."""
    lengths_B = np.array([len(row) for row in rows], np.int64)
    layout = unpadded_rows(lengths_B, int(lengths_B.max()))
    ids_N = torch.from_numpy(np.concatenate(rows).astype(np.int64))
    return PackedText(ids_N, layout.positions(), layout, tuple(lengths_B.tolist()))


def translation_inputs(batch: PairBatch) -> TranslationInputs:
    """Concatenate the sources and targets of a batch."""
    return TranslationInputs(
        source=text_of(batch.sources),
        # All but the last token are read; each of them predicts the next.
        target=text_of([row[:-1] for row in batch.targets]),
        targets_N=torch.from_numpy(
            np.concatenate([row[1:] for row in batch.targets]).astype(np.int64)
        ),
        weight=batch.weight,
    )

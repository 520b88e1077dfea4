"""Texts as sequences of ids, cut where they are too long: [CLS] A [SEP] B [SEP] for BERT, and for
GPT start A delimiter B extract (Radford et al. 2018, 3.3).
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import NamedTuple, Protocol

import numpy as np

from sememe.examples.sequences import Sequence
from sememe.tokens.subwords import Encoding, SubwordTokenizer

# The marks that GPT's input transformations need; its tokenizer gets them before fine-tuning.
START, DELIMITER, EXTRACT = "<|start|>", "<|delimiter|>", "<|extract|>"
MARKS = (START, DELIMITER, EXTRACT)


class Framed(NamedTuple):
    """A sequence, where its texts lie in it, and whether they had to be cut."""

    sequence: Sequence
    starts: tuple[int, ...]  # the index of the first token of each text
    sizes: tuple[int, ...]  # how many tokens of each text are there
    is_cut: bool


class Coder(Protocol):
    """Turns texts into sequences for an encoder; words with vectors can have one as sub-words."""

    length: int  # most tokens of a sequence, marks included
    unknown_id: int  # of a word that has no tokens

    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Cut texts into tokens that know their places in the text."""

    def room(self, num_texts: int) -> int:
        """How many tokens of so many texts fit into a sequence beside its marks."""

    def frame(self, first: np.ndarray, second: np.ndarray | None = None) -> Framed:
        """Put the marks around the ids of one text or two; the longer one is cut first."""


class SubwordCoder:
    """The sub-words of BERT or GPT with their marks."""

    def __init__(self, tokenizer: SubwordTokenizer, kind: str, length: int) -> None:
        self.tokenizer, self.kind, self.length = tokenizer, kind, length
        if kind == "bert":
            self.before, self.between, self.after = (
                tokenizer.cls_id, tokenizer.sep_id, tokenizer.sep_id,
            )  # fmt: skip
        else:
            self.before, self.between, self.after = map(tokenizer.id, MARKS)
        self.unknown_id: int = tokenizer.unk_id if kind == "bert" else tokenizer.end_id

    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Cut texts into sub-words; the names of special tokens in them are text like any other."""
        return self.tokenizer.encode_batch(texts, specials=False)

    def room(self, num_texts: int) -> int:
        """How many tokens of so many texts fit into a sequence beside its marks."""
        return self.length - 1 - num_texts

    def frame(self, first: np.ndarray, second: np.ndarray | None = None) -> Framed:
        """Put the marks around the ids of one text or two; the longer one is cut first."""
        texts = [first] if second is None else [first, second]
        sizes = kept_sizes([len(text) for text in texts], self.room(len(texts)))
        is_cut = any(len(text) > size for text, size in zip(texts, sizes, strict=True))
        texts = [text[:size] for text, size in zip(texts, sizes, strict=True)]
        parts: list[np.ndarray | list[int]] = [[self.before], texts[0]]
        if second is not None:
            parts += [[self.between], texts[1]]
        parts.append([self.after])
        ids_T = np.concatenate(parts).astype(np.int32)
        segments_T = np.zeros(len(ids_T), np.int8)
        if second is not None and self.kind == "bert":
            segments_T[sizes[0] + 2 :] = 1
        starts = (1,) if second is None else (1, sizes[0] + 2)
        return Framed(Sequence(ids_T, segments_T), starts, tuple(sizes), is_cut)


def kept_sizes(sizes: list[int], room: int) -> list[int]:
    """How much of each text stays: tokens go from the end of the longer one, the second of equals.

    What dropping one token after the other gives, as the released BERT does.
    """
    if sum(sizes) <= room:
        return sizes
    if len(sizes) == 1:
        return [room]
    short = min(sizes)
    if 2 * short <= room:
        rest = room - short
        return [short, rest] if sizes[0] <= sizes[1] else [rest, short]
    return [room - room // 2, room // 2]

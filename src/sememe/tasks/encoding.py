"""Texts as sequences of ids, cut where they are too long: [CLS] A [SEP] B [SEP] for BERT, and for
GPT start A delimiter B extract (Radford et al. 2018, 3.3).
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any, NamedTuple

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


class Marks(NamedTuple):
    """The ids that stand around one text, or around two; those inside stand only between two."""

    before: tuple[int, ...]
    behind_first: tuple[int, ...]  # they belong to the first text
    before_second: tuple[int, ...]  # they belong to the second
    after: tuple[int, ...]


class Coder:
    """Turns texts into sequences for an encoder; words with vectors can have one as sub-words."""

    kind: str  # bert, gpt or words
    length: int  # most tokens of a sequence, marks included
    unknown_id: int  # of a word that has no tokens
    marks: Marks

    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Cut texts into tokens that know their places in the text."""
        raise NotImplementedError

    def encode_words(self, words: Several[str]) -> list[Encoding]:
        """Cut words that stand alone already; what reads characters takes each as it is."""
        return self.encode(words)

    def room(self, num_texts: int) -> int:
        """How many tokens of so many texts fit into a sequence beside its marks."""
        before, behind_first, before_second, after = map(len, self.marks)
        inside = behind_first + before_second if num_texts == 2 else 0
        return self.length - before - inside - after

    def frame(self, first: np.ndarray, second: np.ndarray | None = None) -> Framed:
        """Put the marks around the ids of one text or two; the longer one is cut first."""
        texts = [first] if second is None else [first, second]
        sizes = kept_sizes([len(text) for text in texts], self.room(len(texts)))
        is_cut = any(len(text) > size for text, size in zip(texts, sizes, strict=True))
        marks = self.marks
        parts: list[Any] = [marks.before, first[: sizes[0]]]
        starts = [len(marks.before)]
        if second is not None:
            parts += [marks.behind_first, marks.before_second, second[: sizes[1]]]
            starts.append(sum(map(len, parts[:-1])))
        ids_T = np.concatenate([*parts, marks.after]).astype(np.int32)
        segments_T = np.zeros(len(ids_T), np.int8)
        if second is not None and self.kind != "gpt":
            segments_T[starts[1] - len(marks.before_second) :] = 1
        return Framed(Sequence(ids_T, segments_T), tuple(starts), tuple(sizes), is_cut)


class SubwordCoder(Coder):
    """The sub-words of BERT or GPT with their marks."""

    def __init__(self, tokenizer: SubwordTokenizer, kind: str, length: int) -> None:
        self.tokenizer, self.kind, self.length = tokenizer, kind, length
        if kind == "bert":
            before, between = tokenizer.cls_id, tokenizer.sep_id
            after, self.unknown_id = between, tokenizer.unk_id
        else:
            before, between, after = map(tokenizer.id, MARKS)
            self.unknown_id = tokenizer.end_id
        self.marks = Marks((before,), (between,), (), (after,))

    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Cut texts into sub-words; the names of special tokens in them are text like any other."""
        return self.tokenizer.encode_batch(texts, specials=False)


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

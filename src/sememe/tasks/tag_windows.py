"""Rows of tagged words as items: sub-words in overlapping windows, a tag on each first one."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples import tagging
from sememe.examples.labelled import TagRow
from sememe.examples.tagging import IGNORE_ID, WordPieces
from sememe.networks.windows import Window, windows
from sememe.tasks.encoding import Coder
from sememe.tasks.items import Item
from sememe.tasks.texts import is_gpt


class Extent(NamedTuple):
    """Which words an item answers for, and where their first pieces lie in its sequence."""

    word_indices: np.ndarray
    places: np.ndarray


def encode_tags(
    coder: Coder, rows: Several[TagRow], labels: Several[str], *, has_marks: bool
) -> list[Item]:
    """One item for each window over the pieces of a row; `has_marks` if rows mark a predicate."""
    room = coder.room(1)
    numbers = {label: number for number, label in enumerate(labels)}
    items = []
    for index, (row, pieces) in enumerate(zip(rows, _pieces(coder, rows), strict=True)):
        targets = _targets(row, pieces, numbers)
        marks = _marks(coder, row, pieces) if has_marks else None
        for window in windows(len(pieces.ids), room, room // 2):
            items.append(_item(coder, index, pieces, targets, marks, window))
    return items


def _pieces(coder: Coder, rows: Several[TagRow]) -> list[WordPieces]:
    """Cut the words of all rows; each distinct word is cut once."""
    # Byte-level BPE sees the space that stands before every word but the first.
    space = " " if is_gpt(coder) else ""
    texts = [[space * (i > 0) + word for i, word in enumerate(row.words)] for row in rows]
    distinct = list(dict.fromkeys(text for row in texts for text in row))
    encodings = coder.encode_words(distinct)
    own = {text: encoding.ids for text, encoding in zip(distinct, encodings, strict=True)}
    return [tagging.join_pieces([own[text] for text in row], coder.unknown_id) for row in texts]


def _targets(row: TagRow, pieces: WordPieces, numbers: dict[str, int]) -> np.ndarray | None:
    if row.tags is None or any(tag not in numbers for tag in row.tags):
        return None
    return tagging.targets_of(pieces, [numbers[tag] for tag in row.tags])


def _marks(coder: Coder, row: TagRow, pieces: WordPieces) -> np.ndarray:
    """Which pieces belong to the predicate that a row marks."""
    if is_gpt(coder):
        raise OptionError("A GPT knows no segments, by which predicates are marked.")
    if row.marks is None or not any(row.marks):
        raise InputError(f"{row.source}: no word is marked as the predicate.")
    sizes = np.diff(pieces.firsts, append=len(pieces.ids))
    return np.repeat(np.array(row.marks, np.int8), sizes)


def _item(
    coder: Coder,
    index: int,
    pieces: WordPieces,
    targets: np.ndarray | None,
    marks: np.ndarray | None,
    window: Window,
) -> Item:
    framed = coder.frame(pieces.ids[window.start : window.end])
    shift = framed.starts[0] - window.start
    if marks is not None:
        segments_T, (first,) = framed.sequence.segments_T, framed.starts
        segments_T[first : first + window.end - window.start] = marks[window.start : window.end]
    is_own = (window.first <= pieces.firsts) & (pieces.firsts < window.last)
    extent = Extent(np.flatnonzero(is_own), pieces.firsts[is_own] + shift)
    target = None
    if targets is not None:
        target = np.full(len(framed.sequence.ids_T), IGNORE_ID, np.int64)
        target[extent.places] = targets[pieces.firsts[is_own]]
    return Item((framed.sequence,), index, target, extra=extent)

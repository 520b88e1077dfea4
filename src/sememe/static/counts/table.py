"""A matrix of words by words as a table that people read."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.static.counts.matrix import SparseMatrix

# More than this many columns cannot be read.
MAX_WORDS = 200


@dataclass(frozen=True)
class CountTable:
    """Rows and columns are the same words; `str` gives the aligned text."""

    words: list[str]
    values: np.ndarray  # float32 (words, words)

    @classmethod
    def from_matrix(
        cls, words: Sequence[str], ids: Sequence[int], matrix: SparseMatrix
    ) -> CountTable:
        """Take the cells of some words out of a matrix."""
        if not words:
            raise OptionError("Give at least one word to show.")
        if len(words) > MAX_WORDS:
            raise OptionError(
                f"A table of {len(words):,} × {len(words):,} words cannot be read: name up to "
                f"{MAX_WORDS} of them, or lower max_words."
            )
        values = np.zeros((len(words), len(words)), np.float32)
        for place, word_id in enumerate(ids):
            columns, cells = matrix.row(word_id)
            row = dict(zip(columns.tolist(), cells.tolist(), strict=True))
            values[place] = [row.get(other, 0.0) for other in ids]
        return cls(list(words), values)

    def to_dict(self) -> dict[str, Any]:
        """The table in JSON's terms."""
        return {"words": self.words, "values": self.values.tolist()}

    def __str__(self) -> str:
        texts = [[_figure(value) for value in row] for row in self.values.tolist()]
        head = ["", *self.words]
        body = [[word, *row] for word, row in zip(self.words, texts, strict=True)]
        widths = [max(map(_width, column)) for column in zip(head, *body, strict=True)]
        lines = []
        for cells in (head, *body):
            first = cells[0] + " " * (widths[0] - _width(cells[0]))
            others = (
                " " * (width - _width(cell)) + cell
                for cell, width in zip(cells[1:], widths[1:], strict=True)
            )
            lines.append("  ".join((first, *others)).rstrip())
        return "\n".join(lines)


def _figure(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def _width(text: str) -> int:
    """Columns of a terminal that the text takes: two for a Chinese character."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)

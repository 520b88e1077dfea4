"""Co-occurrence counts without haste: what cooccurrence.py must give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from sememe.examples.cooccurrence import PairSettings


def count_pairs_plainly(
    sentences: Iterable[Sequence[int]], num_words: int, settings: PairSettings
) -> dict[tuple[int, int], float]:
    """Count the pairs of every sentence: {(row, column): value}, exact until the last step."""
    cells: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        words = [word for word in sentence if word < num_words]
        for place, word in enumerate(words):
            for before in range(max(0, place - settings.window), place):
                distance = place - before
                weight = Fraction(1, distance if settings.weighting == "harmonic" else 1)
                if settings.direction != "right":
                    cells[word, words[before]] += weight  # type: ignore[assignment]
                if settings.direction != "left":
                    cells[words[before], word] += weight  # type: ignore[assignment]
    return {cell: float(value) for cell, value in sorted(cells.items())}

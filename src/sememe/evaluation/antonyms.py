"""Opposites: are *fast* and *slow* among each other's nearest words?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sememe.evaluation.files import BUILT_IN, read_rows
from sememe.evaluation.lookup import Case, Lookup
from sememe.evaluation.results import Score, proportion_score
from sememe.metrics import score_sections

if TYPE_CHECKING:
    from sememe.vectors import WordVectors


def evaluate_antonyms(
    vectors: WordVectors,
    path: str | Path | None = None,
    *,
    num: int = 10,
    case: Case = "lower",
    seed: int = 1,
) -> Score:
    """Count the pairs of opposites that are both among each other's `num` nearest words.

    Opposites share their contexts, so a high share is no praise: it shows what vectors of
    contexts cannot tell apart. Without a path, English and Chinese pairs of our own are asked.
    """
    path = Path(path) if path is not None else BUILT_IN / "antonyms.txt"
    content = read_rows(path, 2)
    lookup = Lookup(vectors.vocabulary, case, None)
    pairs = [tuple(lookup.find(word) for word in row) for row in content.rows]
    is_asked = [min(pair) >= 0 and pair[0] != pair[1] for pair in pairs]
    asked = [pair for pair, known in zip(pairs, is_asked, strict=True) if known]
    words = {word_id: vectors.vocabulary[word_id] for pair in asked for word_id in pair}
    found = vectors.neighbors_of_many(list(words.values()), num=num) if words else []
    near = {
        word_id: {neighbor.word for neighbor in neighbors}
        for word_id, neighbors in zip(words, found, strict=True)
    }
    is_correct = [
        known and words[b] in near[a] and words[a] in near[b]
        for (a, b), known in zip(pairs, is_asked, strict=True)
    ]
    sections = score_sections(content.sections, is_asked, is_correct)
    return proportion_score(
        "antonyms", path.stem, f"opposites among {num} nearest, %", sections, seed,
        details={"num": num, "case": case},
    )  # fmt: skip

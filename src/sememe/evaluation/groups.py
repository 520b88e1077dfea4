"""Words that belong together: the odd one out of a line, and groups that keep their members."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sememe.evaluation.files import read_groups, read_odd
from sememe.evaluation.lookup import Case, Lookup
from sememe.evaluation.offsets import unit_rows
from sememe.evaluation.results import Score, proportion_score
from sememe.metrics import score_sections

if TYPE_CHECKING:
    from sememe.vectors import WordVectors


def evaluate_odd(
    vectors: WordVectors, path: str | Path, *, case: Case = "lower", seed: int = 1
) -> Score:
    """Find the word that does not belong; lines read `row column axis | banana`."""
    path = Path(path)
    content = read_odd(path)
    lookup = Lookup(vectors.vocabulary, case, None)
    is_asked, is_correct, chance = [], [], []
    for row in content.rows:
        ids = [lookup.find(word) for word in row]
        is_asked.append(min(ids) >= 0)
        is_correct.append(False)
        if is_asked[-1]:
            units = unit_rows(vectors.vectors[np.array(ids)])
            is_correct[-1] = int(np.argmin(units @ units.mean(axis=0))) == len(row) - 1
            chance.append(1 / len(row))
    sections = score_sections(content.sections, is_asked, is_correct)
    details: dict[str, object] = {"chance": float(np.mean(chance)) if chance else math.nan}
    return proportion_score(
        "odd", path.stem, "odd one found, %", sections, seed, details={**details, "case": case}
    )


def evaluate_groups(
    vectors: WordVectors, path: str | Path, *, case: Case = "lower", seed: int = 1
) -> Score:
    """Put each word to the group whose other words are nearest on average."""
    path = Path(path)
    content = read_groups(path)
    lookup = Lookup(vectors.vocabulary, case, None)
    members = [[lookup.find(word) for word in row] for row in content.rows]
    known = [[word for word in row if word >= 0] for row in members]
    owners = np.array([group for group, row in enumerate(known) for _ in row], np.int64)
    ids = np.array([word for row in known for word in row], np.int64)
    cosines = unit_rows(vectors.vectors[ids]) @ unit_rows(vectors.vectors[ids]).T
    np.fill_diagonal(cosines, 0)
    belongs = owners[:, None] == np.arange(len(known))
    sizes = belongs.sum(axis=0) - belongs  # without the word itself
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(sizes > 0, (cosines @ belongs) / sizes, -np.inf)
    is_right = iter((means.argmax(axis=1) == owners).tolist() if len(ids) else [])
    # A word whose group has no other known word cannot be placed.
    is_asked = [
        word >= 0 and len(k) > 1 for row, k in zip(members, known, strict=True) for word in row
    ]
    is_correct = [word >= 0 and next(is_right) for row in members for word in row]
    names = [name for name, row in zip(content.sections, members, strict=True) for _ in row]
    sections = score_sections(names, is_asked, is_correct)
    return proportion_score(
        "groups", path.stem, "words in their group, %", sections, seed,
        details={"chance": 1 / len(known), "case": case},
    )  # fmt: skip

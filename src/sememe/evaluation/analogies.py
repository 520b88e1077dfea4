"""Analogies: *a* is to *b* as *c* is to which word? Accuracy by section, semantic and syntactic.

Questions with a word that the vectors lack are left out and stated as coverage; with
`count_unknown` they count as wrong (gensim's `dummy4unknown`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sememe.errors import OptionError
from sememe.evaluation.files import read_rows
from sememe.evaluation.lookup import Case, Lookup
from sememe.evaluation.offsets import Method, best_words
from sememe.evaluation.results import Score, proportion_score
from sememe.metrics import SectionScore, is_syntactic, score_sections, total_score

if TYPE_CHECKING:
    from sememe.vectors import WordVectors


def evaluate_analogies(
    vectors: WordVectors,
    path: str | Path,
    *,
    method: Method = "add",
    case: Case = "fold",
    restrict_vocab: int | None = 300_000,
    count_unknown: bool = False,
    seed: int = 1,
) -> Score:
    """Ask for the fourth word of each analogy; the defaults answer as gensim's evaluator does."""
    if method not in ("add", "mul"):
        raise OptionError(f"method must be add or mul, not {method!r}.")
    path = Path(path)
    content = read_rows(path, 4)
    lookup = Lookup(vectors.vocabulary, case, restrict_vocab)
    ids_Q4 = np.array([[lookup.find(word) for word in row] for row in content.rows], np.int64)
    is_known: np.ndarray = ids_Q4.min(axis=1) >= 0
    answers = best_words(
        vectors.vectors[: lookup.size], ids_Q4[is_known, :3],
        method=method, variants=lookup.variants,
    )  # fmt: skip
    stands_for = {spelling: ids[0] for ids in lookup.variants.values() for spelling in ids}
    is_correct = np.zeros(len(ids_Q4), bool)
    is_correct[is_known] = [
        stands_for.get(answer, answer) == expected
        for answer, expected in zip(answers.tolist(), ids_Q4[is_known, 3].tolist(), strict=True)
    ]
    is_asked = np.ones(len(is_known), bool) if count_unknown else is_known
    sections = score_sections(content.sections, is_asked.tolist(), is_correct.tolist())
    return proportion_score(
        "analogies", path.stem, "analogies right, %", sections, seed,
        num_known=int(is_known.sum()), totals=_google_totals(sections),
        details={"method": method, "case": case, "restrict_vocab": restrict_vocab,
                 "count_unknown": count_unknown},
    )  # fmt: skip


def _google_totals(sections: Sequence[SectionScore]) -> list[SectionScore]:
    """Semantic and syntactic totals, for files that name their sections as Google's does."""
    syntactic = [section for section in sections if is_syntactic(section.name)]
    semantic = [section for section in sections if not is_syntactic(section.name)]
    if not syntactic or not semantic:
        return []
    return [total_score("semantic", semantic), total_score("syntactic", syntactic)]

"""Word pairs with people's scores: how well do the cosines agree with them?

Pairs with a word that the vectors lack are left out and stated as coverage; with `count_unknown`
they stay in, with a similarity of zero (gensim's `dummy4unknown`). Vectors with sub-words have one
for every word: such pairs are asked too, and their number is stated beside the coverage.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sememe.evaluation.files import read_pairs
from sememe.evaluation.lookup import Case, Lookup, has_subwords
from sememe.evaluation.results import Score
from sememe.metrics import pearson, spearman, spearman_interval

if TYPE_CHECKING:
    from sememe.vectors import WordVectors


def evaluate_pairs(
    vectors: WordVectors,
    path: str | Path,
    *,
    case: Case = "lower",
    restrict_vocab: int | None = None,
    count_unknown: bool = False,
    compose_unknown: bool = True,
    seed: int = 1,
) -> Score:
    """Compare cosines with people's scores of word pairs (Spearman, Pearson beside it).

    `compose_unknown` asks words outside the vocabulary too, where the vectors have sub-words.
    """
    path = Path(path)
    content = read_pairs(path)
    lookup = Lookup(vectors.vocabulary, case, restrict_vocab)
    ids = np.array([[lookup.find(a), lookup.find(b)] for a, b in content.pairs], np.int64)
    is_known: np.ndarray = ids.min(axis=1) >= 0
    cosines, num_composed = np.zeros(len(ids)), 0
    if compose_unknown and has_subwords(vectors):
        num_composed = int((~is_known).sum())
        is_known[:] = True
        words = [[lookup.spelling(a), lookup.spelling(b)] for a, b in content.pairs]
        cosines[:] = _cosines(*(vectors[list(column)] for column in zip(*words, strict=True)))
    else:
        cosines[is_known] = _cosines(*(vectors.vectors[column] for column in ids[is_known].T))
    is_asked = np.ones(len(is_known), bool) if count_unknown else is_known
    gold, model = np.array(content.scores)[is_asked], cosines[is_asked]
    return Score(
        kind="pairs",
        name=path.stem,
        measure="Spearman × 100",
        value=spearman(gold, model),
        interval=spearman_interval(gold, model, seed=seed),
        num_asked=int(is_known.sum()),
        num_questions=len(ids),
        details={
            "pearson": pearson(gold, model),
            "score_column": content.score_column,
            "case": case,
            "restrict_vocab": restrict_vocab,
            "count_unknown": count_unknown,
            **({"num_composed": num_composed} if num_composed else {}),
            "seed": seed,
        },
    )


def _cosines(first_ND: np.ndarray, second_ND: np.ndarray) -> np.ndarray:
    x_ND, y_ND = first_ND.astype(np.float64), second_ND.astype(np.float64)
    lengths_N = np.linalg.norm(x_ND, axis=1) * np.linalg.norm(y_ND, axis=1)
    dots_N = np.einsum("nd,nd->n", x_ND, y_ND)
    # Rounded, because ranks would tell 0.9999999 from 1.0000001 where a word meets itself.
    return np.round(dots_N / np.where(lengths_N > 0, lengths_N, 1), 9)

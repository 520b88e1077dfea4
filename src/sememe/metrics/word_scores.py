"""Scores of word vectors: correlation with people's scores, analogy accuracy by section, and
whether vectors of one label are together. N vectors, D dimensions.

Correlations are NaN where a column is constant or shorter than two. Totals of analogies are those
of Mikolov et al. (2013a, 4.1). Equal cosines are ties and count by what is expected of a draw
among them, so that vectors that are all the same score exactly what chance does.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class SectionScore(NamedTuple):
    """Right answers among the questions that could be scored."""

    name: str
    num_correct: int
    num_asked: int
    num_questions: int

    @property
    def accuracy(self) -> float:
        """Fraction of right answers; NaN if nothing could be scored."""
        return self.num_correct / self.num_asked if self.num_asked else math.nan

    @property
    def coverage(self) -> float:
        """Fraction of questions whose four words are all known."""
        return self.num_asked / self.num_questions if self.num_questions else math.nan


def is_syntactic(section: str) -> bool:
    """Whether a section of the Google set is syntactic: `gram1-…` to `gram9-…`."""
    return section.startswith("gram")


def score_sections(
    sections: Sequence[str], is_asked: Sequence[bool], is_correct: Sequence[bool]
) -> list[SectionScore]:
    """Count per section, in the order in which the sections first appear."""
    counts: dict[str, list[int]] = {}
    for name, asked, correct in zip(sections, is_asked, is_correct, strict=True):
        count = counts.setdefault(name, [0, 0, 0])
        count[0] += bool(asked and correct)
        count[1] += bool(asked)
        count[2] += 1
    return [SectionScore(name, *count) for name, count in counts.items()]


def total_score(name: str, scores: Iterable[SectionScore]) -> SectionScore:
    """Add up sections: every question has the same weight."""
    chosen = list(scores)
    return SectionScore(
        name,
        sum(score.num_correct for score in chosen),
        sum(score.num_asked for score in chosen),
        sum(score.num_questions for score in chosen),
    )


def _correlation(name: str, first: ArrayLike, second: ArrayLike) -> float:
    """The statistic of a test of scipy.stats; NaN where a column is constant or too short."""
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"two columns of one length are needed, not {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a value is NaN or infinite")
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return math.nan
    from scipy import stats

    return float(getattr(stats, name)(x, y).statistic)


def pearson(first: ArrayLike, second: ArrayLike) -> float:
    """Measure how well a line fits the two columns."""
    return _correlation("pearsonr", first, second)


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Measure how well the two orders agree; equal values share their mean rank."""
    return _correlation("spearmanr", first, second)


# The same vector computed twice may differ in its last digits.
_TIE = 1e-6


class Separation(NamedTuple):
    """How well labels are kept apart; `nearest` and `chance` are shares, `auc` is 0.5 by chance."""

    nearest: float  # of the vectors whose nearest other one has the same label
    chance: float  # the same fraction for random neighbors
    auc: float  # how often a same-label pair is closer than a different-label pair


def separation(vectors_ND: np.ndarray, labels: Sequence[object]) -> Separation:
    """Compare each vector with all others by cosine; zero vectors have the cosine 0."""
    num = len(labels)
    if len(vectors_ND) != num or num < 2:
        raise ValueError(f"{len(vectors_ND)} vectors with {num} labels cannot be compared")
    cosines_NN = _cosines(vectors_ND)
    numbers_N = np.unique(np.array([str(label) for label in labels]), return_inverse=True)[1]
    is_same_NN = numbers_N[:, None] == numbers_N
    is_other_NN = ~np.eye(num, dtype=bool)
    best_N1 = np.where(is_other_NN, cosines_NN, -np.inf).max(axis=1, keepdims=True)
    is_near_NN = is_other_NN & (cosines_NN >= best_N1 - _TIE)
    like_N = (is_near_NN & is_same_NN).sum(axis=1) / is_near_NN.sum(axis=1)
    chance_N = (is_same_NN.sum(axis=1) - 1) / (num - 1)
    pairs = np.triu_indices(num, 1)
    is_same = is_same_NN[pairs]
    return Separation(
        nearest=float(like_N.mean()),
        chance=float(chance_N.mean()),
        auc=_auc(cosines_NN[pairs][is_same], cosines_NN[pairs][~is_same]),
    )


def _cosines(vectors_ND: np.ndarray) -> np.ndarray:
    rows_ND = np.asarray(vectors_ND, np.float64)
    if not np.isfinite(rows_ND).all():
        raise ValueError("finite vectors are needed")
    lengths_N1 = np.linalg.norm(rows_ND, axis=1, keepdims=True)
    units_ND = rows_ND / np.where(lengths_N1 > 0, lengths_N1, 1)
    return units_ND @ units_ND.T


def _auc(same: np.ndarray, different: np.ndarray) -> float:
    if not len(same) or not len(different):
        return math.nan
    gaps = same[:, None] - different
    return float((gaps > _TIE).mean() + (np.abs(gaps) <= _TIE).mean() / 2)

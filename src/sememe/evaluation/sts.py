"""Semantic textual similarity: do the cosines of a model agree with people's scores of pairs?

Models and a file of pairs in (STS-B's tsv, csv, jsonl); Spearman's and Pearson's correlation out.
Spearman is the metric of the field, also for Chinese pairs labelled 0 or 1 such as LCQMC; for
these, AUC and average precision are added, which read more easily.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.evaluation.comparing import Comparison, compare_predictions
from sememe.evaluation.results import (
    ResultTable,
    SystemRow,
    format_score,
    marked,
    package_version,
    plain,
)
from sememe.evaluation.retrieval import gain_cells, open_models, range_cell
from sememe.examples.labelled.texts import read_texts
from sememe.metrics import Interval, pearson, spearman, spearman_interval
from sememe.metrics.comparison import pearson_interval
from sememe.models.inference import embed_parts
from sememe.progress import Reporter, as_reporter
from sememe.vectors.search import unit_rows

_TEXTS_AT_ONCE = 2_048


@dataclass(frozen=True, kw_only=True)
class STSScore:
    """One model: its cosine of every pair, and how they agree with the scores of people."""

    model: str
    gold: np.ndarray
    cosines: np.ndarray
    num_unknown: int  # pairs with a text that has no word the model knows; their cosine is 0
    seed: int = 1

    @property
    def spearman(self) -> float:
        """Spearman's rank correlation; NaN if all cosines or all scores are equal."""
        return spearman(self.gold, self.cosines)

    @property
    def pearson(self) -> float:
        """Pearson's correlation."""
        return pearson(self.gold, self.cosines)

    @property
    def intervals(self) -> dict[str, Interval]:
        """The 95 % bootstrap intervals of both over the pairs."""
        return {
            "spearman": spearman_interval(self.gold, self.cosines, seed=self.seed),
            "pearson": pearson_interval(self.gold, self.cosines, seed=self.seed),
        }

    @property
    def ranking(self) -> dict[str, float]:
        """AUC and average precision, if all scores are 0 or 1."""
        if {*np.unique(self.gold)} != {0.0, 1.0}:
            return {}
        from sklearn.metrics import average_precision_score, roc_auc_score

        return {
            "auc": float(roc_auc_score(self.gold, self.cosines)),
            "average_precision": float(average_precision_score(self.gold, self.cosines)),
        }

    def to_dict(self) -> dict[str, Any]:
        """The scores for JSON."""
        return plain(
            {
                "model": self.model,
                "spearman": self.spearman,
                "pearson": self.pearson,
                "intervals": self.intervals,
                **self.ranking,
                "num_unknown": self.num_unknown,
            }
        )


@dataclass(frozen=True, kw_only=True)
class STSResult:
    """The scores of every model on the same pairs; each is compared with the first."""

    data: str
    scores: list[STSScore]
    seed: int
    version: str = field(default_factory=package_version)

    def compare(self, first: STSScore, second: STSScore) -> Comparison:
        """Test on the same pairs whether the second has a higher Spearman correlation."""
        return compare_predictions(
            first.gold.tolist(), first.cosines.tolist(), second.cosines.tolist(),
            metric="spearman", names=(first.model, second.model), seed=self.seed,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON, with the paired test of every two models."""
        return {
            "data": self.data,
            "num_pairs": len(self.scores[0].gold),
            "scores": [score.to_dict() for score in self.scores],
            "comparisons": [
                self.compare(first, second).to_dict()
                for index, first in enumerate(self.scores)
                for second in self.scores[index + 1 :]
            ],
            "seed": self.seed,
            "version": self.version,
        }

    def table(self) -> ResultTable:
        """One row per model."""
        more = list(self.scores[0].ranking)
        headings = ["model", "Spearman", "95 % interval", "Pearson", "95 % interval"]
        headings += [{"auc": "AUC", "average_precision": "average precision"}[n] for n in more]
        is_compared = len(self.scores) > 1
        num = len(self.scores[0].gold)
        return ResultTable(
            title=f"{self.data}: {num:,} pairs",
            headings=headings + (["against the first", "p"] if is_compared else []),
            rows=[
                SystemRow(score.model, [*_cells(score, num), *self._gain(score, is_compared)])
                for score in self.scores
            ],
            notes=[
                "Correlations of cosines with people's scores × 100 (Spearman is what the field "
                "reports); each model of one training (one seed); intervals and paired tests by "
                f"bootstrap over the pairs (seed {self.seed}); sememe {self.version}"
            ],
        )

    def _gain(self, score: STSScore, is_compared: bool) -> list[str]:
        if not is_compared:
            return []
        first = self.scores[0]
        return ["", ""] if score is first else gain_cells(self.compare(first, score).bootstrap)

    def __str__(self) -> str:
        """The table in plain text."""
        return str(self.table())


def _cells(score: STSScore, num: int) -> list[str]:
    cells = []
    for name, interval in score.intervals.items():
        value = getattr(score, name)
        cells += [marked(format_score(100 * value), num), range_cell(interval)]
    return cells + [format_score(100 * value) for value in score.ranking.values()]


def evaluate_sts(
    models: Any,
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    device: str = "auto",
    seed: int = 1,
    progress: Reporter | bool | None = None,
) -> STSResult:
    """Correlate the cosines of models with the scores of pairs of texts.

    `models` is a model or its path, or a list of them; `data` a file of pairs with scores, or rows
    (text, second, score).
    """
    reporter = as_reporter(progress)
    rows = read_texts(
        data, kind="regress", columns=columns, skip_bad=skip_bad, on_note=reporter.note
    )
    if alone := next((row for row in rows if row.second is None), None):
        raise InputError(
            f"{alone.source}: a pair needs two texts; name their columns with --column text=NAME "
            "--column second=NAME."
        )
    gold = np.array([row.score for row in rows], np.float64)
    if len(gold) < 2 or (gold == gold[0]).all():
        raise InputError("All pairs have the same score: no correlation is defined.")
    texts = [row.text for row in rows] + [row.second or "" for row in rows]
    scores = []
    for name, model in open_models(models, device):
        vectors_ND = unit_rows(_embedded(model, texts, reporter, name))
        first_ND, second_ND = np.split(vectors_ND, 2)
        is_known = first_ND.any(axis=1) & second_ND.any(axis=1)
        cosines = np.einsum("nd,nd->n", first_ND, second_ND)
        score = STSScore(
            model=name, gold=gold, cosines=cosines, num_unknown=int((~is_known).sum()), seed=seed
        )
        if score.num_unknown:
            reporter.note(
                f"{name}: {score.num_unknown:,} pairs have a text without a word that the model "
                "knows; their cosine is 0."
            )
        if math.isnan(score.spearman):
            raise InputError(
                f"{name} gives every pair the same cosine: it knows none of the words."
            )
        scores.append(score)
    if not scores:
        raise InputError("There is no model to evaluate.")
    title = Path(data).name if isinstance(data, (str, Path)) else "the given rows"
    return STSResult(data=title, scores=scores, seed=seed)


def _embedded(model: Any, texts: Sequence[str], reporter: Reporter, name: str) -> np.ndarray:
    parts = []
    with reporter.task(f"embedding {name}", len(texts), "texts") as task:
        starts = range(0, len(texts), _TEXTS_AT_ONCE)
        for own_ND in embed_parts(
            model, ([*texts[start : start + _TEXTS_AT_ONCE]] for start in starts)
        ):
            parts.append(own_ND)
            task.update(task.done + len(own_ND))
    return np.concatenate(parts)

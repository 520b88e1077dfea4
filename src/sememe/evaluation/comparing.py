"""Two models on the same rows: is the difference significant? Paired tests of predictions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from sememe.contract import KINDS
from sememe.errors import ArtifactError, InputError, OptionError
from sememe.evaluation.results import (
    ResultTable,
    SystemRow,
    format_percents,
    format_score,
    package_version,
    plain,
)
from sememe.evaluation.scoring import task_kinds
from sememe.metrics import (
    Interval,
    McNemar,
    PairedBootstrap,
    are_chinese,
    mcnemar,
    paired_bootstrap,
)
from sememe.metrics.baselines import NO_SEED, ONE_SEED, BaselineScore, baselines_of
from sememe.metrics.by_name import METRICS, gold_of, interval_of, said_of
from sememe.storage.folder import parse_json
from sememe.text.sources import read_utf8

Test = Literal["bootstrap", "mcnemar"]
# The significance level.
_LEVEL = 0.05

DEFAULTS = {
    "classify": "accuracy",
    "pairs": "accuracy",
    "choose": "accuracy",
    "regress": "spearman",
    "tag": "entity_f1",
}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The scores of two models on the same rows, and the results of paired tests."""

    first: str
    second: str
    metric: str
    num_rows: int
    bootstrap: PairedBootstrap
    mcnemar: McNemar | None
    test: Test
    seed: int
    intervals: tuple[Interval, Interval]  # of both scores over the rows
    seeds: tuple[str, str] = (ONE_SEED, ONE_SEED)  # the runs that they are from
    baselines: list[dict[str, Any]] = field(default_factory=list)  # see metrics.BaselineScore

    @property
    def p_value(self) -> float:
        """The p-value of the chosen test."""
        if self.test == "mcnemar" and self.mcnemar is not None:
            return self.mcnemar.p_value
        return self.bootstrap.p_value

    @property
    def is_real(self) -> bool:
        """Whether the difference is significant at 5 %."""
        return self.p_value < _LEVEL

    @property
    def verdict(self) -> str:
        """One sentence."""
        difference = 100 * self.bootstrap.difference
        chance = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        if math.isnan(difference):
            return "The models cannot be compared: a score is not defined on these rows."
        if self.is_real:
            better = self.second if difference > 0 else self.first
            return (
                f"The difference is real: {better} is better by {abs(difference):.2f} ({chance})."
            )
        return (
            f"The difference of {difference:+.2f} is not significant on these "
            f"{self.num_rows:,} rows ({chance})."
        )

    def table(self) -> ResultTable:
        """Both models and the baselines, with their intervals over the rows and their seeds."""
        own = zip(
            (self.first, self.second), (self.bootstrap.first, self.bootstrap.second),
            self.intervals, self.seeds, strict=True,
        )  # fmt: skip
        rows = [
            SystemRow(name, [format_score(100 * score, digits=2), format_percents(bounds), seeds])
            for name, score, bounds, seeds in own
        ]
        for one in self.baselines:
            if one["score"] is not None:
                score = format_score(100 * one["score"], digits=2)
                rows.append(
                    SystemRow(one["name"], [score, format_percents(one["interval"]), NO_SEED])
                )
        notes = [one["why"] for one in self.baselines if one["why"]]
        headings = ("system", self.metric.replace("_", " "), "95 % interval", "seeds")
        return ResultTable(title="", headings=headings, rows=rows, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return plain(
            {
                "first": self.first,
                "second": self.second,
                "metric": self.metric,
                "num_rows": self.num_rows,
                "scores": [self.bootstrap.first, self.bootstrap.second],
                "score_intervals": self.intervals,
                "seeds": self.seeds,
                "baselines": self.baselines,
                "difference": self.bootstrap.difference,
                "interval": self.bootstrap.interval,
                "bootstrap_p_value": self.bootstrap.p_value,
                "num_resamples": self.bootstrap.num_resamples,
                "mcnemar": None if self.mcnemar is None else self.mcnemar._asdict(),
                "test": self.test,
                "p_value": self.p_value,
                "is_real": self.is_real,
                "verdict": self.verdict,
                "seed": self.seed,
                "version": package_version(),
            }
        )


def compare_predictions(
    gold: Sequence[Any],
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    metric: str,
    names: tuple[str, str] = ("A", "B"),
    positive: str = "1",
    test: Test | None = None,
    num_resamples: int = 10_000,
    seed: int = 1,
) -> Comparison:
    """Compare the predictions of two models on the same rows by one metric.

    McNemar's test is added to the bootstrap if rows are right or wrong; `test` chooses which one
    decides, by default the bootstrap.
    """
    if metric not in METRICS:
        raise OptionError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}.")
    chosen = METRICS[metric]
    if test == "mcnemar" and not chosen.is_right_or_wrong:
        raise OptionError(f"McNemar's test needs rows that are right or wrong; {metric} is not so.")
    if not gold:
        raise InputError("There are no rows to compare on.")
    try:
        a = chosen.rows(gold, first, positive, second)
        b = chosen.rows(gold, second, positive, first)
    except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
        raise InputError(f"These predictions cannot be scored by {metric}: {error}.") from error
    return Comparison(
        first=names[0],
        second=names[1],
        metric=metric,
        num_rows=len(gold),
        bootstrap=paired_bootstrap(a, b, chosen.combine, num_resamples=num_resamples, seed=seed),
        mcnemar=mcnemar(a > 0.5, b > 0.5) if chosen.is_right_or_wrong else None,
        test=test or "bootstrap",
        seed=seed,
        intervals=(
            interval_of(metric, gold, first, positive, seed=seed),
            interval_of(metric, gold, second, positive, seed=seed),
        ),
    )


def compare_tasks(
    first: str | Path,
    second: str | Path,
    data: Any,
    *,
    train: Any = None,
    metric: str = "",
    on_note: Callable[[str], None] = lambda _: None,
    reading: dict[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Run two fine-tuned models on the rows of `data` and compare their predictions.

    `train`, the rows that they learned from, adds the scores of baselines that learn from the same.
    """
    kinds = _kinds(Path(first), Path(second), (reading or {}).get("columns"))
    if kinds[0] != kinds[1]:
        raise InputError(
            f"{first} was fine-tuned to {kinds[0]}, {second} to {kinds[1]}: they cannot be "
            "compared on the same rows."
        )
    kind = kinds[0]
    tasks = [KINDS[kind].cls().load(folder) for folder in (first, second)]
    if tasks[0].own_k != tasks[1].own_k:
        raise InputError(
            f"Of {first} and {second}, only one predicts several labels per row: they cannot be "
            "compared on the same rows."
        )
    rows = tasks[0].read(data, labelled=True, on_note=on_note, **(reading or {}))
    gold = gold_of(kind, rows)
    if not metric:
        metric = _metric_for(gold) if kind == "answer" else DEFAULTS[kind]
        metric = metric if tasks[0].own_k else "micro_f1"
    said = [said_of(kind, task.predict_rows(rows)) for task in tasks]
    found = compare_predictions(
        gold, *said, metric=metric, names=_names(str(first), str(second)), **options
    )
    beside: list[BaselineScore] = []
    if train is not None:
        taught = tasks[0].read(train, labelled=True, on_note=on_note, **(reading or {}))
        positive = options.get("positive", "1")
        beside = baselines_of(kind, taught).scores(rows, gold, metric, positive)
    return replace(
        found, seeds=(tasks[0].seeds, tasks[1].seeds), baselines=[one.to_dict() for one in beside]
    )


def _kinds(first: Path, second: Path, columns: dict[str, Any] | None) -> list[Any]:
    """The tasks that two folders were fine-tuned for.

    Files of transformers do not say whether a label is of one text or of two: a column for the
    second does, or the other model.
    """
    kinds = [task_kinds(folder) for folder in (first, second)]
    for folder, own in zip((first, second), kinds, strict=True):
        if not own:
            raise ArtifactError(f"{folder} is not a model that was fine-tuned.")
    is_of_two = "second" in (columns or {}) or ("pairs",) in kinds
    return [own[-1] if is_of_two else own[0] for own in kinds]


def compare_files(
    first: str | Path, second: str | Path, *, metric: str, **options: Any
) -> Comparison:
    """Compare two prediction files written by `sememe evaluate … --out`."""
    columns = [_read_predictions(Path(path)) for path in (first, second)]
    (ids, gold, said), (other_ids, other_gold, other_said) = columns
    if ids != other_ids or gold != other_gold:
        raise InputError(f"{first} and {second} hold other rows, or the same in another order.")
    return compare_predictions(
        gold, said, other_said, metric=metric or _metric_for(gold),
        names=_names(str(first), str(second)), **options,
    )  # fmt: skip


def _metric_for(gold: Sequence[Any]) -> str:
    sample = gold[0] if gold else ""
    if isinstance(sample, list):
        tags = [tag for row in gold if isinstance(row, list) for tag in row]
        is_tags = all(isinstance(tag, str) and (tag == "O" or tag[1:2] == "-") for tag in tags)
        if is_tags and tags:
            return "entity_f1"
        if not all(gold):
            return "squad2_f1"
        return "cmrc_f1" if are_chinese(gold) else "squad_f1"
    return "spearman" if isinstance(sample, float) else "accuracy"


def _read_predictions(path: Path) -> tuple[list[Any], list[Any], list[Any]]:
    rows = []
    # Not splitlines: texts may contain U+2028 and others that it treats as line ends.
    *lines, last = read_utf8(path).split("\n")
    for number, line in enumerate([*lines, last] if last else lines, start=1):
        try:
            row = parse_json(line)
            if not _is_answer(row["gold"]) or not _is_answer(row["predicted"]):
                raise TypeError(row)
            rows.append((row["id"], row["gold"], row["predicted"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path}:{number}: a JSON object with id, gold and predicted was expected, "
                "the latter two being labels, numbers or lists of texts."
            ) from error
    if not rows:
        raise InputError(f"{path} holds no predictions.")
    ids, gold, said = (list(column) for column in zip(*rows, strict=True))
    return ids, gold, said


def _is_answer(value: Any) -> bool:
    """Whether a value may be a label, a number, or the tags or answers of a row."""
    texts = value if isinstance(value, list) else []
    return isinstance(value, str | int | float | list) and all(isinstance(t, str) for t in texts)


def _names(first: str, second: str) -> tuple[str, str]:
    """The last parts of the paths, or the full paths if those are equal."""
    short = Path(first).name, Path(second).name
    return short if short[0] != short[1] else (first, second)

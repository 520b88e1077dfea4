"""Two models on the same rows: is the difference real? Paired tests over their predictions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sememe.errors import InputError, OptionError
from sememe.evaluation.results import package_version, plain
from sememe.evaluation.rows import gold_of, said_of
from sememe.evaluation.scoring import METRICS
from sememe.metrics import McNemar, PairedBootstrap, are_chinese, mcnemar, paired_bootstrap

if TYPE_CHECKING:
    from sememe.tasks.task import Task

Test = Literal["bootstrap", "mcnemar"]
# The share of chance findings that is put up with.
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
    """The scores of two models on the same rows, and what paired tests say of the difference."""

    first: str
    second: str
    metric: str
    num_rows: int
    bootstrap: PairedBootstrap
    mcnemar: McNemar | None
    test: Test
    seed: int

    @property
    def p_value(self) -> float:
        """The chance of so large a difference if there were none, by the chosen test."""
        if self.test == "mcnemar" and self.mcnemar is not None:
            return self.mcnemar.p_value
        return self.bootstrap.p_value

    @property
    def is_real(self) -> bool:
        """Whether the difference is more than chance, at 5 %."""
        return self.p_value < _LEVEL

    @property
    def verdict(self) -> str:
        """One sentence."""
        difference = 100 * self.bootstrap.difference
        chance = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        if math.isnan(difference):
            return "The difference cannot be told: a score is not defined on these rows."
        if self.is_real:
            better = self.second if difference > 0 else self.first
            return (
                f"The difference is real: {better} is better by {abs(difference):.2f} ({chance})."
            )
        return (
            f"The difference of {difference:+.2f} may be chance ({chance}): these "
            f"{self.num_rows:,} rows do not tell the two apart."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return plain(
            {
                "first": self.first,
                "second": self.second,
                "metric": self.metric,
                "num_rows": self.num_rows,
                "scores": [self.bootstrap.first, self.bootstrap.second],
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
    """Compare what two models said of the same rows by one metric.

    McNemar's test is given beside the bootstrap where rows are right or wrong; `test` says which
    of them decides, left out: the bootstrap.
    """
    if metric not in METRICS:
        raise OptionError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}.")
    chosen = METRICS[metric]
    if test == "mcnemar" and not chosen.is_right_or_wrong:
        raise OptionError(f"McNemar's test needs rows that are right or wrong; {metric} is not so.")
    if not gold:
        raise InputError("There are no rows to compare on.")
    try:
        rows = chosen.figures(gold, first, second, positive)
    except (TypeError, ValueError) as error:
        raise InputError(f"These predictions cannot be scored by {metric}: {error}.") from error
    counts = mcnemar(rows.first > 0.5, rows.second > 0.5) if chosen.is_right_or_wrong else None
    return Comparison(
        first=names[0],
        second=names[1],
        metric=metric,
        num_rows=len(gold),
        bootstrap=paired_bootstrap(
            rows.first, rows.second, rows.combine, num_resamples=num_resamples, seed=seed
        ),
        mcnemar=counts,
        test=test or "bootstrap",
        seed=seed,
    )


def compare_tasks(
    first: str | Path,
    second: str | Path,
    data: Any,
    *,
    metric: str = "",
    on_note: Callable[[str], None] = lambda _: None,
    reading: dict[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Let two fine-tuned models answer the rows of `data` and compare them."""
    tasks = _opened(Path(first), Path(second), (reading or {}).get("columns"))
    if tasks[0].name != tasks[1].name:
        raise InputError(
            f"{first} was fine-tuned to {tasks[0].name}, {second} to {tasks[1].name}: they cannot "
            "be compared on the same rows."
        )
    kind: Any = tasks[0].name
    rows = tasks[0].read(data, labelled=True, on_note=on_note, **(reading or {}))
    gold = gold_of(kind, rows)
    if not metric:
        metric = _metric_for(gold) if kind == "answer" else DEFAULTS[kind]
    said = [said_of(kind, task.predict_rows(rows)) for task in tasks]
    return compare_predictions(
        gold, *said, metric=metric, names=_names(str(first), str(second)), **options
    )


def _opened(first: Path, second: Path, columns: dict[str, Any] | None) -> list[Task]:
    """Two tasks; one of transformers is taken for what the other one is, where it can be."""
    from sememe.tasks.foreign import foreign_name, open_task

    tasks = [open_task(folder, columns) for folder in (first, second)]
    for index, folder in enumerate((first, second)):
        other = type(tasks[1 - index])
        if foreign_name(folder) and issubclass(other, type(tasks[index])):
            tasks[index] = other.load(folder)
    return tasks


def compare_files(
    first: str | Path, second: str | Path, *, metric: str, **options: Any
) -> Comparison:
    """Compare two files of predictions that `sememe evaluate … --out` left."""
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
        is_tags = all(tag == "O" or tag[1:2] == "-" for row in gold for tag in row)
        if is_tags and any(map(len, gold)):
            return "entity_f1"
        if not all(gold):
            return "squad2_f1"
        return "cmrc_f1" if are_chinese(gold) else "squad_f1"
    return "spearman" if isinstance(sample, float) else "accuracy"


def _read_predictions(path: Path) -> tuple[list[Any], list[Any], list[Any]]:
    rows = []
    try:
        # Not splitlines: texts may hold U+2028 and other marks that it takes for a line's end.
        *lines, last = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {path}: {error}.") from error
    for number, line in enumerate([*lines, last] if last else lines, start=1):
        try:
            row = json.loads(line)
            rows.append((row["id"], row["gold"], row["predicted"]))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}:{number}: a JSON object with id, gold and predicted was expected."
            ) from error
    if not rows:
        raise InputError(f"{path} holds no predictions.")
    ids, gold, said = (list(column) for column in zip(*rows, strict=True))
    return ids, gold, said


def _names(first: str, second: str) -> tuple[str, str]:
    """The last parts of the paths, or the whole where those are the same."""
    short = Path(first).name, Path(second).name
    return short if short[0] != short[1] else (first, second)

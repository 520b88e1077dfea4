"""All benchmarks of one kind in a folder: a model and a folder in, outcomes out.

The outcomes of GLUE form one table in the papers' layout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sememe.errors import InputError, OptionError
from sememe.evaluation.benchmarks import ANSWER_SETS, GLUE, SETS, TAG_SETS, Benchmark, xnli
from sememe.evaluation.benchmarks.catalogue import SIZES
from sememe.evaluation.benchmarks.published import GLUE as PUBLISHED, GLUE_COLUMNS
from sememe.evaluation.finetuning import run_benchmark
from sememe.evaluation.outcomes import Outcome, PartScores, benchmark_table, ours_note
from sememe.evaluation.recognition import recognise
from sememe.evaluation.results import (
    PUBLISHED_MARK,
    ResultTable,
    SystemRow,
    format_percents,
    format_score,
    plain,
)
from sememe.evaluation.rows import DataFolder, Holdings, RunSettings
from sememe.evaluation.scoring import task_kinds
from sememe.localization import translate
from sememe.metrics.baselines import NO_SEED
from sememe.metrics.by_name import METRICS
from sememe.progress import SILENT, Reporter

# The column of a part of a task; WNLI has none in the papers.
_COLUMNS = {("MNLI", "matched"): "MNLI-m", ("MNLI", "mismatched"): "MNLI-mm"}


def average(scores: Mapping[str, float], columns: Sequence[str] = GLUE_COLUMNS) -> float:
    """The papers' average: the mean of the nine columns, MNLI's two separately, without WNLI."""
    known = [scores.get(column, math.nan) for column in columns]
    return sum(known) / len(known) if known else math.nan


@dataclass(frozen=True, kw_only=True)
class FamilyResult:
    """Outcomes of several benchmarks, earlier ones to compare with, and missing files."""

    outcomes: list[Outcome]
    missing: dict[str, list[str]] = field(default_factory=dict)
    earlier: list[Outcome] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return plain(
            {"outcomes": [one.to_dict() for one in self.outcomes], "missing": self.missing}
        )

    def __str__(self) -> str:
        """One table per benchmark, then what is missing."""
        earlier = [
            [one for one in self.earlier if one.benchmark == outcome.benchmark]
            for outcome in self.outcomes
        ]
        tables = [
            str(benchmark_table([*before, outcome]))
            for before, outcome in zip(earlier, self.outcomes, strict=True)
        ]
        notes = [
            f"{name}: there is no {', no '.join(files)}." for name, files in self.missing.items()
        ]
        return "\n\n".join([*tables, *(["\n".join(map(translate, notes))] if notes else [])])


@dataclass(frozen=True, kw_only=True)
class GLUEResult(FamilyResult):
    """The outcomes of the tasks of GLUE, in one table."""

    @property
    def columns(self) -> dict[str, tuple[PartScores, str]]:
        """The scores by the papers' columns, with the metric that counts there."""
        return {
            _COLUMNS.get((outcome.benchmark, name), outcome.benchmark): (
                part,
                GLUE[outcome.benchmark].main_metric,
            )
            for outcome in self.outcomes
            for name, part in outcome.parts.items()
        }

    @property
    def means(self) -> dict[str, float]:
        """The mean of each column in percent."""
        return {
            column: 100 * part.spread(metric).mean
            for column, (part, metric) in self.columns.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return plain(
            {
                "benchmark": "glue",
                "columns": self.means,
                "average": average(self.means),
                "outcomes": [outcome.to_dict() for outcome in self.outcomes],
                "missing": self.missing,
                "published": [vars(row) for row in PUBLISHED],
            }
        )

    def table(self) -> ResultTable:
        """Our row below the published rows, as in Devlin et al. 2019, Table 1.

        If columns are missing, a second average over the existing ones is given for all.
        """
        tasks = list(SIZES)
        measured = [column for column in GLUE_COLUMNS if column in self.means]
        is_whole = len(measured) == len(GLUE_COLUMNS)
        rows = [
            SystemRow(
                row.system,
                [
                    *(
                        _cell(task, {c: format_score(s) for c, s in row.scores.items()})
                        for task in tasks
                    ),
                    format_score(row.average),
                    *([] if is_whole else [format_score(average(row.scores, measured))]),
                ],
                is_published=True,
            )
            for row in PUBLISHED
        ]
        rows += [_own_row(one, tasks, [] if is_whole else measured) for one in self._systems()]
        short = [] if is_whole else [f"mean of {len(measured)}"]
        names = ["MNLI-(m/mm)" if task == "MNLI" else task for task in tasks]
        return ResultTable(
            title="GLUE",
            headings=["system", *names, "average", *short],
            below=["", *SIZES.values(), "", *["" for _ in short]],
            rows=rows,
            notes=self._notes(),
        )

    def _systems(self) -> list[GLUEResult]:
        """The results of each earlier model, then ours."""
        models = dict.fromkeys(outcome.model for outcome in self.earlier)
        own = [[one for one in self.earlier if one.model == model] for model in models]
        return [*(GLUEResult(outcomes=outcomes) for outcomes in own), self]

    def __str__(self) -> str:
        """The papers' table, and every metric below it."""
        return f"{self.table()}\n\n{self.detail()}"

    def _notes(self) -> list[str]:
        num_seeds = max((len(outcome.seeds) for outcome in self.outcomes), default=0)
        notes = [
            f"{PUBLISHED_MARK} published, test-server scores ({PUBLISHED[0].source}); "
            "ours are on the dev sets"
            + (
                f", mean ± standard deviation of {num_seeds} seeds."
                if num_seeds > 1
                else ", one seed."
            ),
            "F1 for QQP and MRPC, Matthews' correlation for CoLA, Spearman's for STS-B, accuracy "
            "for the others; average: mean of the nine columns, without WNLI.",
        ]
        if "WNLI" in self.means:
            notes.append(f"WNLI, which the papers leave out: {format_score(self.means['WNLI'])}.")
        notes += [
            f"{name} was skipped: there is no {', no '.join(files)}."
            for name, files in self.missing.items()
        ]
        return notes + [f"{own.benchmark}: {why}" for own in self.outcomes for why in own.undefined]

    def detail(self) -> ResultTable:
        """Every metric of every task, with the number of rows and seeds."""
        rows = [
            SystemRow(
                outcome.benchmark if name == "dev" else f"{outcome.benchmark}-{name}",
                [
                    METRICS[metric].short,
                    part.format_score(metric),
                    part.format_interval(metric),
                    f"{part.num_rows:,}",
                    f"{part.coverage:.1%}",
                    f"{outcome.num_train:,}",
                    str(len(outcome.seeds)),
                    f"{outcome.seconds:.0f}",
                ],
            )
            for outcome in self.outcomes
            for name, part in outcome.parts.items()
            for metric in part.metrics
        ]
        headings = [
            "task", "metric", "score", "95 % interval", "rows", "coverage", "learned", "seeds",
            "seconds",
        ]  # fmt: skip
        rows += [
            SystemRow(
                f"{outcome.benchmark}: {one['name']}",
                [
                    METRICS[outcome.description.main_metric].short,
                    format_score(100 * one["score"]), format_percents(one["interval"]),
                    f"{part.num_rows:,}", "", f"{one['num_train']:,}", NO_SEED, "",
                ],
            )
            for outcome in self.outcomes
            for part in outcome.parts.values()
            for one in part.baselines
            if one["score"] is not None
        ]  # fmt: skip
        notes = [ours_note(self.outcomes[-1]).rpartition("; ")[2]] if self.outcomes else []
        return ResultTable(title="", headings=headings, rows=rows, notes=notes)


def _own_row(result: GLUEResult, tasks: Sequence[str], measured: Sequence[str]) -> SystemRow:
    cells = {column: part.format_score(metric) for column, (part, metric) in result.columns.items()}
    return SystemRow(
        result.outcomes[-1].model if result.outcomes else "ours",
        [
            *(_cell(task, cells) for task in tasks),
            format_score(average(result.means)),
            *([format_score(average(result.means, measured))] if measured else []),
        ],
    )


def _cell(task: str, cells: Mapping[str, str]) -> str:
    if task == "MNLI":
        return "/".join(cells.get(column, "–") for column in ("MNLI-m", "MNLI-mm"))
    return cells.get(task, "–")


def evaluate_glue(model: str | Path, data: str | Path, **more: Any) -> GLUEResult:
    """Fine-tune on every task of GLUE whose official files are in `data`."""
    return GLUEResult(**vars(evaluate_family(model, data, GLUE, **more)))


def evaluate_texts(
    model: str | Path, data: str | Path, *, source: str = "en", **more: Any
) -> FamilyResult:
    """Fine-tune on sets of texts, pairs and choices: SNLI, SST-5, RACE, ChnSentiCorp, XNLI …

    `source` is the training language of XNLI.
    """
    return evaluate_family(model, data, {**SETS, "xnli": xnli(source)}, **more)


def evaluate_squad(model: str | Path, data: str | Path, **more: Any) -> FamilyResult:
    """Fine-tune on SQuAD 1.1 and 2.0, CMRC 2018 and DRCD."""
    return evaluate_family(model, data, ANSWER_SETS, **more)


def evaluate_ner(model: str | Path, data: str | Path, **more: Any) -> FamilyResult:
    """Fine-tune on CoNLL-2003, MSRA and CLUENER."""
    return evaluate_family(model, data, TAG_SETS, **more)


def evaluate_family(
    model: str | Path,
    data: str | Path,
    family: Mapping[str, Benchmark],
    *,
    seeds: int = 1,
    settings: RunSettings | None = None,
    only: Sequence[str] = (),
    earlier: Sequence[Outcome] = (),
    reporter: Reporter = SILENT,
    **options: Any,
) -> FamilyResult:
    """Run the benchmarks of a family whose files are in a folder, or the named ones.

    `options` are those of fine-tuning, such as epochs=2; `settings` has more and replaces `seeds`
    and `options`. Tables show `earlier` outcomes above ours, and compute gains from them.
    """
    first = options.pop("seed", 1)
    settings = settings or RunSettings(
        seeds=tuple(first + number for number in range(seeds)), options=options
    )
    chosen = choose(family, only)
    folder = DataFolder(data)
    outcomes, missing = [], {}
    kinds = task_kinds(model)
    held = find_holdings(folder, chosen, reporter)
    for benchmark in chosen:
        holdings = held[benchmark.name]
        if kinds and benchmark.kind not in kinds and not only:
            continue
        lacking = _lacking(model, holdings, settings)
        if not lacking:
            try:
                outcomes.append(run_benchmark(model, holdings, settings, reporter=reporter))
            except InputError as error:
                # A fine-tuned model fits only the sets of a family with its own labels.
                if only or not kinds:
                    raise
                reporter.note(f"{benchmark.name} is skipped: {error}")
            continue
        missing[benchmark.name] = lacking
        # For a large family, only sets with some existing files are worth a note.
        if only or family is GLUE or holdings.parts or holdings.train:
            reporter.note(f"{benchmark.name} is skipped: there is no {', no '.join(lacking)}.")
    if not outcomes:
        raise InputError(_nothing(folder, kinds, missing))
    if all(
        len(own.undefined) == sum(len(p.metrics) for p in own.parts.values()) for own in outcomes
    ):
        raise InputError(f"No score of {model} is defined. {outcomes[0].undefined[0]}")
    named = set(only) or {name for name in missing if family is GLUE}
    return FamilyResult(
        outcomes=outcomes,
        missing={name: own for name, own in missing.items() if name in named},
        earlier=list(earlier),
    )


def find_holdings(
    folder: DataFolder, chosen: Sequence[Benchmark], reporter: Reporter = SILENT
) -> dict[str, Holdings]:
    """The files of benchmarks by their official paths or, where none is found, by their content."""
    held = {benchmark.name: folder.holdings(benchmark) for benchmark in chosen}
    if not any(own.train or own.parts for own in held.values()):
        found, notes = recognise(folder.folder, chosen)
        held |= found
        for note in notes:
            reporter.note(note)
    return held


def choose(family: Mapping[str, Benchmark], only: Sequence[str]) -> list[Benchmark]:
    """The benchmarks of a family by name, ignoring case; by default all."""
    by_lower = {name.lower(): benchmark for name, benchmark in family.items()}
    for name in only:
        if name.lower() not in by_lower:
            raise OptionError(f"There is no {name!r} here; there are {', '.join(family)}.")
    return [by_lower[name.lower()] for name in only] or list(family.values())


def _lacking(model: str | Path, holdings: Holdings, settings: RunSettings) -> list[str]:
    """The missing files without which a benchmark cannot be run."""
    benchmark = holdings.benchmark
    lacking = []
    if not (holdings.train or settings.train or task_kinds(model)):
        lacking.append(benchmark.train[0].pattern)
    learned = {path.resolve() for path in settings.train}
    if all(learned & {path.resolve() for path in part.paths} for part in holdings.parts.values()):
        lacking.append(next(iter(benchmark.parts.values()))[0].pattern)
    return lacking


def _nothing(folder: DataFolder, kinds: Sequence[str], missing: Mapping[str, Sequence[str]]) -> str:
    text = f"{folder.folder} holds no benchmark that can be run"
    if kinds:
        return f"{text} with a model that was fine-tuned to {' or '.join(kinds)}."
    wanted = "; ".join(f"{name}: {', '.join(files)}" for name, files in missing.items())
    return f"{text}. Missing are {wanted}."

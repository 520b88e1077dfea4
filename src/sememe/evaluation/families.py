"""All benchmarks of one kind whose files a folder holds: a model and a folder in, outcomes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sememe.errors import InputError, OptionError
from sememe.evaluation.benchmarks import ANSWER_SETS, GLUE, SETS, TAG_SETS, Benchmark, xnli
from sememe.evaluation.finding import DataFolder, Holdings
from sememe.evaluation.finetuning import run_benchmark
from sememe.evaluation.finished import is_finished, task_kinds
from sememe.evaluation.glue import GLUEResult
from sememe.evaluation.outcomes import Outcome, benchmark_table
from sememe.evaluation.preparing import RunSettings
from sememe.evaluation.results import plain
from sememe.progress import SILENT, Reporter


@dataclass(frozen=True, kw_only=True)
class FamilyResult:
    """Outcomes of several benchmarks, earlier ones to hold them against, and missing files."""

    outcomes: list[Outcome]
    missing: dict[str, list[str]] = field(default_factory=dict)
    earlier: list[Outcome] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return plain(
            {"outcomes": [one.to_dict() for one in self.outcomes], "missing": self.missing}
        )

    def __str__(self) -> str:
        """One table a benchmark, then what is missing."""
        tables = [
            str(benchmark_table([*self._before(outcome), outcome])) for outcome in self.outcomes
        ]
        notes = [
            f"{name}: there is no {', no '.join(files)}." for name, files in self.missing.items()
        ]
        return "\n\n".join([*tables, *(["\n".join(notes)] if notes else [])])

    def _before(self, outcome: Outcome) -> list[Outcome]:
        return [one for one in self.earlier if one.benchmark == outcome.benchmark]


def evaluate_glue(model: str | Path, data: str | Path, **more: Any) -> GLUEResult:
    """Fine-tune on every task of GLUE whose official files are in `data`."""
    result = evaluate_family(model, data, GLUE, **more)
    return GLUEResult(outcomes=result.outcomes, missing=result.missing, earlier=result.earlier)


def evaluate_texts(
    model: str | Path, data: str | Path, *, source: str = "en", **more: Any
) -> FamilyResult:
    """Fine-tune on sets of texts, pairs and choices: SNLI, SST-5, RACE, ChnSentiCorp, XNLI …

    `source` is the language in which XNLI is learned.
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
    """Run the benchmarks of a family whose files are in a folder, or those that are named.

    `options` are those of fine-tuning, such as epochs=2; `settings` says more and replaces `seeds`
    and `options`. `earlier` outcomes stand above ours in the tables, and gains are counted from
    them.
    """
    first = options.pop("seed", 1)
    settings = settings or RunSettings(
        seeds=tuple(first + number for number in range(seeds)), options=options
    )
    chosen = choose(family, only)
    folder = DataFolder(data)
    outcomes, missing = [], {}
    kinds = task_kinds(model)
    for benchmark in chosen:
        holdings = folder.holdings(benchmark)
        if kinds and benchmark.kind not in kinds and not only:
            continue
        lacking = _lacking(model, holdings, settings)
        if not lacking:
            try:
                outcomes.append(run_benchmark(model, holdings, settings, reporter=reporter))
            except InputError as error:
                # A fine-tuned model fits a few sets of a family: those of its own labels.
                if only or not kinds:
                    raise
                reporter.note(f"{benchmark.name} is left out: {error}")
            continue
        missing[benchmark.name] = lacking
        # Of a large family, only what somebody began to collect is worth a word now.
        if only or family is GLUE or holdings.parts or holdings.train:
            reporter.note(f"{benchmark.name} is left out: there is no {', no '.join(lacking)}.")
    if not outcomes:
        raise InputError(_nothing(folder, kinds, missing))
    named = set(only) or {name for name in missing if family is GLUE}
    return FamilyResult(
        outcomes=outcomes,
        missing={name: own for name, own in missing.items() if name in named},
        earlier=list(earlier),
    )


def choose(family: Mapping[str, Benchmark], only: Sequence[str]) -> list[Benchmark]:
    """The benchmarks of a family by their names, whatever their case; none named: all."""
    by_lower = {name.lower(): benchmark for name, benchmark in family.items()}
    for name in only:
        if name.lower() not in by_lower:
            raise OptionError(f"There is no {name!r} here; there are {', '.join(family)}.")
    return [by_lower[name.lower()] for name in only] or list(family.values())


def _lacking(model: str | Path, holdings: Holdings, settings: RunSettings) -> list[str]:
    """The files without which a benchmark cannot be run; other parts may be missing."""
    benchmark = holdings.benchmark
    lacking = []
    if not (holdings.train or settings.train or is_finished(model)):
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

"""Fine-tuning on a benchmark with one or several seeds: a model and files in, an outcome out.

Predictions for test sets without labels are written in the format of the benchmarks' servers.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.contract import KINDS
from sememe.errors import OptionError
from sememe.evaluation.benchmarks import Benchmark
from sememe.evaluation.outcomes import Outcome, PartScores
from sememe.evaluation.rows import BenchmarkRows, Holdings, RunSettings, prepare
from sememe.evaluation.scoring import score_finished, score_task, task_kinds
from sememe.examples.labelled.rows import LabelledRows
from sememe.machine import imported, provenance
from sememe.metrics import Interval, mean_bounds
from sememe.metrics.baselines import baselines_of
from sememe.metrics.by_name import gold_of, interval_of, said_of
from sememe.models.registry import load
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import read_json, write_file, write_json, write_text

if TYPE_CHECKING:
    from sememe.tasks.task import Task


def write_submissions(
    folder: Path, unlabelled: Mapping[str, LabelledRows[Any]], answers: Mapping[str, Sequence[Any]]
) -> None:
    """Write one file per predicted test set, named as GLUE's server expects."""
    for name, said in answers.items():
        # The server counts rows from 0 where the file does not number them.
        indices = [row.id or str(index) for index, row in enumerate(unlabelled[name])]
        write_submission(folder / f"{name}.tsv", list(zip(indices, said, strict=True)))


def write_submission(path: Path, rows: Sequence[tuple[str, str | float]]) -> None:
    """Write one submission file: one line per row of the test set, in order.

    Labels are the words or numbers of the training files; similarities have three decimals and stay
    between 0 and 5.
    """
    lines = ["index\tprediction\n"]
    for index, said in rows:
        shown = f"{min(5.0, max(0.0, said)):.3f}" if isinstance(said, float) else said
        lines.append(f"{index}\t{shown}\n")
    write_text(path, "".join(lines))


def run_benchmark(
    model: str | Path,
    holdings: Holdings,
    settings: RunSettings,
    *,
    name: str = "",
    reporter: Reporter = SILENT,
) -> Outcome:
    """Score a model on a benchmark: fine-tune it once per seed, unless it is fine-tuned already."""
    begun_s = time.monotonic()
    benchmark, finished = holdings.benchmark, bool(task_kinds(model))
    if folder := settings.options.get("tensorboard"):
        imported("sememe.training.run", "check_tensorboard")(folder)
    prepared = prepare(holdings, settings, needs_training=not finished, reporter=reporter)
    run = None if finished else _BenchmarkRun(Path(model), benchmark, prepared, settings, reporter)
    records = run.records() if run else [score_finished(model, benchmark, prepared)]
    parts = {
        part: PartScores(
            metrics={
                metric: [record["scores"][part][metric] for record in records]
                for metric in benchmark.metrics
            },
            num_rows=len(rows),
            num_skipped=rows.num_skipped,
            intervals=_intervals(benchmark, rows, [record["said"][part] for record in records]),
            baselines=_baselines(benchmark, prepared, rows, settings),
        )
        for part, rows in prepared.parts.items()
    }
    if settings.out is not None:
        _write_predictions(settings.out / benchmark.name, prepared, records, benchmark)
        best = max(records, key=lambda record: _main(record, benchmark))
        if run is not None:
            run.answer_again(best)
        write_submissions(settings.out / "submission", prepared.unlabelled, best["unlabelled"])
    return Outcome(
        benchmark=benchmark.name,
        title=benchmark.title,
        model=name or Path(model).name,
        seeds=[] if run is None else list(settings.seeds),
        parts=parts,
        num_train=len(prepared.train) if prepared.train is not None else 0,
        seconds=sum(record["seconds"] for record in records) or time.monotonic() - begun_s,
        options={} if run is None else {**run.options, **records[0].get("chosen", {})},
        files=prepared.files,
        notes=_notes(benchmark, prepared, settings),
        details=[record["details"] for record in records if record["details"]],
        provenance=provenance(),
    )


def _intervals(
    benchmark: Benchmark, rows: Sequence[Any], said: Sequence[Sequence[Any]]
) -> dict[str, Interval]:
    """The interval of each metric over the rows; of several seeds, the mean of their bounds."""
    gold = gold_of(benchmark.kind, rows)
    found = {}
    for metric in benchmark.metrics:
        found[metric] = mean_bounds(
            [interval_of(metric, gold, own, benchmark.positive) for own in said]
        )
    return found


def _baselines(
    benchmark: Benchmark, prepared: BenchmarkRows, rows: Sequence[Any], settings: RunSettings
) -> list[dict[str, Any]]:
    """The scores of baselines that learned from the same training rows, if there are any."""
    if prepared.learnable is None or not settings.baselines:
        return []
    gold = gold_of(benchmark.kind, rows)
    own = baselines_of(benchmark.kind, prepared.learnable)
    return [
        one.to_dict() for one in own.scores(rows, gold, benchmark.main_metric, benchmark.positive)
    ]


def _main(record: Mapping[str, Any], benchmark: Benchmark) -> float:
    """The mean of the main metric over the parts; an undefined score is the worst."""
    scores = [part[benchmark.main_metric] for part in record["scores"].values()]
    mean = sum(scores) / len(scores)
    return mean if math.isfinite(mean) else -math.inf


# What the record of a seed must contain to be reused.
_KEPT = {"seed", "scores", "said", "details", "unlabelled", "seconds"}


class _BenchmarkRun:
    """One model fine-tuned on one benchmark, once for each seed."""

    def __init__(
        self,
        model: Path,
        benchmark: Benchmark,
        prepared: BenchmarkRows,
        settings: RunSettings,
        reporter: Reporter,
    ) -> None:
        self.model, self.benchmark, self.prepared = model, benchmark, prepared
        self.settings, self.reporter = settings, reporter
        self.task = KINDS[benchmark.kind].cls()
        # The user's options override the benchmark's; rows are at most as long as the network
        # allows.
        self.options = {**benchmark.options, **settings.options}
        if "length" not in settings.options:
            wanted = self.options.get("length", self.task.config_class().length)
            longest = load(model).describe().get("config", {}).get("max_length")
            self.options["length"] = min(wanted, longest or wanted)
        if settings.recipe and settings.choose_on_dev:
            raise OptionError(
                "The recipe small-data chooses on held-out training rows: leave out choose_on_dev."
            )
        self._searched: dict[str, Any] | None = None

    def records(self) -> list[dict[str, Any]]:
        """The record of each seed."""
        found: list[dict[str, Any]] = []
        for seed in self.settings.seeds:
            best = max((_main(record, self.benchmark) for record in found), default=-math.inf)
            found.append(self._record(seed, best if found else None))
        return found

    def _record(self, seed: int, best: float | None) -> dict[str, Any]:
        """Fine-tune and score with one seed, or reuse the record of an earlier run."""
        name, place, key = self.benchmark.name, self._place_of(f"seed-{seed}"), self._key(seed)
        if place is not None and place.is_file():
            kept = read_json(place)
            if isinstance(kept, dict) and kept.get("key") == key and kept.keys() >= _KEPT:
                self.reporter.note(f"{name}, seed {seed}: taken from {place}.")
                return kept
        self.reporter.note(f"{name}, seed {seed}:")
        begun_s = time.monotonic()
        task = self._fitted(seed)
        record = {"key": key, "seed": seed, **score_task(task, self.benchmark, self.prepared)}
        record["chosen"] = self._chosen()
        # Test sets are large: only a seed that may be the best one predicts them.
        record["unlabelled"] = {}
        if place is not None and (best is None or _main(record, self.benchmark) > best):
            record |= self._answers(task)
        record["seconds"] = time.monotonic() - begun_s
        if place is not None:
            write_json(place, record)
        return record

    def _place_of(self, name: str) -> Path | None:
        """The path of the record of a seed, or of the search."""
        out = self.settings.out
        return None if out is None else out / self.benchmark.name / f"{name}.json"

    def _answers(self, task: Task) -> dict[str, Any]:
        """A task's predictions for the test sets, and the hash of their rows."""
        unlabelled = self.prepared.unlabelled
        said = {
            name: said_of(self.benchmark.kind, task.predict_rows(rows))
            for name, rows in unlabelled.items()
        }
        return {"unlabelled": said, "asked": _rows_hash(unlabelled.values())}

    def answer_again(self, record: dict[str, Any]) -> None:
        """Fine-tune the best seed again to predict test sets that it has not predicted.

        They were added after it was fine-tuned, or it was not the best one at the time.
        """
        unlabelled, seed = self.prepared.unlabelled, record["seed"]
        if not unlabelled or record.get("asked") == _rows_hash(unlabelled.values()):
            return
        self.reporter.note(
            f"{self.benchmark.name}, seed {seed}: training again, because the predictions for "
            "the test files were not saved."
        )
        record |= self._answers(self._fitted(seed))
        place = self._place_of(f"seed-{seed}")
        assert place is not None
        write_json(place, record)

    def _chosen(self) -> dict[str, Any]:
        """The options that the recipe finds on held-out training rows; searched once."""
        if not self.settings.recipe:
            return {}
        if self._searched is None:
            own = self.task(self.model).metric_names([]).items()
            metric = next((name for name, known in own if known == self.benchmark.main_metric), "")
            options = {"metric": metric, **self.options}
            record = self._place_of("search")
            searched = imported("sememe.tasks.small_data", "search")(
                lambda more: self.task(self.model, **options | more), self.prepared.train,
                kept=read_json(record) if record is not None and record.is_file() else None,
                record=record, reporter=self.reporter,
            )  # fmt: skip
            self.reporter.note(f"Recipe small-data: {searched}.")
            self._searched = searched.options
        return self._searched

    def _fitted(self, seed: int) -> Task:
        task: Task = self.task(self.model, **self.options | self._chosen(), seed=seed)
        task.config = replace(
            task.config.one_of_several(f"{self.benchmark.name}/seed-{seed}"), baselines=False
        )
        return task.fit(self.prepared.train, dev=self._choosers(), progress=self.reporter)

    def _choosers(self) -> Any:
        """The rows that choose the best epoch; False: the last epoch is used."""
        parts, chooses = self.prepared.parts, self.benchmark.chooses
        others = [part for part in parts if part != chooses]
        if chooses in parts and (others or self.settings.choose_on_dev):
            return parts[chooses]
        return next(iter(parts.values())) if self.settings.choose_on_dev else False

    def _key(self, seed: int) -> str:
        """What identifies a run: weights, rows, options and seed."""
        model, benchmark, prepared = self.model, self.benchmark, self.prepared
        files = [model] if model.is_file() else sorted(filter(Path.is_file, model.iterdir()))
        stamps = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]
        facts = [
            str(model.resolve()), stamps, benchmark.name, benchmark.metrics, seed,
            self.settings.choose_on_dev, _rows_hash((prepared.train, *prepared.parts.values())),
            sorted(self.options.items()), *([self.settings.recipe] if self.settings.recipe else []),
        ]  # fmt: skip
        return hashlib.blake2b(json.dumps(facts, default=str).encode(), digest_size=16).hexdigest()


def _rows_hash(several: Iterable[Sequence[Any] | None]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for rows in several:
        for row in rows or ():
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


# ---- what is told and kept --------------------------------------------------------------------


def _notes(benchmark: Benchmark, prepared: BenchmarkRows, settings: RunSettings) -> list[str]:
    notes = []
    if settings.choose_on_dev and prepared.train is not None:
        notes.append("The best epoch was chosen on dev rows.")
    if benchmark.kind in ("classify", "pairs", "choose"):
        shares = []
        for part, rows in prepared.parts.items():
            counts = Counter(gold_of(benchmark.kind, rows))
            if counts:
                shares.append(f"{part} {max(counts.values()) / counts.total():.1%}")
        notes.append(f"The most frequent label alone: {', '.join(shares)}.")
    if prepared.learnable is None:
        notes.append("No baselines: there are no training rows for them.")
    if len(settings.seeds) > 1:
        notes.append("95 % intervals are over the rows: the mean of the bounds of all seeds.")
    elif prepared.parts:
        notes.append("95 % intervals are over the rows.")
    return notes


def _write_predictions(
    folder: Path,
    prepared: BenchmarkRows,
    records: Sequence[Mapping[str, Any]],
    benchmark: Benchmark,
) -> None:
    """Write predictions with the gold values, for `sememe compare`."""
    for record in records:
        for part, rows in prepared.parts.items():
            seed = "" if record["seed"] is None else f".seed-{record['seed']}"
            gold = gold_of(benchmark.kind, rows)
            path = folder / f"{part}{seed}.jsonl"
            with write_file(path) as scratch, scratch.open("w", encoding="utf-8") as file:
                for row, right, said in zip(rows, gold, record["said"][part], strict=True):
                    line = {"id": row.id or row.source, "gold": right, "predicted": said}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
            if benchmark.kind == "answer":
                # The format of the official scripts of SQuAD and CMRC.
                texts = {row.id: said for row, said in zip(rows, record["said"][part], strict=True)}
                write_json(folder / f"{part}{seed}.predictions.json", texts)

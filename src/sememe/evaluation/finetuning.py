"""Fine-tuning on a benchmark with one or several seeds: a model and files in, an outcome out."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.evaluation.benchmarks import Benchmark
from sememe.evaluation.finding import Holdings
from sememe.evaluation.finished import is_finished, score_finished, score_task
from sememe.evaluation.outcomes import Outcome, PartScores
from sememe.evaluation.preparing import Prepared, RunSettings, prepare
from sememe.evaluation.rows import gold_of, said_of
from sememe.evaluation.submissions import write_submissions
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import read_json, write_file, write_json
from sememe.storage.provenance import provenance

if TYPE_CHECKING:
    from sememe.tasks.task import Task


def run_benchmark(
    model: str | Path,
    holdings: Holdings,
    settings: RunSettings,
    *,
    name: str = "",
    reporter: Reporter = SILENT,
) -> Outcome:
    """Score a model on a benchmark: fine-tuned here once a seed, or as it is if it was before."""
    from sememe.training.tensorboard import check_tensorboard

    begun_s = time.monotonic()
    benchmark = holdings.benchmark
    check_tensorboard(settings.options.get("tensorboard", ""))
    prepared = prepare(holdings, settings, needs_training=not is_finished(model), reporter=reporter)
    records: list[dict[str, Any]] = []
    seeds = [] if is_finished(model) else list(settings.seeds)
    if is_finished(model):
        records.append(score_finished(model, benchmark, prepared))
    for seed in seeds:
        best = max((_main(record, benchmark) for record in records), default=None)
        records.append(_run_seed(model, benchmark, prepared, settings, seed, best, reporter))
    parts = {
        part: PartScores(
            metrics={
                metric: [record["scores"][part][metric] for record in records]
                for metric in benchmark.metrics
            },
            num_rows=len(rows),
            num_skipped=rows.num_skipped,
        )
        for part, rows in prepared.parts.items()
    }
    if settings.out is not None:
        _write_predictions(settings.out / benchmark.name, prepared, records, benchmark)
        best_record = max(records, key=lambda record: _main(record, benchmark))
        if seeds and not _has_answered(best_record, prepared):
            _answer_again(model, benchmark, prepared, settings, best_record, reporter)
        write_submissions(
            settings.out / "submission", prepared.unlabelled, best_record["unlabelled"]
        )
    return Outcome(
        benchmark=benchmark.name,
        title=benchmark.title,
        model=name or Path(model).name,
        seeds=seeds,
        parts=parts,
        num_train=len(prepared.train) if prepared.train is not None else 0,
        seconds=sum(record["seconds"] for record in records) or time.monotonic() - begun_s,
        options=_options(model, benchmark, settings) if seeds else {},
        files=prepared.files,
        notes=_notes(benchmark, prepared, settings),
        details=[record["details"] for record in records if record["details"]],
        provenance=provenance(),
    )


# ---- one seed -------------------------------------------------------------------------------


def _options(model: str | Path, benchmark: Benchmark, settings: RunSettings) -> dict[str, Any]:
    """The user's options over the benchmark's; rows no longer than the network can see them."""
    from sememe.tasks.folder import task_class

    options = {**benchmark.options, **settings.options}
    if "length" not in settings.options:
        wanted = options.get("length", task_class(benchmark.kind).config_class().length)
        options["length"] = min(wanted, _longest(Path(model)) or wanted)
    return options


def _longest(folder: Path) -> int:
    """The most tokens that a network sees at once; 0 where its folder does not tell."""
    return _configured(folder, "max_position_embeddings", "n_positions")


def num_layers(folder: Path) -> int:
    """The layers of a network; 0 where its folder does not tell."""
    return _configured(folder, "num_hidden_layers", "n_layer")


def _configured(folder: Path, *names: str) -> int:
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    return next((int(config[name]) for name in names if config.get(name)), 0)


def _main(record: Mapping[str, Any], benchmark: Benchmark) -> float:
    """The mean of the main metric over the parts; a score that is not defined is the worst."""
    scores = [part[benchmark.main_metric] for part in record["scores"].values()]
    mean = sum(scores) / len(scores)
    return mean if math.isfinite(mean) else -math.inf


def _run_seed(
    model: str | Path,
    benchmark: Benchmark,
    prepared: Prepared,
    settings: RunSettings,
    seed: int,
    best: float | None,
    reporter: Reporter,
) -> dict[str, Any]:
    """Fine-tune and score with one seed, or take what an earlier run left of it."""
    place = _place(benchmark, settings, seed)
    key = _key(model, benchmark, prepared, settings, seed)
    if place is not None and place.is_file():
        kept = read_json(place)
        if isinstance(kept, dict) and kept.get("key") == key:
            reporter.note(f"{benchmark.name}, seed {seed}: taken from {place}.")
            return kept
    reporter.note(f"{benchmark.name}, seed {seed}:")
    begun_s = time.monotonic()
    task = _fitted(model, benchmark, prepared, settings, seed, reporter)
    record = {"key": key, "seed": seed, **score_task(task, benchmark, prepared)}
    # Test sets are large: only a seed that may be the best one answers them.
    record["unlabelled"] = {}
    if settings.out is not None and (best is None or _main(record, benchmark) > best):
        record |= _answers(task, benchmark, prepared)
    record["seconds"] = time.monotonic() - begun_s
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_json(place, record)
    return record


def _place(benchmark: Benchmark, settings: RunSettings, seed: int) -> Path | None:
    """Where the record of a seed is kept."""
    return None if settings.out is None else settings.out / benchmark.name / f"seed-{seed}.json"


def _answers(task: Task, benchmark: Benchmark, prepared: Prepared) -> dict[str, Any]:
    """What a task says of the test sets, and which rows those were."""
    said = {
        name: said_of(benchmark.kind, task.predict_rows(rows))
        for name, rows in prepared.unlabelled.items()
    }
    return {"unlabelled": said, "asked": _rows_hash(prepared.unlabelled.values())}


def _has_answered(record: Mapping[str, Any], prepared: Prepared) -> bool:
    """Whether a record holds answers to the test sets as they are now."""
    wanted = _rows_hash(prepared.unlabelled.values())
    return not prepared.unlabelled or record.get("asked") == wanted


def _answer_again(
    model: str | Path,
    benchmark: Benchmark,
    prepared: Prepared,
    settings: RunSettings,
    record: dict[str, Any],
    reporter: Reporter,
) -> None:
    """Fine-tune the best seed again for its answers to test sets that it has not answered.

    They came after it was fine-tuned, or it was not the best one of the runs of that time.
    """
    seed = record["seed"]
    reporter.note(
        f"{benchmark.name}, seed {seed}: once more, for the answers to the test files, which were "
        "not kept."
    )
    task = _fitted(model, benchmark, prepared, settings, seed, reporter)
    record |= _answers(task, benchmark, prepared)
    place = _place(benchmark, settings, seed)
    assert place is not None
    write_json(place, record)


def _fitted(
    model: str | Path,
    benchmark: Benchmark,
    prepared: Prepared,
    settings: RunSettings,
    seed: int,
    reporter: Reporter,
) -> Task:
    from sememe.tasks.folder import task_class

    options = {**_options(model, benchmark, settings), "seed": seed}
    task = task_class(benchmark.kind)(model, **options)
    task.config = task.config.one_of_several(f"{benchmark.name}/seed-{seed}")
    return task.fit(prepared.train, dev=_choosers(benchmark, prepared, settings), progress=reporter)


def _choosers(benchmark: Benchmark, prepared: Prepared, settings: RunSettings) -> Any:
    """The rows that choose the best epoch; False: the last one is taken."""
    others = [part for part in prepared.parts if part != benchmark.chooses]
    if benchmark.chooses in prepared.parts and (others or settings.choose_on_dev):
        return prepared.parts[benchmark.chooses]
    if settings.choose_on_dev:
        return next(iter(prepared.parts.values()))
    return False


def _key(
    model: str | Path, benchmark: Benchmark, prepared: Prepared, settings: RunSettings, seed: int
) -> str:
    """What makes two runs the same: weights, rows, options and seed."""
    folder = Path(model)
    files = [folder] if folder.is_file() else sorted(filter(Path.is_file, folder.iterdir()))
    stamps = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    facts = [
        str(folder.resolve()), stamps, benchmark.name, benchmark.metrics, seed,
        settings.choose_on_dev, _rows_hash((prepared.train, *prepared.parts.values())),
        sorted(_options(model, benchmark, settings).items()),
    ]  # fmt: skip
    return hashlib.blake2b(json.dumps(facts, default=str).encode(), digest_size=16).hexdigest()


def _rows_hash(several: Iterable[Sequence[Any] | None]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for rows in several:
        for row in rows or ():
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


# ---- what is told and kept --------------------------------------------------------------------


def _notes(benchmark: Benchmark, prepared: Prepared, settings: RunSettings) -> list[str]:
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
    return notes


def _write_predictions(
    folder: Path, prepared: Prepared, records: Sequence[Mapping[str, Any]], benchmark: Benchmark
) -> None:
    """Leave what was said beside what is right, for `sememe compare`."""
    for record in records:
        for part, rows in prepared.parts.items():
            seed = "" if record["seed"] is None else f".seed-{record['seed']}"
            gold = gold_of(benchmark.kind, rows)
            path = folder / f"{part}{seed}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            with write_file(path) as scratch, scratch.open("w", encoding="utf-8") as file:
                for row, right, said in zip(rows, gold, record["said"][part], strict=True):
                    line = {"id": row.id or row.source, "gold": right, "predicted": said}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
            if benchmark.kind == "answer":
                # What the official scripts of SQuAD and CMRC take.
                texts = {row.id: said for row, said in zip(rows, record["said"][part], strict=True)}
                write_json(folder / f"{part}{seed}.predictions.json", texts)

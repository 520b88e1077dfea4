"""Small GLUE sets: the default recipe, `--recipe small-data`, and that after an NLI task.

    python benchmarks/small_data.py run MODEL --data GLUE --nli FILE... --out OUT [--minutes 9]
    python benchmarks/small_data.py table OUT

MODEL is a BERT folder, GLUE the folder of the official files, --nli labelled pairs (SNLI, MNLI).
All choices of the recipe are made on training rows; the official dev rows are scored once per run.
`run` stops before the first step that begins after --minutes: call it again until it says that
nothing is left. A killed call loses the training that it was in, or of a search one run. Each
seed's score is that of a single model; `ensemble` is the mean of the outputs of all seeds.
--max-train takes the first rows of each set. On a CPU, `--task cola --max-train 64 --max-dev 64
--seeds 2 --max-nli 64 --length 32` shows that it runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from finetuning_rows import Material
from result_lines import append, read

import sememe
from sememe.evaluation.results import format_spread
from sememe.metrics import spread
from sememe.metrics.by_name import gold_of, interval_of, said_of
from sememe.progress import Reporter
from sememe.storage.folder import read_json
from sememe.tasks.small_data import search

DEFAULT, RECIPE, AFTER_NLI = "default", "small-data", "small-data after NLI"
WAYS = (DEFAULT, RECIPE, AFTER_NLI)
TASKS = ("cola", "stsb", "rte", "mrpc", "sst2")
ENSEMBLE = "ensemble"


class Runs:
    """What is done for one set, in steps that each leave a line or a file."""

    def __init__(self, key: str, options: argparse.Namespace) -> None:
        self.options, self.material = options, Material(key, options)
        self.lines: Path = options.out / "scores.jsonl"

    def steps(self) -> Iterator[Callable[[], Any]]:
        """The trainings that are not done yet, in order."""
        for way in self.options.way:
            for seed in range(1, self.options.seeds + 1):
                if self.found(way, seed) is None:
                    yield partial(self.train, way, seed)
            if self.found(way, ENSEMBLE) is None:
                yield partial(self.join, way)

    def found(self, way: str, seed: Any) -> dict[str, Any] | None:
        """The line of a training, if it is done."""
        own = {"task": self.material.key, "way": way, "seed": seed}
        return next((line for line in read(self.lines) if own.items() <= line.items()), None)

    def task(self, model: Path, own: dict[str, Any]) -> Any:
        """A new task on a model, with some options."""
        asked = self.options
        usual = {"length": self.material.length, "device": asked.device, "workers": asked.threads}
        if asked.batch_size:
            usual["batch_size"] = asked.batch_size
        if self.material.benchmark.main_metric == "matthews":
            usual["metric"] = "matthews"  # accuracy says little where most rows have one label
        usual |= {"precision": asked.precision, "baselines": False}
        return self.material.task_class(model, **usual | own)

    def chosen(self, way: str, model: Path) -> dict[str, Any]:
        """The options of a way; of the recipe, those that its search chooses on training rows."""
        if way == DEFAULT:
            return {}
        record = self.options.out / f"{self.material.key}-{way.replace(' ', '-')}.search.json"
        kept = read_json(record) if record.exists() else None
        found = search(
            partial(self.task, model), self.material.train, kept=kept, record=record,
            reporter=Reporter(),
        )  # fmt: skip
        return found.options

    def train(self, way: str, seed: int) -> None:
        """Train one seed on all rows, and score the official dev rows."""
        model = intermediate(self.options) if way == AFTER_NLI else self.options.model
        begun_s = time.monotonic()
        chosen = self.chosen(way, model)
        searched_s, begun_s = time.monotonic() - begun_s, time.monotonic()
        task = self.task(model, {**chosen, "seed": seed})
        task.fit(self.material.train, dev=False, progress=Reporter())
        items = task.encode(self.material.dev)
        outputs_NC = np.array(task.activated(items), np.float64)
        append(
            self.lines,
            {
                **self._facts(way), "seed": seed, "options": chosen, "labels": task.labels,
                "scores": self.scored(task.decoded(self.material.dev, items, outputs_NC)),
                "fit_s": round(time.monotonic() - begun_s, 1), "search_s": round(searched_s, 1),
                "outputs": outputs_NC.round(6).tolist(), "learned": task.learned,
            },
        )  # fmt: skip

    def join(self, way: str) -> None:
        """Score the mean of the outputs of all seeds."""
        lines = [self.found(way, seed) for seed in range(1, self.options.seeds + 1)]
        outputs_NC = np.mean([np.array(line["outputs"]) for line in lines if line], 0)
        task = self.material.task_class("")
        task.labels, task.learned = lines[0]["labels"], lines[0]["learned"]
        rows = self.material.dev
        said = task.decoded(rows, [_Item(index) for index in range(len(rows))], outputs_NC)
        append(self.lines, {**self._facts(way), "seed": ENSEMBLE, "scores": self.scored(said)})

    def scored(self, predictions: list[Any]) -> dict[str, Any]:
        """The official scores with their 95 % intervals over the rows."""
        benchmark, rows = self.material.benchmark, self.material.dev
        said, gold = said_of(self.material.kind, predictions), gold_of(self.material.kind, rows)
        scores = self.material.scored(lambda _: said)
        bounds = {
            metric: interval_of(metric, gold, said, benchmark.positive)
            for metric in benchmark.metrics
        }
        return {metric: [value, *map(float, bounds[metric])] for metric, value in scores.items()}

    def _facts(self, way: str) -> dict[str, Any]:
        own = self.material
        return {
            "task": own.key, "way": way, "model": self.options.model.name,
            "rows": [len(own.train), len(own.dev)], "num_seeds": self.options.seeds,
        }  # fmt: skip


class _Item:
    """The place of an output."""

    def __init__(self, row_index: int) -> None:
        self.row_index = row_index


def intermediate(options: argparse.Namespace) -> Path:
    """The folder of the model after the intermediate task; a stopped training continues."""
    folder: Path = options.out / "nli"
    if not (folder / "sememe.json").exists():
        task = sememe.Pairs(
            options.model, epochs=options.nli_epochs, length=options.length or 128,
            device=options.device, workers=options.threads, precision=options.precision,
            baselines=False, checkpoint_minutes=2.0,
        )  # fmt: skip
        rows = [row for path in options.nli for row in nli_rows(path, options.max_nli)]
        task.fit(rows, out=folder, resume=True, progress=Reporter())
        print(f"intermediate task: {task.scores.metrics}", flush=True)
    return folder


def nli_rows(path: str, most: int) -> list[Any]:
    """The labelled pairs of a file, at most so many."""
    rows = sememe.Pairs("").read([path], labelled=True, skip_bad=True)
    return list(rows)[: most or None]


def run(options: argparse.Namespace) -> None:
    """Do what is left, until the time is over."""
    options.out.mkdir(parents=True, exist_ok=True)
    begun_s = time.monotonic()
    for key in options.task:
        for step in Runs(key, options).steps():
            if time.monotonic() - begun_s > 60 * options.minutes:
                print("The time is over: call again.", flush=True)
                return
            step()
            table(options)
    print("Nothing is left.", flush=True)


def table(options: argparse.Namespace) -> None:
    """Print the scores of a folder as Markdown."""
    lines = read(options.out / "scores.jsonl")
    print("| set | metric | rows | way | seeds | single models | ensemble | 95 % interval |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for key in TASKS:
        for way in WAYS:
            own = [one for one in lines if one["task"] == key and one["way"] == way]
            single = [one for one in own if one["seed"] != ENSEMBLE]
            joined = next((one for one in own if one["seed"] == ENSEMBLE), None)
            if not single:
                continue
            metric = next(iter(single[0]["scores"]))
            values = [one["scores"][metric][0] for one in single]
            last = ["–", "–"]
            if joined is not None:
                value, low, high = joined["scores"][metric]
                last = [f"{100 * value:.1f}", f"{100 * low:.1f} – {100 * high:.1f}"]
            cells = [
                key, metric, f"{single[0]['rows'][0]:,}", way, str(len(single)),
                format_spread(spread(values)), *last,
            ]  # fmt: skip
            print(f"| {' | '.join(cells)} |")
    for one in lines:
        if one["seed"] == 1 and one["options"]:
            print(f"{one['task']}, {one['way']}: {json.dumps(one['options'])}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser("run")
    own.add_argument("model", type=Path)
    own.add_argument("--data", type=Path, required=True)
    own.add_argument("--nli", nargs="+", default=[])
    own.add_argument("--out", type=Path, required=True)
    own.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS))
    own.add_argument("--way", nargs="+", choices=WAYS, default=list(WAYS))
    own.add_argument("--seeds", type=int, default=5)
    own.add_argument("--minutes", type=float, default=9.0)
    own.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    own.add_argument("--precision", choices=("auto", "bf16", "fp32"), default="auto")
    own.add_argument("--threads", type=int, default=0, help="0: every core")
    own.add_argument("--batch-size", type=int, default=0, help="0: the default")
    own.add_argument("--length", type=int, default=0, help="of rows; 0: that of the set")
    own.add_argument("--max-train", type=int, help="training rows; left out: all")
    own.add_argument("--max-dev", type=int, help="dev rows; left out: all")
    own.add_argument("--max-nli", type=int, default=0, help="rows of each NLI file; 0: all")
    own.add_argument("--nli-epochs", type=float, default=1.0)
    own = commands.add_parser("table")
    own.add_argument("out", type=Path)
    options = parser.parse_args()
    {"run": run, "table": table}[options.command](options)


if __name__ == "__main__":
    main()

"""What each ingredient of the recipe `modern` is worth: pre-trainings of equal length, fine-tuned.

`ablation` and `long` of benchmarks/pretraining.py. Everything is done in stages that may be started
again: a stopped pre-training resumes from its checkpoint, what is finished is not made again. A
variant that fails is reported, and the next one starts. On an H200 a variant takes the budget, a
minute to compile, and two minutes for RTE, CoLA and SST-2 (10,000 rows); no variant is started
after --stop-after minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pretraining_speed import release

MASKED = {"next_sentence": False}
# Each is the masked language model with one thing changed, but for the first and the last.
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "masked": MASKED,
    "rtd": {"objective": "rtd"},
    "muon": MASKED | {"optimizer": "muon"},
    "architecture": MASKED | {"architecture": "modern"},
    "averaging": MASKED | {"average_share": 0.2},
    "falling": MASKED | {"rate": 0.3, "last_rate": 0.15},
    "modern": {"recipe": "modern"},
    "modern, masked": {"recipe": "modern", "objective": "masked"},
}
SETS = ("RTE", "CoLA", "SST-2")


def ablation(options: argparse.Namespace) -> None:
    """Pre-train and fine-tune every variant, one after the other, and print the table."""
    for seed in range(1, options.seeds + 1):
        for name in options.variants or VARIANTS:
            if time.monotonic() - _BEGUN > 60 * options.stop_after:
                print("Out of time: run the same command again to go on.")
                table(options)
                return
            try:
                one(options, name, seed, VARIANTS[name])
            except Exception:  # the next variant may have another fate
                traceback.print_exc()
                print(f"FAILED: {name}, seed {seed}", flush=True)
            release()
    table(options)


_BEGUN = time.monotonic()


def one(options: argparse.Namespace, name: str, seed: int, own: dict[str, Any]) -> None:
    """Pre-train one variant, if it is not there, and score it on the sets."""
    place = options.out / f"{name.replace(', ', '-')}-{seed}.json"
    if place.exists():
        return
    folder = options.kept / place.stem
    metrics = pretrain(options, folder, seed, own)
    print(json.dumps({"variant": name, "seed": seed} | metrics), flush=True)
    found = {"variant": name, "seed": seed, "metrics": metrics, "sets": scores(options, folder)}
    options.out.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(found, indent=1))
    print(json.dumps({key: found[key] for key in ("variant", "seed", "sets")}), flush=True)


def scores(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """The main metric of each set after fine-tuning on at most --max-train of its rows."""
    import sememe
    from sememe.evaluation.rows import RunSettings

    more = {"epochs": options.epochs} if options.epochs else {}
    settings = RunSettings(
        seeds=tuple(range(1, options.task_seeds + 1)), max_train=options.max_train,
        options={"device": options.device, "workers": options.workers} | more, baselines=False,
        out=Path(f"{folder}.scores"),
    )  # fmt: skip
    found = sememe.evaluate_glue(folder, options.tasks, only=options.sets, settings=settings)
    return {
        own.benchmark: next(iter(own.parts.values())).spread(own.description.main_metric).mean
        for own in found.outcomes
    }


def pretrain(
    options: argparse.Namespace, folder: Path, seed: int, own: dict[str, Any]
) -> dict[str, Any]:
    """Pre-train a variant into a folder, or resume it; return its last metrics."""
    import sememe
    from sememe.progress import Reporter
    from sememe.tokens.subwords.store import SubwordStore

    if not (folder / "sememe.json").exists():
        extent = {"steps": options.steps} if options.steps else {"budget": options.budget}
        model = sememe.BERT(
            options.preset, seed=seed, batch_size=options.rows, length=options.length,
            device=options.device, workers=options.workers, checkpoint_minutes=1.0,
            **extent | own | settings_of(options.set),
        )  # fmt: skip
        model.fit(
            SubwordStore.open(options.store), tokenizer=options.tokenizer, out=folder,
            resume=Path(f"{folder}.checkpoints").exists(), progress=Reporter(line_s=20),
        )  # fmt: skip
    return dict(sememe.load(folder).history.last())


def table(options: argparse.Namespace) -> None:
    """Print the scores of all variants that are there, the means over the seeds."""
    found = [json.loads(path.read_text()) for path in sorted(options.out.glob("*.json"))]
    rows = [row for row in found if "sets" in row]  # `long` writes there as well
    sets = list(dict.fromkeys(name for row in rows for name in row["sets"]))
    print(f"| variant | seeds | seconds | tokens, M | {' | '.join(sets)} | mean |")
    print("| --- | ---: | ---: | ---: |" + " ---: |" * (len(sets) + 1))
    for name in VARIANTS:
        own = [row for row in rows if row["variant"] == name]
        if not own:
            continue
        means = [sum(row["sets"][one] for row in own) / len(own) for one in sets]
        cells = [f"{100 * score:.1f}" for score in [*means, sum(means) / len(means)]]
        seconds, tokens = (
            sum(value) / len(own)
            for value in zip(
                *((r["metrics"]["seconds"], r["metrics"]["tokens"]) for r in own), strict=True
            )
        )
        print(f"| {name} | {len(own)} | {seconds:.0f} | {tokens / 1e6:.1f} | {' | '.join(cells)} |")


def long(options: argparse.Namespace) -> None:
    """One pre-training by a recipe in stages that end in time, then the sets, with the seeds."""
    folder = options.kept / "long"
    with stopped_after(60 * options.stop_after):
        try:
            metrics = pretrain(options, folder, options.seed, VARIANTS[options.variant])
        except KeyboardInterrupt:
            print("The state is saved: run the same command again to go on.")
            return
    print(json.dumps(metrics), flush=True)
    # Each set apart, so that a stop loses one at most.
    for name in options.sets:
        alone = argparse.Namespace(**{**vars(options), "sets": [name]})
        place = options.out / f"long-{name}.json"
        if not place.exists():
            options.out.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(scores(alone, folder)))
        print(place.read_text(), flush=True)


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """Options such as unit=word or steps=10 by name."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, value = pair.split("=", 1)
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:  # a word
            found[name] = value
    return found


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Interrupt what runs after this time, as Ctrl-C does: a training saves its state."""

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()

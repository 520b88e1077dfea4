"""Fine-tuning on public sets: our tasks beside a plain loop of transformers, and from nothing.

python benchmarks/finetuning.py losses MODEL --data DIR [--task sst2 …]
python benchmarks/finetuning.py speed MODEL --data DIR [--task sst2 …] [--compile]
python benchmarks/finetuning.py scores MODEL --data DIR [--task sst2 …] [--seeds 3]
python benchmarks/finetuning.py pretrained MODEL --data DIR [--task sst2 …] [--seeds 3]
python benchmarks/finetuning.py table FILE... [--all]

losses: dropout off, float32, the same rows in the same order, the same head at the start: the
losses of both, step by step, and their largest difference. Each side cuts the rows by itself. For
answers only windows that fill the length are taken: transformers' softmax runs over padding too.
scores: dropout on, every seed trained by us and by the peer (finetuning_peer.py) with the same
hyper-parameters, bfloat16 on a GPU, the last epoch taken on both sides; the official dev scores,
and rows (windows, for answers) learned in a second, the first steps left out.
speed: some steps of the same trainings, ours compiled as well where --compile says so, no scores.
pretrained: our tasks from a folder, and from random weights of the same architecture.
--json appends a line for each training and skips seeds that are there already, so that several runs
add up; `table` makes Markdown of such files. DIR holds the official files of the sets.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from finetuning_losses import losses
from finetuning_rows import (
    COMPILED,
    LEARNED,
    OURS,
    RANDOM,
    SETS,
    SIDES,
    THEIRS,
    Material,
    circumstances,
)
from finetuning_tables import table_of
from result_lines import append, read

Side = Callable[[int], dict[str, Any]]  # trains with a seed and gives what is kept of it

# ---- scores and speed ---------------------------------------------------------------------------


def scores(options: argparse.Namespace) -> None:
    """Train every seed on both sides, in turns, and print scores, speeds and what they come to."""
    more = {"compile": "yes"} if options.compile else {}
    for key in options.task:
        material = Material(key, options)
        ours = partial(trained, material, options.model, **more)
        run_seeds(material, {THEIRS: peer_of(material), OURS: ours})


def speed(options: argparse.Namespace) -> None:
    """Train for some steps on both sides, in turns, and print the speeds."""
    options.max_dev = 0
    for key in options.task:
        material = Material(key, options)
        sides = {THEIRS: peer_of(material), OURS: partial(trained, material, options.model)}
        if options.compile:
            sides[COMPILED] = partial(trained, material, options.model, compile="yes")
        run_seeds(material, sides)


def peer_of(material: Material) -> Side:
    """What trains the peer on rows that it has cut up beforehand."""
    from finetuning_features import Reader

    reader = Reader(material.kind, material.options.model, material.labels, material.length)
    return partial(peer_trained, material, reader, reader(material.learned))


def peer_trained(material: Material, reader: Any, features: Any, seed: int) -> dict[str, Any]:
    """Train the peer; its scores and its speed behind the first steps."""
    from finetuning_peer import Peer

    from sememe.training.device import choose_device

    options, begun_s = material.options, time.perf_counter()
    device = choose_device(options.device)
    peer = Peer(reader, options.model, material.hyper, device, seed=seed)
    found = peer.train(features, peer.batches(features))
    seconds = time.perf_counter() - begun_s
    return {
        "scores": material.scored(peer.predict), "rows_per_s": found.rows_per_s,
        "num_steps": found.num_steps, "fit_s": seconds,
        "loss": statistics.mean(found.losses[-20:]),
    }  # fmt: skip


def trained(material: Material, model: Any, seed: int, **more: Any) -> dict[str, Any]:
    """Train one of our tasks; its scores, and its speed behind the first steps."""
    from sememe.metrics.by_name import said_of

    hyper, begun_s = material.hyper, time.perf_counter()
    task = material.fitted(model, hyper, seed=seed, **more)
    seconds = time.perf_counter() - begun_s
    # A record waits for the device, so that its time is that of the steps before it.
    records = [record for record in task.history if "tokens_per_s" in record]
    last = records[-1]
    first = next(r for r in records if r["step"] >= hyper.warm_steps(last["step"]))
    num_rows = rows_between(first, last, hyper.batch_size, len(material.train))

    def predicted(rows: list[Any]) -> list[Any]:
        return said_of(material.kind, task.predict_rows(rows))

    return {
        "scores": material.scored(predicted), "num_steps": last["step"], "fit_s": seconds,
        "rows_per_s": num_rows / max(last["seconds"] - first["seconds"], 1e-3),
        "loss": statistics.mean(record["loss"] for record in records[-20:]),
    }  # fmt: skip


def rows_between(first: dict[str, Any], last: dict[str, Any], size: int, num_rows: int) -> int:
    """The rows, or windows of rows, that the steps between two records learned from."""
    per_epoch = round(last["step"] / last["epoch"])
    # What the last batch of a pass lacks; of windows it is not known, and next to nothing.
    lacking = per_epoch * size - num_rows
    passes = last["step"] // per_epoch - first["step"] // per_epoch
    num_steps = last["step"] - first["step"]
    return num_steps * size - passes * (lacking if 0 <= lacking < size else 0)


def run_seeds(material: Material, sides: Mapping[str, Side]) -> None:
    """Train every seed that the file lacks, the sides in turns, and print a line for each."""
    options = material.options
    facts = {
        "comparison": options.command, "task": material.key, **circumstances(options),
        "hyper": {name: value for name, value in asdict(material.hyper).items() if value},
    }  # fmt: skip
    kept = [record for record in read(options.json) if facts.items() <= record.items()]
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        # Whoever comes second may find the machine warm, or hot.
        for side in list(sides)[:: 1 if seed % 2 else -1]:
            if any(one["side"] == side and one["seed"] == seed for one in kept):
                continue
            record = {**facts, "side": side, "seed": seed, **sides[side](seed)}
            kept.append(record)
            append(options.json, record)
            said = "".join(f"{name} {100 * v:.2f}, " for name, v in record["scores"].items())
            print(
                f"{material.key} seed {seed} {side:15} {said}{record['rows_per_s']:,.0f} rows/s, "
                f"{record['num_steps']:,} steps in {record['fit_s']:.0f} s, "
                f"loss {record['loss']:.4f}",
                flush=True,
            )
    print("\n".join(table_of(kept)), flush=True)


# ---- the gain of pre-training -------------------------------------------------------------------


def pretrained(options: argparse.Namespace) -> None:
    """Fine-tune a folder and random weights of the same architecture."""
    from sememe.models.huggingface.folder import load_folder

    network, tokenizer = load_folder(options.model)

    def fresh(material: Material, seed: int) -> dict[str, Any]:
        model = type(network)(network.config, seed=seed)
        return trained(material, (model, tokenizer), seed)

    for key in options.task:
        material = Material(key, options)
        material.length = min(material.length, network.config.max_length)
        sides = {
            RANDOM: partial(fresh, material),
            LEARNED: partial(trained, material, options.model),
        }
        run_seeds(material, sides)


def table(options: argparse.Namespace) -> None:
    """Print the tables of files of results."""
    print("\n".join(table_of(read(*options.files), has_all=options.all)))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("model", type=Path, help="a folder that transformers opens too")
    shared.add_argument("--data", type=Path, required=True)
    shared.add_argument("--task", nargs="+", choices=tuple(SETS), default=list(SETS))
    shared.add_argument("--json", type=Path, help="a file that results are appended to")
    shared.add_argument("--name", default="", help="of the model, in tables")
    shared.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    shared.add_argument("--threads", type=int, default=0, help="0: every core")
    shared.add_argument("--length", type=int, default=0, help="of rows; 0: that of the set")
    shared.add_argument("--learning-rate", type=float, default=1e-4)
    shared.add_argument("--epsilon", type=float, default=1e-6)
    shared.add_argument("--epochs", type=float, default=0.0, help="0: those of the set")
    shared.add_argument("--max-train", type=int, help="training rows; left out: all")
    shared.add_argument("--max-dev", type=int, help="dev rows; left out: all")
    own = commands.add_parser("losses", parents=[shared])
    own.add_argument("--steps", type=int, default=100)
    own.add_argument("--batch-size", type=int, default=8)
    for name in ("speed", *SIDES):
        own = commands.add_parser(name, parents=[shared])
        own.add_argument("--seeds", type=int, default=1 if name == "speed" else 3)
        own.add_argument("--first-seed", type=int, default=1)
        num_steps = 400 if name == "speed" else 0
        own.add_argument("--steps", type=int, default=num_steps, help="instead of epochs")
        own.add_argument("--batch-size", type=int, default=32)
        own.add_argument("--compile", action="store_true", help="compile ours")
    own = commands.add_parser("table")
    own.add_argument("files", type=Path, nargs="+")
    own.add_argument("--all", action="store_true", help="every score, not the first of a set")
    options = parser.parse_args()
    by_name: dict[str, Callable[[argparse.Namespace], None]] = {
        "losses": losses, "scores": scores, "speed": speed, "pretrained": pretrained,
        "table": table,
    }  # fmt: skip
    if getattr(options, "threads", 0):
        import torch

        torch.set_num_threads(options.threads)  # of the peer; ours takes them as an option
    by_name[options.command](options)


if __name__ == "__main__":
    main()

"""Fine-tuning on public sets: our tasks beside a plain loop of transformers, and from nothing.

python benchmarks/finetuning.py losses MODEL --data DIR [--task sst2 …]
python benchmarks/finetuning.py scores MODEL --data DIR [--task sst2 …] [--seeds 3]
python benchmarks/finetuning.py pretrained MODEL --data DIR [--task sst2 …] [--seeds 3]
python benchmarks/finetuning.py table FILE... [--all]

losses: dropout off, float32, the same rows in the same order, the same head at the start: the
losses of both, step by step, and their largest difference. Each side cuts the rows by itself. For
answers only windows that fill the length are taken: transformers' softmax runs over padding too.
scores: dropout on, every seed trained by us and by the peer (finetuning_peer.py) with the same
hyper-parameters, bfloat16 on a GPU, the last epoch taken on both sides; the official dev scores,
and rows (windows, for answers) learned in a second, the first steps left out.
pretrained: our tasks from a folder, and from random weights of the same architecture.
--json appends a line for each training and skips seeds that are there already, so that several runs
add up; `table` makes Markdown of such files. DIR holds the official files of the sets.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

OURS, THEIRS = "sememe", "transformers"
LEARNED, RANDOM = "pre-trained", "random weights"
# The two sides of each comparison; tables show the second one minus the first.
SIDES = {"scores": (THEIRS, OURS), "pretrained": (RANDOM, LEARNED)}


@dataclass(frozen=True)
class Set:
    """A set of the comparison: its name among the benchmarks, length of rows, passes over them."""

    name: str
    length: int = 128
    epochs: float = 3.0


# Names are tagged in rows long enough that none is cut: the peer does not cut them into windows.
SETS = {
    "sst2": Set("SST-2"), "mrpc": Set("MRPC"), "stsb": Set("STS-B"), "rte": Set("RTE"),
    "cola": Set("CoLA"), "conll": Set("conll2003", 256), "squad": Set("squad1.1", 384, 2.0),
}  # fmt: skip


class Material:
    """The rows of a set, read once, and the task that they are for."""

    def __init__(self, key: str, options: argparse.Namespace) -> None:
        from sememe.evaluation.benchmarks import ANSWER_SETS, GLUE, TAG_SETS
        from sememe.evaluation.finding import DataFolder
        from sememe.evaluation.rows import read_rows
        from sememe.tasks.folder import task_class

        self.key, self.set, self.options = key, SETS[key], options
        self.benchmark = {**GLUE, **TAG_SETS, **ANSWER_SETS}[self.set.name]
        self.kind, self.task_class = self.benchmark.kind, task_class(self.benchmark.kind)
        self.length = options.length or self.set.length
        holdings = DataFolder(options.data).holdings(self.benchmark)
        if holdings.train is None or "dev" not in holdings.parts:
            raise SystemExit(f"{options.data} lacks files of {key}: {', '.join(holdings.missing)}")
        train = list(read_rows(self.benchmark, holdings.train, is_learned=True))
        dev = list(read_rows(self.benchmark, holdings.parts["dev"]))
        self.train, self.dev = train[: options.max_train], dev[: options.max_dev]

    @property
    def hyper(self) -> Any:
        """The hyper-parameters of the command line."""
        from finetuning_peer import Hyper

        options = self.options
        return Hyper(
            length=self.length, batch_size=options.batch_size, epsilon=options.epsilon,
            learning_rate=options.learning_rate, steps=options.steps,
            epochs=0.0 if options.steps else options.epochs or self.set.epochs,
        )  # fmt: skip

    @cached_property
    def labels(self) -> list[str]:
        """The labels in the order of their numbers."""
        return self.task_class("").labels_of(self.learned)

    @cached_property
    def learned(self) -> list[Any]:
        """The training rows as our task reads them: tags in its scheme."""
        return list(self.task_class("").read(self.train, labelled=True))

    def fitted(self, model: Any, hyper: Any, **more: Any) -> Any:
        """Our task with these hyper-parameters, trained on all of the rows."""
        settings = {name: value for name, value in asdict(hyper).items() if value}
        settings |= {"device": self.options.device, "workers": self.options.threads}
        task = self.task_class(model, **settings, **more)
        return task.fit(self.train, dev=False)

    def score(self, said: list[Any]) -> dict[str, float]:
        """The official scores of what was said of the dev rows."""
        from sememe.evaluation.rows import gold_of
        from sememe.evaluation.scoring import score_all

        gold = gold_of(self.kind, self.dev)
        return score_all(self.benchmark.metrics, gold, said, self.benchmark.positive)


# ---- losses -----------------------------------------------------------------------------------


def losses(options: argparse.Namespace) -> None:
    """Print the losses of both and the largest difference, for each set."""
    options.max_train = options.max_train or 2 * options.steps * options.batch_size
    for key in options.task:
        material = Material(key, options)
        own, other, note = losses_of(material)
        differences = np.abs(np.array(own) - np.array(other))
        worst = int(differences.argmax())
        print(f"{key}: {len(own)} steps of {options.batch_size} rows; {note}")
        for step in sorted({*range(0, len(own), max(1, len(own) // 5)), worst, len(own) - 1}):
            print(
                f"  step {step + 1:4}: {OURS} {own[step]:.6f}, {THEIRS} {other[step]:.6f}, "
                f"difference {differences[step]:.1e}"
            )
        print(f"  largest difference {differences[worst]:.2e}, at step {worst + 1}", flush=True)
        record = {
            "comparison": "losses", "task": key, "largest": float(differences[worst]),
            OURS: own, THEIRS: other, "compared": note, "length": material.length,
            "batch_size": options.batch_size, **circumstances(options),
        }  # fmt: skip
        append(options.json, record)


def losses_of(material: Material) -> tuple[list[float], list[float], str]:
    """The losses of our task and of the peer, and how their rows compare."""
    from finetuning_peer import Peer, Reader

    from sememe.tasks.items import ItemBatches
    from sememe.training.precision import choose_device

    options, hyper = material.options, material.hyper
    if material.kind == "answer":
        material.task_class = filled(material.task_class)
    exact = {"dropout": 0.0, "precision": "fp32", "seed": 1}
    with tempfile.TemporaryDirectory() as scratch:
        # A step at no rate leaves the head as it was drawn.
        start, first = Path(scratch) / "start", replace(hyper, steps=1, learning_rate=1e-30)
        material.fitted(options.model, first, **exact).save(start)
        task = material.fitted(options.model, hyper, **exact)
        reader = Reader(material.kind, options.model, material.labels, hyper.length)
        peer = Peer(reader, start, hyper, choose_device(options.device), is_exact=True)
    items, features = task.encode(material.learned), reader(material.learned)
    if material.kind == "answer":
        features = [feature for feature in features if len(feature.ids) == hyper.length]
    source = ItemBatches(
        items, batch_size=hyper.batch_size, seed=1, sort_batches=task.config.sort_batches
    )
    batches = [source.order(step).tolist() for step in range(hyper.steps)]
    theirs = peer.train(features, batches).losses
    return task.history.column("loss").tolist(), theirs, compared(items, features)


def filled(cls: Any) -> Any:
    """Our task for answers, learning from windows that fill their length alone."""

    class Filled(cls):  # type: ignore[misc]
        def encode(self, rows: Any) -> Any:
            return [i for i in super().encode(rows) if i.num_tokens == self.config.length]

    return Filled


def compared(items: Sequence[Any], features: Sequence[Any]) -> str:
    """How many rows the two sides cut or label differently."""
    num = sum(
        not np.array_equal(item.sequences[0].ids_T, feature.ids)
        or not np.array_equal(item.sequences[0].segments_T, feature.segments)
        or not np.allclose(item.target, feature.target)
        for item, feature in zip(items, features, strict=True)
    )
    return f"{num} of {len(items)} differ in tokens, segments or labels"


# ---- scores and speed ---------------------------------------------------------------------------


def scores(options: argparse.Namespace) -> None:
    """Train every seed on both sides, in turns, and print scores, speeds and what they come to."""
    from finetuning_peer import Reader

    for key in options.task:
        material = Material(key, options)
        reader = Reader(material.kind, options.model, material.labels, material.length)
        features = reader(material.learned)
        sides = {
            THEIRS: partial(peer_trained, material, reader, features),
            OURS: partial(trained, material, options.model),
        }
        run_seeds(material, sides)


def peer_trained(material: Material, reader: Any, features: Any, seed: int) -> dict[str, Any]:
    """Train the peer; its scores and its speed behind the first steps."""
    from finetuning_peer import Peer

    from sememe.training.precision import choose_device

    options, begun_s = material.options, time.perf_counter()
    device = choose_device(options.device)
    peer = Peer(reader, options.model, material.hyper, device, seed=seed)
    found = peer.train(features, peer.batches(features))
    seconds = time.perf_counter() - begun_s
    return {
        "scores": material.score(peer.predict(material.dev)), "rows_per_s": found.rows_per_s,
        "num_steps": found.num_steps, "fit_s": seconds,
        "loss": statistics.mean(found.losses[-20:]),
    }  # fmt: skip


def trained(material: Material, model: Any, seed: int) -> dict[str, Any]:
    """Train one of our tasks; its scores, and its speed behind the first steps."""
    from sememe.evaluation.rows import said_of

    hyper, begun_s = material.hyper, time.perf_counter()
    more = {"compile": "yes"} if material.options.compile else {}
    task = material.fitted(model, hyper, seed=seed, **more)
    seconds = time.perf_counter() - begun_s
    # A record waits for the device, so that its time is that of the steps before it.
    records = [record for record in task.history if "tokens_per_s" in record]
    last = records[-1]
    first = next(r for r in records if r["step"] >= hyper.warm_steps(last["step"]))
    num_rows = rows_between(first, last, hyper.batch_size, len(material.train))
    said = said_of(material.kind, task.predict_rows(material.dev))
    return {
        "scores": material.score(said), "num_steps": last["step"], "fit_s": seconds,
        "rows_per_s": num_rows / (last["seconds"] - first["seconds"]),
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


def run_seeds(material: Material, sides: dict[str, Callable[[int], dict[str, Any]]]) -> None:
    """Train every seed that the file lacks, the sides in turns, and print a line for each."""
    options = material.options
    facts = {
        "comparison": options.command, "task": material.key, **circumstances(options),
        "hyper": {name: value for name, value in asdict(material.hyper).items() if value},
    }  # fmt: skip
    kept = [record for record in read_all([options.json]) if facts.items() <= record.items()]
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        # Whoever comes second may find the machine warm, or hot.
        for side in list(sides)[:: 1 if seed % 2 else -1]:
            if any(one["side"] == side and one["seed"] == seed for one in kept):
                continue
            record = {**facts, "side": side, "seed": seed, **sides[side](seed)}
            kept.append(record)
            append(options.json, record)
            said = ", ".join(f"{name} {100 * v:.2f}" for name, v in record["scores"].items())
            print(
                f"{material.key} seed {seed} {side:14} {said}; {record['rows_per_s']:,.0f} rows/s, "
                f"{record['num_steps']:,} steps in {record['fit_s']:.0f} s, "
                f"loss {record['loss']:.4f}",
                flush=True,
            )
    print("\n".join(table_of(kept)), flush=True)


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """What must be the same for results to be put together."""
    import torch

    from sememe.training.precision import choose_device

    is_gpu = choose_device(options.device).type == "cuda"
    return {
        "model": options.name or options.model.resolve().name,
        "device": torch.cuda.get_device_name() if is_gpu else "CPU",
        "versions": {name: version(name) for name in ("torch", "transformers")},
        "is_compiled": bool(getattr(options, "compile", False)),
        "rows": [options.max_train, options.max_dev],
    }


def append(path: Path | None, record: dict[str, Any]) -> None:
    """Add a line to a file."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def read_all(paths: Iterable[Path | None]) -> list[dict[str, Any]]:
    """The records of files that are there."""
    texts = [path.read_text("utf-8") for path in paths if path is not None and path.exists()]
    return [json.loads(line) for text in texts for line in text.splitlines() if line.strip()]


# ---- the gain of pre-training -------------------------------------------------------------------


def pretrained(options: argparse.Namespace) -> None:
    """Fine-tune a folder and random weights of the same architecture."""
    from sememe.networks.interchange.huggingface import load_folder

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


# ---- tables -------------------------------------------------------------------------------------


def table(options: argparse.Namespace) -> None:
    """Print the tables of files of results."""
    print("\n".join(table_of(read_all(options.files), has_all=options.all)))


def table_of(records: list[dict[str, Any]], *, has_all: bool = False) -> list[str]:
    """Markdown: a row for each set: the means over seeds of both sides, their difference, speed."""
    lines: list[str] = []
    for comparison, (base, side) in SIDES.items():
        own = [record for record in records if record["comparison"] == comparison]
        if not own:
            continue
        speed = f" rows/s {side} | {base} | ratio |" if comparison == "scores" else ""
        lines += [
            f"| set | score | seeds | {side} | {base} | difference (95 %) |{speed}",
            "| --- | --- | --- | --- | --- | --- |" + " --- | --- | --- |" * bool(speed),
        ]
        for group in grouped(own):
            names = list(group[0]["scores"])
            for name in names if has_all else names[:1]:
                lines.append(row_of(group, name, base, side, has_speed=bool(speed)))
        lines += ["", *map(settings_of, grouped(own)), ""]
    found = {record["task"]: record for record in records if record["comparison"] == "losses"}
    if found:
        lines += [
            "| set | tokens of a row | steps | largest difference of losses | rows |",
            "| --- | --- | --- | --- | --- |",
        ]
        for r in found.values():
            cells = r["task"], r["length"], len(r[OURS]), f"{r['largest']:.1e}", r["compared"]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def grouped(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Records that differ in side and seed alone, in the order of the sets."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda record: list(SETS).index(record["task"])):
        shared = ("task", "model", "device", "versions", "is_compiled", "rows", "hyper")
        groups.setdefault(json.dumps([record[name] for name in shared]), []).append(record)
    return list(groups.values())


def row_of(
    group: list[dict[str, Any]], metric: str, base: str, side: str, *, has_speed: bool
) -> str:
    """A row of the table."""
    from sememe.evaluation.tables import spread_figure
    from sememe.metrics import spread

    by_seed = {
        name: {record["seed"]: record for record in group if record["side"] == name}
        for name in (base, side)
    }
    values = {
        name: [record["scores"][metric] for record in own.values()] for name, own in by_seed.items()
    }
    nums = sorted({len(own) for own in values.values()})
    cells = [
        group[0]["task"], metric, "/".join(map(str, nums)),
        *(spread_figure(spread(values[name])) for name in (side, base)),
        difference_of(values[side], values[base]),
    ]  # fmt: skip
    if has_speed:
        speeds = {
            name: {seed: record["rows_per_s"] for seed, record in own.items()}
            for name, own in by_seed.items()
        }
        # The two trainings of a seed ran one after the other.
        pairs = speeds[side].keys() & speeds[base].keys()
        cells += [
            *(_median(speeds[name].values(), ",.0f") for name in (side, base)),
            _median([speeds[side][seed] / speeds[base][seed] for seed in pairs], ".2f"),
        ]
    return f"| {' | '.join(cells)} |"


def _median(values: Iterable[float], form: str) -> str:
    found = list(values)
    return format(statistics.median(found), form) if found else "–"


def difference_of(first: list[float], second: list[float]) -> str:
    """The difference of two means in points, with Welch's interval: seeds are not pairs."""
    from scipy.stats import t

    if not first or not second:
        return "–"
    difference = 100 * (statistics.mean(first) - statistics.mean(second))
    if min(len(first), len(second)) < 2:
        return f"{difference:+.2f}"
    errors = [statistics.variance(own) / len(own) for own in (first, second)]
    shares = [error**2 / (len(own) - 1) for error, own in zip(errors, (first, second), strict=True)]
    if not sum(shares):
        return f"{difference:+.2f}"
    half = 100 * float(t.ppf(0.975, sum(errors) ** 2 / sum(shares))) * math.sqrt(sum(errors))
    return f"{difference:+.2f} ({difference - half:+.2f} to {difference + half:+.2f})"


def settings_of(group: list[dict[str, Any]]) -> str:
    """What the results of a set were got with."""
    one = group[0]
    hyper = ", ".join(f"{name} {value:g}" for name, value in one["hyper"].items())
    versions = ", ".join(f"{name} {value}" for name, value in one["versions"].items())
    compiled = ", ours compiled" if one["is_compiled"] else ""
    return (
        f"- {one['task']}: {one['model']} on {one['device']}{compiled}; {hyper}; "
        f"{one['num_steps']:,} steps; {versions}"
    )


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
    for name in SIDES:
        own = commands.add_parser(name, parents=[shared])
        own.add_argument("--seeds", type=int, default=3)
        own.add_argument("--first-seed", type=int, default=1)
        own.add_argument("--steps", type=int, default=0, help="instead of epochs")
        own.add_argument("--batch-size", type=int, default=32)
        own.add_argument("--compile", action="store_true", help="compile ours")
    own = commands.add_parser("table")
    own.add_argument("files", type=Path, nargs="+")
    own.add_argument("--all", action="store_true", help="every score, not the first of a set")
    options = parser.parse_args()
    by_name: dict[str, Callable[[argparse.Namespace], None]] = {
        "losses": losses, "scores": scores, "pretrained": pretrained, "table": table,
    }  # fmt: skip
    if getattr(options, "threads", 0):
        import torch

        torch.set_num_threads(options.threads)  # of the peer; ours takes them as an option
    by_name[options.command](options)


if __name__ == "__main__":
    main()

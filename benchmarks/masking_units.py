"""Characters, words or phrases masked: BERTs of one size on Chinese text, compared on three tasks.

    python benchmarks/masking_units.py smoke --text TEXT --data ZH_FOLDER
    python benchmarks/masking_units.py run token --seed 1 --text TEXT --data ZH_FOLDER
    python benchmarks/masking_units.py table

ZH_FOLDER holds chnsenticorp, thucnews and msra (see docs/benchmarks.md); TEXT is Chinese. `run`
pre-trains a BERT with one unit (token, word, phrase) and seed, with the same tokenizer and steps
for all, then fine-tunes it on the tasks with the same seed; `table` prints all that was run, and
how far words and phrases are from characters. Each run is meant to take below nine minutes on an
H200 (--budget limits the pre-training, --max-train the tasks). KEPT has the weights and stays on
the machine that computes, OUT the scores as JSON; finished parts are not made again. Not measured
on a GPU yet. `smoke` does everything with a few steps and rows, in a minute on a CPU.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import sememe
from sememe.evaluation.rows import RunSettings
from sememe.metrics import spread
from sememe.progress import Reporter

UNITS = ("token", "word", "phrase")
TASKS = ("chnsenticorp", "thucnews", "msra")
CHINESE = sememe.TextSettings(language="zh")


def run(asked: argparse.Namespace) -> None:
    """Pre-train with one unit and seed, score the tasks, and write each task's scores."""
    folder = pretrained(asked)
    asked.out.mkdir(parents=True, exist_ok=True)
    settings = RunSettings(
        seeds=(asked.seed,), options={"device": asked.device}, max_train=asked.max_train
    )
    for name in TASKS:
        path = asked.out / f"{asked.unit}-{asked.seed}-{name}.json"
        if path.exists():
            continue
        evaluate = sememe.evaluate_ner if name == "msra" else sememe.evaluate_texts
        (outcome,) = evaluate(folder, asked.data, only=[name], settings=settings).outcomes
        found = {"unit": asked.unit, "seed": asked.seed, "task": name} | outcome.to_dict()
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False))
        told = outcome.parts["test"].metrics
        print(f"{asked.unit}, seed {asked.seed}, {name}: {told}", flush=True)
    table(asked)


def smoke(asked: argparse.Namespace) -> None:
    """Every unit with a few steps and rows, to find what fails before what takes long."""
    with tempfile.TemporaryDirectory() as name:
        asked.kept, asked.out, short = (Path(name) / own for own in ("kept", "out", "short.txt"))
        opened = lzma.open if str(asked.text).endswith(".xz") else open
        with opened(asked.text, "rt", encoding="utf-8") as file:
            short.write_text(file.read(300_000), "utf-8")
        asked.text, asked.preset, asked.steps, asked.budget = str(short), "tiny", 3, ""
        asked.max_train, asked.vocab_size = 100, 6_000
        for asked.unit in UNITS:
            run(asked)


def pretrained(asked: argparse.Namespace) -> Path:
    """The folder of a BERT with this masking unit; a stopped training continues."""
    folder: Path = asked.kept / f"{asked.unit}-{asked.seed}"
    if not (folder / "sememe.json").exists():
        length = {"budget": asked.budget} if asked.budget else {"steps": asked.steps}
        model = sememe.BERT(
            asked.preset, unit=asked.unit, seed=asked.seed, device=asked.device,
            batch_size=asked.batch_size, checkpoint_minutes=2.0, **length,
        )  # fmt: skip
        model.fit(
            asked.text, out=folder, tokenizer=tokenizer(asked), progress=Reporter(line_s=20),
            text=CHINESE, resume=True,
        )  # fmt: skip
    return folder


def tokenizer(asked: argparse.Namespace) -> Any:
    """The tokenizer that all of them share."""
    folder = asked.kept / "tokenizer"
    if not folder.exists():
        sememe.SubwordTokenizer.train(asked.text, vocab_size=asked.vocab_size, text=CHINESE).save(
            folder
        )
    return sememe.SubwordTokenizer.load(folder)


def table(asked: argparse.Namespace) -> None:
    """Print the main metric of every unit and task, and the baselines of the tasks."""
    rows = [json.loads(path.read_text()) for path in sorted(asked.out.glob("*.json"))]
    print("| masked | seeds |", " | ".join(TASKS), "|\n| --- | ---: |" + " --- |" * len(TASKS))
    means: dict[tuple[str, str], float] = {}
    for unit in UNITS:
        own = {name: [row for row in rows if (row["unit"], row["task"]) == (unit, name)]
               for name in TASKS}  # fmt: skip
        cells = []
        for name, found in own.items():
            parts = [main_score(row) for row in found]
            if not parts:
                cells.append("–")
                continue
            mean, deviation, _ = spread([score for score, _ in parts])
            means[unit, name] = mean
            low, high = np.mean([bounds for _, bounds in parts], axis=0)
            several = f" ± {deviation:.1f}" if len(parts) > 1 else ""
            against = mean - means.get(("token", name), mean)
            told = f"; {against:+.1f}" if unit != "token" and ("token", name) in means else ""
            cells.append(f"{mean:.1f}{several} ({low:.1f}–{high:.1f}){told}")
        num = max(map(len, own.values()))
        print(f"| {unit} | {num} |", " | ".join(cells), "|")
    known = {row["task"]: row["parts"]["test"]["baselines"] for row in rows}
    for number in range(2):
        cells = [known.get(name, [])[number : number + 1] for name in TASKS]
        print(f"| baseline {number + 1} | – |", " | ".join(map(baseline, cells)), "|")
    print("\nMean ± standard deviation over the seeds (95 % interval over the rows: the mean of "
          "the seeds' bounds); difference from characters.")  # fmt: skip


def main_score(row: dict[str, Any]) -> tuple[float, tuple[float, float]]:
    """The main metric of a run with its interval over the rows, in percent."""
    own = row["parts"]["test"]["metrics"][row["main_metric"]]
    low, high = own["interval"] or (float("nan"), float("nan"))
    return 100 * own["mean"], (100 * low, 100 * high)


def baseline(found: list[dict[str, Any]]) -> str:
    """A baseline's name and score."""
    if not found or found[0]["score"] is None:
        return "–"
    return f"{100 * found[0]['score']:.1f} ({found[0]['name']})"


def main() -> None:
    """Run a program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    shared = argparse.ArgumentParser(add_help=False)
    own = shared
    own.add_argument("--seed", type=int, default=1)
    own.add_argument("--text", required=True)
    own.add_argument("--data", type=Path, required=True)
    own.add_argument("--kept", type=Path, default=Path("kept"))
    own.add_argument("--out", type=Path, default=Path("results"))
    own.add_argument("--preset", default="small")
    own.add_argument("--steps", type=int, default=20_000)
    own.add_argument("--budget", default="", help="time of a pre-training, instead of steps")
    own.add_argument("--batch-size", type=int, default=0)
    own.add_argument("--vocab-size", type=int, default=12_000)
    own.add_argument("--max-train", type=int, default=0)
    own.add_argument("--device", default="auto")
    own = commands.add_parser("run", parents=[shared])
    own.add_argument("unit", choices=UNITS)
    own.set_defaults(program=run)
    own = commands.add_parser("smoke", parents=[shared])
    own.set_defaults(program=smoke)
    own = commands.add_parser("table")
    own.add_argument("--out", type=Path, default=Path("results"))
    own.set_defaults(program=table)
    asked = parser.parse_args()
    asked.program(asked)


if __name__ == "__main__":
    main()

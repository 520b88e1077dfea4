"""How good are plans? Losses for their model, and trainings compared with their plans.

    python benchmarks/plan.py run bert tiny 400 --text simplewiki.txt --out losses/
    python benchmarks/plan.py fit losses/
    python benchmarks/plan.py check --texts en=enwiki.txt zh=zhwiki.txt --out checks.jsonl
    python benchmarks/plan.py check --texts en=enwiki.txt --device cuda --out checks.jsonl
    python benchmarks/plan.py smoke --texts en=enwiki.txt --device cpu

`run` trains once and writes the loss as a JSON file. `fit` takes all files of a folder, adds the
runs of docs/experiments.md, writes src/sememe/planning/losses.json, and tells how many losses are
in the range that the other runs predict. `check` plans trainings with fixed steps on the first
megabytes of the texts, runs them, and appends planned and actual time, memory and loss to a file:
six on a CPU, in about ten minutes on two quiet cores, or three on a GPU, about three minutes each;
`--only 2` one of them. Checks that the file has are not made again, and one that fails does not
stop the others. `smoke` checks one training of a few steps. `table` prints that file, and which are
within 10 % of the time, 15 % of the memory and 5 % of the loss. A check must have the machine for
itself; the table says where it had not.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sememe
from sememe.machine import installed_versions, is_busy
from sememe.planning.losses import Expected, LossModel, Setting, fitted

LOSSES = Path(sememe.__file__).parent / "planning" / "losses.json"
CLASSES = {
    "bert": sememe.BERT, "gpt": sememe.GPT, "elmo": sememe.ELMo, "ulmfit": sememe.ULMFiT,
    "nnlm": sememe.NNLM,
}  # fmt: skip
# Complete trainings that docs/experiments.md records: far more steps than `run` affords.
RECORDED = [
    {"kind": "bert", "preset": "tiny", "steps": 29_371, "tokens_per_step": 1_076,
     "weights": 1_552_898, "loss": 3.49, "by_frequency": 6.46, "language": "en",
     "text": "docstrings", "length": 128},
    {"kind": "bert", "preset": "tiny", "steps": 6_903, "tokens_per_step": 1_076,
     "weights": 1_552_898, "loss": 5.03, "by_frequency": 6.46, "language": "en",
     "text": "docstrings", "length": 128},
    {"kind": "bert", "preset": "medium", "steps": 17_000, "tokens_per_step": 67_353,
     "weights": 34_415_618, "loss": 1.99, "by_frequency": 7.18, "language": "en",
     "text": "Wikipedia", "length": 256},
]  # fmt: skip

# (command without its text, language): six trainings of one to three minutes.
CHECKS = [
    ("bert --preset tiny --steps 600", "en"),
    ("bert --preset mini --length 64 --steps 150", "en"),
    ("bert --preset tiny --steps 500", "zh"),
    ("gpt --preset mini --steps 120", "en"),
    ("elmo --preset tiny --steps 250", "en"),
    ("word2vec --epochs 40", "en"),
]
GPU_CHECKS = [
    ("bert --preset medium --steps 600", "en"),
    ("bert --preset small --steps 1000", "en"),
    ("gpt --preset small --steps 600", "en"),
]
SMOKE_CHECKS = [("bert --preset tiny --steps 30 --vocab-size 2000", "en")]
WITHIN = {"seconds": 0.10, "memory_bytes": 0.15, "loss": 0.05}


# ---- losses -------------------------------------------------------------------------------------


def run(asked: argparse.Namespace) -> None:
    """Train one model for a number of steps, and write what its loss depends on."""
    more = {"length": asked.length} if asked.length else {}
    model = CLASSES[asked.kind](
        asked.preset, steps=asked.steps, workers=asked.workers, device=asked.device,
        evaluate_every=asked.steps, **more,
    )  # fmt: skip
    model.fit(asked.text or None, language=asked.language, progress=not asked.quiet)
    name = Path(asked.text or "docstrings").stem
    found = {
        "kind": asked.kind, "preset": asked.preset, "language": asked.language, "text": name,
        **facts(asked.kind, model.history.last(), asked.steps),
        "weights": sum(own.numel() for own in model.network.parameters()),
        "length": model.training.length,
    }  # fmt: skip
    asked.out.mkdir(parents=True, exist_ok=True)
    parts = [asked.kind, asked.preset, name, str(asked.steps), str(model.training.length)]
    (asked.out / f"{'-'.join(parts)}.json").write_text(json.dumps(found))


def facts(kind: str, metrics: dict[str, Any], steps: int) -> dict[str, Any]:
    """The loss of a run, without that of next sentences, and what it depends on."""
    validated = {key.removeprefix("validation_"): value for key, value in metrics.items()}
    return {
        "steps": steps, "tokens_per_step": round(metrics["tokens"] / steps, 1),
        "loss": round(validated.get("masked_loss", validated["loss"]), 4),
        "by_frequency": round(CLASSES[kind]().frequency_loss(validated), 4),
    }  # fmt: skip


def fit(asked: argparse.Namespace) -> None:
    """Fit the loss model to all runs, and write it into the package."""
    runs = [json.loads(path.read_text()) for path in sorted(asked.folder.glob("*.json"))]
    runs = [*runs, *RECORDED]
    content = {
        "about": "Measured validation losses, and the model fitted to them: losses.py.",
        "command": "python benchmarks/plan.py fit FOLDER",
        "fitted": datetime.now(UTC).date().isoformat(),
        "versions": installed_versions(("sememe", "torch")),
        "coefficients": fitted(runs),
    }  # fmt: skip
    head = json.dumps(content, indent=1)[:-2]
    lines = ",\n".join(f"  {json.dumps(own)}" for own in runs)
    LOSSES.write_text(f'{head},\n "runs": [\n{lines}\n ]\n}}\n')
    print(f"{len(runs)} runs, noise {content['coefficients']['noise']}")
    num, num_inside = 0, 0
    for own, expected in left_out(runs):
        ratio = expected.loss / own["loss"] - 1
        num, num_inside = num + 1, num_inside + (expected.low <= own["loss"] <= expected.high)
        print(f"{own['kind']:7} {own.get('preset', '')!s:6} {own.get('text', '')!s:16} "
              f"{own['steps']:6} × {own['tokens_per_step']:8.0f}  {own['loss']:.3f}  "
              f"left out: {expected.loss:.3f} ({ratio:+.1%}), "
              f"{expected.low:.2f}–{expected.high:.2f}")  # fmt: skip
    print(f"{num_inside} of {num} losses are in the range that the others predict")


def left_out(runs: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Expected]]:
    """Every run with its loss as expected from all others of its kind and the other kinds."""
    for index, own in enumerate(runs):
        others = [*runs[:index], *runs[index + 1 :]]
        if own["kind"] not in {other["kind"] for other in others}:
            continue
        model = LossModel(others, fitted(others))
        setting = Setting(**{name: own[name] for name in Setting._fields if name in own})
        expected = model.expected(setting)
        assert expected is not None
        yield own, expected


# ---- planned and actual -------------------------------------------------------------------------


def check(asked: argparse.Namespace) -> None:
    """Plan trainings, run them, and append both to a file."""
    checks = asked.checks or (CHECKS if asked.device == "cpu" else GPU_CHECKS)
    # A step on a GPU reads as many tokens as a few thousand on a CPU.
    asked.megabytes = asked.megabytes or (6.0 if asked.device == "cpu" else 100.0)
    known = asked.out.read_text().splitlines() if asked.out.exists() else []
    done = [(row["command"], row["language"]) for row in map(json.loads, known)]
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        for language, name in (one.split("=", 1) for one in asked.texts):
            texts[language] = Path(folder) / f"{language}.txt"
            opened = lzma.open if name.endswith(".xz") else open
            with opened(name, "rb") as file:
                content = file.read(round(asked.megabytes * 1e6))
            texts[language].write_bytes(content[: content.rfind(b"\n") + 1])
        for number, (command, language) in enumerate(checks, start=1):
            if asked.only not in (0, number) or (command, language) in done:
                continue
            try:
                checked(asked, Path(folder) / str(number), command, language, texts[language])
            except subprocess.CalledProcessError as error:
                print(f"FAILED: {command}, {language}: {error}", flush=True)
    table(asked)


def smoke(asked: argparse.Namespace) -> None:
    """Check one training of a few steps."""
    asked.checks, asked.megabytes = SMOKE_CHECKS, 0.5
    with tempfile.TemporaryDirectory() as folder:
        asked.out = Path(folder) / "checks.jsonl"
        check(asked)


def checked(
    asked: argparse.Namespace, folder: Path, command: str, language: str, text: Path
) -> None:
    """Plan one training, run it, and append both to the file."""
    parts = [*shlex.split(command)]
    parts[1:1] = [str(text), "--language", language]
    if not command.startswith("word2vec"):
        parts += ["--device", asked.device]
    environment = {**os.environ, "SEMEME_CACHE": asked.cache or f"{folder.parent}/cache"}
    planned = told(["plan", *parts, "--recalibrate", "--json"], environment)
    told(["train", *parts, "--out", str(folder), "--json"], environment)
    row = {
        "command": command, "language": language, "size": planned["sizes"][0],
        "machine": planned["machine"], "was_busy": is_busy(),
        "forecast": json.loads((folder / "sememe.json").read_text())["forecast"],
    }  # fmt: skip
    with asked.out.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(line_of(row), flush=True)


def told(arguments: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """What a command prints with --json."""
    command = [sys.executable, "-m", "sememe.cli", *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def line_of(row: dict[str, Any]) -> str:
    """A line of the table of docs/experiments.md."""
    expected, actual = row["forecast"]["expected"], row["forecast"]["actual"]
    had_others = row.get("was_busy") or row["size"].get("was_busy")
    cells = [f"`{row['command']}`, {row['language']}{' (busy)' if had_others else ''}"]
    for name, scale, unit in (("seconds", 1, "s"), ("memory_bytes", 1 << 20, "MB")):
        one, other = expected[name] / scale, actual[name] / scale
        cells.append(f"{one:,.0f} {unit} | {other:,.0f} {unit} | {other / one - 1:+.1%}")
    loss, found = expected.get("loss"), actual.get("validation_loss")
    if loss is None or found is None:
        cells.append("– | – | –")
    elif "loss" in loss:
        cells.append(f"{loss['loss']:.2f} | {found:.2f} | {found / loss['loss'] - 1:+.1%}")
    else:
        cells.append(f"{loss['low']:.1f}–{loss['high']:.1f} | {found:.2f} | uncertain")
    return "| " + " | ".join(cells) + " |"


def table(asked: argparse.Namespace) -> None:
    """Print the checks of a file, and how many are within the limits."""
    lines = asked.out.read_text().splitlines() if asked.out.exists() else []
    rows = [json.loads(line) for line in lines]
    print("\n| training | time | took | | memory | took | | loss | reached | |\n"
          "| --- |" + " ---: |" * 9)  # fmt: skip
    for row in rows:
        print(line_of(row))
    for name, limit in WITHIN.items():
        errors = [error for row in rows if (error := error_of(row, name)) is not None]
        num = sum(abs(error) <= limit for error in errors)
        print(f"{name}: {num} of {len(errors)} within {limit:.0%}")


def error_of(row: dict[str, Any], name: str) -> float | None:
    """How far the actual value is from the planned one; None where there is no plan of it."""
    expected, actual = row["forecast"]["expected"], row["forecast"]["actual"]
    if name == "loss":
        planned, found = expected.get("loss", {}).get("loss"), actual.get("validation_loss")
    else:
        planned, found = expected.get(name), actual.get(name)
    return found / planned - 1 if planned and found else None


def main() -> None:
    """Run one of the programs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    own = commands.add_parser("run")
    own.add_argument("kind", choices=CLASSES)
    own.add_argument("preset")
    own.add_argument("steps", type=int)
    own.add_argument("--text", default="")
    own.add_argument("--language", default="en")
    own.add_argument("--length", type=int, default=0)
    own.add_argument("--workers", type=int, default=1)
    own.add_argument("--device", default="cpu")
    own.add_argument("--quiet", action="store_true")
    own.add_argument("--out", type=Path, default=Path("losses"))
    own.set_defaults(program=run)
    own = commands.add_parser("fit")
    own.add_argument("folder", type=Path)
    own.set_defaults(program=fit)
    shared = argparse.ArgumentParser(add_help=False)
    own = shared
    own.add_argument("--texts", nargs="+", required=True)
    own.add_argument("--only", type=int, default=0)
    own.add_argument("--device", default="cpu")
    own.add_argument("--megabytes", type=float, default=0.0, help="0: by the device")
    own.add_argument("--cache", default="")
    own.add_argument("--out", type=Path, default=Path("checks.jsonl"))
    own.set_defaults(checks=[])
    own = commands.add_parser("check", parents=[shared])
    own.set_defaults(program=check)
    own = commands.add_parser("smoke", parents=[shared])
    own.set_defaults(program=smoke)
    own = commands.add_parser("table")
    own.add_argument("--out", type=Path, default=Path("checks.jsonl"))
    own.set_defaults(program=table)
    asked = parser.parse_args()
    asked.program(asked)


if __name__ == "__main__":
    main()

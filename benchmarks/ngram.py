"""n-gram models beside KenLM: seconds from text to a model that can be asked, and perplexity.

python benchmarks/ngram.py TEXT --peer DIR [--order 5] [--threads 2] [--memory 2] [--rounds 3]
TEXT is already segmented: words separated by spaces, a sentence (or paragraph) a line; the last
hundredth of its lines is held out. The peer's folder holds lmplz, build_binary and query.

Both have the same text, order and memory, no pruning. The peer's lmplz writes an ARPA file, which
build_binary turns into the file that programs map; ours reads the text and writes the folder that
is mapped. Every program is a process of its own; our kernels have been compiled before. The
rounds take turns, and the fastest of each counts: others may use the machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Result = dict[str, float]


def seconds_of(command: list[str]) -> float:
    """Run a program and give the seconds it took."""
    start = time.perf_counter()
    ran = subprocess.run(command, capture_output=True)
    if ran.returncode:
        raise SystemExit(f"{command[0]} failed: {ran.stderr.decode()[-500:]}")
    return time.perf_counter() - start


def split(text: Path, folder: Path) -> tuple[Path, Path]:
    """Write the text to learn from and the text to be measured on."""
    with text.open("rb") as file:
        num_lines = sum(1 for _ in file)
    train, held = folder / "train.txt", folder / "held-out.txt"
    with text.open("rb") as file, train.open("wb") as first, held.open("wb") as last:
        for index, line in enumerate(file):
            (first if index < num_lines * 0.99 else last).write(line)
    return train, held


def run_peer(options: argparse.Namespace, folder: Path) -> Result:
    """lmplz, then build_binary."""
    arpa, binary = folder / "model.arpa", folder / "model.binary"
    return {
        "estimating": seconds_of([
            str(options.peer / "lmplz"), "-o", str(options.order), "-S", f"{options.memory}G",
            "-T", str(folder) + "/", "--text", str(folder / "train.txt"), "--arpa", str(arpa),
        ]),
        "for asking": seconds_of([str(options.peer / "build_binary"), str(arpa), str(binary)]),
    }  # fmt: skip


def run_ours(options: argparse.Namespace, folder: Path) -> Result:
    """Count and save in a process of its own."""
    job = {
        "text": str(folder / "train.txt"), "out": str(folder / "model"),
        "store": str(folder / "store"),
        "config": {
            "order": options.order, "workers": options.threads, "memory": f"{options.memory}G",
            "validation_share": 0.0,
        },
    }  # fmt: skip
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    return json.loads(subprocess.check_output(command).splitlines()[-1])


def count(job: dict[str, Any]) -> Result:
    """Text to ids, n-grams to a folder; the seconds of each."""
    import resource
    import shutil

    import sememe
    from sememe.tokens.caching import open_or_build

    settings = sememe.TextSettings(language="none", lowercase=False)
    with tempfile.TemporaryDirectory() as folder:  # compiles what is not compiled yet
        tiny = Path(folder) / "tiny.txt"
        tiny.write_text("a b c\nb c d\n" * 100)
        store = open_or_build(tiny, settings, min_count=1, path=Path(folder) / "warm")
        sememe.NGram(workers=2, memory="1M").fit(store)
    shutil.rmtree(job["store"], ignore_errors=True)
    shutil.rmtree(job["out"], ignore_errors=True)
    begun = time.perf_counter()
    store = open_or_build(job["text"], settings, min_count=1, path=job["store"])
    read = time.perf_counter()
    sememe.NGram(**job["config"]).fit(store, text=settings, out=job["out"], overwrite=True)
    ended = time.perf_counter()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"reading": read - begun, "counting": ended - read, "peak_mb": peak_mb}


def perplexities(options: argparse.Namespace, folder: Path) -> tuple[float, float]:
    """Of the held-out text, unknown words included: the peer's and ours."""
    import sememe

    held = folder / "held-out.txt"
    with held.open("rb") as text:
        said = subprocess.check_output(
            [str(options.peer / "query"), "-v", "summary", str(folder / "model.binary")],
            stdin=text, stderr=subprocess.DEVNULL,
        ).decode()  # fmt: skip
    found = re.search(r"including OOVs:\s+([\d.]+)", said)
    if found is None:
        raise SystemExit(f"query said: {said}")
    return float(found[1]), sememe.NGram.load(folder / "model").perplexity(held)


def compare(options: argparse.Namespace) -> None:
    """Run both in turns and print the fastest of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        split(options.text, folder)
        best: dict[str, Result] = {}
        for _ in range(options.rounds):
            for who, run in (("KenLM", run_peer), ("ours", run_ours)):
                found = run(options, folder)
                total = sum(value for stage, value in found.items() if stage != "peak_mb")
                found["total"] = total
                if who not in best or total < best[who]["total"]:
                    best[who] = found
                print(who, {stage: round(value, 2) for stage, value in found.items()}, flush=True)
        theirs, ours = perplexities(options, folder)
        print(f"perplexity: KenLM {theirs:.4f}, ours {ours:.4f}")
        print(f"seconds: {best['KenLM']['total']:.1f} and {best['ours']['total']:.1f}, ratio "
              f"{best['KenLM']['total'] / best['ours']['total']:.2f}; lmplz alone: "
              f"{best['KenLM']['estimating'] / best['ours']['total']:.2f}")  # fmt: skip


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", type=int, default=2, help="gigabytes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(count(json.loads(options.job))))
    else:
        compare(options)


if __name__ == "__main__":
    main()

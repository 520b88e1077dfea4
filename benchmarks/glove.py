"""GloVe beside Stanford's C program: seconds of every stage, memory, and quality at that speed.

python benchmarks/glove.py TEXT --peer DIR [--words DIR] [--epochs 15] [--threads 2] [--dim 100]
TEXT is already segmented: words separated by spaces, a sentence (or paragraph) a line. The peer's
folder holds vocab_count, cooccur, shuffle and glove; that of words google-analogies.txt,
wordsim353.txt, simlex999.txt and others (pairs separated by tabs).

Both have the same text, window, x_max, alpha, learning rate, iterations, threads and memory. Every
program is a process of its own; our kernels have been compiled before. Ours reads the text and
writes a model folder, the peer's reads the text and writes a vector file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STAGES = ("vocabulary", "co-occurrence", "shuffle", "training")
PAIRS = ("wordsim353", "simlex999", "mturk771", "rarewords")
Result = dict[str, float]


def seconds_of(command: list[str], stdin: Path | None, stdout: Path) -> float:
    """Run a program from file to file and give the seconds it took."""
    start = time.perf_counter()
    with stdout.open("wb") as out, Path(stdin or os.devnull).open("rb") as text:
        ran = subprocess.run(command, stdin=text, stdout=out, stderr=subprocess.PIPE)
    if ran.returncode:
        raise SystemExit(f"{command[0]} failed: {ran.stderr.decode()[-500:]}")
    return time.perf_counter() - start


def run_peer(options: argparse.Namespace, folder: Path) -> tuple[Result, Path]:
    """Run Stanford's four programs one after the other."""
    vocabulary, pairs, mixed = (folder / name for name in ("vocab.txt", "pairs.bin", "mixed.bin"))
    memory, programs = str(options.memory), options.peer
    jobs = {
        "vocabulary": (["vocab_count", "-min-count", "5"], options.text, vocabulary),
        "co-occurrence": (
            ["cooccur", "-memory", memory, "-vocab-file", str(vocabulary),
             "-window-size", str(options.window), "-overflow-file", str(folder / "overflow")],
            options.text, pairs,
        ),
        "shuffle": (
            ["shuffle", "-memory", memory, "-temp-file", str(folder / "temp"), "-seed", "1"],
            pairs, mixed,
        ),
        "training": (
            ["glove", "-save-file", str(folder / "vectors"), "-threads", str(options.threads),
             "-input-file", str(mixed), "-x-max", str(options.x_max), "-alpha", "0.75",
             "-eta", "0.05", "-iter", str(options.epochs), "-vector-size", str(options.dim),
             "-binary", "0", "-vocab-file", str(vocabulary), "-seed", "1"],
            None, folder / "said.txt",
        ),
    }  # fmt: skip
    result: Result = {}
    for stage, (command, stdin, stdout) in jobs.items():
        program = [str(programs / command[0]), *command[1:], "-verbose", "0"]
        result[stage] = seconds_of(program, stdin, stdout)
        print(f"  peer {stage}: {result[stage]:.1f} s", flush=True)
    return result, folder / "vectors.txt"


def run_ours(options: argparse.Namespace, folder: Path) -> tuple[Result, Path]:
    """Train in a process of its own."""
    job = {
        "text": str(options.text), "out": str(folder / "model"), "store": str(folder / "store"),
        "config": {
            "dim": options.dim, "window": options.window, "x_max": options.x_max,
            "epochs": options.epochs, "workers": options.threads, "memory": f"{options.memory}G",
        },
    }  # fmt: skip
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    result = json.loads(subprocess.check_output(command).splitlines()[-1])
    for stage in STAGES:
        print(f"  ours {stage}: {result[stage]:.1f} s", flush=True)
    return result, folder / "model"


def train(job: dict[str, Any]) -> Result:
    """Count words, count pairs, train; the seconds of each."""
    import resource

    import sememe
    from sememe.progress import ProgressTask, Reporter
    from sememe.tokens.caching import open_or_build

    class Clock(Reporter):
        """Says nothing and remembers when the training begins."""

        def task(
            self, title: str, total: int | None = None, unit: str = "", *, start: int = 0
        ) -> ProgressTask:
            if title == "training":
                self.training_s = time.perf_counter()
            return super().task(title, total, unit, start=start)

    settings = sememe.TextSettings(language="none")
    with tempfile.TemporaryDirectory() as folder:  # compiles what is not compiled yet
        tiny = Path(folder) / "tiny.txt"
        tiny.write_text("a b c\n" * 100)
        store = open_or_build(tiny, settings, min_count=1, path=Path(folder) / "warm")
        sememe.GloVe(min_count=1, epochs=1).fit(store)
    clock = Clock(quiet=True)
    begun = time.perf_counter()
    store = open_or_build(job["text"], settings, min_count=5, path=job["store"])
    counted = time.perf_counter()
    sememe.GloVe(**job["config"]).fit(store, out=job["out"], overwrite=True, progress=clock)
    ended = time.perf_counter()
    return {
        "vocabulary": counted - begun,
        "co-occurrence": clock.training_s - counted,
        "shuffle": 0.0,
        "training": ended - clock.training_s,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def scores(path: Path, words: Path) -> Result:
    """Percent of analogies, Spearman × 100 of the pairs, by our evaluator."""
    import sememe
    from sememe.evaluation import evaluate_analogies, evaluate_pairs

    vectors = sememe.load(path)
    found = {"analogies": 100 * evaluate_analogies(vectors, words / "google-analogies.txt").value}
    for name in PAIRS:
        if (file := words / f"{name}.txt").exists():
            found[name] = 100 * float(evaluate_pairs(vectors, file, case="fold").value)
    return found


def compare(options: argparse.Namespace) -> None:
    """Run both, print the stages, the ratios and the scores."""
    results: dict[str, Result] = {}
    qualities: dict[str, Result] = {}
    for name, run in (("sememe", run_ours), ("Stanford", run_peer)):
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            results[name], path = run(options, Path(folder))
            results[name]["total"] = sum(results[name][stage] for stage in STAGES)
            if options.words:
                qualities[name] = scores(path, options.words)
    ours, theirs = results["sememe"], results["Stanford"]
    for stage in (*STAGES, "total"):
        ratio = f"ratio {theirs[stage] / ours[stage]:6.2f}" if ours[stage] else "no such stage"
        print(f"{stage:14} sememe {ours[stage]:8.1f} s  Stanford {theirs[stage]:8.1f} s  {ratio}")
    print(f"{'memory':14} sememe {ours['peak_mb']:8,.0f} MB at most, of {options.memory} GB given")
    for name in qualities.get("sememe", {}):
        print(
            f"{name:14} sememe {qualities['sememe'][name]:8.2f}    "
            f"Stanford {qualities['Stanford'][name]:8.2f}"
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("--peer", type=Path, help="the folder of Stanford's programs")
    parser.add_argument("--words", type=Path, help="the folder of analogies and word pairs")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--window", type=int, default=15)
    parser.add_argument("--x-max", type=float, default=100.0)
    parser.add_argument("--memory", type=float, default=4.0, help="gigabytes for each of both")
    parser.add_argument("--scratch", type=Path, help="where both may write, a few gigabytes")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(train(json.loads(options.job))))
    elif options.text is None or options.peer is None:
        parser.error("TEXT and --peer are needed")
    else:
        compare(options)


if __name__ == "__main__":
    main()

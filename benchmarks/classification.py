"""The classifier beside Facebook's fastText: seconds to train, accuracy, prediction speed.

python benchmarks/classification.py FASTTEXT TRAIN TEST [options]

FASTTEXT is the program built with its own Makefile. TRAIN and TEST hold lines `__label__x text`.
The training file is repeated until the program needs --seconds (20); then both train on it in
turns, each reading the file and writing its model, and the medians are printed. Kernels are
compiled beforehand on the unrepeated file.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from sememe import FastTextClassifier

LOSSES = {"softmax": "softmax", "hierarchical": "hs", "ova": "ova", "negative": "ns"}


class Ran(NamedTuple):
    """One training: seconds, and precision at 1 on the test file."""

    seconds: float
    precision: float


def run_peer(program: Path, train: Path, test: Path, options: argparse.Namespace, seed: int) -> Ran:
    """Train and test with Facebook's program."""
    model = train.with_name("peer")
    command = [
        program, "supervised", "-input", train, "-output", model, "-verbose", 0, "-seed", seed,
        "-thread", options.workers, "-lr", options.learning_rate, "-epoch", options.epochs,
        "-wordNgrams", options.word_ngrams, "-loss", LOSSES[options.loss], "-dim", options.dim,
        "-minn", options.minn, "-maxn", options.maxn, "-bucket", options.bucket,
    ]  # fmt: skip
    start = time.perf_counter()
    subprocess.run([str(item) for item in command], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    tested = subprocess.check_output([program, "test", f"{model}.bin", test], text=True)
    precision = float(tested.split("P@1")[1].split()[0])
    return Ran(seconds, precision)


def run_ours(train: Path, test: Path, options: argparse.Namespace, seed: int) -> Ran:
    """Train, save and test with ours."""
    start = time.perf_counter()
    model = FastTextClassifier(
        dim=options.dim, learning_rate=options.learning_rate, epochs=options.epochs,
        word_ngrams=options.word_ngrams, minn=options.minn, maxn=options.maxn,
        bucket=options.bucket, loss=options.loss, workers=options.workers, seed=seed,
    ).fit(train, out=train.with_name("ours"), overwrite=True)  # fmt: skip
    seconds = time.perf_counter() - start
    return Ran(seconds, model.evaluate(test).precision)


def repeated(train: Path, folder: Path, times: int) -> Path:
    """The training file, written several times."""
    path = folder / "repeated.txt"
    content = train.read_bytes()
    if not content.endswith(b"\n"):
        content += b"\n"
    with path.open("wb") as file:
        for _ in range(times):
            file.write(content)
    return path


def predicting(program: Path, train: Path, test: Path) -> None:
    """Time the predictions of a file of at least 200,000 lines, by the peer's own model."""
    lines = test.read_bytes()
    large = train.with_name("questions.txt")
    large.write_bytes(lines * max(1, 200_000 // max(1, lines.count(b"\n"))))
    model = train.with_name("peer.bin")
    num_lines = large.read_bytes().count(b"\n")
    FastTextClassifier.load(model).predict("compiled")
    start = time.perf_counter()
    blocks = FastTextClassifier.load(model).predict_blocks(large)
    found = sum(len(block.label_ids) for block in blocks)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    subprocess.run([program, "predict", model, large], check=True, capture_output=True)
    theirs = time.perf_counter() - start
    assert found == num_lines
    print(
        f"predict {num_lines:,} lines, model opened too: ours {ours:.2f} s, peer {theirs:.2f} s: "
        f"{theirs / ours:.1f}×"
    )


def main() -> None:
    """Run both in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--word-ngrams", type=int, default=1)
    parser.add_argument("--minn", type=int, default=0)
    parser.add_argument("--maxn", type=int, default=0)
    parser.add_argument("--bucket", type=int, default=2_000_000)
    parser.add_argument("--loss", choices=LOSSES, default="softmax")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        once = repeated(options.train, folder, 1)
        run_ours(once, options.test, options, 1)  # compiles
        train, needed = once, 1
        while True:
            first = run_peer(options.program, train, options.test, options, 1)
            if first.seconds >= 0.9 * options.seconds:
                break
            needed = max(needed + 1, round(needed * 1.05 * options.seconds / first.seconds))
            train = repeated(options.train, folder, needed)
        size = train.stat().st_size / 1e6
        print(f"the text {needed} times: {size:.1f} MB, {options.epochs} epochs, {options.loss}, "
              f"{options.workers} threads")  # fmt: skip
        ours, theirs = [], []
        for seed in range(1, options.rounds + 1):
            theirs.append(run_peer(options.program, train, options.test, options, seed))
            ours.append(run_ours(train, options.test, options, seed))
            print(f"  peer {theirs[-1].seconds:.2f} s {theirs[-1].precision:.4f}, "
                  f"ours {ours[-1].seconds:.2f} s {ours[-1].precision:.4f}")  # fmt: skip
        medians = [
            (statistics.median(r.seconds for r in runs), statistics.mean(r.precision for r in runs))
            for runs in (theirs, ours)
        ]
        (peer_s, peer_precision), (our_s, our_precision) = medians
        print(f"train: peer {peer_s:.2f} s, ours {our_s:.2f} s: {peer_s / our_s:.1f}×")
        print(f"precision at 1: peer {peer_precision:.4f}, ours {our_precision:.4f} "
              f"({100 * (our_precision - peer_precision):+.2f} points)")  # fmt: skip
        predicting(options.program, train, options.test)


if __name__ == "__main__":
    main()

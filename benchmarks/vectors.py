"""Vectors in use, beside gensim where it has the same: opening, reading text, ten neighbors.

python benchmarks/vectors.py [--small]; prints one line for each claim, medians of several runs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sememe.vectors import WordVectors, load
from sememe.vectors.formats import write_vectors

OPEN = """
import time
start = time.perf_counter()
from sememe.vectors import load
load({folder!r})["w7"]
print(time.perf_counter() - start)
"""


def median_s(work: Callable[[], object], repeats: int) -> float:
    """Seconds that `work` takes, the median, after one run to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def random_vectors(num_words: int, dim: int) -> WordVectors:
    """Vectors that no compression or cache can make easier than real ones."""
    table = np.random.default_rng(1).standard_normal((num_words, dim), np.float32)
    return WordVectors([f"w{index}" for index in range(num_words)], table)


def opening(folder: Path, num_words: int) -> None:
    """Open a folder in a fresh process and look up one word."""
    random_vectors(num_words, 300).save(folder / "large")
    program = [sys.executable, "-c", OPEN.format(folder=str(folder / "large"))]
    runs = [float(subprocess.check_output(program)) for _ in range(3)]
    print(f"open {num_words:,} × 300, one word: {statistics.median(runs):.3f} s (aim: under 1)")


def ten_neighbors(num_words: int) -> None:
    """Find ten neighbors of one word, exactly."""
    vectors = random_vectors(num_words, 100)
    scan = median_s(lambda: vectors.vectors @ vectors.vectors[7], 30)
    ours = median_s(lambda: vectors.neighbors("w7"), 30)
    print(f"ten neighbors among {num_words:,} × 100: {1e3 * ours:.1f} ms (aim: under 15; "
          f"the scan alone {1e3 * scan:.1f})")  # fmt: skip
    from gensim.models import KeyedVectors

    keyed = KeyedVectors(100)
    keyed.add_vectors(list(vectors), vectors.vectors)
    theirs = median_s(lambda: keyed.most_similar("w7"), 5)
    print(f"  gensim {1e3 * theirs:.1f} ms: {theirs / ours:.1f}×")


def reading(folder: Path, num_words: int) -> None:
    """Read GloVe text."""
    from gensim.models import KeyedVectors

    path = folder / "glove.txt"
    write_vectors(random_vectors(num_words, 50), path, "glove")
    ours = median_s(lambda: load(path), 3)
    start = time.perf_counter()
    KeyedVectors.load_word2vec_format(str(path), no_header=True)
    theirs = time.perf_counter() - start
    print(f"read {num_words:,} × 50 of text: {ours:.2f} s, gensim {theirs:.2f} s: "
          f"{theirs / ours:.1f}×")  # fmt: skip


def main() -> None:
    """Run every measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a tenth of the words, for a trial")
    scale = 10 if parser.parse_args().small else 1
    ten_neighbors(400_000 // scale)
    with tempfile.TemporaryDirectory() as name:
        reading(Path(name), 400_000 // scale)
        opening(Path(name), 1_000_000 // scale)


if __name__ == "__main__":
    main()

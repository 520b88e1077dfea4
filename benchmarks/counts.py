"""Counting pairs against Stanford's program, and counts → PPMI → SVD of a whole text.

python benchmarks/counts.py pairs TEXT GLOVE    GLOVE: the folder of vocab_count and cooccur
python benchmarks/counts.py vectors TEXT WORDS  WORDS: a folder of word sets to score

TEXT is segmented already: words separated by spaces, a sentence or paragraph a line. `pairs` counts
the same pairs with both (window 15, 4 GB; two threads of ours, cooccur has one) and writes
them to a file, each in its own layout; compilation comes before. `vectors` prints time,
peak memory (Linux) and scores, each model in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

RECORD = np.dtype([("row", "<i4"), ("column", "<i4"), ("value", "<f8")])
WINDOW, MIN_COUNT, MEMORY = 15, 5, 4
MODELS: dict[str, dict[str, Any]] = {
    "counts, SVD of log": {"transform": "log"},
    "PPMI, SVD": {},
    "PPMI, SVD, 300 dimensions": {"dim": 300},
}


def peak_mb() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def children_s() -> float:
    """Processor seconds of the programs that this one has run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def child(*arguments: str) -> dict[str, Any]:
    """Run this program in a process of its own."""
    return json.loads(subprocess.check_output([sys.executable, __file__, *arguments]))


def ours(text: str, folder: Path, workers: int) -> None:
    """Count the pairs of `text` into a file in Stanford's format; prints seconds and the peak."""
    from sememe.examples.cooccurrence.counting import PairSettings, count_pairs
    from sememe.text.settings import TextSettings
    from sememe.tokens.caching import open_or_build

    settings, plain = PairSettings(window=WINDOW), TextSettings(language="none", lowercase=False)
    for memory in (1 << 20, 1 << 30):  # compiles what both ways need
        small = open_or_build([list("abcde") * 20] * 2_000, plain, min_count=1)
        list(count_pairs(small, 5, settings, memory=memory, scratch=folder))
    begun = time.perf_counter()
    store = open_or_build(text, plain, min_count=MIN_COUNT, workers=workers, path=folder / "store")
    read_s, begun_cpu = time.perf_counter() - begun, time.process_time()
    num_cells, total = 0, 0.0
    with (folder / "ours.bin").open("wb") as file:
        for cells in count_pairs(
            store, len(store.vocabulary), settings, memory=MEMORY << 30, workers=workers,
            scratch=folder,
        ):  # fmt: skip
            for array in cells:
                file.write(array.data)
            num_cells += len(cells.rows)
            total += float(cells.values.sum(dtype=np.float64))
    total_s = time.perf_counter() - begun
    cpu_s = time.process_time() - begun_cpu
    metrics = {"read_s": read_s, "count_s": total_s - read_s, "cpu_s": cpu_s, "cells": num_cells}
    print(json.dumps({**metrics, "sum": total, "peak": peak_mb()}))


def stanford(text: str, glove: Path, folder: Path) -> dict[str, float]:
    """Count the pairs with Stanford's program; seconds and cells."""
    begun = time.perf_counter()
    with Path(text).open("rb") as source, (folder / "vocab.txt").open("wb") as target:
        command = [glove / "vocab_count", "-min-count", str(MIN_COUNT), "-verbose", "0"]
        subprocess.run(command, stdin=source, stdout=target, check=True, stderr=subprocess.DEVNULL)
    read_s, begun_cpu = time.perf_counter() - begun, children_s()
    command = [
        glove / "cooccur", "-verbose", "0", "-memory", str(MEMORY), "-window-size", str(WINDOW),
        "-vocab-file", folder / "vocab.txt", "-overflow-file", folder / "overflow",
    ]  # fmt: skip
    with Path(text).open("rb") as source, (folder / "theirs.bin").open("wb") as target:
        subprocess.run(command, stdin=source, stdout=target, check=True, stderr=subprocess.DEVNULL)
    count_s = time.perf_counter() - begun - read_s
    metrics = {"read_s": read_s, "count_s": count_s, "cpu_s": children_s() - begun_cpu}
    records = np.memmap(folder / "theirs.bin", RECORD, "r")
    return {**metrics, "cells": len(records), "sum": float(records["value"].sum())}


def pairs(text: str, glove: Path, workers: int) -> None:
    """Print both programs' times for the same pairs, and compare the sums of what they wrote."""
    with tempfile.TemporaryDirectory() as name:
        theirs = stanford(text, glove, Path(name))
        mine = child("ours", text, name, "--workers", str(workers))
    for who, row in (("cooccur", theirs), ("sememe", mine)):
        print(
            f"{who:8} vocabulary {row['read_s']:5.1f} s, pairs {row['count_s']:5.1f} s, "
            f"{row['cpu_s']:.1f} of them on processors; {row['cells']:,} cells, "
            f"sum {row['sum']:,.1f}"
        )
    ratio, peak = theirs["count_s"] / mine["count_s"], mine["peak"]
    print(f"pairs: {ratio:.1f} × as fast as cooccur; peak memory {peak:,.0f} MB")


def one(text: str, folder: Path, words: str, name: str, workers: int) -> None:
    """Make one model of the token store; prints seconds, peak memory and scores."""
    import sememe

    sememe.Counts(dim=2, min_count=1).fit([list("abcde") * 20] * 5)  # compiles
    begun = time.perf_counter()
    options = {"min_count": MIN_COUNT, "workers": workers, **MODELS[name]}
    model = sememe.Counts(**options).fit(
        text, language="none", lowercase=False, store=folder / "store"
    )
    metrics = {"seconds": time.perf_counter() - begun, "peak": peak_mb()}
    scores = sememe.evaluate_words(model.vectors, words).scores
    print(json.dumps({
        **metrics, "words": len(model.vectors), "cells": model.history[-1]["cells"],
        "scores": {one.name: one.value for one in scores if one.num_asked},
    }))  # fmt: skip


def vectors(text: str, words: str, workers: int) -> None:
    """Print time, peak memory and scores of every model."""
    with tempfile.TemporaryDirectory() as name:
        for model in MODELS:
            row = child("one", text, name, words, model, "--workers", str(workers))
            scores = ", ".join(f"{name} {100 * value:.1f}" for name, value in row["scores"].items())
            print(f"{model}: {row['words']:,} words, {row['cells']:,} cells, "
                  f"{row['seconds']:.0f} s, peak {row['peak']:,.0f} MB; {scores}")  # fmt: skip


def main() -> None:
    """Run the part that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=("pairs", "vectors", "ours", "one"))
    parser.add_argument("arguments", nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    given, workers = asked.arguments, asked.workers
    if asked.part == "pairs":
        pairs(given[0], Path(given[1]), workers)
    elif asked.part == "vectors":
        vectors(given[0], given[1], workers)
    elif asked.part == "ours":
        ours(given[0], Path(given[1]), workers)
    else:
        one(given[0], Path(given[1]), given[2], given[3], workers)


if __name__ == "__main__":
    main()

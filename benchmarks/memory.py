"""Memory stays bounded: training on a text and on ten copies of it; counting distinct strings.

python benchmarks/memory.py train TEXT       TEXT is segmented already, words separated by spaces
python benchmarks/memory.py distinct [N]     count N million words, nearly all different

Every figure is the peak resident memory of a process of its own (Linux).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

MB = 1 << 20


def peak_mb() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def train(text: str, min_count: int) -> None:
    """Train one epoch and print the peak, and what the two matrices take."""
    import sememe

    with tempfile.TemporaryDirectory() as folder:
        model = sememe.Word2Vec(dim=100, epochs=1, min_count=min_count, workers=2)
        model.fit(text, language="none", store=Path(folder) / "store")
    print(json.dumps({"peak": peak_mb(), "matrices": 2 * model.input.nbytes / MB}))


def distinct(num_millions: int) -> None:
    """Count words of which nearly none occurs twice."""
    import numpy as np

    from sememe.text.words import Records
    from sememe.tokens.counting import count_words

    def records() -> Iterator[Records]:
        random, size = np.random.default_rng(1), 100_000
        for _ in range(num_millions * 10):
            numbers = random.integers(0, 10**10, size)
            yield Records(b"".join(b"%d\x1f" % n for n in numbers.tolist()) + b"\x1e\x1d", None)

    start = time.perf_counter()
    vocabulary = count_words(records(), min_count=5)
    print(f"{num_millions} M words, {len(vocabulary):,} of them five times: peak "
          f"{peak_mb():,.0f} MB, {time.perf_counter() - start:.0f} s")  # fmt: skip


def child(*arguments: str) -> dict[str, float]:
    """Run this program in a process of its own."""
    return json.loads(subprocess.check_output([sys.executable, __file__, *arguments]))


def compare(text: str) -> None:
    """Train on the text and on ten copies of it, with a min_count that gives the same words."""
    one = child("train-one", text, "5")
    with tempfile.NamedTemporaryFile(suffix=".txt") as copies:
        content = Path(text).read_bytes()
        for _ in range(10):
            copies.write(content)
        copies.flush()
        ten = child("train-one", copies.name, "50")
    print(f"one copy: peak {one['peak']:,.0f} MB, of which twice the two matrices "
          f"{2 * one['matrices']:,.0f} MB\nten copies: peak {ten['peak']:,.0f} MB, "
          f"{ten['peak'] - one['peak']:+,.0f} MB")  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["train", path]:
            compare(path)
        case ["train-one", path, least]:
            train(path, int(least))
        case ["distinct", *number]:
            distinct(int(number[0]) if number else 200)
        case _:
            print(__doc__)

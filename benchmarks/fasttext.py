"""fastText beside Facebook's program: words a second, and the quality of what comes out.

python benchmarks/fasttext.py speed TEXT --program FASTTEXT     one epoch over TEXT, in turn
python benchmarks/fasttext.py quality TEXT --program FASTTEXT --words DIR --keep DIR
TEXT is already segmented: words separated by spaces, a paragraph a line. FASTTEXT is the binary
that Facebook's own Makefile builds. Finished models stay in the folder --keep and are not made
again.

Both have skip-gram, 100 dimensions, n-grams of 3 to 6 characters, 2 million buckets, window 5, 5
negatives, sample 1e-4, min_count 5, learning rate 0.05, 2 threads. Training is timed without the
reading of the vocabulary (Facebook's: from its last word about it) and without writing files.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SETS = ("google-analogies", "msr-analogies", "wordsim353", "rarewords", "simlex999", "mturk771")


def train_facebook(program: str, text: str, out: Path, epochs: int) -> dict[str, float]:
    """Train with the binary; its progress says when the dictionary was read and training ended."""
    command = [program, "skipgram", "-input", text, "-output", str(out), "-dim", "100",
               "-minn", "3", "-maxn", "6", "-bucket", "2000000", "-epoch", str(epochs),
               "-thread", "2", "-minCount", "5", "-lr", "0.05", "-t", "1e-4"]  # fmt: skip
    begun = time.perf_counter()
    counted = trained = begun
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    seen = b""
    while part := process.stderr.read1(65_536):  # type: ignore[attr-defined]
        seen = seen[-200:] + part
        if b"Number of labels" in seen and counted == begun:
            counted = time.perf_counter()
        if b"Progress" in part:
            trained = time.perf_counter()
    if process.wait():
        raise SystemExit(f"{' '.join(command)} failed.")
    return {"vocabulary_s": counted - begun, "training_s": trained - counted,
            "total_s": time.perf_counter() - begun}  # fmt: skip


def train_ours(text: str, out: Path, epochs: int) -> dict[str, Any]:
    """Train with our code, compiled beforehand."""
    from sememe import FastText, TextSettings
    from sememe.tokens.caching import open_or_build

    settings = TextSettings(language="none")
    with tempfile.TemporaryDirectory() as folder:
        FastText(min_count=1, epochs=1, workers=2).fit([["one", "two", "three"]] * 10)
        tiny = Path(folder) / "tiny.txt"
        tiny.write_text("a b c\n" * 100)
        open_or_build(tiny, settings, min_count=1, path=Path(folder) / "warm")
        begun = time.perf_counter()
        store = open_or_build(text, settings, min_count=5, path=Path(folder) / "store")
        counted = time.perf_counter()
        model = FastText(epochs=epochs, workers=2).fit(store)
        trained = time.perf_counter()
        num_words = store.num_tokens
        model.save(out)
    return {"vocabulary_s": counted - begun, "training_s": trained - counted,
            "total_s": time.perf_counter() - begun, "words": num_words}  # fmt: skip


def in_process(text: str, out: Path, epochs: int) -> dict[str, Any]:
    """Train with our code in a process of its own."""
    command = [sys.executable, __file__, "ours", text, "--out", str(out), "--epochs", str(epochs)]
    return json.loads(subprocess.check_output(command).splitlines()[-1])


def measure_speed(text: str, program: str, repeats: int) -> None:
    """Print the medians of both and their ratio."""
    times: dict[str, list[dict[str, float]]] = {"sememe": [], "facebook": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            ours = in_process(text, Path(folder) / "ours", 1)
            times["sememe"].append(ours)
            times["facebook"].append(train_facebook(program, text, Path(folder) / "theirs", 1))
    for what in ("vocabulary_s", "training_s", "total_s"):
        mine, theirs = (statistics.median(run[what] for run in runs) for runs in times.values())
        line = f"{what:13} sememe {mine:8.2f}  facebook {theirs:8.2f}  ratio {theirs / mine:5.2f}"
        if what == "training_s":
            rates = (ours["words"] / mine, ours["words"] / theirs)
            line += f"  ({rates[0]:,.0f} and {rates[1]:,.0f} words/s; aim 3)"
        print(line, flush=True)


def measure_quality(text: str, program: str, words: Path, keep: Path, epochs: int) -> None:
    """Print the scores of both on every set, words outside the vocabulary composed."""
    from sememe import load
    from sememe.evaluation import evaluate_words

    keep.mkdir(parents=True, exist_ok=True)
    if not (keep / "facebook.bin").exists():
        print("facebook", train_facebook(program, text, keep / "facebook", epochs), flush=True)
    if not (keep / "ours").exists():
        print("sememe", in_process(text, keep / "ours", epochs), flush=True)
    for name in ("facebook.bin", "ours"):
        vectors = load(keep / name)
        scores = [evaluate_words(vectors, words / f"{one}.txt").scores[0] for one in SETS]
        metrics = [
            f"{one} {100 * score.value:.2f} ({100 * score.coverage:.0f} %)"
            for one, score in zip(SETS, scores, strict=True)
        ]
        print(f"{name:13}", *metrics, flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("speed", "quality", "ours"))
    parser.add_argument("text")
    parser.add_argument("--program", default="fasttext")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--words", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.what == "ours":
        print(json.dumps(train_ours(given.text, given.out, given.epochs)))
    elif given.what == "speed":
        measure_speed(given.text, given.program, given.repeats)
    else:
        measure_quality(given.text, given.program, given.words, given.keep, given.epochs)


if __name__ == "__main__":
    main()

"""A text as sub-word ids: our store against `tokenizers` alone, and the training of a tokenizer.

python benchmarks/subwords.py TEXT TOKENIZER [--language zh] [--workers 2]

TEXT is plain text, TOKENIZER a folder (BERT's or GPT-2's kind). Both cut the whole text; ours
finds sentences, the starts of words (Chinese: those of rjieba) and writes the store as well. The
ratio is that of tokens a second by the clock, with those a second of one core beside it.
Compilation comes before.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sememe.text.settings import TextSettings
from sememe.tokens.subwords.store import open_or_build_subwords
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

LINES_AT_ONCE = 5_000


def cpu_s() -> float:
    """Processor seconds of this process and of those that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


def measure(name: str, work: Callable[[], int]) -> float:
    """Run `work`, which gives a number of tokens; print and return tokens a second."""
    begun, begun_cpu = time.perf_counter(), cpu_s()
    num_tokens = work()
    rate = num_tokens / (time.perf_counter() - begun)
    rate_cpu = num_tokens / (cpu_s() - begun_cpu)
    print(
        f"{name:12} {num_tokens:>12,} tokens {rate / 1e6:6.2f} M/s, a core {rate_cpu / 1e6:.2f} M/s"
    )
    return rate


def peer(text: Path, folder: Path) -> int:
    """Cut the text line by line with `tokenizers`, over all cores, without places."""
    from tokenizers import Tokenizer

    engine = Tokenizer.from_file(str(folder / "tokenizer.json"))
    engine.no_padding()
    engine.no_truncation()
    num_tokens, lines = 0, text.read_text(encoding="utf-8").split("\n")
    for start in range(0, len(lines), LINES_AT_ONCE):
        part = lines[start : start + LINES_AT_ONCE]
        found = engine.encode_batch_fast(part, add_special_tokens=False)
        num_tokens += sum(len(encoding.ids) for encoding in found)
    return num_tokens


def main() -> None:
    """Measure both, then a training of as many tokens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--language", default="en")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    tokenizer = SubwordTokenizer.load(options.tokenizer)
    settings = TextSettings(language=options.language)
    open_or_build_subwords(iter(["Once. 中文。"]), tokenizer, text=settings)
    with tempfile.TemporaryDirectory() as folder:

        def ours() -> int:
            return open_or_build_subwords(
                options.text, tokenizer, text=settings, path=Path(folder) / "store",
                workers=options.workers,
            ).num_tokens  # fmt: skip

        own = measure("sememe", ours)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        other = measure("tokenizers", lambda: peer(options.text, options.tokenizer))
    print(f"ratio {own / other:.2f}, memory of ours {peak:,.0f} MB")
    begun, begun_cpu = time.perf_counter(), cpu_s()
    trained = SubwordTokenizer.train(
        options.text, kind=tokenizer.kind, vocab_size=tokenizer.vocab_size, text=settings,
        workers=options.workers,
    )  # fmt: skip
    taken, taken_cpu = time.perf_counter() - begun, cpu_s() - begun_cpu
    print(
        f"training {trained.vocab_size:,} tokens took {taken:.1f} s, {taken_cpu:.1f} s of the cores"
    )


if __name__ == "__main__":
    main()

"""Search over a million rows: build time, milliseconds per query, recall, memory.

    python benchmarks/search.py vectors            # exact, int8, binary and approximate search
    python benchmarks/search.py index FOLDER       # a whole index of texts, and BM25 alone
    python benchmarks/search.py vectors --rows 100000 --file vectors.npy

Vectors are drawn from a mixture with a falling spectrum, as those of sentence encoders have, or
read from a file; queries are perturbed rows. Recall@10 is against exact search in float32. The peer
of exact search is one NumPy product and `argpartition`, the peer of BM25 is bm25s with its own
tokenizer.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

NUM_QUERIES, TOP = 30, 10
CANDIDATES = 100  # that `Search` takes from an approximate index


def mixture(num_rows: int, dim: int, seed: int = 1) -> np.ndarray:
    """Unit rows around 2,000 centers; the i-th direction has a spread of 1 / sqrt(i)."""
    draw = np.random.default_rng(seed)
    spread = (1 / np.sqrt(np.arange(1, dim + 1))).astype(np.float32)
    centers = draw.standard_normal((2_000, dim), np.float32) * spread
    turn, _ = np.linalg.qr(draw.standard_normal((dim, dim)))
    rows = np.empty((num_rows, dim), np.float32)
    for start in range(0, num_rows, 50_000):
        size = min(50_000, num_rows - start)
        own = centers[draw.integers(len(centers), size=size)]
        own = own + 0.7 * spread * draw.standard_normal((size, dim), np.float32)
        own = own @ turn.astype(np.float32)
        rows[start : start + size] = own / np.linalg.norm(own, axis=1, keepdims=True)
    return rows


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def one_by_one(search: Callable[[np.ndarray], Any], queries: np.ndarray) -> tuple[list[Any], float]:
    """The answers to each query, and the median milliseconds of one."""
    search(queries[:1])
    found, times = [], []
    for query in queries:
        answer, seconds = timed(lambda own=query[None]: search(own))
        found.append(answer[0][0])
        times.append(1_000 * seconds)
    return found, float(np.median(times))


def recall(found: list[Any], exact: list[Any]) -> float:
    shares = [len({*a[:TOP].tolist()} & {*b.tolist()}) / TOP for a, b in zip(found, exact)]  # noqa: B905
    return float(np.mean(shares))


def print_row(name: str, build_s: float, num_bytes: float, ms: float, share: float) -> None:
    print(
        f"| {name} | {build_s:.1f} | {num_bytes / 1e6:,.0f} | {ms:.1f} | {share:.3f} |", flush=True
    )


def compare_vectors(
    num_rows: int, dim: int, file: str, has_approximate: bool, kept: Path | None
) -> None:
    from sememe.search.ranking import nearest_by_bits, nearest_rows, packed_bits, quantized
    from sememe.vectors.search import (
        inverse_norms,
        nearest_approximately,
        unit_rows,
    )

    rows = np.load(file, mmap_mode="r")[:num_rows].astype("f4") if file else mixture(num_rows, dim)
    draw = np.random.default_rng(7)
    noise = draw.standard_normal((NUM_QUERIES, rows.shape[1]), np.float32)
    chosen = rows[draw.choice(len(rows), NUM_QUERIES, replace=False)]
    size = np.linalg.norm(chosen, axis=1, keepdims=True) / np.float32(np.sqrt(rows.shape[1]))
    queries = chosen + np.float32(0.5) * noise * size
    print(f"{len(rows):,} rows × {rows.shape[1]}, {NUM_QUERIES} queries\n")
    print("| search | build (s) | MB | ms per query | recall@10 |\n| --- | --- | --- | --- | --- |")
    inverse, seconds = timed(lambda: inverse_norms(rows))

    def plain(query: np.ndarray) -> Any:
        scores = (rows @ query[0]) * inverse
        return [(np.argpartition(scores, -TOP)[-TOP:], None)]

    exact, ms = one_by_one(lambda q: nearest_rows(rows, q, TOP, inverse_N=inverse), queries)
    peer, peer_ms = one_by_one(plain, queries)
    print_row("NumPy product and argpartition", 0, rows.nbytes, peer_ms, recall(peer, exact))
    print_row("exact, float32", seconds, rows.nbytes, ms, 1.0)
    _, batch = timed(lambda: nearest_rows(rows, queries, TOP, inverse_N=inverse))
    print_row(f"exact, {NUM_QUERIES} at once", 0, rows.nbytes, 1_000 * batch / NUM_QUERIES, 1.0)
    codes, seconds = timed(lambda: quantized_in_blocks(rows, quantized))
    own, more = timed(lambda: inverse_norms(codes))
    found, ms = one_by_one(lambda q: nearest_rows(codes, q, TOP, inverse_N=own), queries)
    print_row("int8", seconds + more, codes.nbytes, ms, recall(found, exact))
    bits, more = timed(lambda: quantized_in_blocks(rows, packed_bits))
    found, ms = one_by_one(lambda q: nearest_by_bits(bits, codes, q, TOP), queries)
    print_row("binary, rescored by int8", seconds + more, bits.nbytes, ms, recall(found, exact))
    if has_approximate:
        index, seconds = _approximate(rows, kept)
        found, ms = one_by_one(
            lambda q: nearest_approximately(index, rows, unit_rows(q), CANDIDATES), queries
        )
        size = kept.stat().st_size if kept else index._index.memory_usage
        print_row("approximate (HNSW)", seconds, size, ms, recall(found, exact))


def _approximate(rows: np.ndarray, kept: Path | None) -> tuple[Any, float]:
    """The HNSW index and the seconds its build took, from a file of an earlier run if it is there.

    Building takes all cores for minutes; so it can be apart from the queries, which take seconds.
    """
    from sememe.vectors.search import ApproximateIndex

    if kept is None or not kept.exists():
        index, seconds = timed(lambda: ApproximateIndex.build(rows, "i8"))
        if kept is not None:
            index.save(kept)
            kept.with_suffix(".seconds").write_text(str(seconds))
        return index, seconds
    return ApproximateIndex.open(kept, rows), float(kept.with_suffix(".seconds").read_text())


def quantized_in_blocks(rows: np.ndarray, code: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    parts = [code(rows[start : start + 50_000]) for start in range(0, len(rows), 50_000)]
    return np.concatenate(parts)


def write_texts(folder: Path, num_rows: int, dim: int, num_words: int = 50_000) -> None:
    """A million short texts of Zipf-distributed words, and vectors of those words."""
    import sememe

    draw = np.random.default_rng(3)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(draw.choice(letters, 8)) + str(n % 10) for n in range(num_words)]
    words = [*dict.fromkeys(words)]
    chance = 1 / np.arange(1, len(words) + 1)
    bounds = np.cumsum(chance / chance.sum())
    with (folder / "texts.txt").open("w") as file:
        for _ in range(0, num_rows, 10_000):
            ids = np.searchsorted(bounds, draw.random((10_000, 20)))
            file.writelines(" ".join(words[i] for i in own) + "\n" for own in ids.tolist())
    vectors = draw.standard_normal((len(words), dim), np.float32)
    sememe.WordVectors(words, vectors).save(folder / "model")


def build_index(folder: Path, num_rows: int, dim: int) -> None:
    import bm25s

    import sememe
    from sememe.search.lexical import BM25

    shutil.rmtree(folder / "index", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "texts.txt").exists():
        write_texts(folder, num_rows, dim)
    index, seconds = timed(
        lambda: sememe.Search.build(
            folder / "texts.txt", folder / "model", folder=folder / "index", language="en"
        )
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(index):,} rows × {dim}: built in {seconds:.0f} s, peak memory {peak:.1f} GB")
    texts = (folder / "texts.txt").read_text().splitlines()
    queries = [" ".join(texts[n].split()[:4]) for n in range(0, len(texts), len(texts) // 20)]
    index = sememe.Search.load(folder / "index")
    index.search(queries[0])
    for mode in ("lexical", "dense", "hybrid"):
        times = [timed(lambda q=q, m=mode: index.search(q, TOP, mode=m))[1] for q in queries]
        print(f"{mode}: {1_000 * np.median(times):.1f} ms per query", flush=True)
    _, changed = timed(lambda: index.add(["one more row of text"]))
    print(f"one row added in {changed:.0f} s")
    part = texts[: len(texts) // 10]
    for _ in range(3):
        _, ours = timed(lambda: BM25.build(part, sememe.TextSettings()))
        tokens, peer = timed(lambda: bm25s.tokenize(part, stopwords=[], show_progress=False))
        _, more = timed(lambda own=tokens: bm25s.BM25().index(own, show_progress=False))
        print(
            f"BM25 of {len(part):,} texts: ours {ours:.1f} s, bm25s and its tokenizer "
            f"{peer + more:.1f} s, ratio {(peer + more) / ours:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["vectors", "index"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("search-benchmark"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--file", default="", help="Rows in a .npy file instead.")
    parser.add_argument("--no-approximate", action="store_true")
    parser.add_argument("--kept", type=Path, help="File to keep the approximate index in.")
    given = parser.parse_args()
    if given.part == "vectors":
        compare_vectors(given.rows, given.dim, given.file, not given.no_approximate, given.kept)
    else:
        build_index(given.folder, given.rows, given.dim)


if __name__ == "__main__":
    main()

"""Deduplication of rows: time, memory, precision and recall, beside datasketch.

python benchmarks/clean.py rows ROWS.txt [--text FILE.xz …] [--num 1000000]     write rows
python benchmarks/clean.py speed ROWS.txt [--peer PYTHON] [--num N]             time and memory
python benchmarks/clean.py quality ROWS.txt [--peer PYTHON] [--num 100000]      against all pairs
python benchmarks/clean.py languages FOLDER                                     LANGUAGE.txt.xz

Rows are runs of 10 to 70 words of real text, or of words drawn by Zipf's law; 5 % come again
unchanged and 15 % with up to 8 % of their words replaced, deleted or inserted. PYTHON is one that
has datasketch, which is no dependency of sememe. Memory is the resident set of all processes of a
run together, read every 50 ms (Linux).
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MB = 1 << 20


# ---- rows ----------------------------------------------------------------------------------


def words_of(paths: list[str]) -> Iterator[str]:
    """The words of compressed texts, or endless words of which few are frequent."""
    if paths:
        for path in paths:
            with lzma.open(path, "rt", encoding="utf-8") as file:
                for line in file:
                    yield from line.split()
        return
    names = [f"w{rank}" for rank in range(50_000)]
    weights = [1 / (rank + 10) for rank in range(50_000)]
    while True:
        yield from random.choices(names, weights, k=100_000)


def changed(row: list[str]) -> list[str]:
    """A row of which a few words are replaced, deleted or inserted."""
    row = list(row)
    for _ in range(random.randint(1, max(1, len(row) * 8 // 100))):
        place = random.randrange(len(row))
        row[place : place + 1] = random.choice(([], ["other"], [row[place], "more"]))
    return row


def write_rows(out: str, paths: list[str], num: int) -> None:
    """Write rows, some of them repeated, in a random order."""
    random.seed(1)
    words, rows = words_of(paths), []
    while len(rows) < num * 8 // 10:
        row = [word for _, word in zip(range(random.randint(10, 70)), words, strict=False)]
        if len(row) < 10:
            raise SystemExit(f"the text ends after {len(rows):,} rows")
        rows.append(row)
    rows += [rows[random.randrange(num // 2)] for _ in range(num * 5 // 100)]
    rows += [changed(rows[random.randrange(num // 2)]) for _ in range(num - len(rows))]
    random.shuffle(rows)
    with Path(out).open("w", encoding="utf-8") as file:
        file.writelines(" ".join(row) + "\n" for row in rows)


# The rules that have nothing to do with duplicates.
OFF = [
    "--repeated-lines", "0", "--no-links", "--no-page-numbers", "--no-markup", "--no-broken",
    "--min-length", "0", "--max-length", "0",
]  # fmt: skip


# ---- speed ---------------------------------------------------------------------------------

PEER = """
import json, re, sys, time
from datasketch import MinHash, MinHashLSH
num, threshold, removed = int(sys.argv[2]), float(sys.argv[3]), []
lsh, start = MinHashLSH(threshold, num_perm=128), time.perf_counter()
for number, line in enumerate(open(sys.argv[1], encoding="utf-8")):
    if number == num:
        break
    words = re.findall(r"\\w+", line.lower())
    shingles = {" ".join(words[i : i + 5]).encode() for i in range(max(len(words) - 4, 1))}
    own = MinHash(num_perm=128)
    own.update_batch(shingles)
    if lsh.query(own):
        removed.append(number)
    else:
        lsh.insert(number, own, check_duplication=False)
print(json.dumps({"removed": removed, "seconds": time.perf_counter() - start}))
"""


def resident(process_id: int) -> int:
    """The resident memory of a process and its children, in bytes."""
    total, waiting = 0, [process_id]
    while waiting:
        own = waiting.pop()
        try:
            status = Path(f"/proc/{own}/status").read_text()
            total += int(status.partition("VmRSS:")[2].split()[0]) << 10
            for task in Path(f"/proc/{own}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, IndexError, ValueError):
            continue  # it has ended
    return total


def run(command: list[str]) -> tuple[str, float, float]:
    """The output of a command, its seconds and its peak memory in MB."""
    begun_s, peak = time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:

        def watch() -> None:
            nonlocal peak
            while process.poll() is None:
                peak = max(peak, resident(process.pid))
                time.sleep(0.05)

        thread = threading.Thread(target=watch)
        thread.start()
        output, _ = process.communicate()
        thread.join()
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return output, time.perf_counter() - begun_s, peak / MB


def speed(rows: str, num: int, peer: str) -> None:
    """Time the command on the first rows of a file, and datasketch on the same."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "rows.txt"), Path(folder, "out.txt")
        with Path(rows).open("rb") as source, path.open("wb") as target:
            target.writelines(line for _, line in zip(range(num), source, strict=False))
        size = path.stat().st_size / MB
        command = [sys.executable, "-m", "sememe.cli", "clean", str(path), "--out", str(out)]
        for name, more in (("all rules", []), ("duplicates only", OFF)):
            output, took_s, peak = run([*command, "--overwrite", "--quiet", "--json", *more])
            kept = json.loads(output)["kept"]
            print(f"sememe, {name}: {num:,} rows, {size:.0f} MB, kept {kept:,}, {took_s:.1f} s, "
                  f"{peak:,.0f} MB")  # fmt: skip
        if peer:
            output, _, peak = run([peer, "-c", PEER, str(path), str(num), "0.8"])
            found = json.loads(output)
            print(f"datasketch: kept {num - len(found['removed']):,}, {found['seconds']:.1f} s, "
                  f"{peak:,.0f} MB; ratio {found['seconds'] / took_s:.1f}")  # fmt: skip


# ---- quality -------------------------------------------------------------------------------


def near_duplicates(texts: list[str], threshold: float) -> set[int]:
    """The rows that resemble an earlier kept row: exact, by an index of all shingles."""
    from sememe.text.cleaning.reference import units

    index: dict[tuple[int, ...], list[int]] = {}
    sizes, removed = [], set()
    for row, text in enumerate(texts):
        own = units(text, by_characters=False)
        shingles = {tuple(own[i : i + 5]) for i in range(max(len(own) - 4, 1))}
        sizes.append(len(shingles))
        common = Counter(other for shingle in shingles for other in index.get(shingle, ()))
        if any(
            num >= threshold * (len(shingles) + sizes[other] - num) for other, num in common.items()
        ):
            removed.add(row)
            continue
        for shingle in shingles:
            index.setdefault(shingle, []).append(row)
    return removed


def quality(rows: str, num: int, peer: str) -> None:
    """Compare the rows that are removed with those that a comparison of all pairs removes."""
    import numpy as np

    import sememe

    with Path(rows).open(encoding="utf-8") as file:
        texts = [line for _, line in zip(range(num), file, strict=False)]
    for threshold in (0.5, 0.7, 0.8, 0.9):
        exact = near_duplicates(texts, threshold)
        report = sememe.clean(
            texts, threshold=threshold, duplicates=False, broken=False, links=False,
            repeated_lines=0, markup=False, min_length=0,
        )  # fmt: skip
        found = {"sememe": {*np.flatnonzero(~report.is_kept).tolist()}}
        if peer:
            output, *_ = run([peer, "-c", PEER, rows, str(num), str(threshold)])
            found["datasketch"] = {*json.loads(output)["removed"]}
        for name, own in found.items():
            both = len(own & exact)
            print(f"threshold {threshold}, {name}: {len(exact):,} near-duplicates among "
                  f"{len(texts):,} rows; precision {both / max(len(own), 1):.4f}, "
                  f"recall {both / max(len(exact), 1):.4f}", flush=True)  # fmt: skip


# ---- languages -----------------------------------------------------------------------------


def languages(folder: str) -> None:
    """The share of paragraphs that --keep-language keeps, of the language and of all others."""
    from sememe.text.cleaning.worker import Worker

    random.seed(1)
    texts: dict[str, list[str]] = {}
    for path in sorted(Path(folder).glob("*.txt.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            lines = [line.strip() for line in file if len(line) > 60 and line[0] != "="]
        texts[path.name.partition(".")[0]] = random.sample(lines, min(400, len(lines)))
    print("characters", *texts, "others", sep="\t")
    for size in (1000, 200, 100, 50, 25):
        own, others = [], []
        begun_s = time.perf_counter()
        for language in texts:
            worker = Worker([language])
            kept = {
                other: sum(worker.may_be_kept(text[:size]) for text in rows) / len(rows)
                for other, rows in texts.items()
            }
            own.append(kept.pop(language))
            others.append(sum(kept.values()) / len(kept))
        took_us = 1e6 * (time.perf_counter() - begun_s) / sum(map(len, texts.values())) / len(texts)
        print(size, *(f"{share:.4f}" for share in own), f"{sum(others) / len(others):.4f}",
              f"{took_us:.0f} µs/text", sep="\t", flush=True)  # fmt: skip


def main() -> None:
    """Read the arguments and run one of the programs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("program", choices=("rows", "speed", "quality", "languages"))
    parser.add_argument("path")
    parser.add_argument("--text", nargs="*", default=[])
    parser.add_argument("--num", type=int)
    parser.add_argument("--peer", default="")
    given: Any = parser.parse_args()
    if given.program == "rows":
        write_rows(given.path, given.text, given.num or 1_000_000)
    elif given.program == "speed":
        speed(given.path, given.num or 1_000_000, given.peer)
    elif given.program == "quality":
        quality(given.path, given.num or 100_000, given.peer)
    else:
        languages(given.path)


if __name__ == "__main__":
    main()

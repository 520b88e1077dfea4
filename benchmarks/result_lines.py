"""Results as lines of JSON: figures in, files out, read again, told.

A run that was cut off at any second keeps what it has found, and several runs add up.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any


def append(path: str | Path | None, metrics: dict[str, Any]) -> None:
    """Add a line to a file of results, where one is given."""
    if path:
        before = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
        with Path(path).open("a", encoding="utf-8") as file:
            # On a line of its own, even after one that was cut off.
            file.write("\n" * (before[-1:] not in ("", "\n")) + json.dumps(metrics) + "\n")


def read(*paths: str | Path | None) -> list[dict[str, Any]]:
    """The lines of files that are there; one that was cut off when a run ended is left out."""
    found = []
    for path in paths:
        if path and Path(path).exists():
            for line in Path(path).read_text(encoding="utf-8").splitlines():
                with suppress(json.JSONDecodeError):
                    found.append(json.loads(line))
    return found


def left_to_do(path: str, ways: Iterable[str], seeds: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Every way with every seed, in turns, but for those that a file of results has already."""
    done = {(line.get("way"), line.get("seed")) for line in read(path)}
    for seed in seeds:
        for way in ways:
            if (way, seed) in done:
                print(f"{way}, seed {seed}: done already")
            else:
                yield way, seed


def mean(values: list[float]) -> str:
    """The mean of several runs, and how far they are spread."""
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"

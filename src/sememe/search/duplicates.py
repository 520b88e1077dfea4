"""Near-duplicate rows: groups of rows that say the same, by a model's vectors or by their words.

A group is a row and the later rows that are similar enough to it; a row joins the most similar one
of the earlier first rows. With a model the similarity is the cosine, compared exactly in blocks;
without one it is the Jaccard similarity of shingles, found by MinHash as in `sememe clean`. Vectors
and rows are on disk; in memory there are a few bytes per row. N rows, B rows of a block, L first
rows, D dimensions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.machine import available_cores, cache_dir
from sememe.models.registry import opened
from sememe.options import changed
from sememe.progress import Reporter, as_reporter
from sememe.search.config import DuplicatesConfig
from sememe.search.rows import Row
from sememe.search.spool import Spool, VectorFile, usable_rows, write_rows
from sememe.storage.folder import scratch_folder
from sememe.storage.tables import check_free, table_format
from sememe.text.cleaning.config import CleanConfig
from sememe.text.cleaning.duplicates import NONE, Duplicates
from sememe.text.cleaning.fingerprints import bands_and_rows, fingerprint
from sememe.vectors.search import unit_rows

_VECTORS, _SHINGLES = 0.95, 0.8  # thresholds of cosines and of Jaccard similarities
_FIRSTS_AT_ONCE = 1 << 14
_ROUNDING = 1e-6  # of a cosine in float32
_NUM_SHOWN, _SHOWN_SIZE = 10, 100


class GroupRow(NamedTuple):
    """A row of a group: its id, its similarity to the group's first row, the start of its text."""

    id: str
    similarity: float
    text: str


@dataclass(frozen=True, kw_only=True)
class DuplicatesReport:
    """Which rows repeat earlier ones: `firsts` has for each row the first row of its group."""

    num_rows: int
    measure: str  # cosine or Jaccard
    threshold: float
    firsts: np.ndarray
    similarities: np.ndarray
    ids: dict[int, str] = field(repr=False)  # of the rows in groups
    samples: list[list[GroupRow]]  # some of the largest groups
    num_unknown: int = 0  # rows without a word that the model knows
    out: str | None = None

    @cached_property
    def groups(self) -> list[list[int]]:
        """The row numbers of each group from 0 on; its first row comes first."""
        return _groups(self.firsts)

    @property
    def num_duplicates(self) -> int:
        """How many rows could be removed."""
        return int((self.firsts != np.arange(self.num_rows)).sum())

    def summary(self) -> str:
        """One sentence."""
        return (
            f"{self.num_duplicates:,} of {self.num_rows:,} rows repeat an earlier row, in "
            f"{len(self.groups):,} groups ({self.measure} of {self.threshold:g} or more)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON; each group has the ids of its rows and their similarities."""
        groups = [
            [{"id": self.ids[row], "similarity": float(self.similarities[row])} for row in group]
            for group in self.groups
        ]
        return {
            "num_rows": self.num_rows,
            "num_groups": len(groups),
            "num_duplicates": self.num_duplicates,
            "num_unknown": self.num_unknown,
            "measure": self.measure,
            "threshold": self.threshold,
            "out": self.out,
            "groups": groups,
        }

    def __str__(self) -> str:
        return self.summary()


def duplicates(
    data: Any,
    model: Any = None,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    device: str = "auto",
    progress: Reporter | bool | None = None,
    **options: Any,
) -> DuplicatesReport:
    """Find groups of rows that say nearly the same.

    `data` is one or several paths, a DataFrame, or an iterable of texts or dicts. `model` is a
    model or its path; without one, rows are compared by their words (MinHash). `out` is a table of
    all rows that are in groups. The options are those of DuplicatesConfig.
    """
    config = changed(DuplicatesConfig(), "duplicates", options)
    reporter = as_reporter(progress)
    out = None if out is None else Path(out)
    if out is not None:
        table_format(out)
        check_free(out, overwrite=overwrite)
    used = None if model is None else opened(model, device=device, able="embed")
    threshold = config.threshold or (_SHINGLES if used is None else _VECTORS)
    if not config.threshold:
        reporter.note(f"Rows are duplicates from a similarity of {threshold:g} on (--threshold).")
    with (
        scratch_folder(cache_dir() / "duplicates", ".rows") as folder,
        Spool(folder) as spool,
    ):
        with reporter.task("comparing", None, "rows") as task:
            parts = spool.filled(task.watch(usable_rows(data, config, reporter)))
            compare = _by_shingles if used is None else partial(_by_vectors, used)
            firsts, similarities, num_unknown = compare(parts, threshold, folder)
        if num_unknown:
            reporter.note(f"{num_unknown:,} rows have no word that the model knows.")
        groups = _groups(firsts)
        if out is not None:
            rows = _table(spool, groups, similarities)
            write_rows(out, rows, {"group": int, "similarity": float}, reporter)
        largest = sorted(groups, key=len, reverse=True)[:_NUM_SHOWN]
        return DuplicatesReport(
            num_rows=len(spool), measure="Jaccard similarity" if used is None else "cosine",
            threshold=threshold, firsts=firsts, similarities=similarities,
            ids={row: spool[row].id for group in groups for row in group},
            samples=[_sample(spool, group, similarities) for group in largest],
            num_unknown=num_unknown, out=None if out is None else str(out),
        )  # fmt: skip


# The first row of each row's group, the similarity to it, and how many rows have no vector.
Compared = tuple[np.ndarray, np.ndarray, int]


def _by_shingles(parts: Iterator[list[Row]], threshold: float, folder: Path) -> Compared:
    config = CleanConfig(threshold=threshold)
    found = Duplicates(folder, bands_and_rows(config.threshold)[0])
    num = 0
    for part in parts:
        texts = [row.text.encode("utf-8", "replace") for row in part]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        found.add(fingerprint(b"".join(texts), ends, config))
        num += len(part)
    found.close()
    is_compared = np.ones(num, np.bool_)
    steps = found.find(
        is_compared, exact=True, threshold=config.threshold, workers=available_cores()
    )
    (_, repeats) = deque(steps, maxlen=1).pop()
    firsts = np.where(repeats.original == NONE, np.arange(num), repeats.original.astype(np.int64))
    return firsts, np.where(repeats.original == NONE, 1, repeats.similarity), 0


def _by_vectors(model: Any, parts: Iterator[list[Row]], threshold: float, folder: Path) -> Compared:
    file, numbers_L = VectorFile(folder / "firsts"), np.empty(0, np.int64)
    firsts, similarities, num_unknown = [np.empty(0, np.int64)], [np.empty(0)], 0
    start = 0
    for part in parts:
        block_BD = unit_rows(model.embed([row.text for row in part])).astype(np.float32)
        nearest_B, cosines_B = _nearest_first(block_BD, file.mapped())
        own_B = np.arange(start, start + len(part))
        joined_B = numbers_L[nearest_B] if len(numbers_L) else own_B.copy()
        is_first_B = cosines_B < threshold - _ROUNDING
        # A row of the block may be most similar to a first row of the same block before it.
        within_BB = block_BD @ block_BD.T
        new = np.empty(0, np.int64)
        for row in range(len(part)):
            best = new[within_BB[row, new].argmax()] if len(new) else row
            cosine = within_BB[row, best] if len(new) else -1.0
            if cosine >= threshold - _ROUNDING and cosine > cosines_B[row]:
                joined_B[row], cosines_B[row], is_first_B[row] = own_B[best], cosine, False
            if is_first_B[row]:
                new = np.append(new, row)
        joined_B[is_first_B], cosines_B[is_first_B] = own_B[is_first_B], 1
        num_unknown += int((~block_BD.any(axis=1)).sum())
        firsts.append(joined_B)
        similarities.append(np.minimum(cosines_B, 1))
        if len(new):
            file.add(block_BD[new])
            numbers_L = np.concatenate([numbers_L, own_B[new]])
        start += len(part)
    return np.concatenate(firsts), np.concatenate(similarities), num_unknown


def _nearest_first(block_BD: np.ndarray, firsts_LD: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row the nearest of the first rows and its cosine; -1 without any."""
    nearest_B = np.zeros(len(block_BD), np.int64)
    cosines_B = np.full(len(block_BD), -1.0)
    for start in range(0, len(firsts_LD), _FIRSTS_AT_ONCE):
        cosines_BL = block_BD @ firsts_LD[start : start + _FIRSTS_AT_ONCE].T
        best_B = cosines_BL.argmax(axis=1)
        own_B = cosines_BL[np.arange(len(block_BD)), best_B]
        is_nearer = own_B > cosines_B
        nearest_B[is_nearer], cosines_B[is_nearer] = start + best_B[is_nearer], own_B[is_nearer]
    return nearest_B, cosines_B


def _groups(firsts: np.ndarray) -> list[list[int]]:
    """The rows of each group of two or more, in order."""
    order = np.argsort(firsts, kind="stable")
    bounds = np.flatnonzero(np.diff(firsts[order])) + 1
    return [part.tolist() for part in np.split(order, bounds) if len(part) > 1]


def _table(
    spool: Spool, groups: Sequence[list[int]], similarities: np.ndarray
) -> Iterator[tuple[dict[str, Any], Row]]:
    """The rows of all groups, group by group; the first row of each has no similarity."""
    for number, group in enumerate(groups, 1):
        for row in group:
            similarity = None if row == group[0] else round(float(similarities[row]), 6)
            yield {"group": number, "similarity": similarity}, spool[row]


def _sample(spool: Spool, group: list[int], similarities: np.ndarray) -> list[GroupRow]:
    rows = ((spool[row], float(similarities[row])) for row in group[:4])
    return [
        GroupRow(row.id, similarity, " ".join(row.text.split())[:_SHOWN_SIZE])
        for row, similarity in rows
    ]

"""Batches: documents side by side in one bytes object, a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

# Large enough to make the cost of a Python call vanish, small enough for the cache and the queue.
BATCH_SIZE = 2 << 20


class Batch(NamedTuple):
    """UTF-8 documents: `ends` are offsets into `text`; `num_bytes` were read from the source."""

    text: bytes
    ends: np.ndarray
    labels: list[str] | None
    num_bytes: int = 0


def join(batches: list[Batch]) -> Batch:
    """Put batches side by side."""
    if len(batches) == 1:
        return batches[0]
    starts = np.cumsum([0] + [len(batch.text) for batch in batches[:-1]])
    ends = [batch.ends + start for batch, start in zip(batches, starts, strict=True)]
    labels: list[str] | None = None
    if any(batch.labels is not None for batch in batches):
        labels = [label for batch in batches for label in batch.labels or []]
    text = b"".join(batch.text for batch in batches)
    num_bytes = sum(batch.num_bytes for batch in batches)
    return Batch(text, np.concatenate(ends).astype(np.int64), labels, num_bytes)


def from_rows(rows: Iterable[tuple[bytes, str | None]], has_labels: bool) -> Iterator[Batch]:
    """Gather single documents (text, label) into batches."""
    texts: list[bytes] = []
    labels: list[str] = []
    size = 0
    for text, label in rows:
        texts.append(text)
        if has_labels:
            labels.append(label or "")
        size += len(text)
        if size >= BATCH_SIZE:
            yield _from_lists(texts, labels if has_labels else None)
            texts, labels, size = [], [], 0
    if texts:
        yield _from_lists(texts, labels if has_labels else None)


def _from_lists(texts: list[bytes], labels: list[str] | None) -> Batch:
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return Batch(b"".join(texts), ends, labels)

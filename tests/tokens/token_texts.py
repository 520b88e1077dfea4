"""Documents of words in record form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from sememe.progress import SILENT
from sememe.storage.folder import locked
from sememe.text.words import Records
from sememe.tokens.building import write_store
from sememe.tokens.counting import DEFAULT_MEMORY
from sememe.tokens.store import TokenStore

Documents = list[list[list[str]]]


def to_records(documents: Documents, labels: list[str] | None = None) -> Records:
    """Write documents of sentences of words in record form, empty ones included."""
    text = "".join(
        "".join("".join(f"{word}\x1f" for word in sentence) + "\x1e" for sentence in document)
        + "\x1d"
        for document in documents
    )
    return Records(text.encode("utf-8", "surrogatepass"), labels)


def distinct_words(num: int, batch: int = 50_000) -> Iterator[Records]:
    """Give `num` words that occur once, among them some occurrences of one word."""
    for start in range(0, num, batch):
        words = "\x1f".join(f"once{number}" for number in range(start, min(start + batch, num)))
        yield Records(f"again\x1f{words}\x1fagain\x1f\x1e\x1d".encode(), None)


def build_store(
    path: Path,
    records: Iterable[Records],
    *,
    min_count: int = 1,
    workers: int = 0,
    memory: int = DEFAULT_MEMORY,
    fingerprint: dict[str, Any] | None = None,
    note: Callable[[str], None] = SILENT.note,
) -> TokenStore:
    """Write the store of `records` to `path`, replacing one that is there, and open it."""
    path = Path(path).absolute()
    with locked(path, note):
        write_store(path, records, min_count, workers, memory, fingerprint)
        return TokenStore.open(path)

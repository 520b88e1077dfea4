"""A corpus that can be read twice: files, saved pipes, iterables of str, data frames."""

from __future__ import annotations

import glob
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sememe.frames import is_frame
from sememe.storage.folder import write_errors
from sememe.text.cleaning.config import CleanConfig
from sememe.text.cleaning.rows import RowBatch, read_items, read_rows, read_source, read_table
from sememe.text.sources import (
    ENDINGS,
    FoundSource,
    Source,
    exists,
    file_size,
    find_sources,
    format_ending,
)
from sememe.text.stream import Spool, as_items, as_names, read, read_ahead
from sememe.text.tables import is_plain_tsv, parquet_types

_LOOKED_AT = 100  # items of a list


def names_in(corpus: Any) -> list[str | Path] | None:
    """The names of files in a corpus; None for texts, also for a list of single words."""
    names = None if is_frame(corpus) else as_names(corpus)
    if names is None or not isinstance(corpus, (list, tuple)):
        return names
    could_be = (
        isinstance(name, Path)
        or format_ending(Path(name)) in ENDINGS
        or glob.has_magic(name)
        or exists(name)
        for name in names[:_LOOKED_AT]
    )
    return names if any(could_be) else None


class RowCorpus:
    """The rows of a corpus; `names` are those of its sources, `total` its size in bytes."""

    def __init__(self, corpus: Any, config: CleanConfig, folder: Path) -> None:
        self._config, self._settings = config, config.text_settings
        self._sources: list[FoundSource] = []
        self._items: Any = None
        self.names, self.total = [""], None
        if (names := names_in(corpus)) is None:
            items = corpus if is_frame(corpus) else as_items(corpus)
            self._items = Spool(items, self._settings) if isinstance(items, Iterator) else items
            return
        found = find_sources(names)
        self.names = [Source(one.path).name for one in found]
        self._sources = [_saved(one, folder / f"piped-{n}") for n, one in enumerate(found)]
        self.total = sum(file_size(one.path) for one in self._sources)

    def rows(self) -> Generator[RowBatch, None, None]:
        """All rows in order; files are read ahead."""
        if self._items is None:
            return read_ahead(read_rows(self._sources, self.names, self._config))
        if is_frame(self._items):
            return read_table(self._items, 0, self._config)
        # An iterator is never taken for the names of files.
        items = self._items if isinstance(self._items, Spool) else iter(self._items)
        return read_items(read(items, self._settings))

    def long_rows(self) -> Iterator[RowBatch]:
        """Rows that may have several lines, in order: those of files that are not lines."""
        if self._items is not None:
            yield from self.rows()
        for number, (source, name) in enumerate(zip(self._sources, self.names, strict=False)):
            with closing(read_source(number, source, name, self._config)) as batches:
                for batch in batches:
                    if batch.form == "line":  # the same in all of the source
                        break
                    yield batch

    def types(self) -> dict[str, Any]:
        """The types of the columns of parquet files."""
        found: dict[str, Any] = {}
        for source in self._sources:
            found = parquet_types(Source(source.path)) | found
        return found

    def is_plain_tsv(self) -> bool:
        """Whether all of it is tsv files in which quotes have no special meaning."""
        sources = (Source(source.path) for source in self._sources)
        return bool(self._sources) and all(is_plain_tsv(own, self._settings) for own in sources)


def _saved(found: FoundSource, path: Path) -> FoundSource:
    """A file that can be read twice: standard input and pipes are saved first."""
    if not isinstance(found.path, str) and found.path.is_file():
        return found
    source = Source(found.path)
    path = path.with_suffix(source.format_ending)
    with path.open("wb") as file:
        for block in source.blocks():
            with write_errors(path):
                file.write(block)
    return FoundSource(path)

"""The files that a cleaning writes: the kept rows, and a table of what was removed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sememe.errors import OptionError, WriteError
from sememe.storage.folder import write_file
from sememe.storage.tables import FORMATS, check_free, compressed, table_format, write_table
from sememe.text.cleaning.corpus import names_in
from sememe.text.cleaning.report import Removed
from sememe.text.sources import TEXT_ENDINGS, Source, find_sources

_AT_ONCE = 4_096  # removed rows
_REMOVED_TYPES = {
    "file": str, "line": int, "rule": str, "like_file": str, "like_line": int,
    "similarity": float, "text": str,
}  # fmt: skip


def check_outputs(corpus: Any, out: Path | None, removed: Path | None, overwrite: bool) -> None:
    """Raise an error for outputs that cannot be written, before anything is read."""
    if out is not None:
        text_compression(out)
    if removed is not None:
        table_format(removed, option="--removed")
    names = names_in(corpus)
    sources = [] if names is None else [found.path for found in find_sources(names)]
    read_from = {os.path.realpath(str(path)) for path in sources}
    outputs = [path for path in (out, removed) if path is not None]
    for path in outputs:
        if os.path.realpath(path) in read_from:
            raise WriteError(f"{path} is part of the corpus; choose another name.")
        check_free(path, overwrite=overwrite)
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        raise OptionError(f"--out and --removed are both {out}; choose different names.")


def text_compression(out: Path) -> str | None:
    """The compression of a text file, "" if it has none; None for a table."""
    ending = Source(out).format_ending
    if ending in TEXT_ENDINGS:
        return "" if out.suffix.lower() == ending else out.suffix.lower()
    if ending not in FORMATS:
        raise OptionError(f"--out {out.name} must end in .txt or {', '.join(FORMATS)}.")
    table_format(out)
    return None


@contextmanager
def write_rows(
    out: Path | None, types: Mapping[str, Any], has_quotes: bool
) -> Iterator[Callable[[list[Any]], Any]]:
    """Yield what adds rows to a file: bytes to a text file, cells to a table."""
    if out is None:
        yield lambda rows: None
    elif (compression := text_compression(out)) is not None:
        with (
            write_file(out) as scratch,
            scratch.open("wb") as file,
            compressed(file, compression) as body,
        ):
            yield body.writelines
    else:
        with write_table(out, types=types, has_quotes=has_quotes) as table:
            yield table.add


@contextmanager
def write_removed(path: Path | None) -> Iterator[Callable[[Removed], None] | None]:
    """Yield what adds a removal to the table, if there is one."""
    if path is None:
        yield None
        return
    waiting: list[dict[str, Any]] = []
    with write_table(path, types=_REMOVED_TYPES) as table:

        def add(removal: Removed) -> None:
            waiting.append(removal.to_dict())
            if len(waiting) >= _AT_ONCE:
                table.add(waiting)
                waiting.clear()

        yield add
        table.add(waiting)

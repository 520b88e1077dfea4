"""Finding and reading documents: paths, folders, globs or standard input in, batches out.

The format is told by the name: .jsonl, .csv, .tsv, .parquet; every other name is plain text. In a
folder only the endings below are read, hidden files are not, and the order is that of the paths.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from sememe.errors import InputError
from sememe.text.readers.batches import BATCH_SIZE, Batch, join
from sememe.text.readers.sources import COMPRESSION_ENDINGS, STDIN, Source
from sememe.text.settings import TextSettings

TEXT_ENDINGS = (".txt", ".text", ".md", ".rst")
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
TABLE_ENDINGS = (".csv", ".tsv", ".tab")
PARQUET_ENDINGS = (".parquet", ".pq")
ENDINGS = TEXT_ENDINGS + JSON_ENDINGS + TABLE_ENDINGS + PARQUET_ENDINGS

Corpus = str | Path | Sequence[str | Path]


class FoundSource(NamedTuple):
    """A file (or "-" for standard input); `in_folder` if it came from a folder with several."""

    path: Path | Literal["-"]
    in_folder: bool = False


def find_sources(corpus: Corpus) -> list[FoundSource]:
    """The files that `corpus` names: files, folders, globs, or "-"; each is known to exist."""
    names = [corpus] if isinstance(corpus, (str, Path)) else list(corpus)
    if not names:
        raise InputError("No text was given: name at least one file, folder or pattern.")
    found = [source for name in names for source in _expand(name)]
    if sum(source.path == STDIN for source in found) > 1:
        raise InputError('Standard input ("-") can be read once only.')
    return found


def _expand(name: str | Path) -> list[FoundSource]:
    if name == STDIN:
        return [FoundSource(STDIN)]
    path = Path(name).expanduser()
    if path.is_dir():
        files = sorted(_walk(path))
        if not files:
            raise InputError(
                f"No text in {path}: a folder is searched for {' '.join(ENDINGS)}, "
                f"also with {' '.join(COMPRESSION_ENDINGS)} behind."
            )
        return [FoundSource(file, len(files) > 1) for file in files]
    if path.exists():
        return [FoundSource(path)]
    if glob.has_magic(str(path)):
        # pathlib cannot take a pattern that starts at the root.
        matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
        files = [match for match in matches if match.is_file()]
        if files:
            return [FoundSource(file) for file in files]
        raise InputError(f"No file matches {name}.")
    raise InputError(f"There is no file or folder {name}.")


def _is_known(name: str) -> bool:
    lower = name.lower()
    for ending in COMPRESSION_ENDINGS:
        lower = lower.removesuffix(ending)
    return lower.endswith(ENDINGS)


def _walk(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise InputError(f"Cannot read the folder {error.filename}: {error.strerror}.")

    seen: set[tuple[int, int]] = set()
    for root, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        stat = Path(root).stat()
        if (stat.st_dev, stat.st_ino) in seen:  # a link that leads back would be read again
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders[:] = [name for name in sorted(folders) if not name.startswith(".")]
        yield from (
            Path(root, name) for name in files if not name.startswith(".") and _is_known(name)
        )


def read(sources: Iterable[FoundSource], settings: TextSettings) -> Generator[Batch, None, None]:
    """Read every document of every source, in order, in batches of about BATCH_SIZE bytes."""
    kept: list[Batch] = []
    size = 0
    for found in sources:
        source = Source(found.path)
        for batch in _read_source(source, settings, in_folder=found.in_folder):
            kept.append(batch._replace(num_bytes=source.take_num_bytes()))
            size += len(batch.text)
            # Small files share a batch; one large batch is not copied.
            if size >= BATCH_SIZE // 2:
                yield join(kept)
                kept, size = [], 0
    if kept:
        yield join(kept)


def _read_source(source: Source, settings: TextSettings, *, in_folder: bool) -> Iterator[Batch]:
    ending = source.format_ending
    if ending in PARQUET_ENDINGS:
        from sememe.text.readers.columns import read_parquet

        return read_parquet(source, settings)
    if ending in JSON_ENDINGS:
        from sememe.text.readers.rows import read_json_lines

        return read_json_lines(source, settings)
    if ending in TABLE_ENDINGS:
        from sememe.text.readers.rows import read_table

        return read_table(source, settings, is_tabbed=ending != ".csv")
    from sememe.text.readers.plain import read_plain

    if settings.label_field:
        raise InputError(
            f"{source.name} is plain text and has no column {settings.label_field!r} for labels; "
            "labels come from jsonl, csv, tsv or parquet."
        )
    return read_plain(source, settings, in_folder=in_folder)

"""Clean a corpus: count its lines, clean its batches, find repeated rows, write the rest.

The corpus is read twice if its documents have several lines. What passes the rules is on disk,
beside the output, until the repeated rows are known; only a few bytes per row are in memory. The
result does not depend on the number of workers.
"""

from __future__ import annotations

import glob
import os
import pickle
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sememe.errors import InputError, OptionError, WriteError
from sememe.frames import is_frame
from sememe.machine import cache_dir
from sememe.options import changed
from sememe.progress import Reporter, as_reporter
from sememe.storage.folder import scratch_folder, write_errors, write_file
from sememe.storage.tables import FORMATS, check_free, compressed, table_format, write_table
from sememe.text.cleaning.batches import CleanBatch, clean_batch
from sememe.text.cleaning.config import CleanConfig
from sememe.text.cleaning.duplicates import NONE, Column, Duplicates, Repeats
from sememe.text.cleaning.fingerprints import bands_and_rows
from sememe.text.cleaning.lines import LineCounts, line_hashes, split
from sememe.text.cleaning.report import (
    BROKEN,
    DUPLICATES,
    NEAR_DUPLICATES,
    NUM_SAMPLES,
    RULES,
    CleanReport,
    Place,
    Removed,
    RuleCount,
)
from sememe.text.cleaning.rows import (
    PLACE,
    RowBatch,
    is_table,
    read_items,
    read_rows,
    read_source,
    read_table,
    set_text,
)
from sememe.text.cleaning.worker import Workers
from sememe.text.sources import (
    ENDINGS,
    STDIN,
    TEXT_ENDINGS,
    FoundSource,
    Source,
    exists,
    find_sources,
    format_ending,
)
from sememe.text.stream import Spool, as_items, as_names, each_batch, read, read_ahead
from sememe.text.tables import frame_table, parquet_types

_LOOKED_AT = 100  # items of a list
_FEW, _MANY_BROKEN = 10, 0.1  # rows, or their share: the encoding may be wrong
_UNITS = {"line": "lines", "paragraph": "paragraphs", "file": "files"}
_REMOVED_TYPES = {
    "file": str, "line": int, "rule": str, "like_file": str, "like_line": int,
    "similarity": float, "text": str,
}  # fmt: skip


def clean(
    corpus: Any,
    out: str | Path | None = None,
    *,
    removed: str | Path | None = None,
    overwrite: bool = False,
    progress: Reporter | bool = False,
    **options: Any,
) -> CleanReport:
    """Remove repeated, broken and useless rows and lines of a corpus, and report what they were.

    `corpus` is one or several paths, folders or globs, "-" for standard input, an iterable of str,
    a Series or a DataFrame. `out` is a text file or a table (.csv, .tsv, .jsonl, .parquet), which
    keeps the other columns; without it nothing is written. `removed` is a table for what was
    removed. The options are those of CleanConfig.
    """
    config = changed(CleanConfig(), "clean", options)
    out, removed = (Path(path) if path is not None else None for path in (out, removed))
    _check_outputs(corpus, out, removed, overwrite)
    place = cache_dir() / "cleaning" if out is None else Path(os.path.realpath(out)).parent
    name = ".clean" if out is None else f".{out.name}.clean"
    with scratch_folder(place, name) as folder:
        return _Cleaning(corpus, out, config, folder, as_reporter(progress)).run(removed)


def _names_in(corpus: Any) -> list[str | Path] | None:
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


def _check_outputs(corpus: Any, out: Path | None, removed: Path | None, overwrite: bool) -> None:
    """Raise an error for outputs that cannot be written, before anything is read."""
    if out is not None:
        _text_compression(out)
    if removed is not None:
        table_format(removed, option="--removed")
    names = _names_in(corpus)
    sources = [] if names is None else [found.path for found in find_sources(names)]
    read_from = {os.path.realpath(path) for path in sources}
    for path in filter(None, (out, removed)):
        if os.path.realpath(path) in read_from:
            raise WriteError(f"{path} is part of the corpus; choose another name.")
        check_free(path, overwrite=overwrite)
    if (
        out is not None
        and removed is not None
        and os.path.realpath(out) == os.path.realpath(removed)
    ):
        raise OptionError(f"--out and --removed are both {out}; choose different names.")


def _text_compression(out: Path) -> str | None:
    """The compression of a text file, "" if it has none; None for a table."""
    ending = Source(out).format_ending
    if ending in TEXT_ENDINGS:
        return "" if out.suffix.lower() == ending else out.suffix.lower()
    if ending not in FORMATS:
        raise OptionError(f"--out {out.name} must end in .txt or {', '.join(FORMATS)}.")
    table_format(out)
    return None


class _Cleaning:
    """One run: the corpus, the scratch files, and the counts so far."""

    def __init__(
        self,
        corpus: Any,
        out: Path | None,
        config: CleanConfig,
        folder: Path,
        reporter: Reporter,
    ) -> None:
        self._out, self._config, self._folder, self._reporter = out, config, folder, reporter
        self._is_text = out is None or _text_compression(out) is not None
        self._open(corpus)
        self._counts = {rule: RuleCount() for rule in RULES}
        self._num_repaired = 0
        self._forms: set[str] = set()
        self._places = Column(folder / "places", PLACE)
        self._rules: list[np.ndarray] = [np.empty(0, np.uint8)]

    def _open(self, corpus: Any) -> None:
        """Make the corpus readable twice."""
        settings = self._config.text_settings
        self._sources: list[FoundSource] = []
        self._names, self._total = [""], None
        self._items_read: Any = None
        names = _names_in(corpus)
        if names is None:
            items = corpus if is_frame(corpus) else as_items(corpus)
            self._items_read = Spool(items, settings) if isinstance(items, Iterator) else items
            return
        found = find_sources(names)
        self._names = [Source(one.path).name for one in found]
        self._sources = [_saved(one, self._folder) for one in found]
        self._total = sum(Path(one.path).stat().st_size for one in self._sources)

    def _read(self) -> Generator[RowBatch, None, None]:
        """All rows in order."""
        if self._items_read is None:
            return read_rows(self._sources, self._config)
        if is_frame(self._items_read):
            return read_table(frame_table(self._items_read), 0, self._config)
        is_saved = isinstance(self._items_read, Spool)
        # An iterator is never taken for the names of files.
        items = self._items_read if is_saved else iter(self._items_read)
        return read_items(read(items, self._config.text_settings))

    def run(self, removed: Path | None) -> CleanReport:
        """Clean the corpus."""
        config = self._config
        repeated = self._count_lines() if config.repeated_lines else np.empty(0, np.uint64)
        is_compared = config.duplicates or config.near_duplicates
        num_bands = bands_and_rows(config.threshold)[0] if config.near_duplicates else 0
        duplicates = Duplicates(self._folder, num_bands)
        with _removed_table(removed) as tell_file:
            self._tell_file = tell_file
            with (self._folder / "kept").open("wb") as kept:
                self._clean(repeated, duplicates, kept, removed is not None)
            duplicates.close()
            self._places.close()
            rules = np.concatenate(self._rules)
            if not len(rules):
                raise InputError(f"There is no row in {', '.join(self._names) or 'the iterable'}.")
            if is_compared:
                rules, repeats = self._compare(duplicates, rules)
            else:
                repeats = Repeats(np.full(len(rules), NONE), np.empty(0, np.float32))
            self._write(rules, repeats)
        return self._report(rules == 0)

    def _count_lines(self) -> np.ndarray:
        """The hashes of lines that are in many documents."""
        counts, batches = LineCounts(), self._batches_of_lines()
        if (first := next(batches, None)) is None:
            return counts.repeated(1)
        with self._reporter.task("counting lines", self._total, "B") as task:
            for batch in chain([first], batches):
                lines = split(batch.text, batch.ends)
                hashes = line_hashes(batch.text, lines, len(batch.ends))
                counts.add(hashes, lines.documents, len(batch.ends))
                task.update(task.done + batch.num_bytes)
        return counts.repeated(self._config.repeated_lines)

    def _batches_of_lines(self) -> Iterator[RowBatch]:
        if self._items_read is not None:
            yield from self._read()
        for number, source in enumerate(self._sources):
            with closing(read_source(number, source, self._config)) as batches:
                for batch in batches:
                    if batch.form == "line":  # the same in all of the source
                        break
                    yield batch

    def _clean(
        self, repeated: np.ndarray, duplicates: Duplicates, kept: BinaryIO, tells_all: bool
    ) -> None:
        """Clean all batches; what remains of each is written to `kept`."""
        config, num_rows = self._config, 0
        languages = config.keep_language.split(",") if config.keep_language else []
        with (
            Workers(languages, config.num_workers) as workers,
            self._reporter.task("cleaning", self._total, "B") as task,
            closing(read_ahead(self._read())) as batches,
        ):
            work = partial(
                clean_batch, config=config, repeated=repeated, workers=workers,
                tells_all=tells_all,
            )  # fmt: skip
            for own in each_batch(batches, work, config.num_workers, None):
                for removal in own.removals:
                    self._tell(own, *removal)
                self._count(own)
                self._places.add(own.rows.places)
                self._rules.append(own.rules)
                duplicates.add(own.fingerprints)
                rows = np.flatnonzero(own.rules == 0)
                with write_errors(self._folder):
                    pickle.dump((rows + num_rows, self._items(own, rows)), kept, protocol=5)
                num_rows += len(own.rules)
                task.update(task.done + own.rows.num_bytes)

    def _count(self, own: CleanBatch) -> None:
        num_rows = np.bincount(own.rules, minlength=len(RULES) + 1)
        for code, rule in enumerate(RULES, 1):
            self._counts[rule].rows += int(num_rows[code])
            self._counts[rule].lines += int(own.num_lines[code])
        self._num_repaired += own.num_repaired
        self._forms.add(own.rows.form)

    def _tell(self, own: CleanBatch, row: int, line: int, rule: int, text: str) -> None:
        """Note a removed row or line."""
        source, number = own.rows.places[row].tolist()
        is_cell = own.rows.form == "cell"  # whose lines have no numbers of their own
        place = Place(self._names[source], number if is_cell else number + line)
        self._note(Removed(place, RULES[rule - 1], text))

    def _note(self, own: Removed) -> None:
        samples = self._counts[own.rule].samples
        if len(samples) < NUM_SAMPLES:
            samples.append(own)
        self._tell_file([own.to_dict()])

    def _items(self, own: CleanBatch, rows: np.ndarray) -> list[Any]:
        """What is to be written for each row: bytes of a text file, or cells."""
        starts = np.concatenate(([0], own.ends[:-1]))
        texts = [own.text[starts[row] : own.ends[row]] for row in rows.tolist()]
        if self._is_text:
            if own.rows.form == "line":
                return texts
            if own.rows.form == "cell":
                return [b" ".join(text.strip().splitlines()) + b"\n" for text in texts]
            return [text + b"\n" for text in texts]  # a blank line ends a document
        if own.rows.cells is None:
            return [{"text": text.decode().rstrip("\n")} for text in texts]
        cells = [own.rows.cells[row] for row in rows.tolist()]
        for index in np.flatnonzero(own.is_changed[rows]).tolist():
            column = self._config.text_settings.text_column
            set_text(cells[index], column, texts[index].decode().rstrip("\n"))
        return cells

    def _compare(self, duplicates: Duplicates, rules: np.ndarray) -> tuple[np.ndarray, Repeats]:
        """The rules with repeated rows among them, and what those repeat."""
        config, rules = self._config, rules.copy()
        with self._reporter.task("comparing", len(rules), "rows") as task:
            for done, repeats in duplicates.find(
                rules == 0,
                exact=config.duplicates,
                threshold=config.threshold,
                workers=config.num_workers,
            ):
                # Equal texts are found before the first row is compared.
                own = NEAR_DUPLICATES if done else DUPLICATES
                rules[(rules == 0) & (repeats.original != NONE)] = own
                task.update(done)
        for code in (DUPLICATES, NEAR_DUPLICATES):
            self._counts[RULES[code - 1]].rows = int((rules == code).sum())
        return rules, repeats

    def _write(self, rules: np.ndarray, repeats: Repeats) -> None:
        """Write the kept rows, and note the repeated ones."""
        places = np.memmap(self._places.path, PLACE, "r")

        def place_of(row: int) -> Place:
            source, line = places[row].tolist()
            return Place(self._names[source], line)

        with (
            self._output() as add,
            (self._folder / "kept").open("rb") as kept,
            self._reporter.task("writing", int((rules == 0).sum()), "rows") as task,
        ):
            num_read = 0
            while num_read < len(rules) and kept.peek(1):
                rows, items = pickle.load(kept)
                is_kept = rules[rows] == 0
                add([item for item, own in zip(items, is_kept, strict=True) if own])
                for index in np.flatnonzero(~is_kept).tolist():
                    row = int(rows[index])
                    like = place_of(int(repeats.original[row]))
                    rule, text = RULES[rules[row] - 1], self._text_of(items[index])
                    similarity = float(repeats.similarity[row])
                    self._note(Removed(place_of(row), rule, text, like, similarity))
                task.update(task.done + int(is_kept.sum()))

    def _text_of(self, item: Any) -> str:
        if isinstance(item, bytes):
            return item.decode().rstrip("\n")
        value = item
        column = self._config.text_settings.text_column
        for name in [column] if column in item else column.split("."):
            value = value[name]
        return str(value)

    @contextmanager
    def _output(self) -> Iterator[Callable[[list[Any]], Any]]:
        """What adds rows to the output."""
        if self._out is None:
            yield lambda rows: None
        elif (compression := _text_compression(self._out)) is not None:
            with (
                write_file(self._out) as scratch,
                scratch.open("wb") as file,
                compressed(file, compression) as body,
            ):
                yield body.writelines
        else:
            types: dict[str, Any] = {}
            for source in filter(is_table, self._sources):
                types = parquet_types(Source(source.path)) | types
            with write_table(self._out, types=types, has_quotes=False) as table:
                yield table.add

    def _report(self, is_kept: np.ndarray) -> CleanReport:
        num_broken = self._counts[RULES[BROKEN - 1]].rows
        if num_broken >= max(_FEW, _MANY_BROKEN * len(is_kept)):
            warnings.warn(
                f"{num_broken:,} of {len(is_kept):,} rows have broken characters: the files may be "
                "in another encoding (--encoding gb18030, latin-1, …).",
                stacklevel=2,
            )
        if not is_kept.any():
            warnings.warn("No row was kept.", stacklevel=2)
        unit = _UNITS.get(self._forms.pop(), "rows") if len(self._forms) == 1 else "rows"
        return CleanReport(
            len(is_kept), int(is_kept.sum()), unit, self._num_repaired, self._counts, is_kept,
            None if self._out is None else str(self._out), self._config.to_dict(),
        )  # fmt: skip


def _saved(found: FoundSource, folder: Path) -> FoundSource:
    """A file that can be read twice: standard input and pipes are saved first."""
    if found.path != STDIN and Path(found.path).is_file():
        return found
    source = Source(found.path)
    path = folder / f"piped-{len(list(folder.iterdir()))}{source.format_ending}"
    with path.open("wb") as file:
        for block in source.blocks():
            with write_errors(path):
                file.write(block)
    return FoundSource(path)


@contextmanager
def _removed_table(path: Path | None) -> Iterator[Callable[[list[Any]], Any]]:
    """What adds rows to the table of what was removed."""
    if path is None:
        yield lambda rows: None
        return
    with write_table(path, types=_REMOVED_TYPES, has_quotes=False) as table:
        yield table.add

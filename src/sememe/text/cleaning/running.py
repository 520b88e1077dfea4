"""Clean a corpus: count its lines, clean its batches, find repeated rows, write the rest.

The corpus is read twice if its documents have several lines. What passes the rules is on disk,
beside the output, until the repeated rows are known; only a few bytes per row are in memory. The
result does not depend on the number of workers.
"""

from __future__ import annotations

import os
import pickle
import warnings
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sememe.errors import InputError
from sememe.machine import cache_dir
from sememe.options import changed
from sememe.progress import Reporter, as_reporter
from sememe.storage.folder import scratch_folder, write_errors
from sememe.text.cleaning.batches import CleanBatch, clean_batch
from sememe.text.cleaning.config import CleanConfig
from sememe.text.cleaning.corpus import RowCorpus
from sememe.text.cleaning.duplicates import NONE, Column, Duplicates, Repeats
from sememe.text.cleaning.fingerprints import bands_and_rows
from sememe.text.cleaning.lines import LineCounts, line_hashes, split
from sememe.text.cleaning.output import (
    check_outputs,
    text_compression,
    write_removed,
    write_rows,
)
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
from sememe.text.cleaning.rows import PLACE, set_text
from sememe.text.cleaning.worker import Workers
from sememe.text.stream import each_batch

_FEW, _MANY_BROKEN = 10, 0.1  # rows, or their share: the encoding may be wrong
_UNITS = {"line": "lines", "paragraph": "paragraphs", "file": "files"}


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
    check_outputs(corpus, out, removed, overwrite)
    place = cache_dir() / "cleaning" if out is None else Path(os.path.realpath(out)).parent
    name = ".clean" if out is None else f".{out.name}.clean"
    with scratch_folder(place, name) as folder:
        return _Cleaning(corpus, out, config, folder, as_reporter(progress)).run(removed)


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
        self._is_text = out is None or text_compression(out) is not None
        self._corpus = RowCorpus(corpus, config, folder)
        self._counts = {rule: RuleCount() for rule in RULES}
        self._num_repaired = 0
        self._forms: set[str] = set()
        self._columns: dict[int, str] = {}  # of the text, by the number of the source
        self._places = Column(folder / "places", PLACE)
        self._rules: list[np.ndarray] = [np.empty(0, np.uint8)]

    def run(self, removed: Path | None) -> CleanReport:
        """Clean the corpus."""
        config = self._config
        repeated = self._count_lines() if config.repeated_lines else np.empty(0, np.uint64)
        is_compared = config.duplicates or config.near_duplicates
        num_bands = bands_and_rows(config.threshold)[0] if config.near_duplicates else 0
        duplicates = Duplicates(self._folder, num_bands)
        with write_removed(removed) as self._tell:
            with (
                closing(self._places), closing(duplicates),
                (self._folder / "kept").open("wb") as kept,
            ):  # fmt: skip
                self._clean(repeated, duplicates, kept, removed is not None)
            rules = np.concatenate(self._rules)
            if not len(rules):
                raise InputError(
                    f"There is no row in {', '.join(self._corpus.names) or 'the iterable'}."
                )
            if is_compared:
                rules, repeats = self._compare(duplicates, rules)
            else:
                repeats = Repeats(np.full(len(rules), NONE), np.empty(0, np.float32))
            self._write(rules, repeats)
        return self._report(rules == 0)

    def _count_lines(self) -> np.ndarray:
        """The hashes of lines that are in many documents."""
        counts, batches = LineCounts(), self._corpus.long_rows()
        if (first := next(batches, None)) is None:
            return counts.repeated(1)
        with self._reporter.task("counting lines", self._corpus.total, "B") as task:
            for batch in chain([first], batches):
                lines = split(batch.text, batch.ends)
                hashes = line_hashes(batch.text, lines, len(batch.ends))
                counts.add(hashes, lines.documents, len(batch.ends))
                task.update(task.done + batch.num_bytes)
        return counts.repeated(self._config.repeated_lines)

    def _clean(
        self, repeated: np.ndarray, duplicates: Duplicates, kept: BinaryIO, tells_all: bool
    ) -> None:
        """Clean all batches; what remains of each is written to `kept`."""
        config, num_rows = self._config, 0
        languages = config.keep_language.split(",") if config.keep_language else []
        with (
            Workers(languages, config.num_workers) as workers,
            self._reporter.task("cleaning", self._corpus.total, "B") as task,
            closing(self._corpus.rows()) as batches,
        ):
            work = partial(
                clean_batch, config=config, repeated=repeated, workers=workers,
                tells_all=tells_all,
            )  # fmt: skip
            for own in each_batch(batches, work, config.num_workers, None):
                self._note_removals(own)
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
        if own.rows.cells is not None and len(own.rows.places):
            self._columns[int(own.rows.places["source"][0])] = own.rows.column

    def _note_removals(self, own: CleanBatch) -> None:
        is_cell = own.rows.form == "cell"  # whose lines have no numbers of their own
        for row, line, rule, text in own.removals:
            source, number = own.rows.places[row].tolist()
            place = Place(self._corpus.names[source], number if is_cell else number + line)
            self._note(Removed(place, RULES[rule - 1], text))

    def _note(self, removal: Removed) -> None:
        samples = self._counts[removal.rule].samples
        if len(samples) < NUM_SAMPLES:
            samples.append(removal)
        if self._tell is not None:
            self._tell(removal)

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
            set_text(cells[index], own.rows.column, texts[index].decode().rstrip("\n"))
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
        with (
            write_rows(self._out, self._corpus.types(), not self._corpus.is_plain_tsv()) as add,
            (self._folder / "kept").open("rb") as kept,
            self._reporter.task("writing", int((rules == 0).sum()), "rows") as task,
        ):
            while kept.peek(1):
                rows, items = pickle.load(kept)
                is_kept = rules[rows] == 0
                add([item for item, own in zip(items, is_kept, strict=True) if own])
                indices = np.flatnonzero(~is_kept)
                if self._tell is None:  # as many as could become samples
                    indices = indices[: 2 * NUM_SAMPLES] if len(indices) else indices
                for index in indices.tolist():
                    self._note_repeat(int(rows[index]), items[index], rules, repeats)
                task.update(task.done + int(is_kept.sum()))

    def _note_repeat(self, row: int, item: Any, rules: np.ndarray, repeats: Repeats) -> None:
        places = np.memmap(self._places.path, PLACE, "r")
        (source, line), (like_source, like_line) = places[[row, repeats.original[row]]].tolist()
        names = self._corpus.names
        place, like = Place(names[source], line), Place(names[like_source], like_line)
        rule, similarity = RULES[rules[row] - 1], float(repeats.similarity[row])
        text = self._text_of(item, self._columns.get(source, "text"))
        self._note(Removed(place, rule, text, like, similarity))

    def _text_of(self, item: Any, column: str) -> str:
        if isinstance(item, bytes):
            return item.decode().rstrip("\n")
        value = item
        for name in [column] if column in item else column.split("."):
            value = value[name]
        return str(value)

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

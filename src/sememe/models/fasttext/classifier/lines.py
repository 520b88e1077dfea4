"""Labelled text in, blocks of lines out, each line as Facebook's program reads it.

`__label__x some words\n`: any number of labels, known by their prefix, and words separated by
blanks. Files of such lines are passed through; rows of tables and of Python are converted;
tokenizing or lower-casing by the text settings also happens here. In a csv or tsv file without
columns named text and label, they are detected as for fine-tuning.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import islice, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.estimator import text_array
from sememe.examples.labelled.columns import choose_columns, described, is_header
from sememe.examples.labelled.label_options import AUTO, NONE
from sememe.examples.labelled.label_sets import choose_separator, labels_in, separator_note
from sememe.examples.labelled.rows import Note, TextRow, silent
from sememe.frames import SeriesTexts, is_frame, is_series
from sememe.machine import in_order
from sememe.text.documents import TABLES, DocumentBatch, read, read_frame
from sememe.text.settings import TextSettings
from sememe.text.sources import (
    FoundSource,
    Source,
    find_sources,
    gathered,
    utf8_blocks,
)
from sememe.text.stream import segmenter
from sememe.text.tables import frame_table, open_table
from sememe.text.words import Records

# As in Facebook's program: words are separated by blanks and keep their case.
PLAIN = TextSettings(language="none", lowercase=False, layout="line")

# Few enough bytes that the table of a block's types stays in a core's own cache.
BLOCK_SIZE = 1 << 19
_LOOKED_AT = 1_000  # rows that name their columns
_END = "</s>"
# A label in a table may contain blanks, which would end it in a line.
_BLANK, _INNER_BLANK = " ", "\u00a0"


def is_path(source: Any) -> bool:
    """Whether `source` names files rather than being rows."""
    sources = source if isinstance(source, (list, tuple)) else [source]
    return bool(sources) and all(isinstance(item, (str, Path)) for item in sources)


def source_name(source: Any, others: str) -> str:
    """The files as named in a message; `others` is the word for rows."""
    named = [source] if isinstance(source, (str, Path)) else source
    return ", ".join(map(str, named)) if is_path(source) else others


def table_settings(
    source: Any,
    settings: TextSettings,
    note: Note = silent,
    *,
    named: Mapping[str, Any] | None = None,
    has_labels: bool = True,
    separator: str = NONE,
    known: Collection[str] = (),
) -> tuple[TextSettings, str]:
    """The settings with a table's columns, and the separator of several labels ("": none).

    Columns are as named, as before, or detected from the cells; the separator is the wanted one,
    one that finds the `known` labels, or (auto) detected. The first table among the files decides;
    lines of `__label__x` need no columns.
    """
    if is_frame(source):
        table = frame_table(source)
    else:
        tables = [Source(found.path) for found in find_sources(source)] if is_path(source) else []
        own = next((one for one in tables if one.format_ending in TABLES), None)
        if own is None or isinstance(own.path, str) or not own.path.is_file():
            return settings, "" if separator in (AUTO, NONE) else separator
        table = open_table(
            own, settings, lambda first, others: is_header(first, others, named, settings.columns)
        )
    records = list(islice(table.records, _LOOKED_AT))
    wanted = ("text", "label") if has_labels else ("text",)
    has_lists = any(isinstance(record.cells.get("label"), list) for record in records)
    chosen = choose_columns(
        table, records, "classify", named, wanted, settings.columns, is_sure=has_lists
    )
    note(described(table, records, chosen))
    labels = chosen.get("label", ())
    cells = [record.cells.get(labels[0]) for record in records] if len(labels) == 1 else []
    found = choose_separator(cells, separator if cells else NONE, known)
    if found and separator == AUTO:
        note(separator_note(table.name, found, [labels_in(cell, found) for cell in cells]))
    columns = {role: "+".join(chosen[role]) for role in wanted}
    return replace(settings, columns=columns), found


def label_name(word: str, prefix: str) -> str:
    """A label without its prefix."""
    return word.removeprefix(prefix).replace(_INNER_BLANK, _BLANK)


def label_text(label: Any) -> str:
    """The text of a label, which may be a number; blanks are as in `label_name`."""
    return _BLANK.join(str(label).split())


def labelled_rows(texts: Any, labels: Any) -> tuple[list[tuple[str, str]], np.ndarray]:
    """The rows (text, label) of texts with one label each, and the distinct labels, sorted."""
    from sklearn.utils import column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    if isinstance(texts, str | Path) or isinstance(labels, str | Path):
        raise OptionError(
            "y holds one label for each text of a list; labelled files have their labels inside, "
            "and a validation file is given as fit(train, validation=…)."
        )
    found = np.asarray(labels)
    if found.shape not in ((len(texts),), (len(texts), 1)):
        raise OptionError(
            f"y must hold one label for each of the {len(texts):,} texts, not be of shape "
            f"{found.shape}. Several labels for a text are given as rows (text, [label, …]), "
            "validation rows as fit(train, validation=…)."
        )
    given = text_array(texts)
    found = column_or_1d(found, warn=True)
    check_classification_targets(found)
    classes = np.unique(found)
    if len(classes) < 2:
        raise OptionError(f"y has only one class, {[*classes]!r}: a classifier needs two or more.")
    names = {label: label_text(label) for label in classes.tolist()}
    if "" in names.values() or len(set(names.values())) < len(names):
        raise OptionError(f"Labels must differ in more than blanks: {[*names][:10]!r}.")
    rows = zip(given.tolist(), (names[label] for label in found.tolist()), strict=True)
    return list(rows), classes


def one_line(text: str) -> str:
    """A text as one line: newlines become blanks, and a word </s> ends it."""
    line = text.replace("\n", _BLANK)
    if _END in line:
        words = line.split(_BLANK)
        line = _BLANK.join(words[: words.index(_END)] if _END in words else words)
    return line


def read_blocks(
    source: Any,
    settings: TextSettings,
    prefix: str,
    workers: int,
    *,
    has_labels: bool = True,
    separator: str = "",
    note: Note = silent,
) -> Generator[bytes, None, None]:
    """Read labelled files or rows (without labels: texts) as blocks of complete lines.

    Several labels in a cell have the separator between them, or are a list.
    """
    if is_frame(source):
        batches = read_frame(source, settings)
        blocks = _from_rows(_of_table(batches, "The frame", prefix, separator, note))
    elif is_path(source) and has_labels:
        blocks = _from_files(find_sources(source), settings, prefix, separator, note)
    elif has_labels:
        blocks = _from_rows(_labelled(source, prefix, separator))
    else:
        blocks = _from_rows(_texts(source))
    return _cut(blocks, settings, prefix, workers)


def _from_files(
    sources: list[FoundSource], settings: TextSettings, prefix: str, separator: str, note: Note
) -> Iterator[bytes]:
    for found in sources:
        source = Source(found.path)
        if source.format_ending in TABLES:
            batches = read([found], settings)
            yield from _from_rows(_of_table(batches, str(found.path), prefix, separator, note))
        else:
            yield from _raw_lines(utf8_blocks(source, settings))


def _raw_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Join or split blocks so that each ends with a line, about BLOCK_SIZE bytes each."""
    kept: list[bytes] = []
    size = 0
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if size + cut < BLOCK_SIZE or not cut:
            kept.append(block)
            size += len(block)
            continue
        yield b"".join([*kept, block[:cut]])
        kept, size = [block[cut:]], len(block) - cut
    if size:
        yield b"".join(kept)


def _of_table(
    batches: Generator[DocumentBatch, None, None],
    name: str,
    prefix: str,
    separator: str,
    note: Note,
) -> Iterator[str]:
    num_empty = 0
    with closing(batches):
        for batch in batches:
            bounds = pairwise([0, *batch.ends.tolist()])
            for (start, end), label in zip(bounds, batch.labels or repeat(""), strict=False):
                text = batch.text[start:end].decode("utf-8", "replace")
                num_empty += not text.strip()
                yield _row_line(text, labels_in(label, separator), prefix)
    if num_empty:
        note(f"{name}: {num_empty:,} rows have an empty text; a label there has no basis.")


def _row_line(text: str, labels: Iterable[Any], prefix: str) -> str:
    words = [prefix + _INNER_BLANK.join(str(label).split()) for label in labels]
    return " ".join([*words, one_line(text)]) + "\n"


def _labelled(rows: Any, prefix: str, separator: str) -> Iterator[str]:
    if not isinstance(rows, Iterable):
        raise InputError("Labelled text is a path, or an iterable of rows (text, label).")
    for index, row in enumerate(rows):
        is_several = isinstance(row, Iterable) and not isinstance(row, (str, bytes))
        pair = tuple(row) if is_several else ()
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise InputError(f"Row {index} is not a pair (text, label): {row!r:.60}.")
        labels = pair[1] if isinstance(pair[1], (list, tuple, set, frozenset)) else [pair[1]]
        if separator and isinstance(pair[1], str):
            labels = labels_in(pair[1], separator)
        yield _row_line(pair[0], [label for label in labels if str(label).strip()], prefix)


def rows_of(source: Any, settings: TextSettings, prefix: str, separator: str) -> list[TextRow]:
    """The labelled lines of a source as rows, without those that lack a label or a word."""
    start, found = prefix.encode(), []
    for block in read_blocks(source, settings, prefix, 1, separator=separator):
        for line in block.removesuffix(b"\n").split(b"\n"):
            words = line.split()
            names = [word for word in words if word.startswith(start)]
            text = b" ".join(word for word in words if not word.startswith(start))
            if names and text:
                labels = [label_name(name.decode("utf-8", "replace"), prefix) for name in names]
                found.append(TextRow(text.decode("utf-8", "replace"), labels=tuple(labels)))
    return found


def _texts(texts: Any) -> Iterator[str]:
    for index, text in enumerate(SeriesTexts(texts) if is_series(texts) else texts):
        if not isinstance(text, str):
            raise InputError(f"Text {index} is of type {type(text).__name__}; texts must be str.")
        yield one_line(text) + "\n"


def _from_rows(lines: Iterator[str]) -> Iterator[bytes]:
    for some in gathered(lines, BLOCK_SIZE, len):
        yield "".join(some).encode("utf-8", "replace")


def _cut(
    blocks: Iterator[bytes], settings: TextSettings, prefix: str, workers: int
) -> Generator[bytes, None, None]:
    if settings.mode == "whitespace" and not settings.lowercase:
        yield from blocks
        return
    with segmenter(settings, workers) as cut, ThreadPoolExecutor(workers) as pool:
        yield from in_order(pool, lambda block: _cut_block(block, prefix, cut), blocks, workers)


def _cut_block(block: bytes, prefix: str, cut: Callable[[DocumentBatch], Records]) -> bytes:
    """Tokenize every line; labels stay, and a line without words stays a line."""
    start = prefix.encode()
    lines = block.removesuffix(b"\n").split(b"\n")
    heads, texts = [], []
    for line in lines:
        words = line.split()
        labels = [word for word in words if word.startswith(start)]
        heads.append(b" ".join(labels))
        texts.append(b" ".join(w for w in words if not w.startswith(start)) if labels else line)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    records = cut(DocumentBatch(b"".join(texts), ends, [str(index) for index in range(len(texts))]))
    bodies = records.data.replace(b"\x1f\x1e", b" ").replace(b"\x1f", b" ").split(b"\x1d")
    result = [b""] * len(texts)
    for number, body in zip(records.labels or [], bodies, strict=False):
        result[int(number)] = body
    return b"".join(head + b" " + body + b"\n" for head, body in zip(heads, result, strict=True))

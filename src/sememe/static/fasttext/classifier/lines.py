"""Labelled text in, blocks of lines out, each line as Facebook's program reads it.

`__label__x some words\\n`: labels by their prefix, any number of them, words between blanks. Files
of such lines pass through as they are; rows of tables and of Python become such lines; where the
text settings ask for words to be cut or lower-cased, that happens here. The columns of a csv or tsv
file that has none called text and label are found as those of a fine-tuning task are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from sememe.cores import in_order
from sememe.errors import InputError
from sememe.examples.labelled.rows import Note, silent
from sememe.text.documents import (
    JSON_ENDINGS,
    PARQUET_ENDINGS,
    TABLE_ENDINGS,
    FoundSource,
    find_sources,
    read,
)
from sememe.text.readers.batches import Batch
from sememe.text.readers.encodings import utf8_blocks
from sememe.text.readers.sources import Source
from sememe.text.records import Records
from sememe.text.settings import TextSettings
from sememe.text.stream import segmenter

# As Facebook's program: words are what stands between blanks, in the case they are written in.
PLAIN = TextSettings(language="none", lowercase=False, layout="line", label_field="label")

# Few enough bytes that the table of a block's types stays in a core's own cache.
BLOCK_SIZE = 1 << 19
_ROWS = 20_000
_END = "</s>"
# A label of a table may hold blanks, which would end it in a line.
_BLANK, _INNER_BLANK = " ", "\u00a0"


def is_path(source: Any) -> bool:
    """Whether `source` names files rather than being rows."""
    if isinstance(source, (str, Path)):
        return True
    return (
        isinstance(source, (list, tuple))
        and bool(source)
        and all(isinstance(item, (str, Path)) for item in source)
    )


def source_name(source: Any, others: str) -> str:
    """The files as a message calls them; `others` is the word for rows."""
    if not is_path(source):
        return others
    return str(source) if isinstance(source, (str, Path)) else ", ".join(map(str, source))


def label_word(label: Any, prefix: str) -> str:
    """A label as it stands in a line."""
    return prefix + _INNER_BLANK.join(str(label).split())


def label_name(word: str, prefix: str) -> str:
    """A label as people read it: without its prefix."""
    return word.removeprefix(prefix).replace(_INNER_BLANK, _BLANK)


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
    note: Note = silent,
) -> Iterator[bytes]:
    """Read labelled files or rows (without labels: texts) as blocks of whole lines."""
    if is_path(source) and has_labels:
        blocks = _from_files(find_sources(source), settings, prefix, note)
    elif has_labels:
        blocks = _from_rows(_labelled(source, prefix))
    else:
        blocks = _from_rows(_texts(source))
    return _cut(blocks, settings, prefix, workers)


def read_file_blocks(
    source: Any, settings: TextSettings, prefix: str, workers: int
) -> Iterator[bytes]:
    """Read the lines of files whose labels, if there are any, do not matter."""
    blocks = _from_files(find_sources(source), settings, prefix, silent)
    return _cut(blocks, settings, prefix, workers)


def _from_files(
    sources: list[FoundSource], settings: TextSettings, prefix: str, note: Note
) -> Iterator[bytes]:
    for found in sources:
        source = Source(found.path)
        if _has_other_columns(source, settings):
            yield from _from_rows(_of_other_columns(source, settings, prefix, note))
        elif source.format_ending in (*JSON_ENDINGS, *TABLE_ENDINGS, *PARQUET_ENDINGS):
            with closing(read([found], settings)) as batches:
                for batch in batches:
                    yield from _from_rows(_of_batch(batch, prefix))
        else:
            yield from _raw_lines(utf8_blocks(source, settings))


def _has_other_columns(source: Source, settings: TextSettings) -> bool:
    """Whether a csv or tsv file lacks a column that nobody has named."""
    if source.format_ending not in TABLE_ENDINGS or not Path(source.path).is_file():
        return False
    from sememe.examples.labelled.columns import is_header
    from sememe.examples.labelled.records import open_table

    known = open_table(source, settings, is_header).columns
    lacks_text = settings.field == PLAIN.field and PLAIN.field not in known
    return lacks_text or (
        settings.label_field == PLAIN.label_field and PLAIN.label_field not in known
    )


def _of_other_columns(
    source: Source, settings: TextSettings, prefix: str, note: Note
) -> Iterator[str]:
    """Lines of a table whose columns are guessed; as everywhere here, bad rows teach nothing."""
    from sememe.examples.labelled.columns import NoColumnError
    from sememe.examples.labelled.sieve import BadRowError
    from sememe.examples.labelled.texts import read_texts

    is_labelled = bool(settings.label_field)
    given = {"text": settings.field, "label": settings.label_field}
    usual = {"text": PLAIN.field, "label": PLAIN.label_field}
    try:
        rows = read_texts(
            str(source.path),
            kind="classify",
            columns={role: name for role, name in given.items() if name and name != usual[role]},
            labelled=is_labelled,
            skip_bad=is_labelled,  # each row that is asked has its answer
            encoding=settings.encoding,
            errors=settings.errors,
            on_note=note,
        )
    except NoColumnError as error:
        if not error.can_be_named:
            raise
        option = {"text": "--field", "label": "--label-field"}[error.role]
        raise InputError(f"{error.found} Choose one with {option}.") from None
    except BadRowError as error:
        raise InputError(f"{error.found}. Mend it.") from None
    for row in rows:
        yield _row_line(row.text, [row.label] if is_labelled else [], prefix)


def _raw_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Join or cut blocks so that each ends with a line, about BLOCK_SIZE bytes each."""
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


def _of_batch(batch: Batch, prefix: str) -> Iterator[str]:
    start = 0
    labels = batch.labels or [""] * len(batch.ends)
    for end, label in zip(batch.ends.tolist(), labels, strict=True):
        text = batch.text[start:end].decode("utf-8", "replace")
        yield _row_line(text, _several(label), prefix)
        start = end


def _several(label: str) -> list[str]:
    """The labels of a cell: one, or those of a JSON list."""
    if label.startswith("["):
        try:
            names = json.loads(label)
        except ValueError:
            return [label]
        return [str(name) for name in names]
    return [label] if label else []


def _row_line(text: str, labels: Iterable[Any], prefix: str) -> str:
    return " ".join([*(label_word(label, prefix) for label in labels), one_line(text)]) + "\n"


def _labelled(rows: Any, prefix: str) -> Iterator[str]:
    if not isinstance(rows, Iterable):
        raise InputError("Labelled text is a path, or an iterable of rows (text, label).")
    for index, row in enumerate(rows):
        if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
            raise InputError(f"Row {index} is not a pair (text, label): {row!r:.60}.")
        pair = tuple(row)
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise InputError(f"Row {index} is not a pair (text, label): {row!r:.60}.")
        several = isinstance(pair[1], (list, tuple, set, frozenset))
        labels = pair[1] if several else [pair[1]]
        yield _row_line(pair[0], [label for label in labels if str(label).strip()], prefix)


def _texts(texts: Any) -> Iterator[str]:
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"Text {index} is of type {type(text).__name__}; texts must be str.")
        yield one_line(text) + "\n"


def _from_rows(lines: Iterator[str]) -> Iterator[bytes]:
    while some := list(islice(lines, _ROWS)):
        yield "".join(some).encode("utf-8", "replace")


def _cut(
    blocks: Iterator[bytes], settings: TextSettings, prefix: str, workers: int
) -> Iterator[bytes]:
    if settings.mode == "whitespace" and not settings.lowercase:
        yield from blocks
        return
    with segmenter(settings, workers) as cut, ThreadPoolExecutor(workers) as pool:
        yield from in_order(pool, lambda block: _cut_block(block, prefix, cut), blocks, workers)


def _cut_block(block: bytes, prefix: str, cut: Callable[[Batch], Records]) -> bytes:
    """Cut the words of every line; labels stay, and a line without words stays a line."""
    start = prefix.encode()
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    heads, texts = [], []
    for line in lines:
        words = line.split()
        labels = [word for word in words if word.startswith(start)]
        heads.append(b" ".join(labels))
        texts.append(b" ".join(w for w in words if not w.startswith(start)) if labels else line)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    numbers = [str(index) for index in range(len(texts))]
    records = cut(Batch(b"".join(texts), ends, numbers))
    bodies = records.data.replace(b"\x1f\x1e", b" ").replace(b"\x1f", b" ").split(b"\x1d")
    result = [b""] * len(texts)
    for number, body in zip(records.labels or [], bodies, strict=False):
        result[int(number)] = body
    return b"".join(head + b" " + body + b"\n" for head, body in zip(heads, result, strict=True))

"""Write tables row by row: csv, tsv, jsonl or parquet, as the name of the file says.

A table appears when it is complete. The rows of the first part decide its columns; in csv and tsv,
lists and objects are JSON, and a value that is missing is an empty cell.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO, get_args, get_origin, get_type_hints

import numpy as np

from sememe.errors import InputError, MissingExtraError, OptionError, WriteError
from sememe.storage.folder import write_file

Row = Mapping[str, Any]
FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")
_FORMULAS, _NUMBER = ("=", "+", "-", "@"), re.compile(r"[+-][\d.,]+(e[+-]?\d+)?")
_BREAKS = re.compile(r"[\t\r\n]+")
_GROUP_SIZE = 1 << 25  # bytes of a row group in a parquet file


def _zst(file: BinaryIO) -> Any:
    import zstandard

    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


_COMPRESSIONS: dict[str, Callable[[BinaryIO], Any]] = {
    # Without a name and a time, the same rows give the same bytes.
    ".gz": lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    ".zst": _zst,
}


def table_format(path: Path, others: Sequence[str] = (), option: str = "--out") -> tuple[str, str]:
    """The endings of a file's name: a format of tables or another, and its compression or ""."""
    endings = [ending.lower() for ending in path.suffixes]
    compression = endings.pop() if endings and endings[-1] in _COMPRESSIONS else ""
    ending = endings[-1] if endings else ""
    if ending in others and not compression:
        return ending, ""
    if ending not in FORMATS or (compression and ending == ".parquet"):
        raise OptionError(
            f"{option} must end in {', '.join((*others, '.parquet'))} or {', '.join(FORMATS[:-1])} "
            f"(also compressed: {', '.join(_COMPRESSIONS)}), not “{path.name}”."
        )
    return ending, compression


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, unless it may be replaced."""
    if path.is_dir():
        raise WriteError(f"{path} is a folder; choose the name of a file.")
    if path.exists() and not overwrite:
        raise WriteError(f"{path} exists; choose another name, or --overwrite to replace it.")


@contextmanager
def write_table(
    path: str | Path,
    *,
    types: Mapping[str, Any] | None = None,
    has_quotes: bool = True,
    escapes_formulas: bool = False,
) -> Iterator[Table]:
    """Yield a table to add rows to; the file appears when the block ends without error.

    `types` are the types of columns, of Python or of pyarrow; those of others are inferred from the
    first rows. Only parquet files store them. Without `has_quotes` a cell of a tsv file is never
    quoted; a tab or newline inside becomes a space. With `escapes_formulas`, a cell of a csv or tsv
    file that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    path = Path(path)
    ending, compression = table_format(path)
    with write_file(path) as scratch:
        if ending == ".parquet":
            with _ParquetTable(types or {}, scratch) as table:
                yield table
            return
        with scratch.open("wb") as file, compressed(file, compression) as body:
            # Excel takes a csv file for UTF-8 if it starts with this mark; pandas skips it.
            text = TextIOWrapper(body, "utf-8-sig" if ending == ".csv" else "utf-8", "replace", "")
            own: Any = _JsonTable if ending == ".jsonl" else _CsvTable
            yield own(types or {}, text, ending == ".tsv", has_quotes, escapes_formulas)
            text.flush()
            text.detach()


@contextmanager
def compressed(file: BinaryIO, compression: str) -> Iterator[Any]:
    """A file to write to, compressed as its ending says."""
    if not compression:
        yield file
        return
    with _COMPRESSIONS[compression](file) as body:
        yield body


class Table:
    """A table that grows: its columns, their types, and the number of its rows."""

    num_formulas = 0  # cells that Excel takes for formulas if it opens a csv file

    def __init__(self, types: Mapping[str, Any]) -> None:
        self.types = dict(types)
        self.new: dict[str, Any] = {}  # columns that are added to those of the rows, with types
        self.new_names: list[str] = []  # their names; other ones if rows have such columns
        self.columns: list[str] = []
        self.num_rows = 0

    def add(self, rows: Sequence[Row], cells: Sequence[Sequence[Any]] = ()) -> None:
        """Write rows, with the cells of the new columns; the first call decides the columns."""
        if not rows:
            return
        is_first = not self.columns
        if is_first:
            given = list(dict.fromkeys(name for row in rows for name in row))
            self.new_names = [free_name(name, given) for name in self.new]
            self.types |= zip(self.new_names, self.new.values(), strict=True)
            self.columns = given + self.new_names
        if self.new:
            self._check_columns(rows, set(self.new_names))
            rows = [
                {**row, **dict(zip(self.new_names, own, strict=True))}
                for row, own in zip(rows, cells, strict=True)
            ]
        if is_first:
            self._begin(rows)
        self._write(rows)
        self.num_rows += len(rows)

    def _begin(self, rows: Sequence[Row]) -> None:
        """Write the header, if the format has one."""

    def _write(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def _check_columns(self, rows: Sequence[Row], new: Collection[str] = ()) -> None:
        """Refuse rows with columns that the first rows do not have, or with one of `new`."""
        known = {*self.columns} - {*new}
        for number, row in enumerate(rows, self.num_rows + 1):
            if row.keys() <= known:
                continue
            name = next(name for name in row if name not in known)
            if not new or name in new:
                raise InputError(
                    f"Row {number:,} has a column {name!r} that the first rows do not have; "
                    "write the table as .jsonl, or give each row all columns."
                )


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, followed by a number if it is taken: prediction (2)."""
    names = chain([name], (f"{name} ({number})" for number in count(2)))
    return next(own for own in names if own not in taken)


class _JsonTable(Table):
    """One object per line."""

    def __init__(self, types: Mapping[str, Any], file: TextIOWrapper, *_: bool) -> None:
        super().__init__(types)
        self._file = file

    def _write(self, rows: Sequence[Row]) -> None:
        self._file.writelines(f"{to_json(row)}\n" for row in rows)


class _CsvTable(Table):
    """Rows of cells as RFC 4180 and spreadsheets have them, quoted where necessary."""

    def __init__(
        self,
        types: Mapping[str, Any],
        file: TextIOWrapper,
        is_tsv: bool,
        has_quotes: bool,
        escapes_formulas: bool,
    ) -> None:
        super().__init__(types)
        self._is_plain, self._escapes = is_tsv and not has_quotes, escapes_formulas
        own: Any = {"delimiter": "\t"} if is_tsv else {}
        if self._is_plain:
            own |= {"quoting": csv.QUOTE_NONE, "quotechar": None, "lineterminator": "\n"}
        self._writer = self._header = csv.writer(file, **own)
        if is_tsv and has_quotes:  # around all names, to show that cells may have quotes, too
            self._header = csv.writer(file, quoting=csv.QUOTE_ALL, **own)

    def _begin(self, rows: Sequence[Row]) -> None:
        self._header.writerow(map(self._cell, self.columns))

    def _write(self, rows: Sequence[Row]) -> None:
        self._check_columns(rows)
        self._writer.writerows([self._cell(row.get(name)) for name in self.columns] for row in rows)

    def _cell(self, value: Any) -> Any:
        if isinstance(value, str):
            is_formula = value.lstrip("\t\r").startswith(_FORMULAS) and not _NUMBER.fullmatch(value)
            self.num_formulas += is_formula
            value = f"'{value}" if is_formula and self._escapes else value
            return _BREAKS.sub(" ", value) if self._is_plain else value
        return to_json(value) if isinstance(value, (list, tuple, dict)) else value


def to_json(value: Any) -> str:
    """A value as JSON on one line; dates and the like as text, NaN as null."""
    plain = _plain(value)
    try:
        return json.dumps(plain, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(plain), ensure_ascii=False, default=str)


def _plain(value: Any) -> Any:
    """Named tuples as objects, which JSON would write as lists."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [*map(_plain, value)] if isinstance(value, (list, tuple)) else value


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [*map(_finite, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- parquet ------------------------------------------------------------------------------


class _ParquetTable(Table):
    """Row groups of typed columns; a column of mixed values is stored as JSON."""

    def __init__(self, types: Mapping[str, Any], path: Path) -> None:
        super().__init__(types)
        try:
            import pyarrow.parquet as pq
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "parquet files need pyarrow: pip install sememe[parquet]."
            ) from error
        self._open, self._path = pq.ParquetWriter, path
        self._file: Any = None
        self._waiting: list[Any] = []  # batches that do not fill a row group yet

    def __enter__(self) -> _ParquetTable:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            if self._file is None:
                self._begin([])
            self._flush()
        if self._file is not None:
            self._file.close()

    def _begin(self, rows: Sequence[Row]) -> None:
        import pyarrow as pa

        columns = {name: [row.get(name) for row in rows] for name in self.columns}
        self._schema = pa.schema(
            (name, arrow_type(self.types.get(name)) or _inferred(values))
            for name, values in columns.items()
        )
        self._file = self._open(self._path, self._schema)

    def _write(self, rows: Sequence[Row]) -> None:
        import pyarrow as pa

        self._check_columns(rows)
        arrays = [self._array(field, rows) for field in self._schema]
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        if sum(batch.nbytes for batch in self._waiting) > _GROUP_SIZE:
            self._flush()

    def _array(self, field: Any, rows: Sequence[Row]) -> Any:
        import pyarrow as pa

        values = [row.get(field.name) for row in rows]
        if pa.types.is_string(field.type):
            values = [v if v is None or isinstance(v, str) else to_json(v) for v in values]
            values = [v and v.encode("utf-8", "replace").decode() for v in values]
        else:
            values = [_plain(value) for value in values]
        try:
            return pa.array(values, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            first, last = self.num_rows + 1, self.num_rows + len(rows)
            raise InputError(
                f"Rows {first:,} to {last:,} have a value in column {field.name!r} that is not "
                f"{field.type}, as in the first rows; write the table as .jsonl or .csv."
            ) from None

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._file.write_table(pa.Table.from_batches(self._waiting))
            self._waiting.clear()


def arrow_type(own: Any) -> Any:
    """The type of pyarrow for a type of Python: str, int, float, a list, a named tuple."""
    import pyarrow as pa

    simple = {
        str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(),
        np.float32: pa.float32(),
    }  # fmt: skip
    if get_origin(own) is list:
        return pa.list_(arrow_type(get_args(own)[0]))
    if isinstance(own, type) and hasattr(own, "_fields"):
        return pa.struct([(name, arrow_type(part)) for name, part in get_type_hints(own).items()])
    return simple.get(own, own)


def _inferred(values: Sequence[Any]) -> Any:
    """The type of some values; text, which holds anything as JSON, for mixed or no values."""
    import pyarrow as pa

    with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
        found = pa.array([_plain(value) for value in values]).type
        if not pa.types.is_null(found):
            return found
    return pa.string()

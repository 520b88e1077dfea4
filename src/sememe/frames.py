"""Texts and rows of data frames: pandas, polars, pyarrow or datasets in, plain Python out.

None of these libraries is imported: a frame is known by its columns, and read in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sememe.errors import InputError, OptionError

_ROWS = 4_096  # converted to Python objects at once


def is_series(data: Any) -> bool:
    """Whether `data` is one column: a Series of pandas or polars, or an array of pyarrow."""
    return hasattr(data, "to_pylist" if hasattr(data, "type") else "to_list") and not is_frame(data)


def is_frame(data: Any) -> bool:
    """Whether `data` has named columns: a DataFrame, or a table of pyarrow or datasets."""
    if isinstance(data, (list, tuple, Mapping)) or not hasattr(data, "__len__"):
        return False
    return hasattr(data, "columns") or hasattr(data, "column_names")


def column_names(frame: Any) -> list[str]:
    """The names of the columns of a frame."""
    return [str(name) for name in _names(frame)]


def _names(frame: Any) -> list[Any]:
    names = list(getattr(frame, "column_names", None) or frame.columns)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"The frame has two columns {twice!r}; rename one of them.")
    return names


def rows_of(frame: Any) -> Iterator[dict[str, Any]]:
    """The rows of a frame by column; what is missing is None."""
    names = _names(frame)
    for part in _parts(frame):
        columns = [_values(part[name]) for name in names]
        for cells in zip(*columns, strict=True):
            yield dict(zip(map(str, names), cells, strict=True))


class SeriesTexts:
    """The texts of a Series, which can be read repeatedly; what is missing is empty."""

    def __init__(self, series: Any) -> None:
        self._series = series

    def __len__(self) -> int:
        return len(self._series)

    def __iter__(self) -> Iterator[Any]:
        for part in _parts(self._series):
            yield from ("" if value is None else value for value in _values(part))


def texts_of(data: Any, columns: Mapping[str, str] | None = None) -> Any:
    """The texts of a Series, or of the text column of a frame, as a list; others as they are."""
    if is_series(data):
        return list(SeriesTexts(data))
    if not is_frame(data):
        if columns:
            raise OptionError(f"columns are for a DataFrame, not for {type(data).__name__}.")
        return data
    name = (columns or {}).get("text", "text")
    by_name = {str(own): own for own in _names(data)}
    if name not in by_name or {*(columns or {})} - {"text"}:
        told = ", ".join(map(repr, by_name))
        raise InputError(
            f"The frame has no column {name!r} for the text; its columns are {told}. "
            'Name one: columns={"text": NAME}.'
        )
    return list(SeriesTexts(data[by_name[name]]))


def _parts(data: Any) -> Iterator[Any]:
    rows = getattr(data, "iloc", data)  # of pandas, whose own index may be anything
    for start in range(0, len(data), _ROWS):
        yield rows[start : start + _ROWS]


def _values(column: Any) -> Iterable[Any]:
    if hasattr(column, "to_pylist"):  # pyarrow
        return column.to_pylist()
    if hasattr(column, "notna"):  # pandas, which has several missing values
        return column.astype(object).where(column.notna(), None)
    return column

"""Rows of texts with labels, scores or choices, from files of any format or from Python lists.

    rows = read_texts("train.tsv", kind="classify")
    rows = read_texts("pairs.csv", kind="pairs", columns={"label": "same"}, on_note=print)

A right choice is kept as its index from 0; files give it so, from 1, by letter, or in full.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sememe.errors import InputError, OptionError
from sememe.examples.docstring_tasks import NAMES, docstring_rows
from sememe.examples.labelled import columns as cl
from sememe.examples.labelled.choices import ChoiceTable, choice_problem, indexed
from sememe.examples.labelled.columns import Columns, Kind
from sememe.examples.labelled.label_options import AUTO, LISTS, NONE
from sememe.examples.labelled.label_sets import choose_separator, labels_in, separator_note
from sememe.examples.labelled.rows import (
    NAME,
    BadRowError,
    Gap,
    LabelledRows,
    Note,
    Row,
    TextRow,
    silent,
    table_of,
)
from sememe.text.headers import is_number
from sememe.text.settings import Errors
from sememe.text.tables import BLANK, FileTable, Record, is_path, open_tables

_TOLD = 5  # bad rows that are named
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,(\d{1,2}|\d{4,})")
# What data sets write where people did not agree on a label.
_NO_GOLD = "-"
# The cells of columns that each say whether a row has the label that they are named after.
_YES = frozenset(("1", "1.0", "true"))
_FLAGS = _YES | {"0", "0.0", "false", ""}


PREFIX = "builtin:"
_SPLITS = ("train", "dev", "test")


def opened(data: Any, kind: str, on_note: Note) -> Any:
    """The built-in rows that `data` names; anything else unchanged."""
    name = data[0] if isinstance(data, (list, tuple)) and len(data) == 1 else data
    if not isinstance(name, str) or not name.startswith(PREFIX):
        return data
    task, _, rest = name.removeprefix(PREFIX).partition(":")
    split, _, limit = rest.partition(":")
    is_known = task in NAMES and (split or "train") in _SPLITS
    if not is_known or (limit and not limit.isdecimal()):
        raise InputError(
            f"There are no rows {name}: there are {', '.join(PREFIX + own for own in NAMES)}, with "
            "an optional suffix :train (the default), :dev or :test, and :1000 to limit the rows."
        )
    if NAMES[task] != kind:
        others = [f"{PREFIX}{own} is" for own, others in NAMES.items() if others == kind]
        advice = f"; {others[0]}" if others else ""
        raise InputError(f"{PREFIX}{task} is for {NAMES[task]}, not for {kind}{advice}.")
    on_note(f"{name}: made from the docstrings of the installed packages.")
    return docstring_rows(task, split or "train", limit=int(limit) if limit else None)  # type: ignore[arg-type]


def sorted_labels(labels: Iterable[str]) -> list[str]:
    """The distinct labels: by value if all are integers, otherwise by their characters."""
    found = set(labels)
    if all(label.lstrip("-").isdecimal() and label.isascii() for label in found):
        return sorted(found, key=lambda label: (int(label), label))
    return sorted(found)


class Sieve:
    """Refuses bad rows, or counts them; one sieve serves all parts of the data."""

    def __init__(self, skip_bad: bool, on_note: Note) -> None:
        self._skip_bad, self.say = skip_bad, on_note
        self.num_before = 0  # rows of earlier parts that passed
        self.num_kept = 0  # rows of this part so far that passed
        self._gaps: list[Gap] = []  # the others
        self._num_skipped = 0
        self._skipped: list[str] = []

    def refuse(self, where: str, problem: str, cells: Mapping[str, Any] | None) -> None:
        """Raise an error for a bad row, or count it."""
        if not self._skip_bad and problem != BLANK:
            raise BadRowError(f"{where}: {problem}")
        self._gaps.append(Gap(self.num_kept, cells or {}))
        self._num_skipped += 1
        if len(self._skipped) < _TOLD:
            self._skipped.append(f"{where}: {problem}")

    def rows_of(self, rows: list[Row], columns: Mapping[str, str]) -> LabelledRows[Row]:
        """The accepted rows of a part with their columns and gaps; the next part begins."""
        found = LabelledRows(rows)
        found.columns, found.gaps = dict(columns), self._gaps
        self.num_before, self.num_kept, self._gaps = self.num_before + len(rows), 0, []
        return found

    def finish(self) -> None:
        """Note how many rows were left out of all parts; none at all is an error."""
        num, told = self._num_skipped, "; ".join(self._skipped)
        if not self.num_before:
            reason = f"; all {num:,} are bad ({self._skipped[0]})" if num else ""
            raise InputError(f"The labelled data holds no rows{reason}.")
        if num:
            told += f"; and {num - _TOLD:,} more" if num > _TOLD else ""
            self.say(f"{num:,} {'row was' if num == 1 else 'rows were'} left out: {told}.")


def read_texts(
    data: Any,
    *,
    kind: Kind,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    earlier: Mapping[str, str] | None = None,
    labels_known: Sequence[str] | None = None,
    label_separator: str = NONE,
    labelled: bool = True,
    where: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
    errors: Errors = "strict",
    on_note: Note = silent,
    sieve: Sieve | None = None,
) -> LabelledRows[TextRow]:
    """Read the rows of paths (files, folders, patterns), of an iterable, or a part of a table.

    `columns` says which column is the text, second, label, score, choices or id, by name or by
    number from 1; the others are those of `earlier` rows if the file has them, or are detected by
    their names and cells. `on_note` is called with the choice; an unclear table is an error.
    Several labels in a cell are separated as `label_separator` says; `auto` detects whether there
    are several and how, `none` reads one. Without `labelled` a row may lack its label or score.
    `where` selects the rows whose columns have the given values. A bad row is an error that names
    file and line, unless `skip_bad` counts it. Parts of a table, from `open_texts`, share a
    `sieve`, which the caller finishes.
    """
    if kind not in cl.KINDS:
        raise OptionError(f"kind must be one of {', '.join(cl.KINDS)}, not {kind!r}.")
    own = sieve or Sieve(skip_bad, on_note)
    reader = _Reader(kind, columns, earlier, labels_known, label_separator, labelled, where, own)
    for table in open_texts(data, kind, columns, earlier, encoding, errors, on_note):
        reader.read(table)
    reader.finish()
    rows = own.rows_of(reader.rows, reader.chosen)
    rows.separator = reader.separator
    if sieve is None:
        own.finish()
    return rows


class _Reader:
    """Turns the records of one table after the other into rows."""

    def __init__(
        self,
        kind: Kind,
        columns: Mapping[str, str | Sequence[str]] | None,
        earlier: Mapping[str, str] | None,
        labels_known: Sequence[str] | None,
        label_separator: str,
        labelled: bool,
        where: Mapping[str, str] | None,
        sieve: Sieve,
    ) -> None:
        self.kind, self.named, self.labelled, self.where = kind, columns, labelled, where or {}
        self.earlier = earlier
        self.known = None if labels_known is None else frozenset(labels_known)
        has_labels = labelled and kind in ("classify", "pairs")
        self.asked_separator = label_separator if has_labels else NONE
        self.separator = ""  # of several labels in a cell; "" for one label
        self.sieve = sieve
        self.rows: list[TextRow] = []
        self.chosen: dict[str, str] = {}
        self._num_without_gold = 0
        self._has_flags = False  # whether each column of the label is a label of its own
        self._tables: list[ChoiceTable] = []  # of choices, until all are read
        self._problems: dict[str, str] = {}  # of records, by their places

    def read(self, table: FileTable) -> None:
        """Add the rows of one table."""
        given: list[Any] = list(table.records)
        if given and all(isinstance(record, TextRow) for record in given):
            self.separator = LISTS if any(row.labels is not None for row in given) else ""
            self._add(given)
            return
        records = self._selected(table, given)
        if not records:
            raise InputError(f"{table.name} holds no rows.")
        if table.roles is None:
            table.roles = cl.choose_columns(
                table, records, self.kind, self.named, self._needed(), self.earlier,
                is_sure=self.known is not None or table.name == NAME,
            )  # fmt: skip
            self.sieve.say(cl.described(table, records, table.roles))
        columns = table.roles
        self.chosen = self.chosen or {role: "+".join(own) for role, own in columns.items()}
        self._num_without_gold = 0
        self._choose_separator(records, columns.get("label", ()))
        rows = [row for record in records for row in self._rows(record, columns)]
        if self.kind == "choose":
            self._tables.append(ChoiceTable(table.name, rows, columns.get("label", ())))
        else:
            self._add(rows)
        if self.separator and self.asked_separator == AUTO:
            label_sets = [row.labels or () for row in rows]
            self.sieve.say(separator_note(table.name, self.separator, label_sets))
        if self._num_without_gold and self.labelled:
            self.sieve.say(
                f"{table.name}: {self._num_without_gold:,} rows have the label “-” (no agreement); "
                "they are skipped."
            )

    def _choose_separator(self, records: list[Record], columns: tuple[str, ...]) -> None:
        """Find out how several labels are separated in the cells of a table."""
        if self.asked_separator == NONE:
            return
        self._has_flags = len(columns) > 1 and all(
            cl.as_text(record.cells.get(column)).lower() in _FLAGS
            for record in records
            for column in columns
        )
        cells = [self._labels(record, columns) for record in records if not record.problem]
        found = choose_separator(cells, self.asked_separator, self.known or ())
        self.separator = found or self.separator

    def _labels(self, record: Record, columns: tuple[str, ...]) -> Any:
        """The labels of a record: its cell, or the names of the columns that say yes."""
        if not self._has_flags:
            return _joined(record, columns, "label")
        return [
            column for column in columns if cl.as_text(record.cells.get(column)).lower() in _YES
        ]

    def finish(self) -> None:
        """Add the rows that had to wait until all tables were read."""
        if self._tables:
            self._add(indexed(self._tables, self.sieve.say))

    def _needed(self) -> list[str]:
        needed = {"pairs": ["text", "second"], "choose": ["text", "choices"]}
        answer = "score" if self.kind == "regress" else "label"
        return needed.get(self.kind, ["text"]) + ([answer] if self.labelled else [])

    def _selected(self, table: FileTable, records: list[Record]) -> list[Record]:
        if missing := [column for column in self.where if column not in table.columns]:
            raise InputError(f"{table.name} has no column {missing[0]!r} to choose rows by.")
        return [
            record
            for record in records
            if all(
                cl.as_text(record.cells.get(name)) == value for name, value in self.where.items()
            )
        ]

    def _rows(self, record: Record, columns: Columns) -> Iterator[TextRow]:
        # Spreadsheets leave rows of empty cells at their ends.
        problem = record.problem or ("" if any(map(cl.as_text, record.cells.values())) else BLANK)
        if problem:
            self._problems[record.where] = problem
            yield TextRow("", source=record.where, cells=record.cells)
            return
        cells = {role: _joined(record, own, role) for role, own in columns.items()}
        if self._has_flags:
            cells["label"] = self._labels(record, columns["label"])
        yield from (self._row(own, record, part) for part, own in _questions(cells))

    def _row(self, cells: Mapping[str, Any], record: Record, part: str) -> TextRow:
        label: str | None = cl.as_text(cells.get("label"))
        if self.kind == "choose" and not self.labelled:
            label = None  # it may be written in any way
        labels = labels_in(cells.get("label"), self.separator) if self.separator else None
        if labels is not None:
            label = None
        elif isinstance(cells.get("label"), list) and self.kind in ("classify", "pairs"):
            own = labels_in(cells["label"], LISTS)
            label = own[0] if len(own) == 1 else None
            if own and label is None and self.labelled:
                self._problems[record.where] = f"{len(own)} labels, where one is needed"
        if self.kind == "pairs" and label == _NO_GOLD:
            self._num_without_gold += 1
            label = None if not self.labelled else _NO_GOLD
        return TextRow(
            text=cl.as_text(cells.get("text")),
            second=cl.as_text(cells["second"]) if "second" in cells else None,
            label=label or None,
            labels=labels,
            score=_number(cells.get("score")),
            choices=_several(cells["choices"]) if "choices" in cells else None,
            source=record.where,
            id=cl.as_text(cells.get("id")) + part,
            cells=None if self.labelled else record.cells,
        )

    def _add(self, rows: Iterable[TextRow]) -> None:
        for row in rows:
            if self.kind == "pairs" and row.label == _NO_GOLD:
                continue
            if problem := self._problem(row):
                self.sieve.refuse(row.source, problem, row.cells)
            else:
                self.rows.append(row)
                self.sieve.num_kept += 1

    def _problem(self, row: TextRow) -> str:
        if problem := self._problems.get(row.source):
            return problem
        if not row.text.strip():
            return "the text is empty" if self.labelled else BLANK
        if self.kind == "pairs" and not (row.second or "").strip():
            return "the second text is empty" if self.labelled else BLANK
        if self.kind == "choose" and (row.choices is None or len(row.choices) < 2):
            return "fewer than two choices"
        if self.kind == "choose" and not all(choice.strip() for choice in row.choices or ()):
            return "a choice is empty"
        if self.kind == "regress":
            return self._score_problem(row)
        if row.labels is not None:
            unknown = [label for label in row.labels if label not in (self.known or row.labels)]
            return _unknown(unknown[0], self.known or ()) if unknown else ""
        if row.label is None:
            return "the label is empty" if self.labelled else ""
        if self.kind == "choose":
            return choice_problem(row)
        if self.known is not None and row.label not in self.known:
            return _unknown(row.label, self.known)
        return ""

    def _score_problem(self, row: TextRow) -> str:
        if not self.labelled or (row.score is not None and math.isfinite(row.score)):
            return ""
        return (
            "the score is empty" if row.score is None else "the score is not a number such as 3.5"
        )


def _unknown(label: str, known: Iterable[str]) -> str:
    names = sorted(known)
    more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    return f"the label {label!r} is not among those known: {', '.join(names[:10])}{more}"


# ---- cells --------------------------------------------------------------------------------


def _joined(record: Record, columns: tuple[str, ...], role: str) -> Any:
    cells = [record.cells.get(column) for column in columns]
    if len(cells) == 1:
        return cells[0]
    return cells if role == "choices" else " ".join(filter(None, map(cl.as_text, cells)))


def _questions(cells: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row; or one per question, if a record holds a passage with several of them."""
    choices = cells.get("choices")
    is_nested = isinstance(choices, (list, tuple)) and any(
        isinstance(choice, (list, tuple)) for choice in choices
    )
    if not is_nested:
        yield "", cells
        return
    assert choices is not None
    for index, own in enumerate(choices):
        parts = {"choices": own}
        for role in ("second", "label"):
            if isinstance(cells.get(role), (list, tuple)):
                values = cells[role]
                parts[role] = values[index] if index < len(values) else None
        yield f"-{index}", cells | parts


def _number(cell: Any) -> float | None:
    text = cl.as_text(cell)
    if not text:
        return None
    if _DECIMAL_COMMA.fullmatch(text):  # 1,234 may be a thousand or one
        text = text.replace(",", ".")
    return float(text) if is_number(text) else math.nan


def _several(cell: Any) -> tuple[str, ...]:
    if isinstance(cell, Mapping):  # {"text": [...], "label": [...]}, as some files have it
        cell = cell.get("text") or list(cell.values())
    return tuple(map(cl.as_text, cell)) if isinstance(cell, (list, tuple)) else ()


# ---- where rows come from -----------------------------------------------------------------


def open_texts(
    data: Any,
    kind: Kind,
    columns: Mapping[str, Any] | None,
    earlier: Mapping[str, str] | None,
    encoding: str = "utf-8",
    errors: Errors = "strict",
    on_note: Note = silent,
) -> Iterable[FileTable]:
    """The tables of data in any form, each to be read entirely or in parts."""
    if isinstance(data, FileTable):
        return [data]
    data = opened(data, kind, on_note)
    if is_path(data):
        return open_tables(
            data,
            encoding=encoding,
            errors=errors,
            is_header=lambda first, others: cl.is_header(first, others, columns, earlier),
        )
    return [table_of(data, kind)]

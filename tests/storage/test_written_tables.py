"""Tables that are written row by row, read back by pandas, polars and Python's own csv module."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from sememe.errors import InputError, OptionError, WriteError
from sememe.storage.tables import check_free, write_table
from sememe.text.settings import TextSettings
from sememe.text.sources import Source
from sememe.text.tables import open_table

pd = pytest.importorskip("pandas")

TEXTS = (
    'says "hi"', "two\nlines", "a\r\nb", "a\rb", "comma, tab\t.", "=1+1", "@you", "-5", "- item",
    "中文，逗号", "", " blank ", '"', "'", "NA", "nul\0", "\ufeffmark", "emoji 🙂",
)  # fmt: skip
ROWS = [{"row": n, "text": text, "code": f"{n:03}"} for n, text in enumerate(TEXTS, 1)]


def _write(path: Path, rows: list[dict], *, at_once: int = 5, **options) -> Path:
    with write_table(path, **options) as table:
        for start in range(0, len(rows), at_once):
            table.add(rows[start : start + at_once])
    assert table.num_rows == len(rows)
    return path


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.gz", "a.tsv.bz2", "a.csv.xz", "a.csv.zst"]
)
def test_pandas_reads_cells_as_they_are(tmp_path, name):
    separator = "," if ".csv" in name else "\t"
    path = _write(tmp_path / name, ROWS)
    back = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)
    assert back.to_dict("records") == [row | {"row": str(row["row"])} for row in ROWS]


def test_other_readers_of_csv(tmp_path):
    path = _write(tmp_path / "a.csv", ROWS)
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == list(TEXTS)
    polars = pytest.importorskip("polars")
    back = polars.read_csv(path, infer_schema=False)
    assert [text or "" for text in back["text"]] == list(TEXTS) and back.columns[0] == "row"


def test_excel_is_told_the_encoding_and_formulas_are_counted(tmp_path):
    with write_table(tmp_path / "a.csv") as table:
        table.add(ROWS)
    assert (tmp_path / "a.csv").read_bytes().startswith(b"\xef\xbb\xbfrow,text,code\r\n")
    assert table.num_formulas == 3  # -5 is a number


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_jsonl(tmp_path, name):
    rows = [*ROWS, {"text": None, "more": [1, {"b": float("nan")}], "day": date(2024, 2, 3)}]
    back = pd.read_json(_write(tmp_path / name, rows), lines=True, dtype=False)
    assert back["text"][:18].tolist() == list(TEXTS) and back["day"][18] == "2024-02-03"
    assert back["more"][18] == [1, {"b": None}]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    first, second = (
        _write(tmp_path / name, ROWS).read_bytes() for name in ("a.csv.gz", "b.csv.gz")
    )
    assert first == second


def test_parquet_has_types(tmp_path):
    pytest.importorskip("pyarrow")
    rows = [row | {"p": row["row"] / 7, "tags": ["a", "乙"], "none": None} for row in ROWS]
    path = _write(tmp_path / "a.parquet", rows, types={"none": float})
    back = pd.read_parquet(path)
    assert back["text"].tolist() == list(TEXTS) and back["none"].dtype == np.float64
    assert back["p"].tolist() == [row["p"] for row in rows] and list(back["tags"][3]) == ["a", "乙"]
    mixed = [{"a": 1}, {"a": "x"}, {"a": None}, {"a": [2]}]
    back = pd.read_parquet(_write(tmp_path / "b.parquet", mixed))
    assert [value if isinstance(value, str) else None for value in back["a"]] == [
        "1", "x", None, "[2]",
    ]  # fmt: skip


def test_later_rows_that_do_not_fit(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match=r"column 'a'.*int64"):
        _write(tmp_path / "a.parquet", [{"a": 1}, {"a": "x"}], at_once=1)
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(InputError, match="Row 2 has a column 'b'"):
            _write(tmp_path / name, [{"a": "1"}, {"b": "2"}], at_once=1)
    assert list(tmp_path.iterdir()) == []
    path = _write(tmp_path / "a.jsonl", [{"a": "1"}, {"b": "2"}], at_once=1)
    assert [json.loads(line) for line in path.open()] == [{"a": "1"}, {"b": "2"}]


def test_names_that_are_refused(tmp_path):
    for name in ("a.xlsx", "a", "a.gz", "a.parquet.gz"):
        with pytest.raises(OptionError, match=name), write_table(tmp_path / name):
            pass
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(WriteError, match="--overwrite"):
        check_free(tmp_path / "there.csv", overwrite=False)
    with pytest.raises(WriteError, match="folder"):
        check_free(tmp_path, overwrite=True)
    with pytest.raises(KeyboardInterrupt), write_table(tmp_path / "there.csv") as table:
        table.add(ROWS)
        raise KeyboardInterrupt
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


# ---- sememe reads what it writes ---------------------------------------------------------------

_ODD = (
    "", " ", '"', '""', "\t", "\n", "\r\n", "\r", "=1+1", "+x", "@you", "-5", "- a", "a,b;c|d",
    "甲，乙", "两\n行", '"a"', 'say "hi"', "\\n", "'", "# x", "nul\0", "\x0b", "\x85", "🙂",
)  # fmt: skip
_CELL = st.lists(st.one_of(st.sampled_from(_ODD), st.text(max_size=4)), max_size=4).map("".join)
_NAME = _CELL.map(str.strip).filter(lambda name: name and name[0] != "\ufeff")


@st.composite
def _tables(draw: st.DrawFn) -> list[dict[str, str]]:
    names = draw(
        st.lists(_NAME, min_size=1, max_size=4, unique=True).map(lambda own: ["row", *own])
    )
    assume(len({*names}) == len(names))
    rows = draw(st.lists(st.lists(_CELL, min_size=len(names), max_size=len(names)), min_size=1))
    return [dict(zip(names, row, strict=True)) for row in rows if row != names]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.tsv.gz"])
@settings(deadline=None, max_examples=60)
@given(rows=_tables())
def test_every_cell_comes_back(tmp_path_factory, name, rows):
    assume(rows)
    path = _write(tmp_path_factory.mktemp("tables") / name, rows)
    table = open_table(Source(path), TextSettings(), lambda *_: True)
    assert table.columns == [*rows[0]]
    records = [*table.records]
    assert [dict(record.cells) for record in records] == rows
    assert not any(record.problem for record in records)

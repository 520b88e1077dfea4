"""One's own rows: their columns as colors, their vectors, and searches."""

from __future__ import annotations

import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np
import pytest

from sememe.errors import InputError, OptionError
from sememe.explore.rows import OwnRows, nearest_rows

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Thirty rows: a topic, a price, a hostile column, and a constant one."""
    lines = ["text,topic,price,<b>mark</b>,same"]
    for number in range(30):
        mark = HOSTILE if number % 2 else "plain"
        price = "" if number == 3 else str(number / 4)
        lines.append(f"row {number} about Things,{'ab'[number % 3 == 0]},{price},{mark},x")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_columns_that_can_color_points(table: Path) -> None:
    rows = OwnRows(str(table))
    assert len(rows) == 30 and rows.rows[3].text == "row 3 about Things"
    # Categories first; the constant column tells nothing.
    assert rows.columns == ["topic", "<b>mark</b>", "row", "price"]


def test_categories_and_scales(table: Path) -> None:
    rows = OwnRows(str(table))
    told, found = rows.colors("topic")
    assert told == {"names": ["a", "b"], "has_others": False}
    assert found["category"].tolist() == [int(number % 3 == 0) for number in range(30)]
    assert rows.colors("<b>mark</b>")[0]["names"] == ["plain", HOSTILE]
    told, found = rows.colors("price")
    assert told == {"low": 0.0, "high": 29 / 4}
    wanted = [0 if number == 3 else number / 4 for number in range(30)]
    assert found["value"].tolist() == wanted
    with pytest.raises(OptionError, match="same"):
        rows.colors("same")


def test_rare_categories_share_the_last_color(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    kinds = [chr(97 + number % 12) for number in range(60)] + [""]
    path.write_text("text,kind\n" + "".join(f"row {i},{k}\n" for i, k in enumerate(kinds)), "utf-8")
    told, found = OwnRows(str(path)).colors("kind")
    assert len(told["names"]) == 9 and told["has_others"]
    assert found["category"][9:12].tolist() == [9, 9, 9] and found["category"][-1] == 9


def test_rows_with_a_text(table: Path) -> None:
    rows = OwnRows(str(table))
    assert rows.containing("ABOUT things", 5) == [0, 1, 2, 3, 4]
    assert rows.containing("row 17", 5) == [17]
    assert rows.containing("nowhere", 5) == []
    assert rows.described(1)["cells"]["<b>mark</b>"] == HOSTILE


def test_nearest_rows_are_ordered_by_cosine() -> None:
    draw = np.random.default_rng(1)
    units = draw.standard_normal((20, 8)).astype(np.float32)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    found = nearest_rows(units, 3 * units[7], 4)
    assert found[0][0] == 7 and found[0][1] == pytest.approx(1, abs=1e-6)
    cosines = units @ units[7]
    assert [index for index, _ in found] == np.argsort(-cosines)[:4].tolist()


def test_vectors_belong_to_the_model_that_made_them(table: Path) -> None:
    """A model loaded anew under the same name has others, even at the same address in memory."""

    class Model:
        def embed(self, texts: list[str]) -> Any: ...

    rows = OwnRows(str(table))
    own = SimpleNamespace(name="model", model=Model())
    units = np.ones((30, 2), np.float32)
    rows._units.put(ref(own.model), units, units.nbytes)
    assert rows.units(own).shape == (30, 2)
    own.model = Model()
    gc.collect()
    with pytest.raises(InputError, match="not embedded"):
        rows.units(own)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("few.csv", "text\none\ntwo\n", "too few"),
        ("empty.csv", "", "empty"),
        ("bad.csv", b"text\n\xff\xfe\xfa\n", "UTF-8"),
    ],
)
def test_unclear_files_are_refused_at_the_start(
    tmp_path: Path, name: str, content: str | bytes, told: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises((InputError, OptionError), match=told):
        OwnRows(str(path))
    with pytest.raises(InputError):
        OwnRows(str(tmp_path / "missing.csv"))

"""Near-duplicates: groups by vectors and by words, equal to a plain program; tables; bad input."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from sememe import duplicates
from sememe.contract import Model
from sememe.errors import InputError, OptionError, WriteError
from sememe.search import duplicates as module, spool
from sememe.text.settings import TextSettings

LONG = "the quick brown fox jumps over the lazy dog and runs into the dark green forest"
CHINESE = "我们在北京的图书馆里读了很多关于自然语言处理的书籍和论文"


class Given(Model):
    """A model that gives each text the vector that it spells."""

    kind = "vectors"
    text = TextSettings()

    def embed(self, texts, **_):
        return np.array([json.loads(text) for text in texts], np.float32)


def plain_groups(rows_ND: np.ndarray, threshold: float) -> list[int]:
    """For each row the first row of its group, one after the other."""
    units = rows_ND / np.maximum(np.linalg.norm(rows_ND, axis=1, keepdims=True), 1e-12)
    firsts, found = [], []
    for row, unit in enumerate(units):
        cosines = [float(units[first] @ unit) for first in firsts]
        if cosines and max(cosines) >= threshold:
            found.append(firsts[int(np.argmax(cosines))])
        else:
            firsts.append(row)
            found.append(row)
    return found


@pytest.mark.parametrize("at_once", [1, 7, 64, 1_024])
def test_groups_by_vectors_are_exact_whatever_the_blocks(monkeypatch, at_once):
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(12, 5))
    rows_ND = centers[rng.integers(12, size=150)] + rng.normal(scale=0.25, size=(150, 5))
    monkeypatch.setattr(spool, "AT_ONCE", at_once)
    monkeypatch.setattr(module, "_FIRSTS_AT_ONCE", 5)
    report = duplicates([json.dumps(row.tolist()) for row in rows_ND], Given(), threshold=0.97)
    assert report.firsts.tolist() == plain_groups(rows_ND, 0.97)
    assert report.measure == "cosine" and 0 < len(report.groups) < report.num_duplicates
    assert all(group[0] == min(group) for group in report.groups)


def test_equal_vectors_reach_a_threshold_of_1_and_zeros_reach_none():
    texts = ["[0.1, 0.7, 0.3]", "[0, 0, 0]", "[0.1, 0.7, 0.3]", "[0, 0, 0]", "[0.1, 0.7, 0.4]"]
    report = duplicates(texts, Given(), threshold=1.0)
    assert report.groups == [[0, 2]] and report.num_unknown == 2
    assert report.similarities.tolist() == pytest.approx([1, 1, 1, 1, 1])


def test_without_a_model_words_are_compared():
    texts = [LONG, "something else altogether", LONG.upper() + "!", CHINESE, CHINESE + "。", LONG]
    report = duplicates(texts)
    assert report.groups == [[0, 2, 5], [3, 4]] and report.threshold == 0.8
    assert "3 of 6 rows" in str(report)
    told = report.to_dict()
    assert told["num_groups"] == 2 and told["groups"][1][0] == {"id": "3", "similarity": 1.0}
    assert duplicates(["one text", "another text"]).groups == []


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_the_table_has_groups_one_after_the_other_with_all_columns(tmp_path, ending):
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [["name", "text"], ["a", LONG], ["b", CHINESE], ["c", "alone"], ["d", LONG + "."],
             ["e", CHINESE]]
        )  # fmt: skip
    out = tmp_path / f"groups.{ending}"
    report = duplicates(path, out=out)
    if ending == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = parquet.read_table(out).to_pylist()
    elif ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    else:
        with out.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t" if ending == "tsv" else ","))
    assert [row["name"] for row in rows] == ["a", "d", "b", "e"]
    assert [str(row["group"]) for row in rows] == ["1", "1", "2", "2"]
    assert rows[0]["similarity"] in (None, "") and float(rows[1]["similarity"]) == 1
    assert rows[2]["text"] == CHINESE and report.out == str(out)
    with pytest.raises(WriteError, match="exists"):
        duplicates(path, out=out)


def test_rows_without_a_text_and_bad_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"text": LONG}, {"text": ""}, {"text": 5}, {"text": LONG}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(InputError, match="line 3"):
        duplicates(path)
    assert duplicates(path, skip_bad=True).groups == [[0, 1]]
    with pytest.raises(InputError, match="no rows with a text"):
        duplicates(["", " "])


def test_what_is_refused(tmp_path):
    with pytest.raises(OptionError, match="threshold"):
        duplicates([LONG], threshold=2)
    with pytest.raises(OptionError, match="end in"):
        duplicates([LONG], out=tmp_path / "out.doc")
    with pytest.raises(OptionError, match="no option"):
        duplicates([LONG], size=2)

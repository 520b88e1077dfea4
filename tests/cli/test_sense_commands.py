"""`sememe evaluate senses`: tables, JSON, several models, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from untrained import write_bert

from sememe.vectors import WordVectors

ROWS = """bank\triver\tWe sat on the [[bank]] of a stream
bank\triver\tThe [[bank]] was green near the stream
bank\tmoney\tThe [[bank]] gave us money
bank\tmoney\tPut money into a [[bank]]
"""


@pytest.fixture
def files(tmp_path):
    rows = np.array([[1, 1], [1, 0], [0, 1]], np.float32)
    for name in ("first", "second"):
        WordVectors(["bank", "stream", "money"], rows).save(tmp_path / name)
    (tmp_path / "banks.tsv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def test_a_table_of_two_models(sememe, files):
    ran = sememe("evaluate", "senses", "first", "second", "--data", "banks.tsv", "--layers", "last")
    assert "banks: 1 words, 4 sentences" in ran.out
    assert "first: other words, mean" in ran.out
    assert "second: word, one vector for all senses" in ran.out


def test_the_built_in_sets_as_json(sememe, files):
    (found,) = sememe("evaluate", "senses", "first", "--json").json["models"]
    assert (found["model"], found["kind"], found["seed"]) == ("first", "vectors", 1)
    sets = {score["set"] for score in found["scores"]}
    assert sets == {"english", "chinese", "python", "docstrings"}
    words = [score for score in found["scores"] if score["role"] == "word"]
    assert words[0]["nearest"] == pytest.approx(words[0]["chance"])  # bank alone is known
    assert (words[0]["num_words_asked"], words[0]["num_asked"]) == (1, 12)
    assert words[1]["nearest"] is None and words[1]["coverage"] == 0


@pytest.fixture
def bert(files):
    pytest.importorskip("torch")
    write_bert(files / "bert", [ROWS], vocab_size=200, max_length=32, width=32)


def test_a_network_layer_by_layer(sememe, bert):
    ran = sememe("evaluate", "senses", "bert", "first", "--data", "banks.tsv", "-q")
    assert "bert: layer 0" in ran.out and "bert: layer 2 (last)" in ran.out
    assert "against “other words, mean”" in ran.out
    ran = sememe("evaluate", "senses", "bert", "--data", "banks.tsv", "--layers", "9", fails=True)
    assert ran.code == 2 and "between 0 and 2" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing",), "no model at missing"),
        (("first", "--data", "none.tsv"), "none.tsv"),
        (("first", "--data", "bad.tsv"), "bad.tsv:5: "),
    ],
)
def test_what_is_refused(sememe, files, arguments, message):
    (files / "bad.tsv").write_text(ROWS + "bank\tmoney\n", encoding="utf-8")
    ran = sememe("evaluate", "senses", *arguments, fails=True)
    assert ran.code == 2 and message in " ".join(ran.err.split())
    assert "Traceback" not in ran.err

"""`sememe duplicates` and `sememe topics`: tables, JSON, standard input, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sememe.vectors import WordVectors

ROWS = [
    "the cat and the dog",
    "a car on the road",
    "The dog and the cat",
    "car and road",
    "nothing",
]


@pytest.fixture
def files(tmp_path):
    words = ["cat", "dog", "car", "road"]
    rows = np.array([[1, 0.1], [0.9, 0.2], [0.1, 1], [0.2, 0.9]], np.float32)
    WordVectors(words, rows).save(tmp_path / "vectors")
    (tmp_path / "texts.txt").write_text("\n".join(ROWS), encoding="utf-8")
    return tmp_path


def test_duplicates_by_vectors_and_by_words(sememe, files):
    ran = sememe("duplicates", "texts.txt", "--model", "vectors", "--threshold", "0.99")
    assert "2 of 5 rows repeat an earlier row, in 2 groups (cosine of 0.99 or more)" in ran.out
    assert "texts.txt:3" in ran.out and "1 rows have no word" in ran.err
    ran = sememe("duplicates", "texts.txt", "--out", "groups.csv")
    assert "0 of 5 rows" in ran.out and "0.8" in ran.err
    told = sememe("duplicates", "-", "--json", stdin="one text\nanother text\none text\n").json
    assert told["num_groups"] == 1 and [one["similarity"] for one in told["groups"][0]] == [1, 1]


def test_duplicates_are_written_with_the_columns_of_the_file(sememe, files):
    rows = [{"body": text, "year": 2000 + number} for number, text in enumerate(ROWS)]
    (files / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    arguments = ("duplicates", "rows.jsonl", "--column", "text=body", "--model", "vectors")
    ran = sememe(*arguments, "--threshold", "0.99", "-o", "groups.jsonl")
    assert "Wrote 4 rows to groups.jsonl" in ran.out
    lines = (files / "groups.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["year"] for line in lines] == [2000, 2002, 2001, 2003]
    ran = sememe(*arguments, "-o", "groups.jsonl", fails=True)
    assert ran.code == 2 and "exists" in ran.err


def test_columns_of_the_file_do_not_replace_what_was_found(sememe, files):
    rows = [{"body": text, "text": "t", "topic": "old", "group": "old"} for text in ROWS]
    (files / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    arguments = ("rows.jsonl", "--column", "text=body", "--model", "vectors")
    for command, name, other in (("duplicates", "group", "topic"), ("topics", "topic", "group")):
        ran = sememe(command, *arguments, "-o", f"{name}.jsonl")
        assert f"'{name} (2)'" in " ".join(ran.err.split())
        lines = (files / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        first = json.loads(lines[0])
        assert first[name] in (1, 2) and first["text"] == ROWS[0] and first["text (2)"] == "t"
        assert first[f"{name} (2)"] == first[other] == "old"


def test_topics_with_their_words(sememe, files):
    ran = sememe(
        "topics", "texts.txt", "--model", "vectors", "--num-topics", "2", "--out", "topics.tsv",
        "--picture", "map.png",
    )  # fmt: skip
    assert "cat, dog" in ran.out and "car, road" in ran.out and "1 rows have no topic" in ran.out
    assert (files / "map.png").stat().st_size > 1_000
    assert (files / "topics.tsv").read_text(encoding="utf-8").count("\n") == 6
    told = sememe("topics", "texts.txt", "--model", "vectors", "--num-topics", "2", "--json").json
    assert [topic["num_rows"] for topic in told["topics"]] == [2, 2] and told["num_left_out"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("duplicates", "none.txt"), "none.txt"),
        (("duplicates", "texts.txt", "--model", "none"), "no model at none"),
        (("duplicates", "texts.txt", "--threshold", "2"), "threshold"),
        (("duplicates", "texts.txt", "--threshold", "0.05"), "threshold"),
        (("duplicates", "texts.txt", "--language", "zh"), "--language"),
        (("duplicates", "texts.txt", "--out", "x.doc"), "x.doc"),
        (("topics", "texts.txt"), "--model must name"),
        (("topics", "texts.txt", "--model", "vectors", "--num-topics", "50"), "more than the"),
        (("topics", "texts.txt", "--model", "vectors", "--picture", "x.gif"), "x.gif"),
    ],
)
def test_what_is_refused(sememe, files, arguments, message):
    ran = sememe(*arguments, fails=True)
    assert ran.code == 2 and message in " ".join(ran.err.split())
    assert "Traceback" not in ran.err

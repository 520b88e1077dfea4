"""The models that count, as commands."""

import json
from pathlib import Path

import pytest

import sememe as package

LECTURE = "I like deep learning .\nI like NLP .\nI enjoy flying .\n"
PLAIN = (
    "--language", "none", "--keep-case", "--min-count", 1, "--window", 1, "--weighting", "flat",
    "--transform", "counts", "--dim", 0,
)  # fmt: skip


def test_the_table_of_the_lecture(sememe, tmp_path):
    (tmp_path / "three.txt").write_text(LECTURE)
    lines = sememe("train", "counts", "three.txt", *PLAIN, "--table", "--quiet").out.splitlines()
    assert lines[0].split() == [".", "I", "like", "NLP", "deep", "enjoy", "flying", "learning"]
    assert lines[2].split() == ["I", "0", "0", "2", "0", "0", "1", "0", "0"]
    assert len(lines) == 9 and not list(tmp_path.glob("*/"))

    told = sememe("train", "counts", "three.txt", *PLAIN, "--table", "--json", "--quiet").json
    assert told["words"] == lines[0].split() and told["values"][1][2] == 2

    out = sememe("train", "counts", "three.txt", *PLAIN, "--table", "--out", "model").out
    assert out.startswith(lines[0]) and "Saved 8 words × 8 to model" in out
    assert sememe("similarity", "model", "like", "enjoy").out.strip() == "0.5774"
    assert sememe("similarity", "model", "deep", "NLP").out.strip() == "0.5000"


def test_sentences_of_a_running_text_are_apart(sememe, tmp_path):
    """Punctuation is no word here, but it ends a sentence."""
    (tmp_path / "three.txt").write_text("I like deep learning. I like NLP. I enjoy flying.\n")
    options = ["--keep-case", *PLAIN[3:], "--table", "--json", "--quiet"]
    told = sememe("train", "counts", "three.txt", *options).json
    cells = {
        (row, column): value
        for row, line in zip(told["words"], told["values"], strict=True)
        for column, value in zip(told["words"], line, strict=True)
    }
    assert cells["I", "like"] == 2 and cells["deep", "learning"] == 1
    assert cells["learning", "I"] == 0 and cells["NLP", "I"] == 0


def test_counts_of_a_text(sememe, corpus):
    options = ("--dim", 8, "--min-count", 2, "--memory", "64M")
    result = sememe("train", "counts", corpus, "--out", "model", *options)
    assert "Saved" in result.out and "counting pairs" in result.err
    assert package.load("model").dim == 8
    told = sememe("info", "model", "--json").json
    assert told["kind"] == "counts" and told["config"]["memory"] == "64M"
    again = sememe("train", "counts", corpus, "--out", "model", *options, "--resume", "--json")
    assert again.json["history"] == json.loads(Path("model/history.json").read_text())[-1]


def test_chinese(sememe, chinese_corpus):
    options = ("--language", "zh", "--dim", 4, "--min-count", 2, "--quiet")
    sememe("train", "counts", chinese_corpus, *options, "--out", "model")
    assert "红色" in package.load("model")


def test_one_hot(sememe, corpus):
    sememe("train", "onehot", corpus, "--min-count", 2, "--out", "model", "--quiet")
    assert sememe("similarity", "model", "cat", "dog").out.strip() == "0.0000"
    assert sememe("info", "model", "--json").json["kind"] == "onehot"
    assert sememe("evaluate", "words", "model").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("counts",), "--out must name"),
        (("counts", "--table", "--memory", "lots"), "memory must be an amount"),
        (("counts", "--out", "m", "--window", "0"), "window must be"),
        (("counts", "--out", "m", "--phrases", "-1"), "phrases"),
        (("counts", "--out", "m", "--transform", "pmi"), "transform"),
        (("onehot",), "--out must name"),
        (("onehot", "--out", "m", "--min-count", "0"), "min_count"),
    ],
)
def test_mistakes_get_one_sentence(sememe, corpus, arguments, message):
    result = sememe("train", arguments[0], corpus, *arguments[1:], fails=True)
    assert result.code == 2 and message in result.err

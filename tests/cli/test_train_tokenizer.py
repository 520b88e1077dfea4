"""Tokenizers by command: text in, files that others open out, clear words for what cannot be."""

import json
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

import sememe as package

TRAIN = ("train", "tokenizer")


def test_a_file(sememe, corpus):
    result = sememe(*TRAIN, corpus, "--vocab-size", 180, "--out", "pieces")
    assert "Saved" in result.out and "sememe train bert" in result.out
    assert "reading text" in result.err
    own = package.SubwordTokenizer.load("pieces")
    assert own.kind == "wordpiece" and own.vocab_size <= 180 and own.cls_id == 101
    names = {path.name for path in Path("pieces").iterdir()}
    assert {"tokenizer.json", "vocab.txt", "tokenizer_config.json", "sememe.json"} <= names
    told = sememe("info", "pieces", "--json").json
    assert told["kind"] == "tokenizer" and told["config"]["vocab_size"] == 180


def test_quiet_json_and_bytes(sememe, corpus):
    options = ("--kind", "bpe", "--vocab-size", 300, "--quiet", "--json")
    result = sememe(*TRAIN, corpus, "--out", "bytes", *options)
    assert result.err == ""
    own = package.SubwordTokenizer.load("bytes")
    assert result.json["special_tokens"] == {"<|endoftext|>": own.end_id}
    assert result.json["vocab_size"] == own.vocab_size and own.kind == "bpe"
    assert {"vocab.json", "merges.txt"} <= {path.name for path in Path("bytes").iterdir()}


def test_chinese_case_and_accents(sememe, chinese_corpus):
    options = ("--language", "zh", "--keep-case", "--accents", "strip", "--vocab-size", 400)
    sememe(*TRAIN, chinese_corpus, "--out", "pieces", *options)
    own = package.SubwordTokenizer.load("pieces")
    assert "红" in own and not own.lowercase and own.strip_accents


def test_standard_input(sememe):
    sememe(*TRAIN, "-", "--vocab-size", 150, "--out", "pieces", stdin="the cat sat\n" * 9)
    assert "cat" in package.SubwordTokenizer.load("pieces")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--vocab-size", 105), "vocab_size 105 is too small"),
        (("--vocab-size", 200, "--kind", "bpe"), "vocab_size 200 is too small"),
        (("--coverage", 7), "coverage must be between"),
        (("--kind", "unigram"), "unigram"),
    ],
)
def test_options_that_cannot_be(sememe, corpus, options, said):
    result = sememe(*TRAIN, corpus, "--out", "pieces", *options, fails=True)
    assert result.code == 2 and said in result.err and "Traceback" not in result.err
    assert not Path("pieces").exists()


def test_empty_text_and_places_that_are_taken(sememe, corpus, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n")
    result = sememe(*TRAIN, empty, "--out", "pieces", fails=True)
    assert result.code == 2 and "has no text" in result.err
    assert sememe(*TRAIN, corpus, fails=True).code == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    result = sememe(*TRAIN, corpus, "--out", "mine", fails=True)
    assert result.code == 2 and "choose another name" in result.err


def test_an_older_tokenizer_is_replaced(sememe, corpus):
    command = (*TRAIN, corpus, "--out", "pieces", "--quiet", "--vocab-size")
    sememe(*command, 160)
    assert "--overwrite" in sememe(*command, 170, fails=True).err
    sememe(*command, 170, "--overwrite")
    manifest = json.loads(Path("pieces/sememe.json").read_text(encoding="utf-8"))
    assert manifest["config"]["vocab_size"] == 170

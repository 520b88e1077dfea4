"""Whatever is in a file: its reader gives a result or a clean error. Hypothesis makes the files.

The campaign damages files that were whole; here files are made of what readers look for, in any
order, and a failure shrinks to its smallest file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sememe
from sememe.errors import SememeError
from sememe.models import registry
from sememe.vectors import WordVectors

quickly = settings(max_examples=25)

# What tables, question files and vector files are made of, and what they are not.
CELLS = st.sampled_from(
    ["king", "queen", "cat", "the", "国王", "é", "1", "0.5", "-2", "1e400", "nan", "inf", "", " ",
     '"', "'", "\\", "|", ":", "#", ";", "text", "label", "score", "__label__a", "O", "B-X",
     "\\data\\", "\\1-grams:", "\\end\\", "ngram 1=2", "</s>", "<unk>", "[[cat]]", "{", "}",
     '{"text": "a b", "label": 1}', "[1]", "null", "\0", "\x1b[2J", "\u2028", "\ufeff", "x" * 300]
)  # fmt: skip
MARKS = st.sampled_from([" ", "\t", ",", ";", "  "])
LINES = st.builds(lambda mark, cells: mark.join(cells), MARKS, st.lists(CELLS, max_size=6))
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
TEXTS = st.builds(lambda end, lines: end.join(lines).encode(), ENDS, st.lists(LINES, max_size=8))
CONTENTS = TEXTS | st.binary(max_size=200) | st.builds(
    lambda one, other: one + b"\xff\xfe" + other, TEXTS, TEXTS
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | CELLS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | CELLS, inner),
    max_leaves=12,
)


def clean(call: Callable[[], Any]) -> Any:
    """The result, or None after an error of ours whose message is one sentence."""
    try:
        return call()
    except SememeError as error:
        assert str(error).strip() and "\n" not in str(error)
        return None


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    words = ["king", "queen", "cat", "the", "国王"]
    return WordVectors(words, np.eye(5, 4) + 0.1)


@pytest.mark.parametrize("name", ["c.txt", "c.jsonl", "c.csv", "c.tsv", "c.json", "c.txt.gz"])
@quickly
@given(content=CONTENTS)
def test_a_corpus(name: str, tmp_path: Path, content: bytes):
    from sememe.text.stream import segment

    path = tmp_path / name
    path.write_bytes(content)
    clean(lambda: list(segment(path, sememe.TextSettings(), workers=1)))


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.jsonl", "r.txt", "r.json"])
@pytest.mark.parametrize("task", ["classify", "pairs", "regress"])
@quickly
@given(content=CONTENTS)
def test_rows_of_texts(name: str, task: str, tmp_path: Path, content: bytes):
    from sememe.examples.labelled.texts import read_texts

    path = tmp_path / name
    path.write_bytes(content)
    for labelled in (True, False):
        clean(lambda own=labelled: list(read_texts(path, kind=task, labelled=own)))


@pytest.mark.parametrize("name", ["r.txt", "r.conll", "r.jsonl", "r.csv"])
@quickly
@given(content=CONTENTS)
def test_rows_of_tags(name: str, tmp_path: Path, content: bytes):
    from sememe.examples.labelled.tags import read_tags

    path = tmp_path / name
    path.write_bytes(content)
    for labelled in (True, False):
        clean(lambda own=labelled: list(read_tags(path, labelled=own)))


@pytest.mark.parametrize("name", ["r.jsonl", "r.json", "r.csv"])
@quickly
@given(content=CONTENTS, value=JSON)
def test_rows_of_questions(name: str, tmp_path: Path, content: bytes, value: Any):
    from sememe.examples.labelled.answers import read_answers

    path = tmp_path / name
    for data in (content, json.dumps(value).encode(), json.dumps({"data": value}).encode()):
        path.write_bytes(data)
        for labelled in (True, False):
            clean(lambda own=labelled: list(read_answers(path, labelled=own)))


@quickly
@given(content=CONTENTS)
def test_word_questions(vectors: WordVectors, tmp_path: Path, content: bytes):
    path = tmp_path / "questions.txt"
    path.write_bytes(content)
    result = clean(lambda: sememe.evaluate_words(vectors, path))
    if result is not None:
        json.dumps(result.to_dict(), allow_nan=False)


@quickly
@given(content=CONTENTS)
def test_senses(vectors: WordVectors, tmp_path: Path, content: bytes):
    path = tmp_path / "senses.tsv"
    path.write_bytes(content)
    clean(lambda: sememe.evaluate_senses(vectors, path, layers="last", device="cpu"))


@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin", "v.glove", "v.floret", "v.arpa"])
@quickly
@given(content=CONTENTS)
def test_vector_files(name: str, tmp_path: Path, content: bytes):
    path = tmp_path / name
    path.write_bytes(content)
    clean(lambda: registry.describe(path))
    model = clean(lambda: sememe.load(path))
    if model is not None and "words" in model.capabilities:
        assert np.isfinite(model.words.vectors).all()


KINDS = st.sampled_from(["word2vec", "vectors", "ngram", "bert", "task", "tokens", "fasttext"])
MANIFESTS = st.builds(
    lambda kind, more: {"kind": kind, "format": 1, **more},
    KINDS,
    st.dictionaries(
        st.sampled_from(["format", "config", "text", "task", "training", "version", "scores"]), JSON
    ),
)


@quickly
@given(manifest=MANIFESTS | JSON)
def test_a_manifest(tmp_path: Path, manifest: Any):
    (tmp_path / "sememe.json").write_text(json.dumps(manifest))
    described = clean(lambda: registry.describe(tmp_path))
    if described is not None:
        json.dumps(described, allow_nan=False)
    assert clean(lambda: sememe.load(tmp_path)) is None  # there are no weights


@quickly
@given(config=JSON, is_bert=st.booleans())
def test_a_config_of_transformers(tmp_path: Path, config: Any, is_bert: bool):
    if isinstance(config, dict):
        config["model_type"] = "bert" if is_bert else "gpt2"
    (tmp_path / "config.json").write_text(json.dumps(config))
    clean(lambda: registry.describe(tmp_path))
    assert clean(lambda: sememe.load(tmp_path)) is None


@quickly
@given(
    header=st.dictionaries(
        st.text(max_size=5),
        JSON | st.fixed_dictionaries(
            {"dtype": st.sampled_from(["F32", "I64", "U8", "BF16", "X"]),
             "shape": st.lists(st.integers(-2, 2**40), max_size=3),
             "data_offsets": st.lists(st.integers(-2, 64), max_size=3)}
        ),
        max_size=3,
    ),
    body=st.binary(max_size=32),
)  # fmt: skip
def test_a_file_of_tensors(tmp_path: Path, header: Any, body: bytes):
    from sememe.storage.tensors import read_tensors, tensor_shapes

    text, path = json.dumps(header).encode(), tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    clean(lambda: tensor_shapes(path))
    for tensor in (clean(lambda: read_tensors(path)) or {}).values():
        assert tensor.nbytes <= len(body)


ROWS = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1)
        .map(str.strip).filter(bool),
        st.sampled_from(["good", "bad"]),
    ),
    min_size=2, max_size=12,
)  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
@quickly
@given(rows=ROWS)
def test_rows_come_back_as_they_were_written(ending: str, tmp_path: Path, rows: Any):
    from sememe.examples.labelled.texts import read_texts

    path = tmp_path / f"rows.{ending}"
    with path.open("w", encoding="utf-8", newline="") as file:
        if ending == "jsonl":
            file.writelines(json.dumps({"text": text, "label": own}) + "\n" for text, own in rows)
        elif ending == "csv":
            csv.writer(file).writerows([("text", "label"), *rows])
        else:  # a quotation mark is a character like any other there
            file.writelines(f"{text}\t{own}\n" for text, own in [("text", "label"), *rows])
    found = clean(lambda: list(read_texts(path, kind="classify", labelled=True)))
    if found is not None:
        assert [(row.text, row.label) for row in found] == rows


@quickly
@given(
    words=st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1), min_size=1,
                   max_size=6, unique=True),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_vectors_come_back_as_they_were_written(tmp_path: Path, words: list[str], seed: int):
    from sememe.vectors.formats import write_vectors

    numbers = np.random.default_rng(seed).normal(size=(len(words), 3)).astype(np.float32)
    for name in ("v.txt", "v.bin"):
        write_vectors(WordVectors(words, numbers), tmp_path / name)
        found = sememe.load(tmp_path / name)
        assert list(found) == words
        np.testing.assert_allclose(found.vectors, numbers, rtol=1e-4, atol=1e-6)

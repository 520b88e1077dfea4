"""The four free tasks of the built-in corpus, learned in a few minutes on two cores.

Each score must pass a floor that is missed by all that understands nothing: the commonest label,
tag or answer, regular expressions, the cosine of mean vectors, an untrained model.
Figures in comments are those that were measured when the floors were set, on these same rows: the
floors guard against a loss, they are no measure of how good a model is.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("networkx")

import sememe
from sememe.evaluation.floors import floors
from sememe.examples.docstrings import NAMES, docstring_rows, docstring_texts
from sememe.tasks.answer import Answer
from sememe.tasks.classify import Classify
from sememe.tasks.pairs import Pairs
from sememe.tasks.tag import Tag
from sememe.tasks.task import Task
from sememe.vectors import WordVectors

# Those whose sources are read in a few seconds.
ONLY = ("python", "numpy", "scipy", "matplotlib", "networkx")
TASKS: dict[str, type[Task]] = {
    "packages": Classify, "summaries": Pairs, "parameters": Tag, "types": Answer,
}  # fmt: skip


@cache
def all_rows_of(name: str) -> tuple[list[Any], list[Any]]:
    """Rows to learn from, and those that are held out."""
    train = docstring_rows(name, packages=ONLY).rows
    asked = [
        *docstring_rows(name, "dev", packages=ONLY),
        *docstring_rows(name, "test", packages=ONLY),
    ]
    if name == "types":
        train, asked = ([row for row in own if row.answers] for own in (train, asked))
    return train, asked[:1_500]


def rows_of(name: str, limit: int) -> tuple[list[Any], list[Any]]:
    """Some rows to learn from, and those that are held out."""
    train, asked = all_rows_of(name)
    return train[:limit], asked


@pytest.fixture(scope="module")
def vectors() -> Any:
    model = sememe.Word2Vec(dim=100, epochs=5, min_count=3, workers=1)
    return model.fit(docstring_texts(packages=ONLY))


class Case(NamedTuple):
    """How many rows are learned from and how, and the score that must be passed."""

    limit: int
    floor: float
    options: dict[str, Any]


CASES = {
    # 0.70 to 0.74; the commonest 0.21
    "packages": Case(4_000, 0.62, {"epochs": 5}),
    # 0.76 to 0.77; the cosine of means 0.68
    "summaries": Case(7_000, 0.71, {"epochs": 3}),
    # 0.77; the commonest tag of each word 0.51, regular expressions 0.43
    "parameters": Case(2_000, 0.62, {"epochs": 3, "reader_width": 48, "learning_rate": 4e-3}),
    # 0.70; regular expressions 0.57, the commonest type 0.49
    "types": Case(5_000, 0.60, {
        "epochs": 4, "reader_width": 32, "learning_rate": 5e-3, "length": 96, "dropout": 0.2,
    }),
}  # fmt: skip

# A linear head on frozen means is a model that learned, and a good one where words tell the topic:
# 0.69 and 0.75, about what the others reach in so short a time. It cannot be asked to stay below.
LEARNED = ("mean of word vectors", "compared means")


@pytest.mark.parametrize("name", CASES)
def test_word_vectors_learn_the_task(vectors, name):
    limit, floor, options = CASES[name]
    train, asked = rows_of(name, limit)
    known = floors(NAMES[name], train[:2_000], asked, vectors)
    unlearned = {rule: score for rule, score in known.items() if rule not in LEARNED}
    assert len(unlearned) > (name == "summaries") and max(unlearned.values()) < floor, known
    task = TASKS[name](vectors, **options).fit(train, dev=False)
    assert task.evaluate(asked).value > floor


@pytest.mark.parametrize("name", CASES)
def test_an_untrained_model_misses_the_floor(vectors, name):
    train, asked = rows_of(name, 100)
    shape = vectors.vectors.vectors.shape
    random = WordVectors(vectors.vocabulary, np.random.default_rng(1).normal(size=shape))
    task = TASKS[name](random, steps=1, freeze=True, learning_rate=1e-9).fit(train, dev=False)
    assert task.evaluate(asked[:300]).value < CASES[name].floor


def test_a_tiny_bert_learns_to_tag(tmp_path):
    """BERT needs more text than a minute allows: of the four it is asked for the tags."""
    texts = docstring_texts(packages=ONLY)
    bert = sememe.BERT("tiny", steps=200, length=64, vocab_size=4_096, dropout=0.0,
                       attention_dropout=0.0)  # fmt: skip
    bert.fit(texts, out=tmp_path / "bert")
    train, asked = rows_of("parameters", 2_000)
    floor = 0.53  # 0.58; the commonest tag of each word 0.51
    assert all(score < floor for score in floors("tag", train, asked).values())
    options = {"epochs": 3, "learning_rate": 1e-3, "length": 96, "batch_size": 32}
    task = Tag(tmp_path / "bert", **options).fit(train, dev=False)
    assert task.evaluate(asked).value > floor
    frozen = Tag(bert, steps=1, freeze=True, learning_rate=1e-9).fit(train[:100], dev=False)
    assert frozen.evaluate(asked[:300]).value < floor

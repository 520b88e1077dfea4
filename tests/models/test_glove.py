"""GloVe as its users meet it: what it learns, keeps, refuses and repeats."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, DivergedError, InputError, OptionError, WriteError
from sememe.models.glove import reference
from sememe.models.static.loop import Evaluate

FRUIT = ["apple", "pear", "plum", "grape", "melon"]
TOOLS = ["hammer", "saw", "drill", "file", "wrench"]
水果 = ["苹果", "梨", "李子", "葡萄", "瓜"]
工具 = ["锤子", "锯", "钻", "锉刀", "扳手"]


def two_topics(first=FRUIT, second=TOOLS, num: int = 400) -> list[list[str]]:
    """Sentences that speak mostly of the one thing or mostly of the other."""
    random = np.random.default_rng(0)
    words = [*first, *second]
    chances = np.repeat([0.18, 0.02], 5), np.repeat([0.02, 0.18], 5)
    return [list(random.choice(words, 6, p=p)) for _ in range(num // 2) for p in chances]


def separation(vectors: sememe.WordVectors, first=FRUIT, second=TOOLS) -> float:
    """How much nearer words of one topic are than words of two."""
    within = np.mean([vectors.similarity(a, b) for a in first for b in first if a != b])
    across = np.mean([vectors.similarity(a, b) for a in first for b in second])
    return float(within - across)


def small(**options) -> sememe.GloVe:
    defaults = {"dim": 10, "epochs": 60, "min_count": 1, "workers": 1, "window": 4, "x_max": 10}
    return sememe.GloVe(**(defaults | options))


@pytest.mark.parametrize("topics", [(FRUIT, TOOLS), (水果, 工具)], ids=["english", "chinese"])
@pytest.mark.parametrize("workers", [1, 2])
def test_words_of_one_topic_come_together(topics, workers):
    model = small(workers=workers).fit(two_topics(*topics))
    assert separation(model.vectors, *topics) > 0.3
    losses = model.history.column("loss")
    assert losses[-1] < 0.2 * losses[0]


def test_the_products_are_the_logarithms_of_the_counts():
    model = small(epochs=400, dim=16).fit([["a", "b", "c", "d"]] * 200)
    product = model.input @ model.output.T
    product += model.tensors["input_biases"][:, None] + model.tensors["output_biases"]
    a, b, d = (model.vocabulary.find(word) for word in "abd")
    assert product[a, b] == pytest.approx(math.log(200), abs=0.05)
    assert product[a, d] == pytest.approx(math.log(200 / 3), abs=0.05)


def test_a_whole_training_is_that_of_the_reference():
    sentences = two_topics(num=60)
    model = small(epochs=1).fit(sentences)
    untrained = small(epochs=1, learning_rate=0)
    untrained.fit(sentences)
    # With a learning rate of 0 only the biases move, so that the vectors are those of the start.
    num_words = len(model.vocabulary)
    counts = np.zeros((num_words, num_words))
    for sentence in sentences:
        ids = [model.vocabulary.find(word) for word in sentence]
        for i, word in enumerate(ids):
            for j in range(max(0, i - 4), i):
                counts[word, ids[j]] += 1 / (i - j)
                counts[ids[j], word] += 1 / (i - j)
    at = reference.Parameters(
        untrained.input.astype(float), untrained.output.astype(float),
        np.zeros(num_words), np.zeros(num_words),
    )  # fmt: skip
    rows, columns = np.nonzero(counts)
    values = counts[rows, columns]
    start = sum(
        reference.loss(r, c, v, at, 10, 0.75) for r, c, v in zip(rows, columns, values, strict=True)
    )
    trained = reference.Parameters(
        model.input, model.output, model.tensors["input_biases"], model.tensors["output_biases"]
    )
    end = sum(
        reference.loss(r, c, v, trained, 10, 0.75)
        for r, c, v in zip(rows, columns, values, strict=True)
    )
    assert end < 0.7 * start
    order = np.random.default_rng(0).permutation(len(rows))
    reference.train_cells(
        rows[order], columns[order], values[order], at, at.zeros(), x_max=10, alpha=0.75,
        rate=0.05, clip=100,
    )  # fmt: skip
    other = sum(
        reference.loss(r, c, v, at, 10, 0.75) for r, c, v in zip(rows, columns, values, strict=True)
    )
    assert end == pytest.approx(other, rel=0.15), "another order of the same steps"


def test_every_choice_of_vectors(tmp_path):
    model = small(epochs=2).fit(two_topics(), out=tmp_path / "model")
    inputs, outputs = model.input, model.output
    choices = {
        "input": inputs, "output": outputs, "sum": inputs + outputs,
        "concat": np.concatenate([inputs, outputs], axis=1),
    }  # fmt: skip
    for choice, expected in choices.items():
        other = sememe.GloVe(model.config, vectors=choice)
        other.take_over(model)
        assert np.array_equal(other.vectors.vectors, expected)
    assert np.array_equal(sememe.load(tmp_path / "model").vectors, choices["sum"])


def test_the_unknown_word_is_the_mean_of_the_rarest(tmp_path):
    sentences = [[f"w{i}", f"w{i // 2}", "x"] for i in range(150)] * 2
    plain = small(epochs=2).fit(sentences)
    model = small(epochs=2, unk=True).fit(sentences, out=tmp_path / "model")
    assert "<unk>" not in plain.vocabulary
    mean = np.asarray(plain.vectors.vectors)[-100:].mean(axis=0)
    np.testing.assert_allclose(plain.unknown, mean, atol=1e-6)
    np.testing.assert_allclose(model.vectors["<unk>"], mean, atol=1e-6)
    np.testing.assert_allclose(model.unknown, mean, atol=1e-6)
    loaded = sememe.load(tmp_path / "model")
    np.testing.assert_allclose(loaded["<unk>"], mean, atol=1e-6)
    assert loaded.vocabulary[len(loaded) - 1] == "<unk>"


def test_a_text_with_the_unknown_word_is_refused_before_training():
    model = small(unk=True)
    with pytest.raises(InputError, match="<unk>"):
        model.fit([["a", "<unk>", "b"]] * 5, language="none")
    assert not model.history


def test_tiny_texts():
    model = small(epochs=3).fit([["one", "two"]])
    assert np.isfinite(model.vectors.vectors).all() and len(model.vocabulary) == 2
    assert len(small(epochs=3).fit([["a", "a"]] * 3).vocabulary) == 1
    for alone in ([["lonely"]], [["a"], ["b"]]):
        with pytest.raises(InputError, match="no pairs"):
            small().fit(alone)
    with pytest.raises(InputError, match="occurs 5 times"):
        small(min_count=5).fit([["a", "b"]])


def test_options_out_of_range_are_named():
    for options, said in (
        ({"x_max": 0}, "x_max"), ({"alpha": -1}, "alpha"), ({"memory": "much"}, "memory"),
        ({"memory": "1M"}, "at least 64M"), ({"weighting": "odd"}, "weighting"),
        ({"direction": "up"}, "direction"), ({"vectors": "all"}, "vectors"),
        ({"learning_rate": math.nan}, "learning_rate"), ({"grad_clip": 0}, "grad_clip"),
        ({"negatives": 5}, "GloVe has no option negatives"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=said):
            sememe.GloVe(**options)


def test_matrices_that_pass_the_memory_are_refused():
    sentences = [[f"w{i}", f"w{i + 1}"] for i in range(2000)]
    with pytest.raises(OptionError, match="memory: 2,001 words × 10000"):
        small(memory="64M", dim=10_000).fit(sentences)


@pytest.mark.parametrize("out", [None, "model"])
def test_no_counts_stay_behind(tmp_path, own_cache, out):
    small(epochs=1).fit(two_topics(), out=tmp_path / out if out else None)
    assert [path.name for path in tmp_path.iterdir() if path != own_cache] == ([out] if out else [])
    assert not list((own_cache / "stores").glob("temporary-*"))


def test_what_lies_where_the_counts_would_lie_is_not_touched(tmp_path):
    (tmp_path / "model.pairs").mkdir()
    (tmp_path / "model.pairs" / "mine.txt").write_text("precious")
    with pytest.raises(WriteError, match="something else is there"):
        small(epochs=1).fit(two_topics(), out=tmp_path / "model")
    assert (tmp_path / "model.pairs" / "mine.txt").read_text() == "precious"
    (tmp_path / "model.pairs" / "mine.txt").rename(tmp_path / "model.pairs" / "cells.bin")
    small(epochs=1).fit(two_topics(), out=tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_training_that_runs_away_says_so(monkeypatch):
    from sememe.models.glove import model

    begin = model.GloVeRun.begin

    def far_away(run) -> None:
        begin(run)
        run.matrices["words"][:, :10] = 1e30
        run.matrices["contexts"][:, :10] = 1e30

    monkeypatch.setattr(model.GloVeRun, "begin", far_away)
    with pytest.raises(DivergedError, match="learning_rate"):
        small().fit(two_topics())


def test_callbacks_see_the_vectors_and_may_end_the_training():
    scores = iter([0.1, 0.3, 0.2, 0.2, 0.2, 0.9])
    evaluate = Evaluate(lambda vectors: next(scores), every_words=2400, patience=3)
    model = small(epochs=60).fit(two_topics(), callbacks=[evaluate])
    assert [r["score"] for r in model.history if "score" in r] == [0.1, 0.3, 0.2, 0.2, 0.2]


def test_a_start_from_given_vectors():
    first = small(epochs=60).fit(two_topics())
    again = small(epochs=1, learning_rate=1e-6).fit(two_topics(), start=first.vectors)
    np.testing.assert_allclose(again.vectors.vectors, first.vectors.vectors, atol=1e-3)


def test_a_damaged_folder_is_refused(tmp_path):
    small(epochs=1).fit(two_topics(), out=tmp_path / "model")
    with pytest.raises(ArtifactError, match="not glove"):
        sememe.Word2Vec(dim=4, min_count=1).fit(two_topics()).save(tmp_path / "other")
        sememe.GloVe.load(tmp_path / "other")
    tensors = tmp_path / "model" / "model.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-100])
    with pytest.raises(ArtifactError):
        sememe.GloVe.load(tmp_path / "model")

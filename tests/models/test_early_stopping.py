"""Early stopping of static models: what is saved are the tensors of the best score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sememe
from sememe.models.static.loop import Evaluate
from sememe.progress import Reporter

OPTIONS: dict[str, Any] = {"dim": 8, "min_count": 1, "workers": 1, "epochs": 40}
EVERY = 4 * 2_400  # words: four of forty epochs
SCORES = [0.1, 0.5, 0.2, float("nan"), 0.3, 0.9, 0.8]
MODELS = {
    "word2vec": lambda: sememe.Word2Vec(**OPTIONS),
    "hierarchical": lambda: sememe.Word2Vec(loss="hierarchical", **OPTIONS),
    "fasttext": lambda: sememe.FastText(bucket=200, **OPTIONS),
    "floret": lambda: sememe.FastText(bucket=200, hash_count=2, **OPTIONS),
    "glove": lambda: sememe.GloVe(**OPTIONS),
    "glove with unk": lambda: sememe.GloVe(unk=True, **OPTIONS),
    "doc2vec": lambda: sememe.Doc2Vec(**OPTIONS),
}


def corpus() -> list[list[str]]:
    random = np.random.default_rng(0)
    topics = (["apple", "pear", "plum", "苹果"], ["hammer", "saw", "drill", "锤子"])
    return [list(random.choice(topic, 6)) for _ in range(200) for topic in topics]


class Scores:
    """Gives the next score of a list, and saves the vectors that got each one."""

    def __init__(self, scores: list[float], stop_at: int = -1) -> None:
        self.left, self.stop_at, self.vectors = list(scores), stop_at, list[np.ndarray]()

    def __call__(self, vectors: sememe.WordVectors) -> float:
        if len(self.vectors) == self.stop_at:
            raise KeyboardInterrupt
        self.vectors.append(np.array(vectors.vectors))
        return self.left.pop(0)

    def evaluate(self, patience: int) -> Evaluate:
        return Evaluate(self, every_words=EVERY, patience=patience)


@pytest.mark.parametrize("name", MODELS)
def test_the_best_vectors_are_saved(name: str, tmp_path: Path, capsys: Any) -> None:
    scores, out = Scores(SCORES), tmp_path / "model"
    model = MODELS[name]().fit(
        corpus(), out=out, callbacks=[scores.evaluate(patience=3)], progress=Reporter()
    )
    assert len(scores.vectors) == 5  # three in a row were not better than the second
    assert np.array_equal(model.vectors.vectors, scores.vectors[1])
    assert not np.array_equal(scores.vectors[1], scores.vectors[-1])
    assert np.array_equal(sememe.load(out).words.vectors, scores.vectors[1])
    records = [record for record in model.history if "score" in record]
    assert model.history[-1]["best_score"] == 0.5
    assert model.history[-1]["best_words"] == records[1]["words"] < records[-1]["words"]
    assert f"{records[1]['words']:,}" in capsys.readouterr().err


def test_a_run_that_is_not_stopped_ends_with_its_best_vectors_too() -> None:
    falling, rising = (Scores([step * n for n in range(10)]) for step in (-0.1, 0.1))
    models = [
        sememe.Word2Vec(**OPTIONS).fit(corpus(), callbacks=[one.evaluate(patience=99)])
        for one in (falling, rising)
    ]
    assert np.array_equal(models[0].vectors.vectors, falling.vectors[0])
    assert np.array_equal(models[1].vectors.vectors, rising.vectors[-1])
    assert models[1].history[-1]["best_words"] == models[1].history[-1]["words"]


def test_without_patience_or_a_score_the_last_vectors_stay() -> None:
    falling, unknown = Scores([-0.1 * n for n in range(10)]), Scores([float("nan")] * 10)
    last, other = (
        sememe.Word2Vec(**OPTIONS).fit(corpus(), callbacks=[one.evaluate(patience)])
        for one, patience in ((falling, 0), (unknown, 2))
    )
    assert np.array_equal(last.vectors.vectors, falling.vectors[-1])
    assert "best_words" not in last.history[-1]
    assert np.array_equal(other.vectors.vectors, unknown.vectors[1])


@pytest.mark.parametrize("name", ["word2vec", "fasttext", "glove with unk"])
@pytest.mark.parametrize("stop_at", [1, 2, 4])
def test_a_resumed_run_keeps_the_best_vectors(name: str, stop_at: int, tmp_path: Path) -> None:
    whole = MODELS[name]().fit(corpus(), callbacks=[Scores(SCORES).evaluate(patience=3)])

    class Interrupt:
        every_words = EVERY * stop_at + 2_400  # between two evaluations

        def __call__(self, model: object, record: object) -> None:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"out": tmp_path / "model"}
    with pytest.raises(KeyboardInterrupt):
        MODELS[name]().fit(
            corpus(), callbacks=[Scores(SCORES).evaluate(patience=3), Interrupt()], **options
        )
    again = Scores(SCORES[stop_at:])
    resumed = MODELS[name]().fit(
        corpus(), callbacks=[again.evaluate(patience=3)], resume=True, **options
    )
    assert len(again.vectors) == 5 - stop_at
    for tensor, rows in whole.tensors.items():
        assert np.array_equal(rows, resumed.tensors[tensor]), tensor
    assert resumed.history[-1]["best_words"] == whole.history[-1]["best_words"]


def test_a_checkpoint_without_best_vectors_says_so(tmp_path: Path, capsys: Any) -> None:
    options: dict[str, Any] = {"out": tmp_path / "model"}
    with pytest.raises(KeyboardInterrupt):
        sememe.Word2Vec(**OPTIONS).fit(
            corpus(), callbacks=[Scores([0.9, 0.8, 0.7], stop_at=3).evaluate(patience=0)], **options
        )
    again = Scores([0.1, 0.6, 0.5, 0.4])
    resumed = sememe.Word2Vec(**OPTIONS).fit(
        corpus(),
        callbacks=[again.evaluate(patience=2)],
        resume=True,
        progress=Reporter(),
        **options,
    )
    assert "no best vectors" in capsys.readouterr().err
    assert np.array_equal(resumed.vectors.vectors, again.vectors[1])

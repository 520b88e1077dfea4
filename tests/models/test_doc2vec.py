"""Doc2Vec: documents of a text, vectors for new texts, the bits of a run; reference and kernel."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.models.doc2vec import kernels, reference
from sememe.models.doc2vec.model import document_ends, sentence_windows
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build

ROYAL = "king queen castle crown throne palace prince knight"
WATER = "river fish boat lake shore wave sail anchor"
# Every one of so few words is frequent: none is thinned out.
SMALL = {"dim": 12, "min_count": 1, "epochs": 30, "sample": 0.0, "workers": 1, "seed": 3}


def topics(num: int = 300, size: int = 12) -> list[list[str]]:
    """Documents that are royal (even ones) or of the water (odd ones), with common words."""
    random = np.random.default_rng(7)
    kinds = [ROYAL.split(), WATER.split()]
    return [
        [str(random.choice([*kinds[index % 2], "the", "a", "of", "and"])) for _ in range(size)]
        for index in range(num)
    ]


@pytest.fixture(scope="module")
def model() -> sememe.Doc2Vec:
    return sememe.Doc2Vec(**SMALL).fit(topics())


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("combine", ["dbow", "mean", "sum", "concat"])
def test_the_kernel_does_what_the_reference_does(combine: str, is_frozen: bool) -> None:
    random = np.random.default_rng(2)
    num, dim, width, window, pool = 50, 20, 32, 2, 8
    parts = 2 * window + 1 if combine == "concat" else 1
    # Few words, so that a pool holds a word twice and the word itself.
    tokens, owners = random.integers(0, 9, num), np.sort(random.integers(0, 4, num))
    noise = random.integers(0, 9, num * pool)
    places = np.arange(num)[:, None]
    reach = 0 if combine == "dbow" else random.integers(1, window + 1, (num, 1))
    windows = np.clip(np.hstack([places - reach, places + reach + (combine != "dbow")]), 0, num)
    exact = [random.normal(0, 0.5, (n, dim * p)) for n, p in ((4, 1), (9, 1), (9, parts))]
    ours = [np.zeros((len(rows), rows.shape[1] // dim, width), np.float32) for rows in exact]
    for rows, own in zip(exact, ours, strict=True):
        own[..., :dim] = rows.reshape(len(rows), -1, dim)
    before = [rows.copy() for rows in ours]
    loss, num_words = reference.learn_documents(
        tokens, windows, owners, noise, *exact, combine=combine, window=window, pool=pool,
        negatives=5, rate=0.3, is_frozen=is_frozen,
    )  # fmt: skip
    stats = np.zeros(3)
    ids = [own.astype(np.int32) for own in (tokens, windows[:, 0], windows[:, 1], owners)]
    kernels.learn_documents(
        *ids, num, noise.astype(np.int32), *(rows.reshape(-1) for rows in ours), width, window,
        parts, pool, np.float32(5 / pool), np.float32(0.3), combine == "mean", is_frozen, 1,
        stats,
    )  # fmt: skip
    for rows, own in zip(exact, ours, strict=True):
        np.testing.assert_allclose(own[..., :dim].reshape(len(rows), -1), rows, atol=3e-5)
        assert not own[..., dim:].any()
    assert stats[0] == pytest.approx(loss, rel=1e-5) and stats[1] == stats[2] == num_words
    is_same = [np.array_equal(*both) for both in zip(ours, before, strict=True)]
    assert is_same == [False, is_frozen or combine == "dbow", is_frozen]


@pytest.mark.parametrize("combine", ["sum", "concat"])
def test_the_reference_follows_the_gradient(combine: str) -> None:
    random = np.random.default_rng(4)
    parts = 3 if combine == "concat" else 1
    rows = [random.normal(0, 0.5, (n, 6 * p)) for n, p in ((1, 1), (5, 1), (5, parts))]
    tokens, owners = np.array([1, 2, 3]), np.zeros(3, np.int64)
    noise = random.integers(0, 5, 24)

    def loss(vector: np.ndarray, rate: float = 0.0) -> tuple[float, np.ndarray]:
        own = [vector[None].copy(), *(other.copy() for other in rows[1:])]
        found, _ = reference.learn_documents(
            tokens, np.array([[0, 2], [0, 3], [1, 3]]), owners, noise, *own, combine=combine,
            window=1, pool=8, negatives=5, rate=rate, is_frozen=True,
        )  # fmt: skip
        return found, own[0][0]

    start = rows[0][0]
    slope = [(loss(start + d)[0] - loss(start - d)[0]) / 2e-5 for d in 1e-5 * np.eye(6)]
    moved = loss(start, rate=1e-6)[1]  # so small that all words see the same vector
    np.testing.assert_allclose((start - moved) / 1e-6, slope, atol=1e-4)


@pytest.mark.parametrize("combine", ["mean", "sum", "concat"])
def test_the_words_around_help_the_document(combine: str, tmp_path: Path) -> None:
    options = {**SMALL, "method": "dm", "combine": combine, "window": 2, "learning_rate": 0.2}
    model = sememe.Doc2Vec(**options).fit(topics(), out=tmp_path / "model")
    assert model.output.shape == (len(model.vocabulary), 12 * (5 if combine == "concat" else 1))
    means = [model.documents[first::2].mean(0) for first in (0, 1)]
    found = model.embed([" ".join(own) for own in topics(100)])
    right = [
        cosine(own, means[n % 2]) > cosine(own, means[1 - n % 2]) for n, own in enumerate(found)
    ]
    assert np.mean(right) > 0.95
    np.testing.assert_array_equal(
        model.embed(["a king", "a boat"])[::-1],
        sememe.load(tmp_path / "model").embed(["a boat", "a king"]),
    )
    model.continue_fit([["king", "queen", "dragon"]] * 3, epochs=1)
    assert "dragon" in model.words


def test_windows_of_a_concatenation_stay_in_their_sentence() -> None:
    left, right = sentence_windows(np.array([0, 0, 0, 1, 1, 4]), 1)
    assert left.tolist() == [0, 0, 1, 3, 3, 5] and right.tolist() == [2, 3, 3, 5, 5, 6]


def test_documents_are_those_of_the_text(place: Path) -> None:
    text = "One king. Two kings.\n\n\nOne river.\nThe sea. The lake. The boat.\n"
    (place / "text.txt").write_text(text)
    settings = TextSettings(layout="line")
    store = open_or_build("text.txt", settings, min_count=1, workers=1)
    assert document_ends(store).tolist() == [4, 6, 12]
    model = sememe.Doc2Vec(**SMALL).fit("text.txt", text=settings)
    assert model.documents.shape == (3, 12)
    assert model.describe()["documents"] == 3 and "documents 3" in repr(model)


def test_documents_and_words_learn_their_topics(model: sememe.Doc2Vec) -> None:
    means = [model.documents[first::2].mean(0) for first in (0, 1)]
    right = [
        cosine(own, means[index % 2]) > cosine(own, means[1 - index % 2])
        for index, own in enumerate(model.documents)
    ]
    assert np.mean(right) > 0.98
    assert all(near.word in ROYAL for near in model.vectors.neighbors("king", num=3))


def test_chunks_do_not_mix_up_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sememe.models.doc2vec.model.Doc2VecRun.step_size", lambda *_: 100)
    model = sememe.Doc2Vec(**SMALL).fit(topics())
    near = [model.nearest_documents(index, num=1)[0].document for index in range(300)]
    assert np.mean([(a + b) % 2 == 0 for a, b in enumerate(near)]) > 0.98


def test_a_new_text_gets_the_same_vector_whatever_else_is_asked(model: sememe.Doc2Vec) -> None:
    texts = ["the king of the castle", "a boat and a fish", "", "nothing known here"]
    first = model.embed(texts)
    assert first.shape == (4, 12) and first.dtype == np.float32
    assert np.array_equal(first[::-1], model.embed(texts[::-1]))
    assert np.array_equal(first[0], model.infer(["the", "king", "of", "the", "castle"]))
    assert not first[2:].any() and cosine(first[0], first[1]) < 0.7
    output = model.output.copy()
    model.embed(texts)
    assert np.array_equal(model.output, output)


def test_the_nearest_documents_share_the_topic(model: sememe.Doc2Vec) -> None:
    near = model.nearest_documents("the queen and the prince of the palace", num=8)
    assert len(near) == 8 and all(one.document % 2 == 0 for one in near)
    assert [one.score for one in near] == sorted((one.score for one in near), reverse=True)
    own = model.nearest_documents(5, num=400)
    assert len(own) == 299 and all(one.document != 5 for one in own)
    assert model.nearest_documents(model.documents[5], num=1)[0].document == 5
    with pytest.raises(sememe.SememeError, match="300"):
        model.nearest_documents(300)


def test_wrong_calls_say_what_is_wrong(model: sememe.Doc2Vec) -> None:
    with pytest.raises(sememe.SememeError, match="max"):
        model.embed(["a king"], pool="max")
    with pytest.raises(sememe.SememeError, match="list"):
        model.embed("a king")
    with pytest.raises(sememe.SememeError, match="infer_epochs"):
        sememe.Doc2Vec(infer_epochs=0)
    for ask in (lambda new: new.documents, lambda new: new.embed(["a king"])):
        with pytest.raises(sememe.SememeError, match="fit"):
            ask(sememe.Doc2Vec())


def test_without_words_those_that_documents_predict_are_used() -> None:
    model = sememe.Doc2Vec(**SMALL, train_words=False).fit(topics())
    assert model.config.vectors == "output"
    assert np.array_equal(model.vectors.vectors, model.output)
    assert cosine(*model.embed(["king queen palace", "boat fish lake"])) < 0.7


def test_a_saved_model_infers_the_same(model: sememe.Doc2Vec, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = sememe.load(tmp_path / "model")
    assert again.kind == "doc2vec" and np.array_equal(again.documents, model.documents)
    assert np.array_equal(again.embed(["a king"]), model.embed(["a king"]))
    assert np.array_equal(again.words["king"], model.words["king"])


def test_new_text_has_new_documents_and_keeps_what_words_have_learned() -> None:
    model = sememe.Doc2Vec(**SMALL).fit(topics())
    before = model.words["king"]
    model.continue_fit([["king", "queen", "dragon"]] * 3, epochs=1)
    assert model.documents.shape == (3, 12) and "dragon" in model.words
    assert cosine(before, model.words["king"]) > 0.99


def test_one_worker_gives_the_same_bits_after_ctrl_c(place: Path) -> None:
    class Interrupt:
        every_words = 300 * 12 * 7

        def __call__(self, model: object, record: object) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    whole = sememe.Doc2Vec(**SMALL).fit(topics())
    with pytest.raises(KeyboardInterrupt):
        sememe.Doc2Vec(**SMALL).fit(topics(), out="model", callbacks=[Interrupt()])
    resumed = sememe.Doc2Vec(**SMALL).fit(topics(), out="model", resume=True)
    for name, rows in whole.tensors.items():
        assert np.array_equal(rows, resumed.tensors[name]), name

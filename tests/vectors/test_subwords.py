"""SubwordVectors: words that were never seen, searched, saved, converted and evaluated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sememe
from fasttext_models import DATA, MODELS, printed_vectors
from sememe.errors import ArtifactError, OptionError, UnknownWordError
from sememe.evaluation import evaluate_pairs
from sememe.storage.folder import write_json
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.ngrams import ngram_rows_of
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import SubwordVectors, WordVectors, convert
from sememe.vectors.formats import write_vectors
from sememe.vectors.formats.fasttext import read_model

WORDS = ["</s>", "the", "苹果", "我", "né", "cake"]


def table(num_words: int = len(WORDS), bucket: int = 30, dim: int = 5) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((num_words + bucket, dim), np.float32)


@pytest.fixture
def vectors() -> SubwordVectors:
    return SubwordVectors(WORDS, table(), minn=2, maxn=3)


@pytest.fixture
def skipgram() -> SubwordVectors:
    loaded = sememe.load(DATA / "skipgram.bin")
    assert isinstance(loaded, SubwordVectors)
    return loaded


@settings(max_examples=40, deadline=None)
@given(word=st.text(max_size=8))
def test_a_vector_is_the_mean_of_rows(word: str) -> None:
    rows = table()
    vectors = SubwordVectors(WORDS, rows, minn=2, maxn=3)
    ids = ngram_rows_of(word, len(WORDS), 2, 3, 30).tolist()
    ids = [WORDS.index(word), *ids] if word in WORDS else ids
    expected = rows[ids].mean(axis=0) if ids else np.zeros(5)
    np.testing.assert_allclose(vectors[word], expected, rtol=1e-5, atol=1e-6)


def test_padded_rows_and_other_layouts_give_the_same(vectors: SubwordVectors) -> None:
    padded = np.zeros((len(table()), 16), np.float32)
    padded[:, :5] = table()
    for same in (padded[:, :5], np.asfortranarray(table()), table().astype(np.float64)):
        again = SubwordVectors(WORDS, same, minn=2, maxn=3)
        assert again.vectors.tobytes() == vectors.vectors.tobytes()
        assert again["苹果树"].tobytes() == vectors["苹果树"].tobytes()


def test_unknown_words_are_not_in_but_have_vectors(vectors: SubwordVectors) -> None:
    assert "苹果树" not in vectors and "苹果" in vectors
    assert len(vectors) == 6 and vectors.dim == 5
    assert vectors["苹果树"].any()
    assert vectors[["苹果树", "the"]].shape == (2, 5)
    assert not vectors[""].any() or vectors[""].shape == (5,)
    with pytest.raises(UnknownWordError):
        vectors.count("苹果树")


def test_questions_with_unknown_words(skipgram: SubwordVectors) -> None:
    near = skipgram.neighbors("snowstorm", num=5)
    assert len(near) == 5 and all(word in skipgram for word, _ in near)
    assert near == skipgram.neighbors_of_many(["snowstorm", "天气预报"], 5)[0]
    given = skipgram.neighbors(skipgram["snowstorm"], num=5)
    assert [word for word, _ in given] == [word for word, _ in near]
    np.testing.assert_allclose([score for _, score in given], [score for _, score in near])
    assert len(skipgram.analogy("snow", "snowstorm", "雷", num=3)) == 3
    assert len(skipgram.analogy("snow", "snowstorm", "雷", method="mul")) == 1
    cosine = skipgram.similarity("snowstorm", "snowed")
    assert cosine == pytest.approx(skipgram.similarities("snowstorm", ["snowed"])[0])
    assert -1 <= cosine <= 1
    assert skipgram.odd_one_out(["snowstorm", "snowfall", "北京烤鸭"]) in (
        "snowstorm", "snowfall", "北京烤鸭"
    )  # fmt: skip
    kept = skipgram.subset(["the", "snowstorm"])
    assert kept["snowstorm"].tolist() == skipgram["snowstorm"].tolist()
    assert kept.vocabulary.counts.tolist() == [skipgram.count("the"), 0]
    assert skipgram.normalized()["the"].shape == (8,)


def test_known_words_hide_themselves(skipgram: SubwordVectors) -> None:
    assert "bread" not in [word for word, _ in skipgram.neighbors("bread", num=300)]
    assert skipgram.neighbors("bread", num=1, include_inputs=True)[0].word == "bread"


def test_all_vectors_are_made_only_for_a_search(skipgram: SubwordVectors) -> None:
    skipgram["the"], skipgram["unseen"], skipgram.dim, len(skipgram), repr(skipgram)
    skipgram.similarity("the", "unseen")
    assert skipgram._composed is None
    skipgram.neighbors("the")
    assert skipgram._composed is not None


def test_a_limit_cuts_searches_alone(skipgram: SubwordVectors) -> None:
    few = sememe.load(DATA / "skipgram.bin", limit=20)
    assert len(few) == 20 and list(few) == list(skipgram)[:20]
    assert "snow" in skipgram and "snow" not in few
    for word in ("the", "snow", "unseen", "天气预报"):
        assert few[word].tobytes() == skipgram[word].tobytes()
    assert {word for word, _ in few.neighbors("snow", num=50)} <= set(few)


def test_without_ngrams_an_unknown_word_is_unknown() -> None:
    plain = sememe.load(DATA / "words-only.bin")
    assert isinstance(plain, SubwordVectors) and not plain.has_subwords
    with pytest.raises(UnknownWordError, match="Near spellings: bread"):
        plain.neighbors("breadd")


def test_tables_must_fit() -> None:
    for wrong in (
        lambda: SubwordVectors(WORDS, table(), bucket=29),
        lambda: SubwordVectors([], table()),
        lambda: SubwordVectors(WORDS, table()[:, 0]),
        lambda: SubwordVectors(WORDS, table(), bucket=50, pruned=np.zeros((3, 2), np.int32)),
    ):
        with pytest.raises(OptionError, match="do not fit"):
            wrong()


# --- folders and formats ----------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_folder_keeps_the_subwords(model: str, tmp_path: Path) -> None:
    vectors = sememe.load(DATA / model).words
    vectors.save(tmp_path / "v")
    again = sememe.load(tmp_path / "v")
    assert isinstance(again, SubwordVectors)
    assert again.vocabulary.counts.tolist() == vectors.vocabulary.counts.tolist()
    assert again.vectors.tobytes() == vectors.vectors.tobytes()
    for word, expected in printed_vectors(model):
        if vectors.has_subwords or word in vectors:
            assert again[word].tobytes() == expected.tobytes()
    again.save(tmp_path / "v")  # onto the files that it is mapped from
    assert sememe.load(tmp_path / "v").vectors.tobytes() == vectors.vectors.tobytes()


@pytest.mark.parametrize("model", ["skipgram.bin", "cut.ftz"])
def test_a_folder_of_fewer_words(model: str, tmp_path: Path) -> None:
    whole = sememe.load(DATA / model).words
    few = convert(DATA / model, tmp_path / "v", limit=15)
    opened = sememe.load(tmp_path / "v")
    assert list(opened) == list(few) == list(whole)[:15]
    assert opened["the"].tobytes() == whole["the"].tobytes()
    assert opened["unseen"].tobytes() == whole["unseen"].tobytes()


def test_a_trained_model_folder(tmp_path: Path) -> None:
    words = Vocabulary.from_words(WORDS, range(6, 0, -1))
    tensors = {"input": table(), "output": table()[: len(WORDS) - 1], **words.to_tensors()}
    config = {"minn": 2, "maxn": 3, "bucket": 30, "dim": 5, "window": 7, "epochs": 3,
              "negatives": 4, "min_count": 1, "loss": "hierarchical", "architecture": "cbow",
              "sample": 1e-3, "vectors": "input"}  # fmt: skip
    (tmp_path / "m").mkdir()
    write_tensors(tmp_path / "m" / "model.safetensors", tensors)
    write_json(tmp_path / "m" / "sememe.json", {"kind": "fasttext", "format": 1, "config": config})
    opened = sememe.load(tmp_path / "m")
    expected = SubwordVectors(WORDS, table(), minn=2, maxn=3)
    assert isinstance(opened, SubwordVectors)
    assert opened["苹果树"].tobytes() == expected["苹果树"].tobytes()
    convert(tmp_path / "m", tmp_path / "m.bin", "fasttext")
    model = read_model(tmp_path / "m.bin")
    assert (model.args.model, model.args.loss, model.args.ws, model.args.neg) == (
        "cbow",
        "hs",
        7,
        4,
    )
    assert np.asarray(model.output)[:-1].tolist() == tensors["output"].tolist()
    assert sememe.load(tmp_path / "m.bin")["苹果树"].tobytes() == expected["苹果树"].tobytes()


def test_from_one_format_to_another(skipgram: SubwordVectors, tmp_path: Path) -> None:
    convert(DATA / "skipgram.bin", tmp_path / "same.bin", "fasttext")
    assert (tmp_path / "same.bin").read_bytes() == (DATA / "skipgram.bin").read_bytes()
    convert(DATA / "skipgram.bin", tmp_path / "v.vec", "word2vec")
    assert sememe.load(tmp_path / "v.vec").vectors.tobytes() == skipgram.vectors.tobytes()
    convert(DATA / "skipgram.bin", tmp_path / "few.bin", "fasttext", limit=10)
    assert sememe.load(tmp_path / "few.bin")["unseen"].tobytes() == skipgram["unseen"].tobytes()


def test_plain_vectors_as_a_fasttext_file(toy_vectors: WordVectors, tmp_path: Path) -> None:
    write_vectors(toy_vectors, tmp_path / "v.bin", "fasttext")
    opened = sememe.load(tmp_path / "v.bin")
    assert list(opened) == list(toy_vectors)
    assert opened.vectors.tobytes() == toy_vectors.vectors.tobytes()
    assert read_model(tmp_path / "v.bin").words.counts.min() == 1


def test_damaged_folders(vectors: SubwordVectors, tmp_path: Path) -> None:
    def damaged(options: dict, **changes: np.ndarray) -> None:
        vectors.save(tmp_path / "v")
        manifest = json.loads((tmp_path / "v" / "sememe.json").read_text())
        manifest["subwords"] |= options
        write_json(tmp_path / "v" / "sememe.json", manifest)
        tensors = {name: np.array(array) for name, array in
                   read_tensors(tmp_path / "v" / "model.safetensors").items()}  # fmt: skip
        write_tensors(tmp_path / "v" / "model.safetensors", tensors | changes)
        with pytest.raises(ArtifactError, match="damaged"):
            sememe.load(tmp_path / "v")

    damaged({"bucket": 31})
    damaged({"minn": "x"})
    damaged({"minn": -1})
    damaged({}, input=table()[1:])
    damaged({}, input=table()[:, 0])
    damaged({}, pruned=np.full((30, 2), 99, np.int32))
    damaged({}, codes=np.zeros((36, 2), np.uint8), centroids=np.zeros(5 * 256, np.float32))


# --- evaluation ---------------------------------------------------------------------------------


def test_pairs_of_unknown_words_are_composed(skipgram: SubwordVectors, tmp_path: Path) -> None:
    path = tmp_path / "rare.txt"
    path.write_text("snow snowed 9\nsnowstorm snowfall 8\n天气 天气预报 7\nbread Platform 1\n")
    score = evaluate_pairs(skipgram, path)
    assert (score.num_asked, score.num_questions, score.details["num_composed"]) == (4, 4, 2)
    known = evaluate_pairs(skipgram, path, compose_unknown=False)
    assert known.num_asked == 2 and "num_composed" not in known.details
    expected = [skipgram.similarity(*pair) for pair in
                (("snow", "snowed"), ("snowstorm", "snowfall"), ("天气", "天气预报"),
                 ("bread", "platform"))]  # fmt: skip
    from sememe.metrics import spearman

    assert score.value == pytest.approx(spearman(np.array([9, 8, 7, 1]), np.array(expected)))
    assert "(2 composed)" in str(sememe.evaluate_words(skipgram, path))
    plain = evaluate_pairs(sememe.load(DATA / "words-only.bin"), path)
    assert plain.num_asked == 2


def test_the_index_finds_neighbors_of_unknown_words(
    skipgram: SubwordVectors, tmp_path: Path
) -> None:
    pytest.importorskip("usearch")
    skipgram.save(tmp_path / "v")
    opened = sememe.load(tmp_path / "v")
    exact = {word for word, _ in opened.neighbors("snowstorm", num=10)}
    found = {word for word, _ in opened.neighbors("snowstorm", num=10, approximate=True)}
    assert len(exact & found) >= 8
    assert list((tmp_path / "v").glob("index-*"))

"""Product quantisation: near rows, smaller models, files that keep them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from labelled_texts import lines

from sememe import FastTextClassifier
from sememe.errors import OptionError
from sememe.models.fasttext.classifier import prediction
from sememe.models.fasttext.classifier.shrinking import quantize_matrix, reference_codes
from sememe.vectors.formats.fasttext import read_model


def random_rows(num: int, dim: int) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(num, dim)).astype(np.float32)


@pytest.mark.parametrize("part_size", [1, 2, 3])
@pytest.mark.parametrize("has_norms", [False, True])
def test_codes_are_the_nearest_centroids(part_size, has_norms):
    rows = random_rows(2_000, 10)
    found = quantize_matrix(rows, part_size=part_size, has_norms=has_norms)
    directions = rows
    if has_norms:
        directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        assert found.norm_codes is not None
        lengths = found.norms(np.arange(len(rows)))
        assert np.abs(lengths - np.linalg.norm(rows, axis=1)).mean() < 0.01
    best = reference_codes(directions, found.quantizer)

    # The kernel may take one of two centroids that are equally near but for the last digits.
    def distances(codes: np.ndarray) -> np.ndarray:
        return np.abs(found.quantizer.decode(codes) - directions)

    assert (found.codes == best).mean() > 0.999
    np.testing.assert_allclose(
        np.square(distances(found.codes)).sum(axis=1),
        np.square(distances(best)).sum(axis=1),
        rtol=1e-3, atol=1e-6,
    )  # fmt: skip
    error = np.square(found.rows(np.arange(len(rows))) - rows).sum()
    assert error < {1: 0.001, 2: 0.02, 3: 0.08}[part_size] * np.square(rows).sum()


def test_centroids_are_the_means_of_their_points():
    """After enough rounds k-means stands still, so each centroid is the mean of its points."""
    rows = random_rows(1_500, 2)
    found = quantize_matrix(rows, part_size=2)
    codes = found.codes[:, 0]
    means = np.array([rows[codes == code].mean(axis=0) for code in np.unique(codes)])
    away = np.abs(means - found.quantizer.part(0)[np.unique(codes)]).max(axis=1)
    assert len(means) > 250 and np.median(away) < 1e-6 and away.mean() < 0.01
    equal = np.zeros((300, 4), np.float32)
    np.testing.assert_allclose(quantize_matrix(equal).rows(np.arange(300)), 0, atol=1e-5)


def test_workers_do_not_change_the_codes():
    rows = random_rows(1_000, 8)
    one, two = (quantize_matrix(rows, workers=workers) for workers in (1, 2))
    assert np.array_equal(one.codes, two.codes)
    assert np.array_equal(one.quantizer.centroids, two.quantizer.centroids)


def test_what_cannot_be_quantised():
    with pytest.raises(OptionError, match="256 rows"):
        quantize_matrix(random_rows(255, 4))
    with pytest.raises(OptionError, match="dsub"):
        quantize_matrix(random_rows(300, 4), part_size=5)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> tuple[FastTextClassifier, Path]:
    path = tmp_path_factory.mktemp("text") / "train.txt"
    path.write_text(lines(400), encoding="utf-8")
    options = {
        "preset": "fasttext", "dim": 10, "epochs": 10, "learning_rate": 0.5, "workers": 1,
        "bucket": 20_000,
    }  # fmt: skip
    return FastTextClassifier(word_ngrams=2, **options).fit(path), path


@pytest.mark.parametrize(
    "options",
    [{}, {"qnorm": True}, {"cutoff": 300}, {"cutoff": 260, "qnorm": True, "dsub": 3}],
    ids=["plain", "norms", "cut", "all"],
)
def test_a_small_model_is_nearly_as_good(model, options, tmp_path):
    large, path = model
    small = large.quantize(**options)
    assert small.is_quantized and not large.is_quantized
    assert small.weights.nbytes < large.weights.nbytes
    assert small.evaluate(path).f1 > 0.95
    if cutoff := options.get("cutoff"):
        assert small.weights.num_rows == cutoff and "</s>" in small.words
    small.save(tmp_path / "small.ftz")
    small.save(tmp_path / "small")
    texts = ["rain and tea", "面条 soup", "unknown"]
    for place in ("small.ftz", "small"):
        again = FastTextClassifier.load(tmp_path / place)
        assert again.predict(texts, k=3) == small.predict(texts, k=3)
    assert read_model(tmp_path / "small.ftz").pruned is not None


def test_buckets_that_a_file_merely_states_take_no_memory(model, tmp_path, monkeypatch):
    large, _ = model
    path, texts = tmp_path / "small.ftz", ["rain and tea", "面条 soup", "unknown"]
    large.quantize(cutoff=300).save(path)
    expected = FastTextClassifier.load(path).predict(texts, k=3)
    monkeypatch.setattr(prediction, "_MOST_PLACES", 0)
    again = FastTextClassifier.load(path)
    assert again.predict(texts, k=3) == expected and not len(again.predictor._places)
    content = bytearray(path.read_bytes())
    content[40:44] = (2**31 - 2).to_bytes(4, "little")  # the number of buckets
    path.write_bytes(content)
    with pytest.raises(OptionError, match="rows"):
        FastTextClassifier.load(path).predict(texts)


def test_the_rows_kept_are_the_longest(model):
    large, _ = model
    small = large.quantize(cutoff=300)
    norms = np.linalg.norm(np.asarray(large.weights.input), axis=1)
    kept = {large.words.vocabulary.id(word) for word in small.words} - {
        large.words.vocabulary.id("</s>")
    }
    left_out = set(range(len(large.words))) - kept - {large.words.vocabulary.id("</s>")}
    assert not left_out or min(norms[list(kept)]) >= max(norms[list(left_out)])


def test_retraining_fixes_a_small_model(model):
    large, path = model
    before = large.history.copy()
    cut, again = (large.quantize(cutoff=256, dsub=5, retrain=text) for text in (None, path))
    assert again.evaluate(path).f1 >= cut.evaluate(path).f1 - 0.01
    assert not np.array_equal(cut.weights.output, again.weights.output)
    assert large.history == before
    with pytest.raises(OptionError, match="cutoff"):
        large.quantize(retrain=path)
    with pytest.raises(OptionError, match="already"):
        again.quantize()
    with pytest.raises(OptionError, match="256 rows"):
        large.quantize(qout=True)


def test_the_ending_tells_what_a_file_is(model, tmp_path):
    large, _ = model
    with pytest.raises(OptionError, match=r"\.bin"):
        large.save(tmp_path / "model.ftz")
    with pytest.raises(OptionError, match=r"\.ftz"):
        large.quantize(cutoff=300).save(tmp_path / "model.bin")

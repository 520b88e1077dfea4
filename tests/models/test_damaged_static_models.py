"""Damaged folders of word vectors, classifiers and n-grams: one clear error, never a crash.

What compiled code follows without a look (offsets, ids, sizes) is checked when a folder is opened.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sememe
from sememe.errors import SememeError
from sememe.storage.tensors import read_tensors, write_tensors

TEXTS = ["the old king sees a cat", "a dog likes the river", "the cat sees the old dog"] * 12
ROWS = [(text, "animal" if "dog" in text else "person") for text in TEXTS]
PROGRAM = "from sememe.cli import main; main()"
SMALL: dict[str, Any] = {"dim": 4, "min_count": 1, "epochs": 1, "workers": 1}


def classifier(folder: Path, **options: Any) -> None:
    model = sememe.FastTextClassifier(
        **{**SMALL, "preset": "fasttext", "bucket": 50, "word_ngrams": 2, **options}
    )
    model.fit(ROWS).save(folder)


def quantized(folder: Path) -> None:
    texts = [(f"{text} w{number}", label) for number, (text, label) in enumerate(ROWS * 9)]
    model = sememe.FastTextClassifier(**SMALL, preset="fasttext").fit(texts)
    model.quantize(qnorm=True).save(folder)


def fasttext(folder: Path) -> None:
    sememe.FastText(**SMALL, bucket=50).fit(TEXTS).save(folder)


def ngram(folder: Path) -> None:
    sememe.NGram(order=3, validation_share=0.0, workers=1).fit(TEXTS).save(folder)


def counts(folder: Path) -> None:
    sememe.Counts(dim=2, min_count=1, workers=1).fit(TEXTS).save(folder)


def doc2vec(folder: Path) -> None:
    sememe.Doc2Vec(**SMALL).fit(TEXTS).save(folder)


def use(folder: Path) -> None:
    """Ask a model for all that it can do."""
    model = sememe.load(folder)
    if "predict" in model.capabilities:
        model.predict(TEXTS[:3], k=2)
        model.evaluate(ROWS)
        model.embed(TEXTS[:2])
    if "words" in model.capabilities:
        vectors = model.words
        vectors.neighbors(vectors.vocabulary[0], num=2)
    if model.kind == "ngram":
        model.score("the old king")
        model.distribution(["the"])
        model.write_arpa(folder.parent / "out.arpa")
    if model.kind == "counts":
        sememe.Counts.load(folder).table(["the", "cat"])
    if model.kind == "doc2vec":
        model.embed(TEXTS[:2])
        model.nearest_documents(0, num=2)


def damage(folder: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change one tensor of a folder."""
    path = folder / "model.safetensors"
    tensors = {key: np.array(tensor) for key, tensor in read_tensors(path).items()}
    tensors[name] = change(tensors[name])
    write_tensors(path, tensors)


def put(place: Any, value: float) -> Callable[[np.ndarray], np.ndarray]:
    """Put a number at a place."""

    def change(array: np.ndarray) -> np.ndarray:
        array[place] = value
        return array

    return change


def as_type(kind: type) -> Callable[[np.ndarray], np.ndarray]:
    """The same numbers in another type."""
    return lambda array: array.astype(kind)


def shorter(array: np.ndarray) -> np.ndarray:
    """Without the last row."""
    return array[:-1]


DAMAGE = [
    (classifier, "words.word_ends", put(0, 2**40)),
    (classifier, "words.word_ends", put(1, -5)),
    (classifier, "words.word_ends", as_type(np.float64)),
    (classifier, "labels.word_ends", put(0, 2**40)),
    (classifier, "labels.word_counts", put(0, -1)),
    (classifier, "labels.word_bytes", put(-1, 255)),
    (classifier, "buckets", put(0, -(2**31))),
    (classifier, "buckets", put(0, 50)),
    (classifier, "buckets", as_type(np.float32)),
    (classifier, "input.rows", as_type(np.int32)),
    (classifier, "input.rows", shorter),
    (classifier, "output.rows", shorter),
    (quantized, "input.codes", as_type(np.int16)),
    (quantized, "input.codes", shorter),
    (quantized, "input.centroids", shorter),
    (quantized, "input.centroids", as_type(np.float64)),
    (quantized, "input.norm_codes", shorter),
    (quantized, "input.norm.centroids", shorter),
    (fasttext, "pruned", put((0, 1), 2**30)),
    (fasttext, "pruned", put((0, 1), -1)),
    (fasttext, "pruned", put((0, 0), 2**30)),
    (fasttext, "pruned", as_type(np.float32)),
    (fasttext, "input", shorter),
    (fasttext, "word_ends", put(1, 2**40)),
    (ngram, "starts", put(0, 2**31)),
    (ngram, "starts", put(3, 0)),
    (ngram, "starts", as_type(np.int64)),
    (ngram, "words", put(-1, 2**31)),
    (ngram, "words", put(1, 0)),
    (ngram, "level_ends", put(0, 2**40)),
    (ngram, "level_ends", put(-1, -3)),
    (ngram, "level_ends", shorter),
    (ngram, "probs", as_type(np.float64)),
    (ngram, "backoffs", shorter),
    (counts, "starts", put(1, 2**40)),
    (counts, "columns", shorter),
    (counts, "vectors", shorter),
    (doc2vec, "documents", lambda array: array[..., None]),
    (doc2vec, "output", shorter),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Path]:
    """A model of each kind, trained once."""
    place = tmp_path_factory.mktemp("whole")
    made = {}
    for make in (classifier, quantized, fasttext, ngram, counts, doc2vec):
        made[make] = place / make.__name__
        make(made[make])
    return made


@pytest.mark.parametrize(
    ("make", "name", "change"),
    DAMAGE,
    ids=[f"{make.__name__}-{name}-{case}" for case, (make, name, _) in enumerate(DAMAGE)],
)
def test_what_kernels_follow_is_checked(make, name, change, models, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in models[make].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    use(folder)
    damage(folder, name, change)
    with pytest.raises(SememeError) as caught:
        use(folder)
    assert str(caught.value).count("\n") == 0


def test_a_classifier_with_damaged_offsets_does_not_crash_the_interpreter(models, tmp_path: Path):
    """In a process of its own, since it was one that died by a signal."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in models[classifier].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    damage(folder, "words.word_ends", put(slice(0, 3), 2**44))
    (tmp_path / "texts.txt").write_text("__label__animal a dog\n", encoding="utf-8")
    for command in (["predict"], ["evaluate", "labels"]):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *command, str(folder), "texts.txt"],
            capture_output=True, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert run.returncode == 2, run.stderr
        assert run.stderr.startswith("Error: ") and "model.safetensors (words)" in run.stderr


def test_words_of_a_classifier_need_not_be_text(models, tmp_path: Path) -> None:
    """Facebook's program cuts words at any byte, and its models are kept as folders too."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in models[classifier].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    damage(folder, "words.word_bytes", put(0, 255))
    use(folder)


@pytest.mark.parametrize("is_pruned", [False, True])
def test_a_manifest_cannot_ask_for_gigabytes(is_pruned: bool, models, tmp_path: Path) -> None:
    """So many buckets are searched, not tabled; the answers stay as they are for known n-grams."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in models[classifier].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    manifest = json.loads((folder / "sememe.json").read_text("utf-8"))
    manifest["config"]["bucket"] = 2**31 - 1_000
    manifest["pruned"] = is_pruned
    (folder / "sememe.json").write_text(json.dumps(manifest), encoding="utf-8")
    model = sememe.load(folder)
    tracemalloc.start()
    model.predict(TEXTS[:3], k=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26


def test_many_buckets_are_searched_with_the_same_answers(models, monkeypatch) -> None:
    model = sememe.load(models[classifier])
    expected = model.predict([*TEXTS[:9], "an unseen dog sees a cat"], k=2)
    monkeypatch.setattr("sememe.models.fasttext.classifier.prediction._MOST_PLACES", 10)
    again = sememe.load(models[classifier])
    assert again.predict([*TEXTS[:9], "an unseen dog sees a cat"], k=2) == expected


def test_a_quantised_model_without_n_grams_reads_texts_that_have_some() -> None:
    """An n-gram that no row stands for counts as zeros, also where rows are bytes."""
    rows = [(f"w{number}", "ab"[number % 2]) for number in range(400)]
    model = sememe.FastTextClassifier(**SMALL, preset="fasttext", bucket=50, word_ngrams=2).fit(
        rows
    )
    small = model.quantize()
    assert np.isfinite(small.embed(["w1 w2 w3 w4"])).all()

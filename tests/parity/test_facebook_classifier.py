"""Models of Facebook's program predict the same labels here; the fixtures are its own output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sememe import FastTextClassifier
from sememe.vectors.formats.fasttext import read_model

DATA = Path(__file__).parents[1] / "data" / "fasttext"
MODELS = ("softmax.bin", "hs.bin", "ova.bin", "ns.bin", "plain.ftz", "cut.ftz", "retrained.ftz",
          "qout.ftz")  # fmt: skip


def expected(name: str) -> list[list[tuple[str, float]]]:
    """The labels and exact probabilities that the program gave for each question."""
    result = []
    for line in (DATA / f"{name}.predictions.txt").read_text(encoding="utf-8").splitlines():
        words = line.split()
        bits = np.array([int(word, 16) for word in words[1::2]], np.uint32)
        chances = bits.view(np.float32).tolist()
        names = (word.removeprefix("__label__") for word in words[::2])
        result.append(list(zip(names, chances, strict=True)))
    return result


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_the_program(name):
    model = FastTextClassifier.load(DATA / name)
    got = list(model.predict_file(DATA / "questions.txt", k=3))
    assert len(got) == len(expected(name)) == 8
    for ours, theirs in zip(got, expected(name), strict=True):
        assert [label for label, _ in ours] == [label for label, _ in theirs]
        np.testing.assert_allclose(
            [chance for _, chance in ours], [chance for _, chance in theirs], rtol=2e-6
        )


@pytest.mark.parametrize("name", MODELS)
def test_rows_and_files_give_the_same(name):
    model = FastTextClassifier.load(DATA / name)
    texts = (DATA / "questions.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert model.predict(texts, k=2) == list(model.predict_file(DATA / "questions.txt", k=2))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_the_program_can_be_written_again(name, tmp_path):
    model = FastTextClassifier.load(DATA / name)
    path = tmp_path / f"again{Path(name).suffix}"
    model.save(path)
    first, second = read_model(DATA / name), read_model(path)
    assert list(first.words) == list(second.words) and list(first.labels) == list(second.labels)
    again = FastTextClassifier.load(path)
    questions = DATA / "questions.txt"
    assert list(again.predict_file(questions, k=3)) == list(model.predict_file(questions, k=3))
    model.save(tmp_path / "folder")
    folder = FastTextClassifier.load(tmp_path / "folder")
    assert list(folder.predict_file(questions, k=3)) == list(model.predict_file(questions, k=3))


@pytest.mark.parametrize("name", ["softmax.bin", "hs.bin", "ova.bin", "ns.bin"])
def test_its_training_text_is_learned_equally_well(name):
    theirs = FastTextClassifier.load(DATA / name)
    ours = FastTextClassifier(theirs.config, epochs=100, learning_rate=0.5, workers=1).fit(
        DATA / "labelled.txt"
    )
    assert set(ours.labels) == set(theirs.labels) and set(ours.words) == set(theirs.words)
    k = 1
    assert (
        ours.evaluate(DATA / "labelled.txt", k).f1
        >= theirs.evaluate(DATA / "labelled.txt", k).f1 - 0.02
    )


def test_word_vectors_are_no_classifier():
    from sememe.errors import ArtifactError

    with pytest.raises(ArtifactError, match="no classifier"):
        FastTextClassifier.load(DATA / "skipgram.bin")

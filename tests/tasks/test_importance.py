"""Which words a prediction depends on: drops equal plain predictions with a word hidden."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import sememe
from sememe.errors import InputError, OptionError, UnsupportedError
from sememe.tasks.importance import word_importance

TEXT = "the lovely film about the garden"


@pytest.fixture(scope="module")
def load(golden: Path) -> Callable[[str], Any]:
    return lambda name: sememe.load(golden / name)


def test_the_word_that_decides_has_the_largest_drop(load: Any) -> None:
    found = word_importance(load("classify"), TEXT)
    assert (found.prediction, found.hidden_by) == ("good", "[MASK]")
    assert max(found.words, key=lambda own: own.drop).word == "lovely"
    assert [own.word for own in found.words] == TEXT.split()
    assert all(TEXT[own.start : own.end] == own.word for own in found.words)


def test_a_drop_is_the_difference_of_two_predictions(load: Any) -> None:
    model = load("classify")
    found = word_importance(model, TEXT)
    (whole,) = model.predict([TEXT])
    assert found.score == pytest.approx(whole.probability, abs=1e-6)
    for own in found.words:
        hidden = f"{TEXT[: own.start]}[MASK]{TEXT[own.end :]}"
        (left,) = model.predict([hidden])
        expected = whole.probability - left.probabilities["good"]
        assert own.drop == pytest.approx(expected, abs=1e-6)


def test_models_without_a_mask_lose_the_word(load: Any) -> None:
    for name in ("classify-words", "classify-gpt"):
        model = load(name)
        found = word_importance(model, TEXT)
        (whole,) = model.predict([TEXT])
        (left,) = model.predict(["the  film about the garden"])
        expected = whole.probability - left.probabilities[whole.label]
        assert found.hidden_by == ""
        assert found.words[1].drop == pytest.approx(expected, abs=1e-5)


def test_a_fasttext_classifier_is_measured_by_the_predicted_label(load: Any) -> None:
    model = load("classifier")
    found = word_importance(model, TEXT)
    whole, left = (
        {own.label: own.probability for own in row}
        for row in model.predict([TEXT, "the  film about the garden"], k=-1)
    )
    assert found.prediction == max(whole, key=whole.__getitem__) and found.hidden_by == ""
    expected = whole[found.prediction] - left[found.prediction]
    assert found.words[1].drop == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", [list, tuple])
def test_words_of_both_texts_of_a_pair(load: Any, kind: type) -> None:
    found = word_importance(load("pairs"), kind(["the king sees", "a dog sleeps"]))
    assert [own.text_index for own in found.words] == [0, 0, 0, 1, 1, 1]


def test_a_regression_and_a_choice(load: Any) -> None:
    model = load("regress")
    found = word_importance(model, ("the king sees", "the king"))
    whole, left = model.predict([("the king sees", "the king"), ("the [MASK] sees", "the king")])
    assert found.words[1].drop == pytest.approx(whole.score - left.score, abs=1e-6)
    model = load("choose")
    row = {"text": "the king walks", "choice1": "to the garden", "choice2": "a dog"}
    found = word_importance(model, row)
    whole, left = model.predict([row, row | {"text": "the [MASK] walks"}])
    place = whole.number
    assert found.prediction == whole.text
    expected = whole.probabilities[place] - left.probabilities[place]
    assert found.words[1].drop == pytest.approx(expected, abs=1e-6)


def test_an_answer_moves_with_its_text_and_is_not_hidden(load: Any) -> None:
    model = load("answer")
    question, context = "where is the dog", "the king walks and the dog sleeps in the garden"
    (whole,) = model.predict([(question, context)])
    found = word_importance(model, (question, context))
    hidden = [(own.start, own.end) for own in found.words if own.text_index == 1]
    assert all(end <= whole.start or start >= whole.end for start, end in hidden)
    (left,) = model.predict([(question, context.replace("walks", "[MASK]"))])
    moved = len("[MASK]") - len("walks")
    same = [
        c for c in left.candidates if c.start - moved == whole.start and c.end - moved == whole.end
    ]
    expected = whole.probability - (same[0].probability if same else 0.0)
    (walks,) = (own for own in found.words if own.word == "walks")
    assert walks.drop == pytest.approx(expected, abs=1e-6)


def test_chinese_words_are_hidden_whole(load: Any) -> None:
    found = word_importance(load("classify"), "国王喜欢音乐")
    assert [own.word for own in found.words] == ["国王", "喜欢", "音乐"]


def test_what_cannot_be_measured_is_refused(load: Any) -> None:
    with pytest.raises(OptionError, match="tag"):
        word_importance(load("tag"), "the king sees")
    with pytest.raises(UnsupportedError):
        word_importance(load("bert"), TEXT)
    with pytest.raises(InputError):
        word_importance(load("classify"), "")
    with pytest.raises(InputError, match="600"):
        word_importance(load("classify"), "word " * 600)
    assert word_importance(load("classify"), "one").words == []

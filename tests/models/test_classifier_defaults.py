"""Options that the data chooses, and the original's under their own name."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe import FastTextClassifier, FastTextClassifierConfig
from sememe.models.fasttext.classifier import training
from sememe.models.fasttext.classifier.config import ORIGINAL

GOOD, BAD = ("good", "great", "lovely", "fine"), ("bad", "poor", "awful", "dull")
THINGS = ("film", "story", "song", "book", "day", "play", "plot", "end")
ROWS = [
    (f"The {word} {thing} number {number}!", label)
    for words, label in ((GOOD, "pro"), (BAD, "contra"))
    for word in words
    for thing in THINGS
    for number in range(6)
]
CHINESE = [
    (f"这部{thing}真的很{word}，推荐大家都来看看", label)
    for words, label in ((("好看", "精彩"), "好"), (("难看", "无聊"), "差"))
    for word in words
    for thing in ("电影", "小说", "话剧", "电视剧")
] * 8


def fitted(rows, **options):
    notes: list[str] = []

    class Kept(sememe.progress.Reporter):
        def note(self, text: str) -> None:
            notes.append(text)

    model = FastTextClassifier(workers=1, **options).fit(rows, progress=Kept(quiet=True))
    return model, notes


def test_the_data_chooses_and_says_what():
    model, notes = fitted(ROWS)
    config = model.config
    assert (config.loss, config.dim, config.word_ngrams, config.maxn) == ("softmax", 32, 2, 0)
    assert config.word_rates == "idf" and (config.learning_rate, config.epochs) in (
        *training._CHOICES, training._THOROUGH,
    )  # fmt: skip
    assert any("held-out lines" in note for note in notes)
    told = next(note for note in notes if note.startswith("Chosen by the data"))
    assert f"epochs {config.epochs}" in told and "word_rates idf" in told
    assert model.text.language == "und" and model.text.lowercase
    assert model.predict("a GOOD, good film...") == "pro"
    again, _ = fitted(ROWS)
    np.testing.assert_array_equal(model.weights.input, again.weights.input)


def test_few_long_lines_of_many_labels_are_learned():
    """A line of 200 words moves each of them little: it takes more and larger steps."""
    drawn = random.Random(1)
    common = [f"word{number}" for number in range(2_000)]
    rows = [
        (" ".join([*drawn.choices(common, k=190), *drawn.choices(own, k=10)]), f"label{number}")
        for number in range(20)
        for own in [[f"own{number}x{place}" for place in range(40)]]
        for _ in range(40)
    ]
    drawn.shuffle(rows)
    model, notes = fitted(rows[:640])
    assert (model.config.learning_rate, model.config.epochs) == training._THOROUGH
    assert any("0.2 × 50" in note for note in notes)
    assert model.evaluate(rows[640:]).f1 > 0.9


def test_many_lines_have_the_steps_that_suit_a_part_of_them(monkeypatch):
    _, notes = fitted(ROWS * 4)
    monkeypatch.setattr(training, "_MOST_TRIED", 2_000)
    model, _ = fitted(ROWS * 4)
    assert any(f"{len(ROWS) * 4 // 10} held-out" in note for note in notes)
    assert model.config.epochs in {max(5, round(own * 2_000 / 9_216)) for own in (5, 10, 25, 50)}


def test_too_high_a_learning_rate_is_not_chosen(monkeypatch):
    monkeypatch.setattr(training, "_CHOICES", ((0.05, 10), (100.0, 25)))
    model, notes = fitted(ROWS)
    assert model.config.learning_rate == 0.05 and "100 × 25: 0.000" in notes[0]


def test_chinese_sentences_are_read_by_their_characters():
    model, _ = fitted(CHINESE)
    config = model.config
    assert (config.minn, config.maxn, config.word_ngrams) == (1, 3, 1)
    assert model.text.language == "none"
    assert list(model.predict(["音乐剧真精彩", "太无聊了"])) == ["好", "差"]
    spaced, _ = fitted([(" ".join(text), label) for text, label in CHINESE])
    assert (spaced.config.maxn, spaced.config.word_ngrams, spaced.text.language) == (0, 3, "und")


def test_labels_choose_the_loss_and_the_dimensions():
    several, _ = fitted([(text, [label, "x"][: 1 + number % 2]) for number, (text, label) in
                         enumerate(ROWS)])  # fmt: skip
    assert several.config.loss == "ova" and several.has_sets
    many, _ = fitted([(f"word{number} and more", f"label{number}") for number in range(250)] * 2)
    assert (many.config.dim, many.config.loss) == (100, "softmax")


def test_what_the_user_says_stays():
    model, notes = fitted(ROWS, learning_rate=0.5, epochs=3, dim=10, word_ngrams=1)
    own = model.config
    assert (own.learning_rate, own.epochs, own.dim, own.word_ngrams) == (0.5, 3, 10, 1)
    # A learning rate that is given is that of every word.
    assert own.word_rates == "equal"
    assert not any("held-out" in note for note in notes)
    # Without buckets there are no n-grams.
    assert fitted(ROWS, bucket=0)[0].config.word_ngrams == 1
    assert fitted(CHINESE, bucket=0)[0].config.maxn == 0


def test_the_preset_has_the_defaults_of_the_original():
    config = FastTextClassifierConfig(preset="fasttext")
    assert {name: getattr(config, name) for name in ORIGINAL} == ORIGINAL
    model, notes = fitted(ROWS, preset="fasttext")
    assert model.config.to_dict() == {**config.to_dict(), "workers": 1}
    assert model.text.language == "none" and not model.text.lowercase
    assert not any("Chosen" in note for note in notes)


def test_another_fit_chooses_again():
    model, _ = fitted(ROWS)
    assert model.get_params()["dim"] == 0
    model.fit(CHINESE, progress=False)
    assert model.config.maxn == 3
    assert model.get_params()["maxn"] == -1


def test_a_resumed_run_has_chosen_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    whole, _ = fitted(ROWS)
    notes: list[str] = []
    model = FastTextClassifier(workers=1).fit(ROWS, out="model", progress=False)
    again = FastTextClassifier(workers=1).fit(ROWS, out="model", resume=True, progress=False)
    for other in (model, again, FastTextClassifier.load("model")):
        np.testing.assert_array_equal(whole.weights.input, other.weights.input)
        assert other.config == whole.config
    assert not notes


def test_files_of_the_original_read_words_between_blanks(tmp_path: Path):
    path = tmp_path / "model.bin"
    model = FastTextClassifier(workers=1).fit(ROWS, out=path, progress=False)
    assert model.text.language == "none"
    opened = FastTextClassifier.load(path)
    asked = [text for text, _ in ROWS[:20]]
    assert opened.predict(asked).tolist() == model.predict(asked).tolist()
    folder, _ = fitted(ROWS)
    with pytest.warns(UserWarning, match="no place for how texts are read"):
        folder.save(tmp_path / "other.bin")


def test_rows_of_an_iterator_are_all_trained_on():
    model = FastTextClassifier(workers=1).fit(iter(ROWS * 4), progress=False)
    whole = FastTextClassifier(workers=1).fit(ROWS * 4, progress=False)
    np.testing.assert_array_equal(model.weights.input, whole.weights.input)


def test_rarer_words_learn_faster():
    run = training.ClassifierRun(*_encoded())
    words = [run.lines.words[place] for place in range(len(run.lines.words))]
    counts = {word: sum(word in text.split() for text, _ in ROWS) for word in words}
    for word, rate in zip(words, run.word_rates, strict=True):
        if counts[word]:
            idf = 1 + np.log((1 + len(ROWS)) / (1 + counts[word]))
            assert rate == pytest.approx(idf * idf, rel=1e-5)


def _encoded():
    from sememe.models.fasttext.classifier.dictionary import encode

    config = FastTextClassifierConfig(preset="fasttext", word_rates="idf", workers=1)
    text = "".join(f"__label__{label} {text}\n" for text, label in ROWS)
    return config, encode([text.encode()], config)


def test_the_held_out_score_is_that_of_the_predictions():
    config, lines = _encoded()
    run = training.ClassifierRun(config, lines)
    run.begin()
    run.run_all()
    model = FastTextClassifier(config)
    run.hand_over(model, is_final=True)
    assert run.score(lines) == pytest.approx(model.evaluate(ROWS).f1)
    part = training.part_of(lines, 40, 100)
    assert len(part) == 60 and part.ends[-1] == len(part.items)
    assert len(part.label_ids) == part.label_ends[-1]

"""Prompts: what they hold, their scores against plain ones, and a GPT that has seen the pattern."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from sememe.errors import InputError, OptionError
from sememe.evaluation.prompting import Prompter, Template, choose_examples, choose_words
from sememe.examples.labelled.rows import TextRow
from sememe.models.gpt.model import token_log_probs

GOOD, BAD = ("fine", "lovely", "great", "nice"), ("awful", "dull", "poor", "ugly")
THINGS = ("film", "story", "song", "book", "play", "game")
PATTERN = "review: {text} verdict: {label}"


def sentences(seed: int, num: int) -> list[tuple[str, str]]:
    drawn = random.Random(seed)
    found = []
    for _ in range(num):
        label, words = drawn.choice([("good", GOOD), ("bad", BAD)])
        text = f"a {drawn.choice(words)} {drawn.choice(THINGS)} and a {drawn.choice(words)} end"
        found.append((text, label))
    return found


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A small GPT whose corpus is full of labelled reviews, several in a document."""
    folder = tmp_path_factory.mktemp("prompts")
    rows = iter(sentences(1, 3_000))
    documents = [
        " ".join(PATTERN.format(text=text, label=label) for text, label in own)
        for own in zip(rows, rows, rows, strict=True)
    ]
    (folder / "corpus.txt").write_text("\n\n".join(documents))
    model = sememe.GPT(
        "tiny", vocab_size=300, num_layers=2, width=48, num_heads=2, max_length=96, steps=160,
        batch_size=16, length=64, learning_rate=5e-3, warmup=10, dropout=0.0,
        attention_dropout=0.0, device="cpu", precision="fp32", compile="no",
        validation_share=0.05, evaluate_batches=1,
    )  # fmt: skip
    model.fit(folder / "corpus.txt", out=folder / "gpt")
    return model


def test_a_gpt_that_knows_the_pattern_is_above_chance(reader):
    train, held_out = sentences(5, 40), sentences(6, 60)
    found = sememe.evaluate_prompts(
        reader, train, held_out, shots=(0, 1, 2), template=PATTERN, seeds=(1, 2), device="cpu"
    )
    assert found.score("chance").accuracy == 0.5
    beside = found.score("TF-IDF + logistic regression")  # which learns from all 40 rows
    assert beside.accuracy > 0.9 and beside.interval.low <= beside.accuracy
    for shots in (0, 1, 2):
        for name in (f"{shots}-shot", f"{shots}-shot, calibrated"):
            score = found.score(name)
            assert score.accuracy > 0.7, found
            assert len(score.accuracies) == (2 if shots else 1)
            assert score.interval.low <= score.accuracy <= score.interval.high
    assert found.num_rows == 60 and found.words == {"bad": "bad", "good": "good"}
    assert "majority" in str(found) and found.prompts[1].count("verdict:") == 2
    assert found.to_dict()["scores"][0]["system"] == "chance"


def test_words_that_the_rows_raise_are_found(reader):
    rows = [
        TextRow(text, label={"good": "1", "bad": "0"}[label]) for text, label in sentences(7, 60)
    ]
    rows += [TextRow("a good film", label="1"), TextRow("a bad film", label="0")]
    template = Template(PATTERN)
    words = choose_words(reader, rows, ["0", "1"], template)
    prompter = Prompter(reader, words, template)
    held_out = rows[:30]
    chances_NC, _ = prompter.chances([], held_out)
    said = [prompter.labels[one] for one in chances_NC.argmax(axis=1)]
    assert np.mean([a == row.label for a, row in zip(said, held_out, strict=True)]) > 0.7


def test_continuations_are_scored_like_whole_texts(reader):
    """Against the log probabilities of the tokens of prompt and word, one text after another."""
    prompts = ["review: a fine film verdict:", "a", "review: a dull book verdict:"]
    for words in ([" good", " bad"], [" good", " lovely story", " of the bad"]):
        found = reader.continuation_scores(prompts, words)
        for row, prompt in zip(found, prompts, strict=True):
            for score, word in zip(row, words, strict=True):
                (logs,) = token_log_probs(reader.network, reader.tokenizer, [prompt + word])
                num = len(reader.tokenizer.encode(word).ids)
                assert score == pytest.approx(logs[-1 - num : -1].sum(), abs=1e-4)


def test_the_default_scores_whole_texts():
    class Counting(sememe.NGram):
        def score(self, text):
            return -float(len(text))

    found = Counting().continuation_scores(["ab", "abc"], ["x", "xyz"])
    np.testing.assert_allclose(found, -np.log(10) * np.array([[3, 5], [4, 6]]))


class Biased:
    """A model that prefers `yes` by a constant, and knows the text besides."""

    max_tokens = 0

    def continuation_scores(self, prompts, continuations):
        says_yes = np.array([prompt.rstrip().endswith("sun?") for prompt in prompts], float)
        no = np.array(["rain?" in prompt[-7:] for prompt in prompts], float)
        return np.stack([says_yes + 3, no], axis=1)


def test_calibration_removes_a_constant_preference():
    prompter = Prompter(Biased(), {"a": "yes", "b": "no"}, Template("{text}? {label}"))
    rows = [TextRow("sun"), TextRow("rain")]
    plain, calibrated = prompter.chances([], rows)
    assert plain.argmax(axis=1).tolist() == [0, 0]
    assert calibrated.argmax(axis=1).tolist() == [0, 1]
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)
    np.testing.assert_allclose(calibrated[0], [np.e / (1 + np.e), 1 / (1 + np.e)], rtol=1e-6)


def test_what_a_prompt_holds():
    template = Template("{text} / {second} = {label}", "Compare.")
    row = TextRow("a {second} b", second="c")
    shown = [(TextRow("x", second="y"), "yes")]
    assert template.prompt(shown, row) == "Compare.\n\nx / y = yes\n\na {second} b / c ="
    assert template.space == " "
    for wrong in ("{text}", "{label} {text}", "{text} {label} {label}", "{label}"):
        with pytest.raises(OptionError):
            Template(wrong)


def test_examples_are_balanced_and_follow_the_seed():
    rows = [TextRow(f"t{index}", label="ab"[index < 3]) for index in range(20)]
    first, again, other = (choose_examples(rows, 4, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(row.label for row in first) == ["a", "a", "b", "b"]
    assert len(choose_examples(rows, 100, 1)) == 20 and choose_examples(rows, 0, 1) == []


def test_long_texts_are_cut_and_too_many_examples_refused(reader):
    train = [("word " * 80 + label, label) for label in ("good", "bad")] * 5
    found = sememe.evaluate_prompts(
        reader, train, train, shots=(1,), template=PATTERN, seeds=(1,), device="cpu"
    )
    assert found.num_cut > 0
    with pytest.raises(OptionError, match="does not fit"):
        sememe.evaluate_prompts(reader, train, train, shots=(8,), template=PATTERN, device="cpu")
    with pytest.raises(InputError, match="tokens"):
        reader.continuation_scores(["word " * 200], [" good"])


def test_bad_options(reader):
    rows = [("a film", "1"), ("a book", "0")]
    with pytest.raises(OptionError, match="--words 0=WORD"):
        sememe.evaluate_prompts(reader, rows, rows)
    with pytest.raises(OptionError, match="no label “2”"):
        sememe.evaluate_prompts(reader, rows, rows, words={"2": "good"})
    with pytest.raises(OptionError, match="same word"):
        sememe.evaluate_prompts(reader, rows, rows, words={"0": "good", "1": "good"})
    with pytest.raises(OptionError, match="not both"):
        sememe.evaluate_prompts(reader, rows, rows, words={"0": "x"}, choose=True)
    with pytest.raises(OptionError, match="shots"):
        sememe.evaluate_prompts(reader, rows, rows, shots=())

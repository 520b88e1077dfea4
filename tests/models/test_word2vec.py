"""Word2Vec as its users meet it: what it learns, keeps, refuses and repeats."""

from __future__ import annotations

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, InputError, OptionError, UnknownWordError, WriteError
from sememe.examples.windows import keep_limits
from sememe.models.static.loop import Evaluate
from sememe.models.word2vec.training import block_size, pool_size

FRUIT = ["apple", "pear", "plum", "grape", "melon"]
TOOLS = ["hammer", "saw", "drill", "file", "wrench"]


def two_topics(num: int = 400, seed: int = 0) -> list[list[str]]:
    """Sentences that speak either of fruit or of tools."""
    random = np.random.default_rng(seed)
    return [list(random.choice(topic, 6)) for _ in range(num // 2) for topic in (FRUIT, TOOLS)]


def separation(vectors: sememe.WordVectors) -> float:
    """How much nearer words of one topic are than words of two."""
    within = np.mean([vectors.similarity(a, b) for a in FRUIT for b in FRUIT if a != b])
    across = np.mean([vectors.similarity(a, b) for a in FRUIT for b in TOOLS])
    return float(within - across)


def small(**options) -> sememe.Word2Vec:
    defaults = {"dim": 24, "epochs": 30, "min_count": 1, "sample": 0, "workers": 1, "window": 3}
    return sememe.Word2Vec(**(defaults | {"learning_rate": 0.05} | options))


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["negative", "hierarchical", "softmax"])
@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_every_combination_learns_two_topics(architecture, loss, combine):
    model = small(architecture=architecture, loss=loss, combine=combine).fit(two_topics())
    assert separation(model.vectors) > 0.4
    losses = model.history.column("loss")
    assert losses[-1] < losses[0]
    untrained = small(architecture=architecture, epochs=1, learning_rate=1e-4).fit(two_topics(10))
    assert separation(untrained.vectors) < 0.2


def test_one_worker_and_a_seed_give_the_same_bits():
    first, second = (small(seed=5).fit(two_topics()) for _ in range(2))
    other = small(seed=6).fit(two_topics())
    assert first.input.tobytes() == second.input.tobytes()
    assert first.output.tobytes() == second.output.tobytes()
    assert first.input.tobytes() != other.input.tobytes()


def test_two_workers_learn_the_same_topics():
    # With ten words two threads that do not wait for each other undo much of their work.
    kinds = [[f"{kind}{n}" for n in range(50)] for kind in ("fruit", "tool")]
    random = np.random.default_rng(0)
    text = [list(random.choice(words, 6)) for _ in range(4_000) for words in kinds]
    vectors = small(workers=2).fit(text, progress=False).vectors
    fruit, tools = (vectors[words] for words in kinds)
    units = [rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (fruit, tools)]
    within, across = (units[0] @ units[0].T).mean(), (units[0] @ units[1].T).mean()
    assert within - across > 0.5


def test_loss_of_an_untrained_model_is_that_of_chance():
    # Output vectors start at zero: every score is 0 and a pair costs (1 + negatives) · log 2.
    model = small(epochs=1, learning_rate=1e-8, min_learning_rate=0, negatives=7).fit(
        two_topics(50)
    )
    assert model.history[-1]["loss"] == pytest.approx(8 * np.log(2), rel=1e-3)
    softmax = small(epochs=1, learning_rate=1e-8, min_learning_rate=0, loss="softmax")
    assert softmax.fit(two_topics(50)).history[-1]["loss"] == pytest.approx(np.log(10), rel=1e-3)


def test_learning_rate_falls_in_a_straight_line_to_its_end():
    model = small(epochs=200, learning_rate=0.05, min_learning_rate=0.01).fit(two_topics())
    words, rates = model.history.column("words"), model.history.column("learning_rate")
    expected = 0.05 - 0.04 * words / words[-1]
    np.testing.assert_allclose(rates, expected, atol=1e-9)
    assert rates[-1] == pytest.approx(0.01)


def test_saved_model_opens_with_the_same_content(tmp_path):
    model = small().fit(two_topics(), out=tmp_path / "model")
    again = sememe.Word2Vec.load(tmp_path / "model")
    assert again.config == model.config
    assert list(again.vocabulary) == list(model.vocabulary)
    np.testing.assert_array_equal(again.input, model.input)
    np.testing.assert_array_equal(again.output, model.output)
    assert again.history == model.history
    assert sememe.load(tmp_path / "model").neighbors("apple")[0].word in FRUIT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"], "no checkpoints remain"


@pytest.mark.parametrize(("choice", "dim"), [("output", 24), ("sum", 24), ("concat", 48)])
def test_choice_of_vectors(tmp_path, choice, dim):
    model = small(vectors=choice).fit(two_topics(), out=tmp_path / "model")
    vectors = sememe.load(tmp_path / "model")
    assert vectors.dim == dim
    np.testing.assert_allclose(vectors["apple"], model.vectors["apple"])


def test_hierarchical_softmax_has_no_output_vectors_to_choose():
    with pytest.raises(OptionError, match="vectors must be input"):
        small(loss="hierarchical", vectors="sum").fit(two_topics())


def test_pretrained_vectors_as_a_start():
    first = small().fit(two_topics())
    second = small(epochs=1, learning_rate=1e-6, min_learning_rate=0).fit(
        [*two_topics(), ["kiwi"] * 3], start=first.vectors
    )
    np.testing.assert_allclose(second.vectors["apple"], first.vectors["apple"], atol=1e-3)
    assert abs(second.vectors["kiwi"]).max() <= 0.5 / 24 + 1e-3
    with pytest.raises(OptionError, match="24 numbers, not 10"):
        small(dim=10).fit(two_topics(), start=first.vectors)
    with pytest.raises(OptionError, match="none of the words"):
        small().fit([["x", "y"]] * 9, start=first.vectors)


def test_continue_on_new_text_with_new_words(tmp_path):
    model = small().fit(two_topics(), out=tmp_path / "model")
    model = sememe.Word2Vec.load(tmp_path / "model")
    before = model.vectors["hammer"].copy()
    random = np.random.default_rng(1)
    new_text = [list(random.choice([*FRUIT, "kiwi"], 6)) for _ in range(300)]
    model.continue_fit(new_text, epochs=20)
    assert model.vocabulary[len(model.vocabulary) - 1] == "kiwi"
    assert {n.word for n in model.vectors.neighbors("kiwi", num=3)} <= set(FRUIT)
    assert np.dot(before, model.vectors["hammer"]) > 0
    assert model.vectors.count("apple") > 200
    model.save(tmp_path / "model")
    assert "kiwi" in sememe.load(tmp_path / "model")


def test_rare_words_and_a_limit_of_words():
    text = [["a"] * 9 + ["b"] * 5 + ["c"] * 2]
    assert list(small(min_count=5).fit(text).vocabulary) == ["a", "b"]
    assert list(small(max_words=1).fit(text).vocabulary) == ["a"]
    with pytest.raises(InputError, match="9 times"):
        small(min_count=10).fit(text)


def test_callbacks_see_the_model_and_can_stop_it():
    scores = iter([0.1, 0.5, 0.4, 0.3, 0.9, 0.9, 0.9])
    evaluate = Evaluate(lambda vectors: next(scores), every_words=20_000, patience=2)
    model = small(epochs=100).fit(two_topics(4000), callbacks=[evaluate])
    metrics = [record["score"] for record in model.history if "score" in record]
    assert metrics == [0.1, 0.5, 0.4, 0.3]
    assert model.history[-1]["words"] < 200_000
    assert separation(model.vectors) > 0.1


@pytest.mark.parametrize("num", [4000, 2731])
def test_callbacks_are_asked_as_often_as_they_wish(num):
    text, seen = two_topics(num), []

    class Count:
        every_words = 5_000

        def __call__(self, model, record):
            seen.append(record["words"])

    small(epochs=7).fit(text, callbacks=[Count()])
    num_words = 7 * sum(map(len, text))
    chunk = 16_384
    # A chunk may hold several marks, but no mark may pass without a call in its chunk.
    marks = range(5_000, num_words + 1, 5_000)
    for mark in marks:
        assert any(mark <= words < mark + chunk for words in seen), mark
    assert seen == sorted(set(seen))


def test_hierarchical_softmax_continues_on_its_own_tree():
    model = small(loss="hierarchical").fit(two_topics())
    counts = model.vocabulary.counts.tolist()
    for _ in range(2):
        model.continue_fit([*two_topics(100, seed=3), ["kiwi"] * 4], epochs=5)
    assert model.vocabulary.counts.tolist() == counts
    assert "kiwi" not in model.vocabulary
    assert separation(model.vectors) > 0.4


def test_absurd_rates_are_noticed():
    with pytest.raises(sememe.SememeError, match=r"diverged.*learning_rate"):
        small(learning_rate=10, epochs=400, architecture="cbow", combine="sum").fit(two_topics())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim must be between"),
        ({"dim": -3}, "dim must be between"),
        ({"window": 0}, "window"),
        ({"negatives": 0}, "negatives"),
        ({"sample": 2}, "sample"),
        ({"sample": float("nan")}, "sample"),
        ({"epochs": 0}, "epochs"),
        ({"workers": -1}, "workers"),
        ({"seed": -1}, "seed"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"learning_rate": 0.01, "min_learning_rate": 0.02}, "learning_rate"),
        ({"architecture": "glove"}, "skipgram, cbow"),
        ({"sise": 100}, "has no option sise"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(OptionError, match=message):
        sememe.Word2Vec(**options)


def test_what_is_not_a_model_is_never_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    with pytest.raises(WriteError, match="choose another name"):
        small().fit(two_topics(), out=tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"x"
    with pytest.raises(ArtifactError, match="no model folder"):
        sememe.Word2Vec.load(tmp_path / "nothing")


def test_unknown_word_names_near_spellings():
    vectors = small().fit(two_topics()).vectors
    with pytest.raises(UnknownWordError, match="hammer"):
        vectors["hamer"]


def test_chinese_from_raw_text(tmp_path):
    path = tmp_path / "zh.txt"
    path.write_text("苹果和香蕉都是水果。我们用锤子和锯子工作。\n" * 200, encoding="utf-8")
    model = small(epochs=3).fit(path, language="zh")
    assert {"苹果", "香蕉", "锤子"} <= set(model.vocabulary)


def test_phrases_are_joined_first(tmp_path):
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2000)]
    lines = [" ".join(random.choice(words, 16)) for _ in range(300)]
    lines[::15] = [f"{line} new york" for line in lines[::15]]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines))
    model = small(epochs=1).fit(path, language="none", phrases=1)
    assert "new_york" in model.vocabulary and "new" not in model.vocabulary


def test_pools_hold_as_many_noise_words_as_the_original_draws():
    config = sememe.Word2VecConfig()
    assert pool_size(config) >= config.negatives * config.window
    assert pool_size(sememe.Word2VecConfig(architecture="cbow", negatives=5)) >= 5


def test_blocks_are_small_where_few_words_make_up_the_text():
    config = sememe.Word2VecConfig()
    for counts, expected in (([100] * 10, 4), ([10] * 24, 12), ([5] * 10_000, 16)):
        limits = keep_limits(np.array(counts), 0)
        assert block_size(config, np.array(counts), limits) == expected


def test_a_model_and_its_folder_answer_alike(tmp_path):
    model = small().fit(two_topics(), lowercase=False, out=tmp_path / "model")
    opened = sememe.load(tmp_path / "model")
    assert isinstance(opened, sememe.WordVectors) and opened.kind == model.kind == "word2vec"
    assert opened.text == model.text and not opened.text.lowercase
    texts = ["an apple and a saw", "nothing", "Apple"]
    assert np.array_equal(model.embed(texts), opened.embed(texts)) and model.embed(texts)[0].any()
    assert not model.embed(texts)[1:].any()
    words = [["apple", "saw", "nothing"]]
    assert np.array_equal(model.embed_words(words)[0], opened.embed_words(words)[0])
    told, again = model.describe(), opened.describe()
    assert told["training"] == {"learning_rate": 0.05} and "plan" not in told
    assert told.pop("provenance").keys() == again.pop("provenance").keys()
    assert told == again
    with pytest.raises(OptionError, match="fit"):
        small().embed(texts)

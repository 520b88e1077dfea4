"""The preview of word2vec: it must show what training draws and what the reference computes."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from rich.cells import cell_len

import sememe
from sememe.errors import DivergedError, InputError
from sememe.examples.windows import build_tree
from sememe.models.word2vec import reference
from sememe.models.word2vec.model import (
    NUM_PAIRS,
    WIDTH,
    Word2VecPreview,
    preview,
    read_lines,
    render,
)

ENGLISH = [
    "The red cat sat on the old mat.",
    "A blue dog ran over the green field.",
    "The old man gave the red cat some milk.",
]
CHINESE = ["我喜欢红色的苹果。", "他们喜欢学习自然语言处理。", "老人给红色的猫一些牛奶。"]
TEXTS = {"en": ENGLISH, "zh": CHINESE}
KINDS = [(a, x) for a in ("skipgram", "cbow") for x in ("negative", "hierarchical", "softmax")]
pytestmark = pytest.mark.usefixtures("own_cache")


def options(**changed) -> sememe.Word2VecConfig:
    defaults = {"dim": 12, "min_count": 1, "sample": 0, "workers": 1, "epochs": 1, "seed": 3}
    return sememe.Word2VecConfig(**(defaults | changed))


def look(language: str = "en", **changed) -> Word2VecPreview:
    return preview(TEXTS[language] * 3, options(**changed), sememe.TextSettings(language=language))


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("sample", [0, 0.02])
def test_words_windows_and_noise_are_those_of_training(language, sample, monkeypatch):
    """What the first step of a training hands to its kernel is what the preview reads."""
    from sememe.models.word2vec import kernels

    seen = []
    monkeypatch.setattr(
        kernels, "skipgram_negative",
        lambda *given: seen.append([np.copy(array) for array in given[:7]]),
    )  # fmt: skip
    config, text = options(sample=sample), sememe.TextSettings(language=language)
    corpus = TEXTS[language] * 30
    model = sememe.Word2Vec(config=config).fit(corpus, text=text, progress=False)
    tokens, _, left, right, _, _, noise = seen[0]
    first = read_lines(corpus, config, text)
    num = int((first.right > 0).sum())
    assert num >= 6 and first.num_words == len(model.vocabulary)
    words = np.array(model.vocabulary[:])
    mine = np.array(first.words)
    assert mine[first.tokens].tolist() == words[tokens[: len(first.tokens)]].tolist()
    assert mine[first.noise].tolist() == words[noise[: len(first.noise)]].tolist()
    assert first.left[:num].tolist() == left[:num].tolist()
    assert first.right[:num].tolist() == right[:num].tolist()
    kept = [word for line in first.lines for word, fate in line if fate == "kept"]
    in_lines = mine[first.tokens[:num]].tolist()
    # A line of which one word is kept has no pair and is not shown.
    assert len(first.lines) == 3 and (set(kept) <= set(in_lines) if sample else kept == in_lines)


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("combine", ["mean", "sum"])
@pytest.mark.parametrize(("architecture", "loss"), KINDS)
def test_the_update_is_the_one_of_the_reference(architecture, loss, combine, language):
    """Passes over the lines, then the first pair alone, by calls of the reference itself."""
    config = options(architecture=architecture, loss=loss, combine=combine)
    corpus, text = TEXTS[language] * 3, sememe.TextSettings(language=language)
    shown, first = preview(corpus, config, text), read_lines(corpus, config, text)
    matrices, rate, is_mean = (first.input, first.output), config.start_rate, combine == "mean"

    def learn(tokens, left, right, noise, block):
        chunk = (tokens, left, right)
        pools = {"pool": first.pool, "block": block, "negatives": config.negatives}
        if loss == "softmax":
            reference.full_softmax(
                *chunk, *matrices, rate=rate, is_skipgram=architecture == "skipgram",
                is_mean=is_mean,
            )  # fmt: skip
        elif (architecture, loss) == ("skipgram", "negative"):
            reference.skipgram_negative(*chunk, noise, *matrices, rate=rate, **pools)
        elif loss == "negative":
            reference.cbow_negative(*chunk, noise, *matrices, rate=rate, is_mean=is_mean, **pools)
        elif architecture == "skipgram":
            reference.skipgram_hierarchical(*chunk, first.tree, *matrices, rate=rate)
        else:
            reference.cbow_hierarchical(*chunk, first.tree, *matrices, rate=rate, is_mean=is_mean)

    for _ in range(shown.num_passes):
        learn(first.tokens, first.left, first.right, first.noise, first.block)
    pair = shown.pairs[0]
    source, target = [first.words.index(w) for w in pair.source], first.words.index(pair.target)
    rows = [first.words.index(c.name) if loss != "hierarchical" else int(c.name.split()[0])
            for c in shown.outputs]  # fmt: skip
    np.testing.assert_allclose(first.output[rows], [c.before for c in shown.outputs])
    for change in shown.inputs:
        np.testing.assert_allclose(first.input[first.words.index(change.name)], change.before)
    if (architecture, loss) == ("skipgram", "softmax"):
        tokens = np.array([*source, target])  # the centre, then what it predicts
        left, right = np.zeros(2, int), np.array([2, 0])
    else:
        tokens = np.array([*source, target])
        left, right = np.zeros_like(tokens), np.arange(len(tokens)) // len(source) * len(tokens)
    learn(tokens, left, right, first.noise[: first.pool], len(tokens))
    np.testing.assert_allclose(first.output[rows], [c.after for c in shown.outputs])
    for change in shown.inputs:
        np.testing.assert_allclose(first.input[first.words.index(change.name)], change.after)
        assert change.after != change.before


@pytest.mark.parametrize("loss", ["negative", "hierarchical"])
@pytest.mark.parametrize("language", TEXTS)
def test_the_numbers_follow_from_each_other(loss, language):
    """Dot product → sigmoid → error → step → new vectors, by hand from the printed vectors."""
    shown = look(language, loss=loss)
    before = {change.name: np.array(change.before) for change in shown.outputs}
    after = {change.name: np.array(change.after) for change in shown.outputs}
    hidden, moved = np.array(shown.inputs[0].before), np.zeros(12)
    steps = dict.fromkeys(before, 0.0)
    for one in shown.update:
        assert one.score == pytest.approx(before[one.name] @ hidden)
        assert one.probability == pytest.approx(1 / (1 + np.exp(-one.score)))
        assert one.step == pytest.approx(shown.rate * one.weight * (one.label - one.probability))
        moved += one.step * before[one.name]
        steps[one.name] += one.step
    np.testing.assert_allclose(shown.inputs[0].after, hidden + moved)
    for name, step in steps.items():
        np.testing.assert_allclose(after[name], before[name] + step * hidden)
    if loss == "negative":  # one true word, and noise that weighs as much as `negatives` words
        weights = [one.weight for one in shown.update if not one.label]
        assert sum(one.label for one in shown.update) == 1
        assert sum(weights) == pytest.approx(shown.config["negatives"])


def test_directions_of_prediction():
    """The first centre of the text is `the`, next to `red`."""
    for loss in ("negative", "hierarchical"):
        shown = look(loss=loss)
        assert (shown.pairs[0].source, shown.pairs[0].target) == (["red"], "the")
    shown = look(loss="softmax")
    assert (shown.pairs[0].source, shown.pairs[0].target) == (["the"], "red")
    shown = look(architecture="cbow", window=1)
    assert (shown.pairs[1].source, shown.pairs[1].target) == (["the", "cat"], "red")


def test_pairs_have_their_labels():
    for pair in look(negatives=4).pairs:
        assert [one.label for one in pair.decisions] == [1, 0, 0, 0, 0]
        assert pair.decisions[0].name == pair.target
    first = read_lines(ENGLISH * 3, options(loss="hierarchical"), sememe.TextSettings())
    text = " ".join(ENGLISH * 3).lower().replace(".", "").split()
    tree = build_tree(np.array([text.count(word) for word in first.words]))
    for pair in look(loss="hierarchical").pairs:
        nodes, codes = tree.path(first.words.index(pair.target))
        path = [f"{n} {'right' if c else 'left'}" for n, c in zip(nodes, codes, strict=True)]
        assert [one.name for one in pair.decisions] == path
        assert [one.label for one in pair.decisions] == [1 - int(c) for c in codes]


def test_softmax_shows_the_target_and_the_likeliest_words():
    shown = look(loss="softmax", learning_rate=0.1)
    for pair in shown.pairs:
        target, *others = pair.decisions
        chances = [one.probability for one in others]
        assert target.name == pair.target and target.label == 1 and len(others) == 5
        assert chances == sorted(chances, reverse=True)
        assert pair.target not in {one.name for one in others}
        assert 6 / shown.num_words < sum(chances) + target.probability < 1


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize(("architecture", "loss"), KINDS)
def test_text_fits_a_terminal(architecture, loss, language):
    shown = look(language, architecture=architecture, loss=loss, dim=100)
    text = render(shown)
    lines = text.splitlines()
    assert len(lines) <= 43 and max(map(cell_len, lines)) <= WIDTH
    assert len(shown.pairs) == NUM_PAIRS
    one, moved = shown.update[0], shown.inputs[0]
    error = one.label - one.probability
    for number in (one.score, error, one.step):
        assert f"{number:+.5f}" in text
    assert f" → {moved.after[0]:+.5f}".replace("0.", ".", 1) in text
    assert ("share a pool of" in text) == (loss == "negative")
    assert json.loads(json.dumps(asdict(shown)))["pairs"][0]["target"] == shown.pairs[0].target


@pytest.mark.parametrize(("architecture", "loss"), KINDS)
def test_equal_vectors_are_explained(architecture, loss):
    told = " ".join(render(look(architecture=architecture, loss=loss)).split())
    assert "output vectors at zero" in told and "changes no input vector" in told
    shown = look(architecture=architecture, loss=loss).outputs[:6]
    vectors = [tuple(change.before) for change in shown]
    equal = [change.name for change in shown if vectors.count(tuple(change.before)) > 1]
    assert ("had equal updates" in told) == bool(equal)
    if equal:
        listed = told[told.index("had equal updates") :]
        assert all(name in listed for name in equal)


def test_noise_words_of_one_pool_are_named_with_the_reason():
    corpus = [["cat", "feeds", "dog"], *([[f"word{n}"] for n in range(400)] * 2)]
    shown = preview(corpus, options(sample=0), sememe.TextSettings())
    told = " ".join(render(shown).split())
    assert "had equal updates:" in told and "only noise words, in the same pools" in told


def test_long_words_and_long_lines_fit_too():
    corpus = [[f"{n}{char * 150}" for n in range(1_500) for char in "x界"], ["a", "b"]]
    config = options(architecture="cbow", window=1_000, negatives=50)
    shown = preview(corpus, config, sememe.TextSettings())
    assert max(map(cell_len, render(shown).splitlines())) <= WIDTH


def test_rare_and_thinned_words_are_marked():
    corpus = [["often", "rare", "often", "other"], ["other", "often"] * 40]
    config = options(min_count=2, sample=0.05)
    shown = preview(corpus, config, sememe.TextSettings())
    fates = {word: set() for line in shown.lines for word, _ in line}
    for word, fate in (item for line in shown.lines for item in line):
        fates[word].add(fate)
    assert fates["often"] == {"kept", "thinned"} and fates.get("rare", {"rare"}) == {"rare"}
    assert "(often)" in render(shown)


def test_a_text_of_one_word_has_no_path():
    shown = preview([["a", "a", "a"]], options(loss="hierarchical"), sememe.TextSettings())
    assert shown.update == [] and "a → a" in render(shown)


def test_texts_without_pairs_are_refused():
    with pytest.raises(InputError, match="No word occurs 9 times in the first"):
        preview([["a", "b"]], options(min_count=9), sememe.TextSettings())
    with pytest.raises(InputError, match="Every window of the first lines is empty"):
        preview([["a"], ["b"]], options(), sememe.TextSettings())


def test_a_rate_that_is_too_high_is_refused_as_in_training():
    with pytest.raises(DivergedError, match="lower learning_rate"):
        look(loss="softmax", learning_rate=10)

"""NNLM: windows, equations and gradients against plain ones, causality, resume, vectors."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, OptionError, UnsupportedError
from sememe.examples.word_rows import WordRows, windows_after, windows_before
from sememe.randomness import number, numbers
from stopping import assert_equal, killed_at

torch = pytest.importorskip("torch")

from sememe.models.nnlm.config import NNLMConfig
from sememe.models.nnlm.model import NNLM
from sememe.models.nnlm.network import (
    NNLMNetwork,
    NNLMObjective,
    RankingNetwork,
    RankingObjective,
    middle_words,
    next_words,
)

B, E = 12, 11  # <s> and </s> of ten words; <unk> is 10
QUICK = {"steps": 30, "batch_size": 4, "length": 16, "min_count": 1, "workers": 1, "dim": 8}
SENTENCES = [
    [
        "the",
        "old",
        "king",
        "and",
        "the",
        "young",
        "queen",
        "live",
        "in",
        "a",
        "castle",
        "by",
        "the",
        "sea",
    ],
    ["the", "young", "king", "saw", "the", "old", "castle", "and", "the", "sea"],
    ["a", "queen", "and", "a", "king", "eat", "breakfast", "by", "the", "sea"],
    ["国王", "和", "女王", "在", "宫殿", "里", "吃", "早饭"],
] * 30

pytestmark = pytest.mark.usefixtures("place")


# ---- windows ------------------------------------------------------------------------------------


def test_windows_stop_at_the_ends_of_sentences():
    row = np.array([[5, 6, E, B, 1, 2, 3, E, B, 4]])
    before, is_whole = windows_before(row, 2, B)
    assert before[0, 5].tolist() == [B, 1]
    assert before[0, 4].tolist() == [B, B]
    assert before[0, 7].tolist() == [2, 3]
    assert before[0, 2].tolist() == [5, 6]
    # The sentence of the first words began before the row.
    assert is_whole[0].tolist() == [False, False] + [True] * 8
    behind, has_all = windows_after(row, 2, E)
    assert behind[0, 4].tolist() == [2, 3]
    assert behind[0, 6].tolist() == [E, E]
    assert behind[0, 0].tolist() == [6, E]
    assert has_all[0].tolist() == [True] * 8 + [False, False]


def rows_of(*lines: list[int], length: int = 12) -> WordRows:
    ids = np.full((len(lines), length), 1, np.int32)  # END_ID of the rows
    for row, line in zip(ids, lines, strict=True):
        row[: len(line)] = line
    return WordRows(ids, np.array([len(line) for line in lines], np.int32), key=99)


def test_every_word_of_a_row_is_asked_once_and_rare_words_are_unknown():
    # Marks come first in rows: 0 <s>, 1 </s>, 2 unknown; words follow.
    batch = rows_of([0, 3, 4, 2, 99, 1, 0, 5])
    windows, targets = next_words(batch, 3, 10)
    assert targets.tolist() == [0, 1, 10, 10, E, 2]
    assert windows[0].tolist() == [B, B, B]
    assert windows[4].tolist() == [1, 10, 10]
    assert windows[5].tolist() == [B, B, B]
    middles = middle_words(batch, 1, 10)
    assert middles.tolist() == [[B, 0, 1], [0, 1, 10], [B, 2, E]]


def test_numbers_are_those_of_the_stream():
    assert numbers(12345, 4).tolist() == [number(12345, index) for index in range(4)]


# ---- the network --------------------------------------------------------------------------------


def plain_loss(weights: dict, windows: list[list[int]], targets: list[int], direct: bool):
    """Bengio's equations, a window at a time: y = b + W x + U tanh(d + H x)."""
    total = torch.zeros((), dtype=torch.float64)
    for window, target in zip(windows, targets, strict=True):
        x = torch.cat([weights["words.weight"][word] for word in window])
        hidden = torch.tanh(weights["hidden.bias"] + weights["hidden.weight"] @ x)
        size = len(hidden)
        y = weights["bias_V"] + weights["table_VD"][:, :size] @ hidden
        if direct:
            y = y + weights["table_VD"][:, size:] @ x
        total = total - y[target] + torch.log(torch.exp(y).sum())
    return total


@pytest.mark.parametrize("direct", [False, True])
def test_loss_and_gradients_are_those_of_the_equations(direct):
    config = NNLMConfig(num_words=10, window=3, dim=4, num_hidden=5, direct=direct)
    network = NNLMNetwork(config, seed=3)
    with torch.no_grad():
        network.table_VD.normal_(generator=torch.Generator().manual_seed(1))
    objective = NNLMObjective(network)
    batch = rows_of([0, 3, 4, 5, 2, 1, 0, 6], [0, 7, 3, 1])
    counts = objective.counts(batch)
    loss, metrics = objective(objective.prepare(batch), {"words": torch.tensor(counts["words"])})
    loss.backward()
    weights = {
        name: value.detach().double().requires_grad_() for name, value in network.named_parameters()
    }
    windows, targets = next_words(batch, 3, 10)
    plain = plain_loss(weights, windows.tolist(), targets.tolist(), direct)
    (plain / counts["words"]).backward()
    assert float(metrics["word_loss"]) == pytest.approx(float(plain.detach()), rel=1e-5)
    assert counts["words"] == len(targets) == 9
    for name, value in network.named_parameters():
        assert torch.allclose(value.grad.double(), weights[name].grad, atol=1e-6), name


def test_a_sample_of_all_words_gives_the_full_loss():
    from sememe.nn.softmax import Sampler

    network = NNLMNetwork(NNLMConfig(num_words=10, window=3, dim=4, num_hidden=5), seed=3)
    batch = rows_of([0, 3, 4, 5, 2, 1])
    losses = []
    for sampler in (None, Sampler(np.arange(1, 13), 12)):
        objective = NNLMObjective(network, sampler).train()
        counts = {"words": torch.tensor(1.0)}
        losses.append(objective(objective.prepare(batch), counts)[0].item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_the_ranking_loss_and_its_gradients_are_those_of_the_equations():
    config = NNLMConfig(num_words=10, architecture="ranking", window=2, dim=4, num_hidden=5)
    network = RankingNetwork(config, seed=3)
    objective = RankingObjective(network, np.array([3.0, *[1.0] * 9]))
    batch = rows_of([0, 3, 4, 5, 6, 7, 1], [0, 8, 9, 1])
    prepared = objective.prepare(batch)
    num = objective.counts(batch)["windows"]
    loss, metrics = objective(prepared, {"windows": torch.tensor(float(num))})
    loss.backward()
    weights = {
        name: value.detach().double().requires_grad_() for name, value in network.named_parameters()
    }

    def score(window: list[int]):
        x = torch.cat([weights["words.weight"][word] for word in window])
        hidden = (weights["hidden.bias"] + weights["hidden.weight"] @ x).clamp(-1, 1)
        return weights["output.weight"][0] @ hidden

    plain, drawn = torch.zeros((), dtype=torch.float64), prepared.words_M.tolist()
    for window, other in zip(prepared.windows_MC.tolist(), drawn, strict=True):
        broken = [*window[:2], other, *window[3:]]
        plain = plain + torch.clamp(1 - score(window) + score(broken), min=0)
    (plain / num).backward()
    assert num == 7 and len(set(drawn)) > 1
    assert float(metrics["ranking_loss"]) == pytest.approx(float(plain.detach()), rel=1e-5)
    for name, value in network.named_parameters():
        assert torch.allclose(value.grad.double(), weights[name].grad, atol=1e-6), name


def test_another_word_is_drawn_by_the_chances_of_all_others():
    config = NNLMConfig(num_words=4, architecture="ranking", window=1, dim=2, num_hidden=2)
    chances = np.array([6.0, 3.0, 2.0, 1.0])
    objective = RankingObjective(RankingNetwork(config), chances)
    drawn, own = [], []
    for key in range(300):
        rows = [[0, 3, 4, 5, 6, 1]] * 4
        prepared = objective.prepare(WordRows(np.array(rows, np.int32), np.full(4, 6), key))
        own.append(prepared.windows_MC[:, 1].numpy())
        drawn.append(prepared.words_M.numpy())
    found, words = np.concatenate(drawn), np.concatenate(own)
    assert not (found == words).any()
    for word in range(4):
        shares = np.bincount(found[words == word], minlength=4) / (words == word).sum()
        wanted = np.where(np.arange(4) == word, 0.0, chances)
        np.testing.assert_allclose(shares, wanted / wanted.sum(), atol=0.06)


def test_later_words_change_nothing_before_them():
    first, second = rows_of([0, 3, 4, 5, 6, 1]), rows_of([0, 3, 4, 5, 9, 1])
    network = NNLMNetwork(NNLMConfig(num_words=10, window=3, dim=4, num_hidden=5))
    logits = []
    for batch in (first, second):
        windows, _ = next_words(batch, 3, 10)
        logits.append(network.logits(torch.from_numpy(windows)))
    # The fourth word differs: it is predicted from the same words, the end is not.
    assert torch.equal(logits[0][:4], logits[1][:4])
    assert not torch.allclose(logits[0][4], logits[1][4])


# ---- the model ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> NNLM:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMEME_CACHE", str(tmp_path_factory.mktemp("cache")))
        options = {**QUICK, "steps": 150, "learning_rate": 0.02, "validation_share": 0.1}
        return NNLM(**options).fit(SENTENCES)


def test_it_learns_and_suggests(trained):
    metrics = trained.history.last()
    assert metrics["validation_perplexity"] < metrics["validation_unigram_perplexity"] / 3
    chances = trained.distribution(["the", "young"])
    assert chances.sum() == pytest.approx(1.0) and len(chances) == len(trained.vocabulary) + 2
    assert trained.next_words("by the ", count=1)[0].text == "sea"
    assert trained.next_words("by the s", count=5)[0].text == "sea"
    assert trained.next_words("国王 和 ", count=1)[0].text == "女王"


def test_scores_add_up(trained):
    words = ["the", "old", "queen"]
    chances = [trained.distribution(words[:index]) for index in range(4)]
    ids = [*trained.ids_of(words).tolist(), len(trained.vocabulary) + 1]
    wanted = sum(math.log10(row[one]) for row, one in zip(chances, ids, strict=True))
    assert trained.score("the old queen") == pytest.approx(wanted, rel=1e-5)
    found = trained.evaluate([words, ["an", "unknown", "word"]])
    assert (found.num_words, found.num_unknown) == (8, 3)


def test_long_texts_are_read_in_blocks(trained, monkeypatch):
    from sememe.models.nnlm import network

    whole = trained.evaluate(SENTENCES[:8])
    monkeypatch.setattr(network, "_BLOCK", 5)
    parts = trained.evaluate(SENTENCES[:8])
    assert parts.num_words == whole.num_words
    assert parts.log10 == pytest.approx(whole.log10, rel=1e-6)


def test_the_folder_serves_word_commands(trained, place):
    trained.save("model")
    opened = NNLM.load("model")
    assert opened.next_words("the old ", count=3) == trained.next_words("the old ", count=3)
    vectors = sememe.load("model").words
    assert np.array_equal(vectors.vectors, trained.vectors.vectors)
    assert len(vectors.neighbors("king", num=3)) == 3
    manifest = json.loads((place / "model" / "sememe.json").read_text())
    assert manifest["kind"] == "nnlm" and manifest["config"]["window"] == 4


def test_stopped_and_resumed_is_never_stopped(place):
    whole = NNLM(**QUICK).fit(SENTENCES, out="whole")
    with killed_at(12):
        NNLM(**QUICK).fit(SENTENCES, out="parts")
    resumed = NNLM(**QUICK).fit(SENTENCES, out="parts", resume=True)
    assert_equal(whole, resumed)
    again = NNLM(**QUICK).fit(SENTENCES, out="parts", resume=True)
    assert again.history.last() == resumed.history.last()


def test_ranking_tells_text_from_broken_text():
    options = {**QUICK, "steps": 150, "learning_rate": 0.02, "validation_share": 0.1}
    model = NNLM(architecture="ranking", window=2, **options).fit(SENTENCES)
    assert model.history.last()["validation_ranking_accuracy"] > 0.85
    assert "validation_perplexity" not in model.history.last()
    assert model.vectors.dim == 8
    assert not {"next_words", "score"} & model.capabilities
    with pytest.raises(UnsupportedError, match="predicts no word"):
        model.next_words("the ")
    model.save("ranking")
    assert NNLM.load("ranking").config.architecture == "ranking"


def test_refusals(place):
    with pytest.raises(OptionError, match="no option"):
        NNLM(layers=3)
    with pytest.raises(OptionError, match="length"):
        NNLM(window=16, length=16, steps=1).fit(SENTENCES)
    with pytest.raises(OptionError, match="preset"):
        NNLM("huge")
    with pytest.raises(OptionError, match="ranking has none"):
        NNLM(architecture="ranking", direct=True)
    with pytest.raises(OptionError, match="call fit first"):
        NNLM().next_words("a")
    with pytest.raises(ArtifactError):
        NNLM.load("nowhere")
    with pytest.raises(OptionError, match="resume"):
        NNLM().fit(SENTENCES, resume=True)

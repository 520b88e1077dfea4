"""ELMo: what each direction sees, padding, losses, training, resume, folders, bad input."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import sememe
from sememe.errors import ArtifactError, InputError, OptionError, WriteError
from sememe.examples.word_rows import BEGIN_ID, END_ID, WordRowBatches, WordRows
from sememe.models.elmo.config import ELMoConfig
from sememe.models.elmo.encoder import Opened, inputs_of, read_layers
from sememe.models.elmo.model import TrainingSentences
from sememe.models.elmo.network import (
    BidirectionalObjective,
    ELMoNetwork,
    forms_of,
)
from sememe.models.fitting import Request
from sememe.models.word2vec.training import WindowRun
from sememe.nn.softmax import Sampler
from sememe.storage.checkpoints import Checkpoints
from sememe.text.settings import TextSettings
from sememe.tokens.store import is_held_out
from sememe.tokens.vocabulary import Vocabulary
from stopping import assert_equal, ctrl_c_at

WORDS = ["the", "king", "sees", "a", "cat", "国王", "看见", "猫"]
SIZES: dict[str, Any] = {
    "num_cells": 24, "width": 12, "filters": "1:4 2:6 3:8", "num_highways": 1, "char_width": 5,
}  # fmt: skip
SMALL = {
    **SIZES, "length": 12, "batch_size": 4, "steps": 10, "evaluate_batches": 2, "workers": 1,
    "validation_share": 0.2, "min_count": 2, "device": "cpu", "learning_rate": 0.02,
}  # fmt: skip


@pytest.fixture
def opened() -> Opened:
    config = ELMoConfig(vocab_size=2 + len(WORDS), **SIZES)  # the last word is not predicted
    network = ELMoNetwork(config, seed=3).eval()
    with torch.no_grad():  # far from zero, where every word shows
        for name, parameter in network.named_parameters():
            if "lstm" in name:
                parameter.mul_(3)
    return Opened(network, forms_of(Vocabulary.from_words(WORDS), config))


def write_corpus(path: Path, is_chinese: bool = False) -> Path:
    random = np.random.default_rng(0)
    parts: Any = (("The cat", "A king", "The dog"), ("sees", "likes"), ("fish", "rain", "Paris"))
    if is_chinese:
        parts = (("国王", "老人", "猫"), ("看见", "喜欢"), ("苹果", "牛奶", "北京"))
    space = "" if is_chinese else " "
    documents = [
        space.join(space.join(map(random.choice, parts)) + "。."[not is_chinese] for _ in range(5))
        for _ in range(40)
    ]
    path.write_text("\n".join(documents) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path, own_cache: Path) -> Path:
    return write_corpus(tmp_path / "text.txt")


def elmo(**options: Any) -> sememe.ELMo:
    return sememe.ELMo("tiny", **{**SMALL, **options})


# ---- the network --------------------------------------------------------------------------------


def test_forward_layers_see_nothing_after_and_backward_layers_nothing_before(opened):
    sentence = ["the", "king", "sees", "a", "cat"]
    changed = ["the", "king", "猫", "a", "cat"]
    first, second = read_layers(opened, [sentence])[0], read_layers(opened, [changed])[0]
    width = opened.network.config.width
    for layer in (1, 2):
        differs = (first[layer] - second[layer]).abs() > 1e-6
        assert differs[:, :width].any(1).tolist() == [False, False, True, True, True]
        assert differs[:, width:].any(1).tolist() == [True, True, True, False, False]
    alone = (first[0] - second[0]).abs() > 1e-6
    assert alone.any(1).tolist() == [False, False, True, False, False]
    assert torch.equal(first[0][:, :width], first[0][:, width:])


def test_longer_rows_beside_a_sentence_change_nothing(opened):
    sentences = [["a"], ["the", "king", "sees", "a", "cat"] * 3, ["猫", "sees"], []]
    together = read_layers(opened, sentences)
    for words, own in zip(sentences, together, strict=True):
        alone = read_layers(opened, [words])[0]
        for layer, other in zip(own, alone, strict=True):
            assert layer.shape == (len(words), 24)
            torch.testing.assert_close(layer, other, atol=1e-5, rtol=0)


def test_long_texts_are_read_in_windows_that_agree_inside(opened, monkeypatch):
    words = ["the", "king", "sees", "a", "cat"] * 12
    opened.network.initialise(1)
    whole = read_layers(opened, [words])[0]
    monkeypatch.setattr("sememe.models.language.word_reading.LONGEST", 40)
    monkeypatch.setattr("sememe.models.language.word_reading._OVERLAP", 30)
    cut = read_layers(opened, [words])[0]
    assert cut[2].shape == whole[2].shape == (60, 24)
    torch.testing.assert_close(cut[0], whole[0])
    assert (cut[2] - whole[2]).abs().mean() < 0.2 * whole[2].abs().mean()


def test_layers_above_the_first_add_to_what_goes_in(opened):
    inputs = inputs_of([["<S>", "the", "cat", "</S>"]], opened.forms)
    read = opened.network.read(inputs)
    top = opened.network.reads_forward.layers[1]
    torch.testing.assert_close(read.forward[1], top(read.forward[0])[0] + read.forward[0])


def objective_of(opened: Opened, sampler: Sampler | None = None) -> BidirectionalObjective:
    return BidirectionalObjective(opened.network, opened.forms, sampler)


def batch_of(*rows: list[int]) -> WordRows:
    lengths = np.array([len(row) for row in rows], np.int32)
    ids = np.full((len(rows), max(lengths)), END_ID, np.int32)
    for own, row in zip(ids, rows, strict=True):
        own[: len(row)] = row
    return WordRows(ids, lengths, key=7)


def run(objective: BidirectionalObjective, batch: WordRows) -> tuple[Any, dict[str, Any]]:
    counts = {name: torch.tensor(float(n)) for name, n in objective.counts(batch).items()}
    return objective(objective.prepare(batch), counts)


def test_the_loss_is_that_of_the_next_words_and_of_those_before(opened):
    objective = objective_of(opened).eval()
    row, short = [BEGIN_ID, 3, 4, END_ID, BEGIN_ID, 5, 10], [8, 10, END_ID]
    batch = batch_of(row, short)
    wanted = {"forward": 0.0, "backward": 0.0}
    counts = {"forward": 0, "backward": 0}
    for ids in (row, short):
        inputs = objective.prepare(batch_of(ids)).inputs
        read = opened.network.read(inputs)
        for name, states, order in (("forward", read.forward, 1), ("backward", read.backward, -1)):
            scores = opened.network.next_logits(states[-1][:, 0]).log_softmax(-1)
            for place, target in enumerate(ids):
                source = place - order
                skipped = BEGIN_ID if order > 0 else END_ID
                if 0 <= source < len(ids) and target != skipped:
                    wanted[name] -= float(scores[source, target if target < 10 else 2].detach())
                    counts[name] += 1
    assert objective.counts(batch) == {"tokens": 10, **counts}
    loss, metrics = run(objective, batch)
    for name in wanted:
        assert float(metrics[f"{name}_loss"]) == pytest.approx(wanted[name], rel=1e-5)
    mean = sum(wanted[name] / counts[name] for name in wanted)
    assert float(loss.detach()) == pytest.approx(mean, rel=1e-5)


def test_training_may_use_samples_and_validation_all_words(opened):
    batch = batch_of([BEGIN_ID, 3, 4, 5, END_ID])
    for direction in (opened.network.reads_forward, opened.network.reads_backward):
        direction.dropout = 0.0
    plain, sampled = objective_of(opened), objective_of(opened, Sampler(np.ones(10), 4))
    full = float(run(plain.eval(), batch)[0].detach())
    assert float(run(sampled.eval(), batch)[0].detach()) == pytest.approx(full)
    first = float(run(sampled.train(), batch)[0].detach())
    assert first != pytest.approx(full)
    assert math.isfinite(first)


# ---- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["characters", "words", "subwords"])
def test_it_learns_what_words_follow_and_precede(corpus, kind):
    model = elmo(steps=40, input=kind, bucket=500).fit(corpus)
    last = model.history.last()
    assert last["validation_forward_perplexity"] < 0.6 * last["validation_unigram_perplexity"]
    assert last["validation_backward_perplexity"] < 0.6 * last["validation_unigram_perplexity"]
    layers = model.layers([["The", "cat", "sees", "rain"], ["Paris"]])
    assert [own.shape for own in layers] == [(3, 4, 24), (3, 1, 24)]


def test_a_sampled_softmax_learns_too(corpus):
    model = elmo(steps=60, softmax="sampled", num_samples=8).fit(corpus)
    last = model.history.last()
    assert last["validation_perplexity"] < 0.7 * last["validation_unigram_perplexity"]


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_skipgram_gives_first_vectors_to_the_softmax_and_to_a_table_of_words(corpus, kind):
    options = {"input": kind, "validation_share": 0.0, "steps": 1, "learning_rate": 1e-12}
    plain, started = (elmo(**options, start_epochs=num).fit(corpus) for num in (0, 3))
    assert plain.start_s == 0.0 < started.start_s
    store = started.open_text(corpus, Request()).store
    skipgram = sememe.Word2Vec(dim=12, epochs=3, min_count=2, workers=1).fit(store)
    rows = [skipgram.vocabulary.find(word) for word in started.vocabulary]
    pairs = [("output", plain.network.table_VP, started.network.table_VP)]
    if kind == "words":
        pairs.append(("input", plain.network.input.rows.weight, started.network.input.rows.weight))
    for name, first, table in pairs:
        found, own = table.detach().numpy()[3 : 3 + len(rows)], skipgram.tensors[name][rows]
        np.testing.assert_allclose(found / found.std(), own / own.std(), atol=1e-4)
        drawn = first.detach().numpy()[3 : 3 + len(rows)]
        assert found.std() == pytest.approx(drawn.std(), rel=0.02)  # no larger than it would be


def test_skipgram_never_reads_what_is_held_out(corpus):
    store = elmo().open_text(corpus, Request()).store
    held = is_held_out(np.arange(len(store.document_ends)), 0.2)
    lengths = np.diff(store.sentence_ends[np.asarray(store.document_ends) - 1], prepend=0)
    sentences = list(TrainingSentences(store, 0.2))
    assert 0 < held.sum() < len(held)
    assert sum(map(len, sentences)) == lengths[~held].sum()
    assert sum(map(len, TrainingSentences(store, 0.0))) == store.num_tokens


def test_two_runs_and_a_resumed_one_are_equal_to_the_bit(corpus, tmp_path):
    whole = elmo(dropout=0.2).fit(corpus, out=tmp_path / "whole")
    out = tmp_path / "resumed"
    with ctrl_c_at(8, WordRowBatches):
        elmo(dropout=0.2).fit(corpus, out=out)
    assert Checkpoints(f"{out}.checkpoints").has_one and not out.exists()
    resumed = elmo(dropout=0.2).fit(corpus, out=out, resume=True)
    begun = [elmo(start_epochs=2, input="words").fit(corpus) for _ in range(2)]
    assert_equal(*begun)
    assert_equal(whole, elmo(dropout=0.2).fit(corpus))
    assert_equal(whole, resumed)
    losses = [[r["loss"] for r in m.history if "loss" in r] for m in (whole, resumed)]
    assert losses[0] == losses[1]
    # What is finished is opened, not trained again.
    assert elmo(dropout=0.2).fit(corpus, out=out, resume=True).history == resumed.history


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_resumed_run_keeps_what_skipgram_made(corpus, tmp_path, monkeypatch, share):
    options = {"start_epochs": 3, "input": "words", "validation_share": share}
    steps: list[int] = []
    learn = WindowRun.step

    def counted(self: WindowRun, step: int, *more: Any) -> None:
        steps.append(step)
        learn(self, step, *more)
        time.sleep(0.005)  # a fast machine takes less than the millisecond that the history keeps

    monkeypatch.setattr(WindowRun, "step", counted)
    whole = elmo(**options).fit(corpus, out=tmp_path / "whole")
    out, num_steps = tmp_path / "cut", len(steps)
    with ctrl_c_at(8, WordRowBatches):
        elmo(**options).fit(corpus, out=out)
    assert Path(f"{out}.start").exists() and len(steps) == 2 * num_steps > 0
    trained_s = sememe.Word2Vec.load(f"{out}.start").history.last()["seconds"]
    resumed = elmo(**options).fit(corpus, out=out, resume=True)
    assert len(steps) == 2 * num_steps and resumed.start_s >= trained_s > 0
    assert_equal(whole, resumed)
    assert not list(tmp_path.glob("*.start*"))


def test_what_lies_in_the_place_of_skipgram_is_never_replaced(tmp_path):
    (tmp_path / "out.start").mkdir()
    (tmp_path / "out.start" / "letter.txt").write_text("mine")
    with pytest.raises(WriteError, match=r"out\.start"):
        elmo(start_epochs=1).fit("no such text", out=tmp_path / "out")  # said before it is read
    assert (tmp_path / "out.start" / "letter.txt").read_text() == "mine"


def test_a_folder_gives_the_same_model_back(corpus, tmp_path):
    model = elmo().fit(corpus, out=tmp_path / "model")
    opened = sememe.ELMo.load(tmp_path / "model")
    sentence = [["The", "cat", "sees", "Zanzibar"]]
    assert np.array_equal(opened.layers(sentence)[0], model.layers(sentence)[0])
    assert opened.config == model.config and list(opened.vocabulary) == list(model.vocabulary)
    assert opened.training == model.training and opened.text == model.text
    assert not opened.text.lowercase and "Paris" in opened.vocabulary
    assert (tmp_path / "model" / "loss.png").exists()
    by_text = opened.embed_words(["The cat sees Zanzibar!"])[0]
    assert np.array_equal(by_text, opened.embed_words(sentence)[0])
    first = opened.embed_words(sentence, layers=0)[0]
    assert np.array_equal(first, opened.layers(sentence)[0][0])


def test_chinese_is_cut_into_words_and_spelled_in_bytes(tmp_path, own_cache):
    corpus = write_corpus(tmp_path / "zh.txt", is_chinese=True)
    model = elmo(steps=30).fit(corpus, language="zh", out=tmp_path / "model")
    assert "国王" in model.vocabulary and "苹果" in model.vocabulary
    last = model.history.last()
    assert last["validation_perplexity"] < 0.7 * last["validation_unigram_perplexity"]
    (own,) = sememe.ELMo.load(tmp_path / "model").embed_spans(["老人看见苹果。"])
    assert own.words == ["老人", "看见", "苹果"] and own.starts.tolist() == [0, 2, 4]
    assert own.vectors_WD.shape == (3, 24)


def test_a_store_can_be_given(corpus, tmp_path):
    from sememe.tokens.caching import open_or_build

    store = open_or_build(corpus, TextSettings(lowercase=False), min_count=1, path=tmp_path / "s")
    assert_equal(elmo().fit(store), elmo().fit(corpus))


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"filters": "1-32"}, "lengths with numbers"),
        ({"filters": ""}, "lengths with numbers"),
        ({"filters": "1:0"}, "lengths with numbers"),
        ({"filters": "9:4", "max_characters": 8}, "max_characters"),
        ({"num_cells": 8, "width": 9}, "width"),
        ({"input": "sounds"}, "input must be one of"),
        ({"dropout": 1.5}, "dropout"),
        ({"heads": 3}, "no option heads"),
    ],
)
def test_sizes_that_cannot_be_are_named(options, words):
    with pytest.raises(OptionError, match=words):
        sememe.ELMo("tiny", **options)


def test_bad_input_is_refused(corpus, tmp_path):
    with pytest.raises(OptionError, match="preset must be one of"):
        sememe.ELMo("huge")
    with pytest.raises(OptionError, match="call fit first"):
        elmo().layers([["a"]])
    with pytest.raises(OptionError, match="nothing to save"):
        elmo().save(tmp_path / "none")
    with pytest.raises(InputError, match="No word occurs 9,999 times"):
        elmo(min_count=9_999).fit(corpus)
    with pytest.raises(OptionError, match="out"):
        elmo().fit(corpus, resume=True)
    model = elmo(steps=1).fit(corpus, out=tmp_path / "model")
    with pytest.raises(InputError, match="Sentence 2"):
        model.layers([["a"], "b c"])
    with pytest.raises(InputError, match="'a b'"):
        model.layers("a b")
    with pytest.raises(OptionError, match="layers must"):
        model.embed_words([["a"]], layers=7)
    shutil.copytree(tmp_path / "model", tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"xx")
    with pytest.raises(ArtifactError, match="safetensors"):
        sememe.ELMo.load(tmp_path / "broken")
    with pytest.raises(ArtifactError, match="no model folder"):
        sememe.ELMo.load(tmp_path / "nowhere")

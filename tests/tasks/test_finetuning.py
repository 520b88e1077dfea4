"""Tasks as a whole, on a BERT and a GPT of a few thousand weights: learn, predict, save, resume."""

from __future__ import annotations

import json
import os
import signal
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from quick_tasks import QUICK, assert_same

from recorded_notes import Notes
from sememe import Choose, Classify, Pairs, Regress, Tag
from sememe.errors import OptionError
from sememe.tasks.objective import ItemBatches
from sememe.tasks.task import Task

GOOD, BAD = ("good", "great", "lovely", "fine", "nice"), ("bad", "poor", "awful", "dull", "ugly")
PAIRS = [
    (f"the {a} film", f"a {b} story", "same" if a in GOOD and b in GOOD else "other")
    for a in GOOD + BAD
    for b in GOOD + BAD
]
SCORED = [
    (f"the {a} film", f"a {b} story", 2.0 * ((a in GOOD) + (b in GOOD)))
    for a in GOOD + BAD
    for b in GOOD + BAD
]
CHOICES = [
    {"text": "the film of the day", "choices": [f"it is {w}" for w in words], "label": str(right)}
    for words, right in [
        ((GOOD[i], BAD[j]) if (i + j) % 2 else (BAD[j], GOOD[i]), 0 if (i + j) % 2 else 1)
        for i in range(5)
        for j in range(5)
    ]
] * 2


def test_classify_learns_saves_and_loads(topics, opinions):
    task, folder = topics
    assert task.scores.value >= 0.9 and task.scores.num_rows == 8
    assert sum(map(sum, task.scores.confusion)) == 8 and task.labels == ["bad", "good"]
    again = Classify.load(folder)
    texts = [text for text, _ in opinions]
    assert again.predict(texts) == task.predict(texts)
    one = again.predict(["a lovely story"])[0]
    assert one.label == "good" and sum(one.probabilities.values()) == pytest.approx(1)
    scores = again.evaluate(opinions)
    assert scores.metrics["accuracy"] >= 0.95 and scores.num_rows == 80
    manifest = json.loads((folder / "sememe.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == "task" and manifest["labels"] == ["bad", "good"]
    assert manifest["scores"]["metrics"] == task.scores.metrics
    assert not list(folder.parent.glob("*.checkpoints"))


@pytest.mark.parametrize("name", ["bert", "gpt"])
@pytest.mark.parametrize(
    ("cls", "rows", "least"), [(Pairs, PAIRS, 0.9), (Regress, SCORED, 0.8), (Choose, CHOICES, 0.9)]
)
def test_every_task_learns_on_every_network(request, tmp_path, name, cls, rows, least):
    model = request.getfixturevalue(name)
    task = cls(model, **QUICK | {"epochs": 12.0}).fit(rows, dev=rows)
    assert task.scores.value >= least
    values = task.history.column(f"validation_{task.main_metric}")
    # Predictions are computed by faster products than validations.
    assert task.scores.value == pytest.approx(np.nanmax(values), abs=1e-6)
    task.save(tmp_path / "task")
    again = Task.load(tmp_path / "task")
    again.config = task.config  # as many threads: the head's products are cut up by their number
    assert type(again) is cls and again.predict(rows[:9]) == task.predict(rows[:9])
    assert again.evaluate(rows).metrics == task.scores.metrics


def test_rows_are_held_out_and_cut_aloud(bert, opinions):
    notes = Notes()
    rows = [(text + " and on" * 30, label) for text, label in opinions]
    Classify(bert, **QUICK | {"epochs": 1.0}).fit(rows, progress=notes)
    assert "8 of 80 training rows are held out" in notes
    assert "72 of 72 training rows are longer than 24 tokens" in notes
    assert "8 of 8 dev rows are longer than 24 tokens" in notes


class Interrupting(ItemBatches):
    """Presses Ctrl-C when a step is prepared."""

    at = 25

    def batch(self, step: int) -> Any:
        if step == self.at:
            os.kill(os.getpid(), signal.SIGINT)
        return super().batch(step)


@pytest.mark.parametrize("more", [{}, {"layer_decay": 0.8, "unfreeze_every": 0.5, "dropout": 0.2}])
def test_a_stopped_run_goes_on_to_the_bit(bert, opinions, tmp_path, monkeypatch, more):
    options = QUICK | {"epochs": 4.0, "patience": 9, **more}
    whole = Classify(bert, **options).fit(opinions)
    with monkeypatch.context() as patch:
        patch.setattr("sememe.tasks.training.ItemBatches", Interrupting)
        with pytest.raises(KeyboardInterrupt):
            Classify(bert, **options).fit(opinions, out=tmp_path / "task")
    assert not (tmp_path / "task").exists()
    notes = Notes()
    resumed = Classify(bert, **options)
    resumed.fit(opinions, out=tmp_path / "task", resume=True, progress=notes)
    assert "Resuming at step" in notes
    assert_same(whole, resumed)
    assert resumed.scores == whole.scores
    again = Classify(bert, **options)
    again.fit(opinions, out=tmp_path / "task", resume=True, progress=notes)
    assert "finished already" in notes
    assert_same(whole, again)
    assert whole.precision == resumed.precision == again.precision == "fp32"
    with pytest.raises(OptionError, match="batch_size"):
        _stopped_then(bert, opinions, tmp_path, monkeypatch, options)


def _stopped_then(bert, opinions, tmp_path, monkeypatch, options):
    with monkeypatch.context() as patch:
        patch.setattr("sememe.tasks.training.ItemBatches", Interrupting)
        with pytest.raises(KeyboardInterrupt):
            Classify(bert, **options).fit(opinions, out=tmp_path / "other")
    Classify(bert, **options | {"batch_size": 16}).fit(
        opinions, out=tmp_path / "other", resume=True
    )


def test_lower_layers_learn_more_slowly_and_later(bert, opinions):
    def moved(**options):
        task = Classify(bert, **QUICK | {"epochs": 2.0, "keep_best": False, **options})
        start = {name: x.numpy().copy() for name, x in bert[0].state_dict().items()}
        network = task.fit(opinions).objective.encoder.network.state_dict()
        names = [f"stack.blocks.{i}.feed_forward.inner.weight" for i in (0, 1)]
        return [float(np.abs(network[name].numpy() - start[name]).mean()) for name in names]

    even, slow, late = moved(), moved(layer_decay=0.3), moved(unfreeze_every=1.0)
    assert slow[0] < 0.5 * slow[1] and slow[0] < 0.3 * even[0]
    assert late[0] == 0 < late[1]  # of two epochs: the head, then the upper block too


@pytest.mark.parametrize(
    ("rate", "least", "more"),
    [
        (0.005, 0.6, {"freeze": True}),  # the [CLS] of a random network says little
        (0.02, 0.7, {"features": "sum-all"}),
        (0.01, 0.85, {"features": "mix", "reader_width": 16}),
    ],
)
def test_frozen_layers_with_a_head(bert, opinions, tmp_path, rate, least, more):
    options = QUICK | {"learning_rate": rate, "epochs": 10.0, **more}
    task = Classify(bert, **options).fit(opinions, out=tmp_path / "task")
    before, after = bert[0].state_dict(), task.objective.encoder.network.state_dict()
    for name, value in before.items():
        assert torch.equal(value, after[name]) or name.startswith("pooler."), name
    assert task.evaluate(opinions).value >= least
    again = Classify.load(tmp_path / "task")
    assert again.predict(opinions) == task.predict(opinions)


def test_the_language_models_loss_is_added(gpt, opinions):
    options = QUICK | {"steps": 1, "epochs": 0.0, "keep_best": False}
    plain, both = (
        Classify(gpt, **options, lm_weight=weight).fit(opinions, dev=False).history.last()
        for weight in (0.0, 0.5)
    )
    assert both["task_loss"] == pytest.approx(plain["task_loss"], rel=1e-5)
    # A network that knows nothing yet: about log V nats a token.
    assert both["language_cross_entropy"] == pytest.approx(np.log(gpt[1].vocab_size + 3), rel=0.2)
    weighted = both["weighted_language_loss"]
    assert weighted == pytest.approx(0.5 * both["language_cross_entropy"])
    assert both["loss"] == pytest.approx(both["task_loss"] + weighted)


def test_gpt_sees_start_delimiter_and_extract(gpt):
    task = Pairs(gpt, **QUICK | {"epochs": 1.0}, both_orders="yes").fit(PAIRS, dev=False)
    tokenizer = task.coder.tokenizer
    (item,) = task.encode(task.read([("a film", "a story", "same")], labelled=True))
    said = [[tokenizer.token(i) for i in sequence.ids_T] for sequence in item.sequences]
    film, story = (
        [tokenizer.token(i) for i in tokenizer.encode(t).ids] for t in ("a film", "a story")
    )
    start, between, end = "<|start|>", "<|delimiter|>", "<|extract|>"
    assert said == [
        [start, *film, between, *story, end], [start, *story, between, *film, end],
    ]  # fmt: skip
    assert (item.sequences[0].segments_T == 0).all()


def test_bert_sees_cls_sep_and_segments(bert):
    task = Pairs(bert, **QUICK | {"epochs": 1.0}).fit(PAIRS, dev=False)
    (item,) = task.encode(task.read([("狗在街上", "film", "same")], labelled=True))
    tokens = [task.coder.tokenizer.token(i) for i in item.sequences[0].ids_T]
    assert tokens == ["[CLS]", *"狗在街上", "[SEP]", "film", "[SEP]"]
    assert item.sequences[0].segments_T.tolist() == [0] * 6 + [1] * 2


def test_balanced_weights_help_a_rare_class(bert, opinions):
    rows = [*opinions[:40], *opinions[40::10]]  # 40 good, 4 bad
    chances = []
    for choice in ("none", "balanced"):
        task = Classify(bert, **QUICK | {"epochs": 2.0}, class_weights=choice)
        task.fit(rows, dev=False)
        chances.append([task.predict([row])[0].probabilities["bad"] for row in rows[40:]])
    assert np.mean(chances[1]) > np.mean(chances[0]) + 0.15
    with pytest.raises(OptionError, match="class_weights"):
        Regress(bert, **QUICK, class_weights="balanced").fit(SCORED, dev=False)


def test_large_scores_are_learned_in_their_own_measure(bert):
    rows = [(first, second, 1_000 + 100 * score) for first, second, score in SCORED]
    task = Regress(bert, **QUICK | {"epochs": 12.0}).fit(rows, dev=rows)
    said = [one.score for one in task.predict(rows)]
    assert task.scores.value > 0.8 and 900 < np.mean(said) < 1_500


def test_staged_fine_tuning_keeps_or_renews_the_head(topics, opinions):
    task, folder = topics
    notes = Notes()
    again = Classify(folder, **QUICK | {"steps": 1, "epochs": 0.0, "learning_rate": 1e-9})
    again.fit(opinions, progress=notes)
    assert "its head is kept" in notes
    assert again.predict(opinions)[0].label == task.predict(opinions)[0].label
    renamed = [(text, {"good": "gut", "bad": "schlecht"}[label]) for text, label in opinions]
    for start in (folder, task):
        other = Classify(start, **QUICK).fit(renamed, progress=notes)
        assert "the head is new" in notes and other.labels == ["gut", "schlecht"]
        assert other.scores.value >= 0.9
    assert Classify.load(folder).labels == ["bad", "good"]


def test_a_pooler_that_was_new_is_kept(bert, opinions, tmp_path):
    network, tokenizer = deepcopy(bert)
    network.untrained = frozenset({"pooler", "next head"})
    task = Classify((network, tokenizer), **{**QUICK, "epochs": 1.0})
    task.fit(opinions, out=tmp_path / "task")
    texts = [text for text, _ in opinions[::7]]
    again = Classify.load(tmp_path / "task")
    assert again.predict(texts) == task.predict(texts)
    assert "pooler" not in again.objective.encoder.network.untrained
    rows = [(["a", "cat"], ["O", "B-X"])] * 8
    tagger = Tag(tmp_path / "task", **{**QUICK, "epochs": 0.0, "steps": 1}).fit(rows)
    tagger.save(tmp_path / "tags")  # a head that does not teach the pooler leaves it out
    assert "pooler" in Tag.load(tmp_path / "tags").objective.encoder.network.untrained


def test_the_same_seed_gives_the_same_bits_and_another_one_others(bert, opinions):
    first, again, other = (
        Classify(bert, **QUICK | {"epochs": 1.0}, dropout=0.1, seed=seed).fit(opinions, dev=False)
        for seed in (1, 1, 2)
    )
    assert_same(first, again)
    with pytest.raises(AssertionError):
        assert_same(first, other)


def test_parts_of_a_step_give_the_same_as_the_whole(bert, opinions):
    losses = [
        Classify(bert, **QUICK | {"epochs": 1.0}, accumulate=num, class_weights="balanced")
        .fit(opinions[:75], dev=False)
        .history.column("loss")
        for num in (1, 4)  # the last batch has three rows for four parts
    ]
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_a_budget_and_a_few_dev_batches(bert, opinions):
    options = {name: value for name, value in QUICK.items() if name != "epochs"}
    task = Classify(bert, **options, budget="2s", evaluate_batches=1).fit(opinions, dev=opinions)
    assert task.history.last()["step"] >= 1 and task.scores.num_rows == 80

"""ULMFiT under heads: concat pooling, the three steps, rates by layer, folders, resume, Chinese."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from quick_tasks import assert_same

from stopping import killed_at

torch = pytest.importorskip("torch")

from sememe import Classify, Pairs, Tag, ULMFiT
from sememe.errors import ArtifactError, OptionError
from sememe.models.ulmfit.encoder import concat_pooled
from sememe.nn.encoders import inputs_of
from sememe.tasks.training import rate_groups

QUICK: dict[str, Any] = {
    "device": "cpu", "workers": 1, "length": 24, "batch_size": 8, "epochs": 5.0,
    "learning_rate": 0.02, "schedule": "slanted", "layer_decay": 0.5, "unfreeze_every": 0.5,
}  # fmt: skip
LANGUAGE: dict[str, Any] = {
    "steps": 8, "min_count": 1, "length": 12, "batch_size": 4, "workers": 1, "device": "cpu",
    "evaluate_batches": 0,
}  # fmt: skip
TEXTS = ["The old cat sat on a warm mat.", "A young dog ran over the day and night."] * 6


@pytest.fixture(scope="module")
def general(tmp_path_factory) -> ULMFiT:
    place = tmp_path_factory.mktemp("ulmfit")
    model = ULMFiT(num_cells=24, width=16, num_layers=2, **LANGUAGE)
    return model.fit(TEXTS, store=place / "store", out=place / "general")


@pytest.fixture(scope="module")
def target(general, opinions, tmp_path_factory) -> ULMFiT:
    """The language model after its second step, with the words of the task."""
    texts = [text for text, _ in opinions]
    model = ULMFiT(
        start=general, layer_decay=0.4, **{**LANGUAGE, "steps": 20, "learning_rate": 0.02}
    )
    return model.fit(texts, store=tmp_path_factory.mktemp("second") / "store")


def opened(model: Any, reads: Any = "text", **options: Any) -> Any:
    return model.encoder(reads, Classify(model, **{**QUICK, **options}).config)


def sequence(coder: Any, *texts: str) -> Any:
    return coder.frame(*(own.ids for own in coder.encode(list(texts)))).sequence


def test_a_text_is_its_last_its_greatest_and_its_mean_output(target):
    backbone = opened(target)
    encoder, coder = backbone.encoder.eval(), backbone.coder
    own = [sequence(coder, text) for text in ("a good film", "the day", "")]
    inputs = inputs_of(own)
    tokens = encoder.tokens(inputs).detach()
    pooled = concat_pooled(tokens, inputs)
    place = 0
    for row, one in zip(pooled, own, strict=True):
        ids = torch.from_numpy(one.ids_T.astype(np.int64))[:, None]
        outputs = target.network(ids).layers[-1][:, 0].detach()
        torch.testing.assert_close(tokens[place : place + len(ids)], outputs, atol=1e-6, rtol=0)
        wanted = torch.cat([outputs[-1], outputs.amax(0), outputs.mean(0)])
        torch.testing.assert_close(row, wanted, atol=1e-6, rtol=0)
        place += len(ids)
    # What stands beside a text in a batch, or fills it up, changes nothing.
    alone = encoder.sequences(encoder.tokens(one_row := inputs_of(own[1:2])), one_row)
    torch.testing.assert_close(encoder.sequences(tokens, inputs)[1:2], alone, atol=1e-5, rtol=0)
    assert own[2].ids_T.tolist() == [0] and encoder.width == 50


def test_two_texts_stand_as_two_sentences_and_the_longer_is_cut(target):
    coder = opened(target, "texts", length=8).coder
    found = sequence(coder, "good film", "a bad day of the night")
    good, film, bad, day = target.ids_of(["good", "film", "bad", "day"])
    assert found.ids_T.tolist() == [0, good, film, 1, 0, 2, bad, day]  # no text has the word a
    assert found.segments_T.tolist() == [0] * 4 + [1] * 4
    (own,) = coder.encode(["Good, strange film!"])
    assert own.ids.tolist() == [good, 2, film]
    assert [(int(s), int(e)) for s, e in zip(own.starts, own.ends, strict=True)][-1] == (14, 18)


def test_layers_learn_later_and_more_slowly_the_lower_they_lie(target):
    task = Classify(target, **QUICK)
    encoder = opened(target).encoder
    head = torch.nn.Linear(encoder.width, 2)
    objective = type("Objective", (), {"encoder": encoder, "head": head})()
    source = type("Source", (), {"batches_per_epoch": 10})()
    groups = rate_groups(objective, source, task.config)(50)
    factors = [[group.factor(step) for step in (0, 5, 10, 15)] for group in groups]
    assert factors == [
        [0, 0, 0, 0.125], [0, 0, 0.25, 0.25], [0, 0.5, 0.5, 0.5], [1, 1, 1, 1]
    ]  # fmt: skip
    shapes = [tuple(group.parameters[0].shape) for group in groups]
    assert shapes[0] == tuple(target.network.table_VE.shape) and shapes[1][0] == 4 * 24


def test_three_steps_tell_good_from_bad(target, opinions, tmp_path):
    before = {name: x.clone() for name, x in target.network.state_dict().items()}
    options = {**QUICK, "epochs": 30.0, "layer_decay": 0.8, "dropout": 0.0, "evaluate_every": 50}
    task = Classify(target, **options)
    task.fit(opinions[::2], dev=opinions[1::2], out=tmp_path / "task")
    assert task.scores.value > 0.9  # half of them are good
    for name, value in target.network.state_dict().items():
        assert torch.equal(value, before[name])
    again = Classify.load(tmp_path / "task")
    assert_same(task, again)
    texts = ["a lovely film of the day", "an ugly song 。", "!"]
    ours, theirs = task.predict(texts), again.predict(texts)
    assert [one.probabilities for one in ours] == [one.probabilities for one in theirs]
    assert [one.label for one in ours[:2]] == ["good", "bad"]
    more = Classify(tmp_path / "task", **{**QUICK, "epochs": 0.0, "steps": 1}).fit(opinions)
    assert more.objective.encoder.hidden is not None


def test_stopped_and_resumed_is_never_stopped(target, opinions, tmp_path):
    def fit(out: str, resume: bool = False) -> Classify:
        own = {**QUICK, "epochs": 0.0, "steps": 12}
        return Classify(target, **own).fit(opinions, out=tmp_path / out, resume=resume)

    whole = fit("whole")
    with killed_at(6):
        fit("parts")
    assert_same(whole, fit("parts", resume=True))


def test_other_heads_and_frozen_networks(target, tmp_path):
    few = {**QUICK, "epochs": 0.0, "steps": 3, "unfreeze_every": 0.0, "dev_share": 0.0}
    rows = [(["The", "good", "cat", "sat"], ["O", "O", "B-X", "O"])] * 8
    tagger = Tag(target, crf=True, **few).fit(rows, out=tmp_path / "tags")
    assert Tag.load(tmp_path / "tags").predict([["a", "cat"]]) == tagger.predict([["a", "cat"]])
    pairs = [("a good film", "a fine film", "same"), ("a bad day", "the cat", "other")] * 4
    task = Pairs(target, freeze=True, dropout=0.0, **few).fit(pairs)
    network = task.objective.encoder.network
    assert torch.equal(network.table_VE, target.network.table_VE)
    assert network.config.share("weight") == 0 and task.objective.encoder.dropout == 0
    for wrong in ({"features": "last"}, {"lm_weight": 0.5}, {"reader_width": 8}):
        with pytest.raises(OptionError, match="ULMFiT is trained whole"):
            Classify(target, **{**few, **wrong}).fit([("a", "x"), ("b", "y")])
    with pytest.raises(OptionError, match="has not learned"):
        Classify(ULMFiT(), **few).fit([("a", "x"), ("b", "y")])
    (tmp_path / "tags" / "vocabulary.safetensors").unlink()
    with pytest.raises(ArtifactError):
        Tag.load(tmp_path / "tags")


def test_chinese(tmp_path):
    texts = ["电影很好看。", "故事很无聊。", "国王喜欢好电影。", "女王不喜欢无聊的故事。"] * 5
    model = ULMFiT(num_cells=16, width=8, num_layers=2, **{**LANGUAGE, "steps": 3})
    model.fit(texts, language="zh", store=tmp_path / "store")
    rows = [("这个电影很好看", "好"), ("这个故事很无聊", "坏")] * 10
    options = {**QUICK, "epochs": 30.0, "layer_decay": 1.0, "unfreeze_every": 0.0, "dropout": 0.0}
    task = Classify(model, **{**options, "evaluate_every": 45}).fit(rows, dev=rows[:2])
    assert [one.label for one in task.predict(["电影好看", "故事无聊"])] == ["好", "坏"]
    assert model.next_words("国王", count=3)

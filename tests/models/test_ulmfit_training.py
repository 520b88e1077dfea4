"""ULMFiT's language model from text: learning, going on with another text, resume, folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, OptionError
from sememe.training.config import TrainingConfig
from sememe.training.optimizers import rate_at
from stopping import assert_equal, killed_at

torch = pytest.importorskip("torch")

from sememe.models.ulmfit.model import ULMFiT

QUICK = {
    "steps": 30, "batch_size": 4, "length": 16, "min_count": 1, "workers": 1, "num_cells": 20,
    "width": 12, "device": "cpu", "learning_rate": 0.02,
}  # fmt: skip
SENTENCES = [
    line.split()
    for line in (
        "the old king and the young queen live in a castle by the sea",
        "the young king saw the old castle and the sea",
        "a queen and a king eat breakfast by the sea",
        "国王 和 女王 在 宫殿 里 吃 早饭",
    )
] * 30
REVIEWS = [line.split() for line in ("the old film was dull", "a young film by the sea")] * 20

pytestmark = pytest.mark.usefixtures("place")


def test_the_slanted_triangle_is_that_of_the_paper():
    config = TrainingConfig(schedule="slanted", warmup=0.1, learning_rate=0.01)
    num_steps, cut = 500, 50
    for step in (0, 1, 30, 49, 50, 51, 275, 499, 500):
        p = step / cut if step < cut else 1 - (step - cut) / (cut * (1 / 0.1 - 1))
        wanted = 0.01 * (1 + p * (32 - 1)) / 32
        assert rate_at(step, num_steps, config) == pytest.approx(wanted, rel=1e-12)
    assert rate_at(50, 500, config) == 0.01 and rate_at(0, 500, config) == 0.01 / 32
    low = TrainingConfig(schedule="slanted", warmup=0.1, learning_rate=0.01, final_rate=0.5)
    assert rate_at(0, 500, low) == 0.005
    never = TrainingConfig(schedule="slanted", warmup=0.0, learning_rate=0.01)
    assert rate_at(0, 4, never) == 0.01 and rate_at(0, 1, config) <= 0.01


def test_it_learns_to_predict_words_and_opens_as_it_was_saved(place):
    options = {**QUICK, "steps": 120, "learning_rate": 0.05, "validation_share": 0.1}
    model = ULMFiT(**options).fit(SENTENCES, out="model")
    last = model.history.last()
    assert last["validation_perplexity"] < 5 < last["validation_unigram_perplexity"]
    assert model.next_words("a king and a queen eat by the ", count=2)[0].text == "sea"
    assert model.next_words("the young k", count=1)[0].text == "king"
    chances = model.distribution(["the", "nowhere"])
    assert len(chances) == len(model.vocabulary) and 0.9 < chances.sum() <= 1.0 + 1e-9
    opened = ULMFiT.load("model")
    assert np.array_equal(opened.distribution(["the"]), model.distribution(["the"]))
    assert opened.text == model.text and repr(opened) == repr(model)
    assert json.loads(Path("model/sememe.json").read_text())["kind"] == "ulmfit"
    assert (place / "model" / "loss.svg").exists() or list(place.glob("model/*.png"))


@pytest.mark.parametrize("is_second", [False, True])
def test_stopped_and_resumed_is_never_stopped(is_second):
    start = ULMFiT(**{**QUICK, "steps": 5}).fit(SENTENCES) if is_second else None
    own = {**QUICK, "layer_decay": 0.4}
    if is_second:
        own = {name: value for name, value in own.items() if name not in ("num_cells", "width")}

    def fit(out: str, resume: bool = False) -> ULMFiT:
        return ULMFiT(start=start, **own).fit(REVIEWS, out=out, resume=resume)

    whole = fit("whole")
    with killed_at(12):
        fit("parts")
    resumed = fit("parts", resume=True)
    assert_equal(whole, resumed)
    assert fit("parts", resume=True).history.last() == resumed.history.last()


def test_the_second_step_goes_on_from_the_first_with_the_words_of_its_text():
    general = ULMFiT(**{**QUICK, "steps": 40}).fit(SENTENCES, language="none", out="general")
    assert general.text.language == "none"
    before = {name: x.clone() for name, x in general.network.state_dict().items()}
    second = ULMFiT(start="general", steps=1, learning_rate=1e-9, min_count=1, batch_size=4)
    second.fit(REVIEWS)
    assert second.preset == "tiny" and second.text.language == "none"  # as the first read
    assert set(second.vocabulary) == {word for line in REVIEWS for word in line}
    assert second.config.width == 12
    ours, theirs = second.network.table_VE, general.network.table_VE
    known, new = second.ids_of(["sea", "film"])
    old = general.ids_of(["sea"])[0]
    torch.testing.assert_close(ours[known], theirs[old], atol=1e-6, rtol=0)
    mean = theirs[: general.config.vocab_size].mean(0)
    torch.testing.assert_close(ours[new], mean, atol=1e-6, rtol=0)
    for name, value in general.network.state_dict().items():
        assert torch.equal(value, before[name])  # what was given stays as it is
    # A start helps: the same few steps without one foretell less.
    options = {"steps": 10, "min_count": 1, "batch_size": 4, "length": 16, "validation_share": 0.2,
               "learning_rate": 5e-3, "device": "cpu", "workers": 1}  # fmt: skip
    helped = ULMFiT(start=general, **options).fit(SENTENCES, language="none")
    alone = ULMFiT(num_cells=20, width=12, **options).fit(SENTENCES, language="none")
    metrics = [one.history.last()["validation_perplexity"] for one in (helped, alone)]
    assert metrics[0] < metrics[1]


def test_refusals(place):
    with pytest.raises(OptionError, match="no option"):
        ULMFiT(layers=3)
    with pytest.raises(OptionError, match="call fit first"):
        ULMFiT().next_words("a ")
    with pytest.raises(OptionError, match="has not learned"):
        ULMFiT(start=ULMFiT())
    with pytest.raises(ArtifactError, match="no model folder"):
        ULMFiT(start="nowhere")
    with pytest.raises(OptionError, match="layer_decay"):
        ULMFiT(layer_decay=2)
    model = ULMFiT(**{**QUICK, "steps": 2}).fit(SENTENCES, out="model")
    with pytest.raises(OptionError, match="width is that of the model"):
        ULMFiT(start=model, width=99)
    with pytest.raises(OptionError, match="`out` must say"):
        ULMFiT(**QUICK).fit(SENTENCES, resume=True)
    sememe.OneHot().fit(SENTENCES).save("onehot")
    with pytest.raises(ArtifactError, match="not a ulmfit model"):
        ULMFiT.load("onehot")
    manifest = json.loads(Path("model/sememe.json").read_text())
    manifest["config"]["width"] = 13
    Path("model/sememe.json").write_text(json.dumps(manifest))
    with pytest.raises(ArtifactError, match="another network"):
        ULMFiT.load("model")

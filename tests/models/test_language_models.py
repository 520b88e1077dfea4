"""What every language model keeps, whatever its network: options, refusals, its folder."""

from __future__ import annotations

import json

import pytest

import sememe
from sememe.errors import ArtifactError, InputError, OptionError

pytest.importorskip("torch")

MODELS = (sememe.NNLM, sememe.ELMo, sememe.ULMFiT, sememe.BERT, sememe.GPT)


@pytest.fixture(params=MODELS, ids=lambda model: model.kind)
def model(request) -> type:
    return request.param


def test_options_go_where_they_belong_and_the_preset_gives_the_others(model):
    size = "dropout_factor" if model is sememe.ULMFiT else "dropout"
    usual, own = model(), model(**{"learning_rate": 0.5, size: 0.37})
    assert 0 < usual.training.learning_rate < 0.5 and usual.training.batch_size > 0
    assert own.training.learning_rate == 0.5
    assert own.training.batch_size == usual.training.batch_size
    assert getattr(own.config, size) == 0.37 != getattr(usual.config, size)
    assert repr(own).startswith(f"{model.__name__}(tiny: ") and "untrained" in repr(own)


def test_wrong_options_are_named(model):
    with pytest.raises(OptionError, match=f"{model.__name__} has no option depth; it has "):
        model(depth=3)
    with pytest.raises(OptionError, match="preset must be one of tiny, mini, "):
        model("huge")
    with pytest.raises(OptionError, match="nothing to save yet"):
        model().save("nowhere")
    with pytest.raises(OptionError, match="`out` must say where"):
        model().fit([["a"]], resume=True)
    with pytest.raises(OptionError, match="fit has no option tongue"):
        model().fit([["a"]], tongue="zh")


@pytest.mark.parametrize("model", MODELS[1:], ids=lambda model: model.kind)
def test_the_letters_of_one_text_are_not_taken_for_sentences(model):
    with pytest.raises(InputError, match="one text"):
        model().embed_words("one text")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (None, "There is no model folder"),
        ({"kind": "glove"}, "is not a"),
        (["kind"], "is not a"),
        ({"format": 99}, "has format 99; this version reads 1"),
        ({}, r"cannot be used: '\w+' is missing"),
        ({"preset": "tiny", "training": 7}, "cannot be used"),
        ({"preset": "tiny", "training": {}, "text": {"tongue": "zh"}}, "cannot be used|is missing"),
    ],
)
def test_folders_that_cannot_be_opened_are_told_apart(model, manifest, said, tmp_path):
    folder = tmp_path / "model"
    if manifest is not None:
        folder.mkdir()
        own = {"kind": model.kind, "format": 1, **manifest} if isinstance(manifest, dict) else []
        (folder / "sememe.json").write_text(json.dumps(own))
    with pytest.raises(ArtifactError, match=said):
        model.load(folder)

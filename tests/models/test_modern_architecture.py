"""Pre-norm blocks with rotary positions and GeGLU: training them, transformers, refusals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from animal_sentences import DOCUMENTS
from stopping import assert_equal, ctrl_c_at

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from sememe.errors import OptionError
from sememe.examples.masking.batches import MaskedBatches
from sememe.models.bert.config import BERT_PRESETS
from sememe.models.bert.families import FamilyConfig
from sememe.models.bert.network import BERTNetwork

SMALL = {
    "num_layers": 2, "width": 64, "num_heads": 2, "max_length": 48, "length": 32, "batch_size": 8,
    "workers": 1, "steps": 12, "evaluate_batches": 2, "validation_share": 0.2, "device": "cpu",
    "vocab_size": 160, "architecture": "modern",
}  # fmt: skip
TEXTS = ["the king sees the [MASK]", "rain falls and the old cat sees a dog, a fish and a girl"]


def bert(**options: Any) -> Any:
    return sememe.BERT("tiny", **{**SMALL, **options})


@pytest.mark.parametrize(
    ("objective", "activation"), [("masked", "gelu"), ("masked", "relu2"), ("rtd", "gelu")]
)
def test_a_trained_folder_opens_in_transformers_with_the_same_outputs(
    objective, activation, tmp_path
):
    transformers = pytest.importorskip("transformers")
    out = tmp_path / "model"
    options = {"objective": objective, "activation": activation}
    model = bert(**options, steps=40, learning_rate=3e-3).fit(DOCUMENTS, out=out)
    assert json.loads((out / "config.json").read_text())["hidden_activation"] == activation
    assert model.history.last()["loss"] < model.history[0]["loss"]
    kind = transformers.AutoModelForMaskedLM if objective == "masked" else transformers.AutoModel
    theirs, told = kind.from_pretrained(out, output_loading_info=True)
    lost = set(told.pop("unexpected_keys"))
    # A head that transformers does not have for this architecture.
    assert all(name.startswith("discriminator_predictions.") for name in lost)
    assert bool(lost) == (objective == "rtd") and not any(told.values()), told
    tokens = transformers.AutoTokenizer.from_pretrained(out)
    own = tokens(TEXTS, padding=True, return_tensors="pt")
    is_token = own["attention_mask"].bool()
    with torch.no_grad():
        theirs_found = theirs.eval()(**own, output_hidden_states=True)
        layers = model.network.layers(own["input_ids"], None, is_token.sum(1))
        for ours, other in zip(layers, theirs_found.hidden_states, strict=True):
            torch.testing.assert_close(ours[is_token], other[is_token], atol=1e-5, rtol=1e-5)
        if objective == "masked":
            logits = model.network.masked_logits(layers[-1])
            torch.testing.assert_close(
                logits[is_token], theirs_found.logits[is_token], atol=1e-5, rtol=1e-5
            )
    again = sememe.load(out)
    assert_equal(model, again)
    assert again.config == model.config
    if objective == "rtd":
        assert again.replaced("The cat") == model.replaced("The cat")
        filler = transformers.AutoModelForMaskedLM.from_pretrained(out / "generator")
        assert filler.config.model_type == "electra"
    assert again.fill(TEXTS[0]) == model.fill(TEXTS[0])


@pytest.mark.parametrize("preset", BERT_PRESETS)
def test_a_block_has_about_as_many_weights_as_one_of_bert(preset):
    sizes = BERT_PRESETS[preset]
    with torch.device("meta"):
        plain, modern = BERTNetwork(sizes), BERTNetwork(FamilyConfig.modern(sizes))
    num, other = (sum(p.numel() for p in own.stack.parameters()) for own in (plain, modern))
    assert abs(other / num - 1) < 0.05
    assert not any(name.endswith("bias") for name, _ in modern.stack.named_parameters())


def test_a_longer_text_than_the_rows_of_training_is_read():
    model = bert(steps=2).fit(DOCUMENTS)
    assert model.network.seen_length == 48
    assert np.isfinite(model.embed(["the king sees " * 20])).all()


def test_it_resumes_to_the_bit(tmp_path, own_cache):
    whole, out = bert().fit(DOCUMENTS), tmp_path / "model"
    with ctrl_c_at(7, MaskedBatches):
        bert().fit(DOCUMENTS, out=out)
    assert_equal(whole, bert().fit(DOCUMENTS, out=out, resume=True))
    with pytest.raises(OptionError, match="family"):
        bert(architecture="paper").fit(DOCUMENTS, out=out, resume=True, overwrite=True)


def test_it_is_continued_and_fine_tuned(tmp_path):
    out = tmp_path / "model"
    bert(steps=2).fit(DOCUMENTS, out=out)
    options = {name: own for name, own in SMALL.items() if name in
               ("length", "batch_size", "steps", "device", "workers")}  # fmt: skip
    for architecture in ("paper", "modern"):  # the first is the default, and says nothing
        more = sememe.BERT(pretrained=out, architecture=architecture, **options)
        assert more.fit(DOCUMENTS).config.is_modern
    rows = [(text, "king" if "king" in text else "none") for text in DOCUMENTS]
    task = sememe.Classify(out, steps=3, batch_size=4, length=24, device="cpu", workers=1)
    task.fit(rows, dev=False, out=tmp_path / "task")
    assert json.loads((tmp_path / "task" / "config.json").read_text())["model_type"] == "modernbert"
    assert sememe.load(tmp_path / "task").predict(TEXTS)
    plain = bert(architecture="paper", steps=1).fit(DOCUMENTS)
    with pytest.raises(OptionError, match="architecture"):
        sememe.BERT(pretrained=plain, architecture="modern")
    with pytest.raises(OptionError, match="even"):
        bert(width=60, num_heads=4)


def test_sizes_are_read_or_refused():
    assert bert().config.norm_eps == 1e-5 and bert(norm_eps=1e-7).config.norm_eps == 1e-7
    for name, value in (("positions", "sinusoidal"), ("num_segments", 2)):
        with pytest.raises(OptionError, match=name):
            bert(**{name: value})
        assert getattr(bert(architecture="paper", **{name: value}).config, name) == value


def test_chinese(own_cache):
    documents = [
        "国王喜欢红色的苹果。他们学习自然语言处理。",
        "北京是中国的首都。老人给猫牛奶。",
    ] * 20
    model = bert(objective="rtd", unit="word").fit(documents, language="zh")
    assert model.fill("北[MASK]是中国的首都。") and model.replaced("北京是中国的首都。")

"""BERT and GPT from a corpus: fit, resume, save, load, transformers, Chinese, bad input."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stopping import assert_equal, ctrl_c_at

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from sememe.errors import (
    ArtifactError,
    InputError,
    MissingExtraError,
    OptionError,
    WriteError,
)
from sememe.models.bert.model import BERT
from sememe.models.gpt.model import GPT
from sememe.progress import Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.training.run import Stepper

SMALL = {
    "num_layers": 1, "width": 32, "num_heads": 2, "max_length": 32, "length": 32, "batch_size": 8,
    "workers": 1, "steps": 12, "evaluate_batches": 2, "validation_share": 0.2, "device": "cpu",
}  # fmt: skip
SUBJECTS, VERBS, OBJECTS = (
    ("cat", "dog", "king", "girl"),
    ("sees", "likes", "eats"),
    ("fish", "rain"),
)
CHINESE = (
    "国王喜欢红色的苹果。",
    "他们学习自然语言处理。",
    "老人给猫一些牛奶。",
    "北京是中国的首都。",
)


def write_corpus(path: Path, is_chinese: bool = False) -> Path:
    random = np.random.default_rng(0)
    documents = []
    for _ in range(60):
        if is_chinese:
            documents.append("".join(random.choice(CHINESE, 5)))
            continue
        own = random.choice(SUBJECTS)
        lines = [f"The {own} {random.choice(VERBS)} {random.choice(OBJECTS)}." for _ in range(6)]
        documents.append(" ".join(lines))
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path, own_cache: Path) -> Path:
    return write_corpus(tmp_path / "text.txt")


def bert(**options: Any) -> BERT:
    return BERT("tiny", **{**SMALL, "vocab_size": 160, **options})


def gpt(**options: Any) -> GPT:
    return GPT("tiny", **{**SMALL, "vocab_size": 300, **options})


@pytest.mark.parametrize("make", [bert, gpt])
def test_it_learns(make, corpus):
    model = make(steps=80, learning_rate=0.005).fit(corpus)
    metrics = model.history.last()
    assert model.history[0]["loss"] > metrics["validation_loss"]
    name = "masked" if make is bert else "token"
    assert metrics[f"validation_{name}_loss"] < metrics["validation_unigram_loss"]
    assert metrics["validation_perplexity"] == pytest.approx(
        np.exp(metrics[f"validation_{name}_loss"])
    )
    assert not model.network.training


@pytest.mark.parametrize("make", [bert, gpt])
def test_saved_and_opened_again(make, corpus, tmp_path):
    out = tmp_path / "model"
    model = make().fit(corpus, out=out)
    names = {path.name for path in out.iterdir()}
    assert {"config.json", "model.safetensors", "sememe.json", "history.json", "loss.png"} <= names
    again = type(model).load(out)
    assert_equal(model, again)
    assert again.tokenizer.fingerprint == model.tokenizer.fingerprint
    assert again.history.last() == model.history.last()
    assert again.training == model.training and again.plan == model.plan
    assert not Path(f"{out}.checkpoints").exists()
    (type(model)).load(out).save(tmp_path / "copy")


def test_transformers_opens_the_folder(corpus, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = bert().fit(corpus, out=tmp_path / "model")
    theirs = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "model").eval()
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    ids = tokens("the cat likes fish", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        hidden = model.network(ids)
        ours = model.network.masked_logits(hidden[0])
        expected = theirs(ids).prediction_logits[0]
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)


def test_equal_runs_are_equal_to_the_bit_and_workers_train_without_validation(corpus):
    first, second = (bert().fit(corpus) for _ in range(2))
    assert_equal(first, second)
    third = bert(evaluate_every=3).fit(corpus)
    assert_equal(first, third)


def test_ctrl_c_then_resume(corpus, tmp_path):
    from sememe.examples.masking.batches import MaskedBatches

    whole, out = bert().fit(corpus), tmp_path / "model"
    with ctrl_c_at(7, MaskedBatches):
        bert().fit(corpus, out=out)
    assert not out.exists() and Checkpoints(f"{out}.checkpoints").latest() is not None
    with pytest.raises(OptionError, match=r"rate was 0.15, is 0.4"):
        bert(rate=0.4).fit(corpus, out=out, resume=True)
    resumed = bert().fit(corpus, out=out, resume=True)
    assert_equal(whole, resumed)
    finished = bert().fit(corpus, out=out, resume=True)
    assert_equal(whole, finished)


def test_gpt_in_bf16_resumes_to_the_bit_and_says_the_same_once_loaded(corpus, tmp_path):
    from sememe.examples.packing.rows import PackedBatches

    out = tmp_path / "model"
    whole = gpt(precision="bf16").fit(corpus)
    with ctrl_c_at(7, PackedBatches):
        gpt(precision="bf16").fit(corpus, out=out)
    resumed = gpt(precision="bf16").fit(corpus, out=out, resume=True)
    assert_equal(whole, resumed)
    exact = gpt(precision="fp32").fit(corpus).history.last()["validation_loss"]
    found = whole.history.last()["validation_loss"]
    assert found != exact and abs(found - exact) < 0.02
    sentence = "The king likes rain."
    spoken, loaded = (model.embed_words([sentence])[0] for model in (resumed, GPT.load(out)))
    np.testing.assert_array_equal(spoken, loaded)


@pytest.mark.parametrize(("make", "multiplies"), [(gpt, True), (gpt, False), (bert, True)])
def test_gpt_takes_bf16_where_the_cpu_multiplies_it_and_says_so(
    make, multiplies, corpus, monkeypatch
):
    said = io.StringIO()
    monkeypatch.setattr("sememe.training.device.multiplies_bf16", lambda: multiplies)
    make(steps=1).fit(corpus, progress=Reporter(stream=said))
    assert ("in bf16" in said.getvalue()) == (make is gpt and multiplies)


@pytest.mark.parametrize(("multiplies", "taken"), [(True, "bf16"), (False, "fp32")])
def test_a_run_goes_on_in_the_precision_that_it_began_with(
    multiplies, taken, corpus, tmp_path, monkeypatch
):
    from sememe.examples.packing.rows import PackedBatches

    out, said = tmp_path / "model", io.StringIO()
    capability = "sememe.training.device.multiplies_bf16"
    monkeypatch.setattr(capability, lambda: multiplies)
    whole = gpt().fit(corpus)
    with ctrl_c_at(7, PackedBatches):
        gpt().fit(corpus, out=out)
    monkeypatch.setattr(capability, lambda: not multiplies)  # on another machine
    resumed = gpt().fit(corpus, out=out, resume=True, progress=Reporter(stream=said))
    assert_equal(whole, resumed)
    assert f"stay in {taken}, with which this run began" in said.getvalue()
    finished = gpt().fit(corpus, out=out, resume=True)
    kept = json.loads((out / "sememe.json").read_text())
    assert kept["precision"] == taken and kept["training"]["precision"] == "auto"
    for model in (whole, resumed, finished, GPT.load(out)):
        assert model.precision == taken


def test_without_pairs_no_head_is_trained_that_has_seen_nothing(corpus, tmp_path):
    model = bert(next_sentence=False).fit(corpus, out=tmp_path / "model")
    assert "next_loss" not in model.history[0]
    assert BERT.load(tmp_path / "model").network.untrained == {"pooler", "next head"}


def test_chinese_with_whole_words(tmp_path, own_cache):
    corpus = write_corpus(tmp_path / "chinese.txt", is_chinese=True)
    model = bert(unit="word", steps=60, learning_rate=0.01).fit(corpus, language="zh")
    metrics = model.history.last()
    assert metrics["validation_masked_loss"] < metrics["validation_unigram_loss"]
    rows = bert(unit="word", rate=0.5).preview(corpus, language="zh", num_rows=20)
    hidden = {place for row in rows for place in row.hidden if row.hidden.get(place) == "京"}
    for row in rows:  # 北京 is hidden as a whole or not at all
        for place, token in enumerate(row.tokens[:-1]):
            true = row.hidden.get(place, token), row.hidden.get(place + 1, row.tokens[place + 1])
            if true == ("北", "京"):
                assert (place in row.hidden) == (place + 1 in row.hidden)
    assert hidden


def test_a_tokenizer_can_be_given(corpus, tmp_path):
    tokenizer = SubwordTokenizer.train(corpus, kind="wordpiece", vocab_size=150)
    tokenizer.save(tmp_path / "pieces")
    given, opened = bert().fit(corpus, tokenizer=tokenizer), bert()
    opened.fit(corpus, tokenizer=tmp_path / "pieces")
    assert given.config.vocab_size == tokenizer.vocab_size
    assert_equal(given, opened)


def test_a_store_can_be_given(corpus):
    from sememe.tokens.subwords.store import open_or_build_subwords

    tokenizer = SubwordTokenizer.train(corpus, kind="wordpiece", vocab_size=150)
    store = open_or_build_subwords(corpus, tokenizer)
    assert_equal(bert().fit(store, tokenizer=tokenizer), bert().fit(corpus, tokenizer=tokenizer))
    with pytest.raises(OptionError, match="tokenizer"):
        bert().fit(store)


def test_lists_of_texts_train_too(own_cache):
    documents = [f"The {name} sees a fish. It likes the {name}." for name in SUBJECTS * 8]
    assert bert().fit(documents).history.last()["step"] == 12


def test_bad_options_are_named(corpus, tmp_path):
    with pytest.raises(OptionError, match="BERT has no option colour"):
        bert(colour="red")
    with pytest.raises(OptionError, match="preset must be one of"):
        BERT("huge")
    with pytest.raises(OptionError, match=r"length \(64\) must not exceed max_length"):
        bert(length=64).fit(corpus)
    with pytest.raises(OptionError, match="one of steps, epochs and budget"):
        bert(budget="5m")
    with pytest.raises(OptionError, match="20m"):
        BERT("tiny", budget="5")
    with pytest.raises(OptionError, match="out"):
        bert().fit(corpus, resume=True)
    with pytest.raises(OptionError, match="nothing to save"):
        bert().save(tmp_path / "model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(WriteError, match="not a bert model"):
        bert().fit(corpus, out=tmp_path / "other")
    with pytest.raises(ArtifactError, match="no model folder"):
        BERT.load(tmp_path / "nothing")


def test_one_document_says_what_pairs_need(tmp_path, own_cache):
    path = tmp_path / "one.txt"
    path.write_text("The cat sees fish. " * 40)
    with pytest.raises(InputError, match="next_sentence"):
        bert().fit(path)
    assert bert(next_sentence=False).fit(path).history


def test_epochs_and_budget(corpus, monkeypatch):
    once = bert(steps=0, epochs=1).fit(corpus)
    assert once.history.last()["epoch"] == pytest.approx(1, rel=0.1)
    now, do = [100.0], Stepper.do

    def timed_step(stepper: Stepper, *given: Any) -> None:
        now[0] += 0.05
        do(stepper, *given)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Stepper, "do", timed_step)
    timed = bert(steps=0, budget="2s").fit(corpus)
    last = timed.history.last()
    assert last["step"] == pytest.approx(40, abs=1) and last["seconds"] == pytest.approx(2, abs=0.1)
    assert last["learning_rate"] < timed.training.learning_rate / 20


@pytest.mark.parametrize("make", [bert, gpt])
def test_layers_computed_again_give_the_same_weights(make, corpus, monkeypatch):
    from sememe.nn import blocks

    plain, num_calls = make(steps=3).fit(corpus), 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal num_calls
        num_calls += 1
        return original(*arguments, **options)

    original = blocks.checkpoint
    monkeypatch.setattr(blocks, "checkpoint", counted)
    assert_equal(plain, make(steps=3, recompute=True).fit(corpus))
    assert num_calls >= 3


def test_tensorboard_gets_every_figure(corpus, tensorboard):
    bert(tensorboard="events").fit(corpus)
    written = tensorboard.pop("events")
    assert written["loss"] == list(range(1, 13)) and written["validation_perplexity"][-1] == 12
    assert not tensorboard


def test_tensorboard_that_is_missing_is_said_before_text_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match="pip install tensorboard"):
        bert(tensorboard="events").fit("there is no such text")

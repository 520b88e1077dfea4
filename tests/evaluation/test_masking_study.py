"""The masking-rate study: equal steps, figures, downstream score, resume, picture, bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from sememe.errors import MissingExtraError, OptionError, WriteError
from sememe.models.bert.config import StudyConfig
from sememe.models.bert.masking_study import Passages, probe, study_masking
from sememe.text.settings import TextSettings

SIZES = {"num_layers": 1, "width": 32, "num_heads": 2, "max_length": 32, "vocab_size": 200}
SMALL = {
    "length": 32, "batch_size": 8, "workers": 1, "evaluate_batches": 2, "validation_share": 0.4,
    "device": "cpu",
}  # fmt: skip
TOPICS = {
    "sea": "The fish swims under the old ship and the waves of the sea are green and cold today .",
    "farm": "A farmer feeds her cows in the barn while the hens look for corn beside a gate .",
}
CHINESE = {
    "海": "渔船在大海上慢慢地航行，海水又冷又蓝，很多鱼在水里游来游去。",
    "田": "农民在田里种玉米，他家的牛和鸡都在谷仓旁边找东西吃。",
}


def write_rows(path: Path, topics: dict[str, str]) -> Path:
    """Documents of two labels: the words of a topic in a random order."""
    random = np.random.default_rng(0)
    rows = []
    for _ in range(70):
        for label, text in topics.items():
            words = list(text) if topics is CHINESE else text.split()
            joint = "" if topics is CHINESE else " "
            shuffled = joint.join(random.permutation(words))
            rows.append(json.dumps({"text": shuffled, "label": label}, ensure_ascii=False))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def study(corpus: Any, out: Path, **more: Any) -> Any:
    options = {
        "rates": (0.15, 0.6),
        "sizes": SIZES,
        "text": TextSettings(columns={"label": "label"}),
    }
    config = StudyConfig(**{**SMALL, "steps": 6, **more.pop("config", {})})
    return study_masking(corpus, config, out=out, **{**options, **more})


@pytest.fixture
def rows(tmp_path: Path, own_cache: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", TOPICS)


def test_every_rate_is_trained_and_measured_alike(rows, tmp_path):
    from sememe import BERT

    found = study(rows, tmp_path / "study")
    assert [row["rate"] for row in found.rows] == [0.15, 0.6] and found.facts["steps"] == 6
    for row in found.rows:
        model = BERT.load(tmp_path / "study" / f"rate-{100 * row['rate']:g}")
        last = model.history.last()
        assert last["step"] == 6 and model.masking.rate == row["rate"]
        assert row["loss"] == pytest.approx(last["validation_masked_loss"], rel=1e-5)
        assert row["accuracy"] == pytest.approx(last["validation_masked_accuracy"])
    low, high = found.rows
    assert low["common_loss"] == low["loss"] and high["common_loss"] != high["loss"]
    # Two topics with hardly a word in common: any mean of vectors tells them apart.
    assert low["downstream"] > 0.9 > found.facts["majority"]
    assert found.facts["question"] == "which of 2 labels a held-out document is of"
    names = {path.name for path in (tmp_path / "study").iterdir()}
    assert {"study.png", "study.svg", "study.md", "sememe.json", "rate-15", "rate-60"} == names
    table = (tmp_path / "study" / "study.md").read_text(encoding="utf-8").splitlines()
    assert len(table) == 4 and table[2].startswith(f"| 15 % | {low['loss']:.3f} |")


def test_a_study_stopped_within_its_first_rate_goes_on(rows, tmp_path, monkeypatch):
    from sememe.models.bert import masking_study

    def stop(self: Any, rate: float, *_: Any) -> Any:
        (tmp_path / "cut" / "rate-60.checkpoints").mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(masking_study._Bench, "trained", stop)
        with pytest.raises(KeyboardInterrupt):
            study(rows, tmp_path / "cut")
    assert len(study(rows, tmp_path / "cut", resume=True).rows) == 2


def test_a_stopped_study_goes_on(rows, tmp_path, monkeypatch):
    from sememe.models.bert import masking_study

    whole = study(rows, tmp_path / "whole")
    measured = masking_study._Bench.measured

    def stop(self: Any, model: Any, rate: float) -> Any:
        if rate == 0.15:
            raise KeyboardInterrupt
        return measured(self, model, rate)

    with monkeypatch.context() as patch:
        patch.setattr(masking_study._Bench, "measured", stop)
        with pytest.raises(KeyboardInterrupt):
            study(rows, tmp_path / "cut")
    weights = tmp_path / "cut" / "rate-60" / "model.safetensors"
    written = weights.stat().st_mtime_ns
    with pytest.raises(OptionError, match="steps was 6, is 9"):
        study(rows, tmp_path / "cut", resume=True, config={"steps": 9})
    resumed = study(rows, tmp_path / "cut", resume=True)
    assert resumed.rows == whole.rows and weights.stat().st_mtime_ns == written
    assert study(rows, tmp_path / "cut", resume=True).rows == whole.rows
    more = study(rows, tmp_path / "cut", resume=True, rates=(0.15, 0.3, 0.6))
    assert more.rows[::2] == whole.rows


def test_chinese_and_a_budget(tmp_path, own_cache):
    rows = write_rows(tmp_path / "zh.jsonl", CHINESE)
    text = TextSettings(language="zh", columns={"label": "label"})
    found = study(rows, tmp_path / "study", text=text, config={"steps": 0, "budget": "1s"})
    assert found.facts["steps"] >= 1
    for rate in (15, 60):
        history = json.loads((tmp_path / "study" / f"rate-{rate}" / "history.json").read_text())
        assert history[-1]["step"] == found.facts["steps"]


def test_passages_of_long_documents_and_of_none(tmp_path, own_cache):
    random = np.random.default_rng(1)
    folder = tmp_path / "books"
    folder.mkdir()
    for name, text in TOPICS.items():
        words = random.choice(text.split(), 1_500)
        (folder / f"{name}.txt").write_text(" ".join(words) + " .", encoding="utf-8")
    settings = TextSettings(layout="file")
    config = {"validation_share": 0.0, "evaluate_batches": 2}
    with pytest.raises(OptionError, match="validation_share"):
        study(folder, tmp_path / "study", text=settings, config=config)
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(list(TOPICS.values()) * 30) + "\n", encoding="utf-8")
    found = study(lines, tmp_path / "lines", text=TextSettings(layout="line"), rates=(0.15,))
    assert found.rows[0]["downstream"] is None and found.table()[0][-1] == "–"
    from sememe.models.bert.masking_study import find_passages
    from sememe.tokens.subwords.store import open_or_build_subwords
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    tokenizer = SubwordTokenizer.train(folder, vocab_size=200, text=settings)
    store = open_or_build_subwords(folder, tokenizer, text=settings)
    store.validation_share = 0.0
    passages = find_passages(store, 30, 1)
    assert passages is not None and passages.question == "which of 2 documents a passage is from"
    assert all(len(ids) == 30 for ids in passages.ids_N)
    assert passages.is_test_N.mean() == pytest.approx(0.3, abs=0.02)


def test_the_linear_model_tells_classes_from_vectors_that_have_them():
    random = np.random.default_rng(0)
    classes_N = random.integers(0, 3, 200)
    vectors_ND = random.normal(size=(200, 5)) + classes_N[:, None] * [1, 0.5, 0, -0.5, 0]
    is_test_N = np.arange(200) >= 150
    passages = Passages([np.zeros(1)] * 200, classes_N, is_test_N, "", "")
    assert probe(vectors_ND, passages) > passages.majority
    nothing_ND = random.normal(size=(200, 5))
    assert probe(nothing_ND, passages) < 0.6


def test_tensorboard_that_is_missing_is_said_before_text_is_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match="pip install tensorboard"):
        study("there is no such text", tmp_path / "study", config={"tensorboard": "events"})
    assert not list(tmp_path.iterdir())


def test_bad_input(rows, tmp_path):
    for rates in ((), (0.15, 0.15), (0.0,), (1.5,)):
        with pytest.raises(OptionError, match="Rates are different shares"):
            study(rows, tmp_path / "study", rates=rates)
    with pytest.raises(OptionError, match="one text"):
        study({"en": rows}, tmp_path / "study")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(WriteError, match="masking study"):
        study(rows, tmp_path / "mine")

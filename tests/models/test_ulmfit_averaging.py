"""ULMFiT's language model with averaged SGD: its options, what remains, resume to the bit."""

from __future__ import annotations

from typing import Any

import pytest

from stopping import assert_equal, ctrl_c_at

torch = pytest.importorskip("torch")

from sememe import ULMFiT
from sememe.errors import OptionError
from sememe.models.ulmfit.config import ULMFiTTrainingConfig

SENTENCES = [["the", "red", "cat", "sat"], ["红色", "的", "猫"], ["a", "dog", "ran", "home"]] * 30
QUICK: dict[str, Any] = {
    "num_cells": 12, "width": 8, "num_layers": 2, "optimizer": "asgd", "average_after": 0,
    "learning_rate": 10.0, "steps": 24, "batch_size": 4, "length": 9, "min_count": 1,
    "evaluate_every": 2, "validation_share": 0.1, "workers": 1, "device": "cpu",
}  # fmt: skip


def test_options_left_alone_become_the_papers():
    plain, sgd = ULMFiTTrainingConfig(), ULMFiTTrainingConfig(optimizer="asgd")
    assert (plain.learning_rate, plain.clip, plain.schedule) == (0.0, 1.0, "slanted")
    assert (sgd.learning_rate, sgd.clip, sgd.weight_decay) == (30.0, 0.25, 1.2e-6)
    assert (sgd.schedule, sgd.warmup) == ("constant", 0.0)
    own = ULMFiTTrainingConfig(optimizer="asgd", learning_rate=5.0, clip=0.5, schedule="linear")
    assert (own.learning_rate, own.clip, own.schedule) == (5.0, 0.5, "linear")
    # An option that is given counts, though it be what another optimizer would take.
    own = ULMFiT("tiny", optimizer="asgd", clip=1.0, weight_decay=0.01, warmup=0.1).training
    assert (own.clip, own.weight_decay, own.warmup) == (1.0, 0.01, 0.1)
    assert ULMFiT("tiny", optimizer="asgd").training.learning_rate == 30.0
    assert ULMFiTTrainingConfig(**sgd.to_dict()) == sgd
    with pytest.raises(OptionError, match="optimizer"):
        ULMFiTTrainingConfig(optimizer="sgd")  # type: ignore[arg-type]


def test_a_stop_while_averaging_changes_nothing(tmp_path):
    from sememe.examples.word_rows import WordRowBatches

    def fit(out: str, resume: bool = False) -> ULMFiT:
        return ULMFiT(**QUICK).fit(SENTENCES, out=tmp_path / out, resume=resume)

    whole = fit("whole")
    assert whole.training.optimizer == "asgd"
    never = ULMFiT(**QUICK | {"average_after": 100}).fit(SENTENCES)
    before = {name: value.clone() for name, value in never.network.state_dict().items()}
    after = whole.network.state_dict()
    # It has averaged: where it ends is not where SGD alone would.
    assert any(not torch.equal(before[name], after[name]) for name in before)
    with ctrl_c_at(21, WordRowBatches):
        fit("parts")
    assert (tmp_path / "parts.checkpoints").is_dir()
    resumed = fit("parts", resume=True)
    assert_equal(whole, resumed)
    opened = ULMFiT.load(tmp_path / "parts")
    assert opened.training == whole.training

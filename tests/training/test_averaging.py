"""The mean of the best weights: which are kept, what they give, and a checkpoint of them."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from sememe.errors import ArtifactError
from sememe.training.weights import Best


def lowest(num_kept, patience=0):
    return Best("loss", patience, num_kept=num_kept, is_lowest=True)


def looked(losses, num_kept=2, patience=0):
    best, module = lowest(num_kept, patience), torch.nn.Linear(1, 1)
    for step, loss in enumerate(losses, 1):
        with torch.no_grad():
            module.weight.fill_(step)
        best.look({"loss": loss}, step, module)
    return best, module


@torch.no_grad()
def restored(best, module):
    best.restore(module)
    return float(module.weight)


def test_the_lowest_are_averaged():
    best, module = looked([3.0, 1.0, 2.0, 1.5, 9.0])
    assert best.steps == [2, 4] and restored(best, module) == 3.0
    assert best.step == 2 and best.num_since == 3
    one, module = looked([3.0, 1.0, 2.0, 1.0], num_kept=1)
    assert one.steps == [2] and restored(one, module) == 2.0  # the first of equals


def test_numbers_that_are_none_come_last():
    best, module = looked([math.nan, 2.0, math.inf, 1.0])
    assert best.steps == [4, 2] and restored(best, module) == 3.0
    nothing = lowest(2)
    assert restored(nothing, module) == 3.0  # as it was


def test_patience():
    assert not looked([2.0, 1.0, 1.5], patience=2)[0].is_stalled
    assert looked([2.0, 1.0, 1.5, 1.2], patience=2)[0].is_stalled


def test_a_checkpoint_keeps_them(tmp_path):
    best, module = looked([3.0, 1.0, math.nan], num_kept=3)
    state = best.write(tmp_path)
    again = lowest(3)
    again.read(tmp_path, state)
    assert again.steps == best.steps == [2, 1, 3] and again.num_since == 1
    for one in (best, again):
        with torch.no_grad():
            module.weight.fill_(7)
        one.look({"loss": 2.0}, 4, module)
        assert one.steps == [2, 4, 1]
        assert restored(one, module) == pytest.approx((2 + 7 + 1) / 3)
    (tmp_path / "best-0.safetensors").unlink()
    with pytest.raises(ArtifactError, match="missing"):
        again.read(tmp_path, state)


def test_the_one_of_an_earlier_version_is_read(tmp_path):
    best, module = looked([3.0, 1.0, 2.0], num_kept=1)
    state = best.write(tmp_path)
    (tmp_path / "best-0.safetensors").rename(tmp_path / "best.safetensors")
    again = Best("accuracy")
    again.read(tmp_path, {"value": 0.7, "step": state["step"], "num_since": 1})
    assert again.steps == [2] and again.num_since == 1 and restored(again, module) == 2.0
    again.look({"accuracy": 0.7}, 4, module)
    assert again.steps == [2] and again.num_since == 2
    again.look({"accuracy": 0.8}, 5, module)
    assert again.steps == [5] and again.num_since == 0
    Best("accuracy").read(tmp_path, {"value": None, "step": 0, "num_since": 0})  # before the first

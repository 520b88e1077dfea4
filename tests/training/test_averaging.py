"""The mean of the best weights: which are kept, what they give, and a checkpoint of them."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from sememe.errors import ArtifactError  # noqa: E402
from sememe.training.averaging import LowestMean  # noqa: E402


def looked(losses, num_kept=2, patience=0):
    best, module = LowestMean("loss", num_kept, patience), torch.nn.Linear(1, 1)
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
    nothing = LowestMean("loss", 2)
    assert restored(nothing, module) == 3.0  # as it was


def test_patience():
    assert not looked([2.0, 1.0, 1.5], patience=2)[0].is_hopeless
    assert looked([2.0, 1.0, 1.5, 1.2], patience=2)[0].is_hopeless


def test_a_checkpoint_keeps_them(tmp_path):
    best, module = looked([3.0, 1.0, math.nan], num_kept=3)
    state = best.write(tmp_path)
    again = LowestMean("loss", 3)
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

"""Ways to stop a training in its midst, and whether two models are equal to the bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest


class StoppedError(Exception):
    """What ends a training that is killed."""


@contextmanager
def killed_at(step: int) -> Iterator[None]:
    """End the training of a network right behind a checkpoint at that step."""
    from sememe.training.loop import Loop

    look = Loop._look

    def stop(loop: Loop) -> None:
        look(loop)
        if loop.step == step:
            loop._checkpoint()
            raise StoppedError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(Loop, "_look", stop)
        yield


@contextmanager
def ctrl_c_at(step: int, batches: type) -> Iterator[None]:
    """Press Ctrl-C when such batches prepare that step of the training."""
    original = batches.batch  # type: ignore[attr-defined]

    def batch(self: Any, own: int) -> Any:
        if own == step and not self.is_fixed:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, own)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(batches, "batch", batch)
        yield


def assert_equal(first: Any, second: Any) -> None:
    """Compare all that the networks of two models have learned."""
    ours, theirs = first.network.state_dict(), second.network.state_dict()
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)

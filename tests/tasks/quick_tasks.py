"""What tests of tasks share: options of a run of seconds, equal weights."""

from __future__ import annotations

from typing import Any

import numpy as np

QUICK = {
    "device": "cpu", "workers": 1, "length": 24, "batch_size": 8, "learning_rate": 3e-3,
    "epochs": 6.0,
}  # fmt: skip


def weights(task: Any) -> dict[str, np.ndarray]:
    return {name: x.numpy().copy() for name, x in task.objective.state_dict().items()}


def assert_same(first: Any, second: Any) -> None:
    ours, theirs = weights(first), weights(second)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)

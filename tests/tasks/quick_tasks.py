"""What tests of tasks share: options of a run of seconds, rows of label sets, equal weights."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

QUICK = {
    "device": "cpu", "workers": 1, "length": 24, "batch_size": 8, "learning_rate": 3e-3,
    "epochs": 6.0,
}  # fmt: skip


def _label_sets() -> list[tuple[str, list[str]]]:
    """Texts with an opinion, a story, both or neither: 120 rows."""
    good = ("good", "great", "lovely", "fine", "nice")
    bad = ("bad", "poor", "awful", "dull", "ugly")
    found = []
    for word, thing in product(
        (*good, *bad, "old", "warm"), ("film", "story", "song", "book", "day")
    ):
        labels = [name for name, own in (("pro", good), ("contra", bad)) if word in own]
        labels += ["story"] if thing in ("story", "book") else []
        found += [(f"the {word} {thing} of the day", labels)] * 2
    return found


LABEL_SETS = _label_sets()


def weights(task: Any) -> dict[str, np.ndarray]:
    return {name: x.numpy().copy() for name, x in task.objective.state_dict().items()}


def assert_same(first: Any, second: Any) -> None:
    ours, theirs = weights(first), weights(second)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)

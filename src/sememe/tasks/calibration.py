"""Probabilities and thresholds of a fine-tuned classifier, adjusted on held-out training rows.

The temperature (and with several labels per row Platt's shift, if the head has a bias) becomes part
of the head's weights, so that other programs that open the folder see the same probabilities.
Thresholds are in sememe.json. N rows, C labels, M members of an ensemble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from sememe.examples.labelled.rows import Note
from sememe.metrics import Reliability
from sememe.metrics.adjustment import adjusted
from sememe.metrics.decisions import Scaling, fit_scaling, probabilities
from sememe.tasks.objective import Encoded, run_items

if TYPE_CHECKING:
    from sememe.tasks.classify import Classify


def adjust(task: Classify, held: Encoded, dev: Encoded, note: Note) -> None:
    """Calibrate a task's probabilities, and choose its thresholds, as its options say."""
    assert task.objective is not None
    is_one, has_dev = not task.has_sets, len(dev.rows) > 0
    has_bias = not is_one and task.objective.head.linear.bias is not None
    scores_MNC, is_true_NC = _scores(task, held)
    shown_MNC, is_shown_NC = _scores(task, dev) if has_dev else (scores_MNC, is_true_NC)

    def measure(scaling: Scaling) -> dict[str, float]:
        found = Reliability()
        found.add(probabilities(shown_MNC, scaling, is_one=is_one), is_shown_NC, is_one=is_one)
        return found.to_dict()

    scaling, learned = adjusted(
        task.config, task.labels, is_true_NC, is_one=is_one,
        fit=lambda: fit_scaling(scores_MNC, is_true_NC, is_one=is_one, has_bias=has_bias),
        chances=lambda scaling: probabilities(scores_MNC, scaling, is_one=is_one),
        measure=measure, measured_on="dev" if has_dev else "held-out training", note=note,
    )  # fmt: skip
    _fold(task, scaling)
    task.learned = {**task.learned, **learned}


def _scores(task: Classify, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
    """The scores of all members, (M, N, C), and which labels are true."""
    members = [task.objective, *task.others]
    scores_MNC = np.array([run_items(one, encoded.items, task.config) for one in members if one])
    return scores_MNC, task.truths([row.label_set for row in encoded.rows])


@torch.no_grad()
def _fold(task: Classify, scaling: Scaling) -> None:
    """Make a scaling part of the heads of all members."""
    for objective in (task.objective, *task.others):
        assert objective is not None
        linear = objective.head.linear
        linear.weight.mul_(scaling.scale)
        if linear.bias is not None:
            linear.bias.mul_(scaling.scale).add_(scaling.bias)

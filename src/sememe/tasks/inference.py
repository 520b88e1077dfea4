"""Outputs for items outside of training: on the device that the options name."""

from __future__ import annotations

from collections.abc import Sequence as Several

import numpy as np

from sememe.tasks.config import FinetuneConfig
from sememe.tasks.items import Item
from sememe.tasks.objective import TaskObjective, say
from sememe.training.precision import TYPES, choose_device, choose_precision, reproducible


def run(objective: TaskObjective, items: Several[Item], config: FinetuneConfig) -> list[np.ndarray]:
    """What the head says of each item; the network stays on the device for the next call."""
    device = choose_device(config.device)
    precision = choose_precision(config.precision, device)
    objective.to(device)
    objective.precision = TYPES[precision]
    with reproducible(device, precision, config.num_workers):
        return say(objective, items, device).outputs

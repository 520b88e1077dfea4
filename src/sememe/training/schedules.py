"""The learning rate as a function of the step, so that a position in training tells all."""

from __future__ import annotations

import math

from sememe.training.config import TrainingConfig


def warmup_steps(config: TrainingConfig, num_steps: int) -> int:
    """Steps in which the rate rises."""
    share = config.warmup * num_steps if config.warmup < 1 else config.warmup
    return min(num_steps, round(share))


def rate_at(step: int, num_steps: int, config: TrainingConfig) -> float:
    """The rate of a step: a straight rise, then a fall that ends where the run ends.

    The Transformer's own fall knows no end: with the step's inverse square root.
    """
    rising = warmup_steps(config, num_steps)
    if step < rising:
        return config.learning_rate * (step + 1) / rising
    if config.schedule == "inverse-sqrt":
        return config.learning_rate * math.sqrt(max(1, rising) / (step + 1))
    done = (step - rising) / max(1, num_steps - rising)
    low = config.final_rate
    if config.schedule == "linear":
        share = 1 - done
    elif config.schedule == "cosine":
        share = (1 + math.cos(math.pi * done)) / 2
    else:
        return config.learning_rate
    return config.learning_rate * (low + (1 - low) * share)

"""The learning rate as a function of the step, so that a position in training tells all."""

from __future__ import annotations

import math

from sememe.training.config import TrainingConfig


def warmup_steps(config: TrainingConfig, num_steps: int) -> int:
    """Steps in which the rate rises."""
    share = config.warmup * num_steps if config.warmup < 1 else config.warmup
    return min(num_steps, round(share))


# How many times the highest rate is the lowest of a slanted schedule.
RATIO = 32


def rate_at(step: float, num_steps: int, config: TrainingConfig) -> float:
    """The rate of a step: a straight rise, then a fall that ends where the run ends.

    The Transformer's own fall knows no end: with the step's inverse square root. A slanted
    triangle (Howard & Ruder 2018, 3.2) starts and ends at a 32nd of the rate, or at final_rate.
    """
    rising = warmup_steps(config, num_steps)
    if config.schedule == "slanted":
        low = config.final_rate or 1 / RATIO
        height = step / rising if step < rising else (num_steps - step) / max(1, num_steps - rising)
        return config.learning_rate * (low + (1 - low) * height)
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

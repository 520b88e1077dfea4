"""One training loop for every network: optimizers, schedules, resume, several processes."""

from sememe.training.config import TrainingConfig

__all__ = ["TrainingConfig"]

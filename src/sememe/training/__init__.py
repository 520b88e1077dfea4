"""One loop for every network, knowing none of them: optimizers, schedules, resume, processes."""

from sememe.training.config import TrainingConfig

__all__ = ["TrainingConfig"]

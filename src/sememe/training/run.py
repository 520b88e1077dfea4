"""What a training is, beside its network: where batches come from, how long, what is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sememe.progress import SILENT, Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.training.best import Best
from sememe.training.config import TrainingConfig
from sememe.training.distributed import Processes, joined
from sememe.training.objective import Source
from sememe.training.optimizers import RateGroup
from sememe.training.tensorboard import check_tensorboard

Request = TypeVar("Request")


@dataclass(kw_only=True)
class Run:
    """What a training needs beside the network: batches, options, and places to write to."""

    source: Source
    config: TrainingConfig
    # Gives the figures of held-out data: called with the objective, its device, the processes.
    validation: Callable[[Any, Any, Processes], dict[str, float]] | None = None
    # Adds to the figures of a validation what can be told from them, such as a perplexity.
    on_validation: Callable[[dict[str, float]], dict[str, float]] = lambda figures: figures
    num_validations: int = 10  # over the run, where the options do not say how often
    # Whose weights the run ends with: those of the best validation, not of the last step.
    best: Best | None = None
    # Parts of the objective with rates of their own, asked for once the number of steps is known.
    rate_groups: Callable[[int], list[RateGroup]] | None = None
    # A rise of the loss means a divergence, where it is a mean over many rows.
    watches_rises: bool = True
    shown: tuple[str, ...] = ("validation_loss",)  # beside the bar
    reporter: Reporter = SILENT
    keeper: Checkpoints | None = None
    resume: bool = False
    plan: dict[str, Any] = field(default_factory=dict)  # identifies the run in its checkpoints
    processes: Processes = Processes()


@contextmanager
def started(request: Request, config: TrainingConfig) -> Iterator[tuple[Request, Processes]]:
    """Meet the other processes of a run: give what is asked of this one, of which one speaks."""
    check_tensorboard(config.tensorboard)  # before any text is read
    with joined() as processes:
        if not processes.is_main:
            request = replace(request, reporter=SILENT)  # type: ignore[type-var]
        yield request, processes

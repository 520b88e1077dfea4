"""What a training is, beside its network: where batches come from, how long, what is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sememe.progress import SILENT, Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.training.config import TrainingConfig
from sememe.training.distributed import Processes
from sememe.training.evaluation import Validation
from sememe.training.objective import Source


@dataclass(kw_only=True)
class Run:
    """What a training needs beside the network: batches, options, and places to write to."""

    source: Source
    config: TrainingConfig
    validation: Validation | None = None
    # Adds to the figures of a validation what can be told from them, such as a perplexity.
    on_validation: Callable[[dict[str, float]], dict[str, float]] = lambda figures: figures
    reporter: Reporter = SILENT
    keeper: Checkpoints | None = None
    resume: bool = False
    plan: dict[str, Any] = field(default_factory=dict)  # identifies the run in its checkpoints
    writer: Any = None  # TensorBoard's
    processes: Processes = Processes()

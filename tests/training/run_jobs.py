"""Trains networks in the processes that torchrun starts: JOBS (a JSON list); prints histories.

A job has `out`, `options` of the training, and perhaps `stop`, the step after which it stops with a
checkpoint; `corpus` trains a BERT on that text, otherwise the toy network is trained.
"""

from __future__ import annotations

import json
import sys
from contextvars import copy_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent))

from toys import ToyObjective, ToySource, weights

from sememe import BERT
from sememe.models.language import model as language_model
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import write_file
from sememe.storage.tensors import write_tensors
from sememe.training import TrainingConfig
from sememe.training.device import Validation
from sememe.training.distributed import Processes, joined
from sememe.training.loop import STOPS, Loop
from sememe.training.run import TrainingRun


class Stopping(Loop):
    """Stops before a step, as if Ctrl-C had been pressed."""

    stop: int | None = None

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        STOPS.set(lambda: self.stop is not None and self.step >= self.stop)


def train_toy(job: dict[str, Any], processes: Processes) -> list[dict[str, Any]]:
    options = dict(job["options"])
    kind = type("Config", (TrainingConfig,), {"sharding": options.pop("sharding", "none")})
    config = kind(device="cpu", workers=1, learning_rate=0.02, **options)
    objective, out = ToyObjective(0.0), Path(job["out"])
    run = TrainingRun(
        source=ToySource(config.batch_size), config=config, resume=True,
        keeper=Checkpoints(f"{out}.checkpoints"), processes=processes,
        validation=Validation(ToySource(config.batch_size, seed=9), 3),
    )  # fmt: skip
    history = Stopping(objective, run).train()
    if processes.is_main:
        with write_file(out) as scratch:
            write_tensors(scratch, weights(objective))
    return list(history)


def train_bert(job: dict[str, Any]) -> list[dict[str, Any]]:
    model = BERT(
        "tiny", num_layers=2, width=32, num_heads=2, vocab_size=300, length=32, workers=1,
        device="cpu", evaluate_batches=3, **job["options"],
    )  # fmt: skip
    with patch.object(language_model, "Loop", Stopping):
        model.fit(job["corpus"], out=job["out"], resume=True)
    return list(model.history)


def do(job: dict[str, Any], processes: Processes) -> list[dict[str, Any]] | None:
    """Do a job; None if it was stopped."""
    Stopping.stop = job.get("stop")
    train, given = (train_bert, (job,)) if "corpus" in job else (train_toy, (job, processes))
    try:
        return copy_context().run(train, *given)  # what stops this one stops no later training
    except KeyboardInterrupt:
        return None


def main() -> None:
    with joined() as processes:
        found = [do(job, processes) for job in json.loads(sys.argv[1])]
        if processes.is_main:
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

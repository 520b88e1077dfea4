"""Trains the toy network in a process of its own: OUT OPTIONS (JSON); prints its history.

It says "ready" before it begins, and "training" before the step that the option `told` names.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from toys import ToyObjective, ToySource, weights

from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import write_file
from sememe.storage.tensors import write_tensors
from sememe.training import TrainingConfig
from sememe.training.device import Validation
from sememe.training.distributed import joined
from sememe.training.loop import Loop
from sememe.training.run import TrainingRun


class Slow(ToySource):
    """Takes its time, so that there is something to interrupt."""

    def __init__(self, batch_size: int, pause_s: float, told: int) -> None:
        super().__init__(batch_size)
        self.pause_s, self.told = pause_s, told

    def batch(self, step: int) -> Any:
        if step == self.told:
            print("training", flush=True)
        time.sleep(self.pause_s)
        return super().batch(step)


def main() -> None:
    out, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    dropout, pause_s = options.pop("dropout"), options.pop("pause_s", 0.0)
    told = options.pop("told", -1)
    config = TrainingConfig(device="cpu", workers=1, learning_rate=0.02, **options)
    objective = ToyObjective(dropout)
    keeper = Checkpoints(f"{out}.checkpoints")
    print("ready", flush=True)
    source = Slow(config.batch_size, pause_s, told)
    with joined() as processes:
        run = TrainingRun(
            source=source, config=config, keeper=keeper, resume=True,
            validation=Validation(ToySource(config.batch_size, seed=9), 3), processes=processes,
        )  # fmt: skip
        history = Loop(objective, run).train()
    if processes.is_main:
        with write_file(out) as scratch:
            write_tensors(scratch, weights(objective))
        print(json.dumps(list(history)), flush=True)


if __name__ == "__main__":
    main()

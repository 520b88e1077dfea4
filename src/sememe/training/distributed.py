"""Several processes as `torchrun` starts them: who am I, sums over all, one that decides."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed


@dataclass(frozen=True)
class Processes:
    """This process among those of a run; alone where torchrun started none."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_main(self) -> bool:
        """Whether this one writes files and speaks."""
        return self.rank == 0

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Add numbers over all processes, on the CPU."""
        if self.size == 1:
            return list(numbers)
        row = torch.tensor(numbers, dtype=torch.float64)
        distributed.all_reduce(row)
        return [float(number) for number in row]

    def decided(self, choice: Any) -> Any:
        """What the main process has chosen."""
        if self.size == 1:
            return choice
        box = [choice]
        distributed.broadcast_object_list(box)
        return box[0]

    def wrap(self, module: torch.nn.Module, device: torch.device) -> torch.nn.Module:
        """The module with gradients that are averaged over all processes."""
        if self.size == 1:
            return module
        ids = [device.index] if device.type == "cuda" else None
        return torch.nn.parallel.DistributedDataParallel(
            module, device_ids=ids, gradient_as_bucket_view=True
        )


def this_process() -> Processes:
    """What torchrun's environment says of this process."""
    return Processes(
        int(os.environ.get("RANK", 0)),
        int(os.environ.get("WORLD_SIZE", 1)),
        int(os.environ.get("LOCAL_RANK", 0)),
    )


@contextmanager
def joined() -> Iterator[Processes]:
    """Meet the other processes of the run, and leave them at the end."""
    processes = this_process()
    if processes.size == 1 or distributed.is_initialized():
        yield processes
        return
    # Sums of counts go over the CPU, so that a GPU never waits for them.
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.set_device(processes.local_rank)
    distributed.init_process_group("cpu:gloo,cuda:nccl" if has_gpu else "gloo")
    try:
        yield processes
        # A process that leaves first takes its connections away from those still at work.
        distributed.barrier()
    finally:
        distributed.destroy_process_group()

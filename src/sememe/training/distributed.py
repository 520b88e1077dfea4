"""Several processes started by `torchrun`: rank, sums over all, decisions by one.

PyTorch is imported only if there are several: word vectors are trained without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sememe.machine import torchrun_ranks

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Processes:
    """This process among those of a run; alone if torchrun started none."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Sum values over all processes, on the CPU."""
        if self.size == 1:
            return list(numbers)
        import torch
        from torch import distributed

        row = torch.tensor(numbers, dtype=torch.float64)
        distributed.all_reduce(row)
        return [float(number) for number in row]

    def decided(self, choice: Any) -> Any:
        """The choice of the main process."""
        if self.size == 1:
            return choice
        from torch import distributed

        box = [choice]
        distributed.broadcast_object_list(box)
        return box[0]

    def wrap(self, module: torch.nn.Module, device: torch.device) -> torch.nn.Module:
        """The module with its gradients averaged over all processes."""
        if self.size == 1:
            return module
        import torch

        ids = [device.index] if device.type == "cuda" else None
        return torch.nn.parallel.DistributedDataParallel(
            module, device_ids=ids, gradient_as_bucket_view=True
        )


def this_process() -> Processes:
    """Read this process's rank from torchrun's environment variables."""
    return Processes(*torchrun_ranks())


@contextmanager
def joined() -> Iterator[Processes]:
    """Join the other processes of the run, and leave them at the end."""
    processes = this_process()
    if processes.size == 1:
        yield processes
        return
    import torch
    from torch import distributed

    if distributed.is_initialized():
        yield processes
        return
    # Counts are summed on the CPU, so that a GPU never waits for them.
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.set_device(processes.local_rank)
    distributed.init_process_group("cpu:gloo,cuda:nccl" if has_gpu else "gloo")
    try:
        yield processes
        # A process that leaves first would close the connections of those still at work.
        distributed.barrier()
    finally:
        distributed.destroy_process_group()

"""Several processes started by `torchrun` or a cluster: rank, sums over all, decisions by one.

PyTorch is imported only if there are several: word vectors are trained without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sememe.errors import MissingExtraError, OptionError
from sememe.machine import available_cores, torchrun_ranks

if TYPE_CHECKING:
    import torch

    from sememe.training.config import TrainingConfig


@dataclass(frozen=True)
class Processes:
    """This process among those of a run; alone if torchrun started none."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1  # processes on this machine

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    @property
    def cores(self) -> int:
        """The cores of this process, if those of the machine are divided."""
        return max(1, available_cores() // self.local_size)

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


def check_division(config: TrainingConfig, num_processes: int) -> None:
    """Raise an error for a training that this many processes cannot divide among them."""
    if config.batch_size < config.accumulate * num_processes:
        raise OptionError(
            f"batch_size ({config.batch_size}) is smaller than the parts of a step: "
            f"accumulate ({config.accumulate}) × processes ({num_processes})."
        )
    if config.sharding == "none":
        return
    try:
        from torch import distributed
        from torch.distributed.checkpoint import HuggingFaceStorageWriter  # noqa: F401
        from torch.distributed.fsdp import fully_shard  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "sharding full needs PyTorch 2.8 or newer with torch.distributed: pip install -U torch."
        ) from None
    # The last worker that a cluster has left goes on alone.
    if num_processes == 1 and not distributed.is_initialized():
        raise OptionError(
            "sharding full divides a network among several processes, and this is one: start more "
            "with torchrun or --cluster, or use sharding none."
        )


def this_process() -> Processes:
    """Read this process's rank from the environment variables of torchrun and of Ray Train."""
    processes = Processes(*torchrun_ranks())
    local_size = os.environ.get("LOCAL_WORLD_SIZE", "")
    is_one = processes.size == 1 or not local_size.isdecimal()
    return processes if is_one else replace(processes, local_size=max(1, int(local_size)))


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

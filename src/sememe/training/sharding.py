"""Weights, gradients and optimizer state divided among the processes (FSDP2; Zhao et al. 2023).

Every process keeps a part of each tensor; the weights of a block are gathered while it computes. A
copy of the objective is divided, and the objective itself stays whole on the CPU: at the end it
takes the weights back, and is saved as always. Checkpoints hold the parts as safetensors files, in
the format of torch.distributed.checkpoint: any number of processes reads them, also one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from sememe.errors import ArtifactError

if TYPE_CHECKING:
    from sememe.training.distributed import Processes

PARTS = "parts"  # the folder of a checkpoint whose tensors are divided


def divided(objective: nn.Module, device: torch.device, processes: Processes) -> nn.Module:
    """A copy of the objective on the device, of which this process keeps a part of each tensor."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    own: Any = deepcopy(objective)
    mesh = init_device_mesh(device.type, (processes.size,))
    for name, part in list(own.named_modules()):
        if name.rpartition(".")[0].endswith("blocks"):
            fully_shard(part, mesh=mesh)
    # Otherwise what the outermost module gathered would outlive a change of its weights.
    fully_shard(own, mesh=mesh, reshard_after_forward=True)
    return own


def is_divided(tensor: Tensor) -> bool:
    """Whether this process has only a part of a tensor."""
    return hasattr(tensor, "to_local")


def local(tensor: Any) -> Tensor:
    """The part of a tensor that this process keeps: all of it, if it is not divided."""
    return tensor.to_local() if is_divided(tensor) else tensor


def whole(tensor: Any) -> Tensor:
    """All of a tensor; every process must call it."""
    return tensor.full_tensor() if is_divided(tensor) else tensor


def divided_like(value: Tensor, other: Any) -> Tensor:
    """A whole tensor, which all processes have, divided like another of its shape."""
    if not is_divided(other) or is_divided(value):
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(
        value.to(other.device), other.device_mesh, other.placements, src_data_rank=None
    )


@torch.no_grad()
def take_back(objective: nn.Module, own: nn.Module) -> None:
    """Copy the weights of a divided copy into the whole objective, in every process."""
    weights = own.state_dict()
    for name, tensor in objective.state_dict().items():
        tensor.copy_(whole(weights[name]))


def write_parts(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the parts of all processes to a folder that they share."""
    from torch.distributed import checkpoint

    writer = checkpoint.HuggingFaceStorageWriter(str(folder / PARTS), save_distributed=True)
    checkpoint.save(dict(tensors), storage_writer=writer)


def sizes_in_parts(folder: Path) -> dict[str, torch.Size]:
    """The shape of every tensor of a divided checkpoint."""
    from torch.distributed import checkpoint

    try:
        kept = checkpoint.HuggingFaceStorageReader(str(folder / PARTS)).read_metadata()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{folder} is damaged ({error}): start without resume.") from error
    found: dict[str, Any] = kept.state_dict_metadata
    return {name: one.size for name, one in found.items()}


def read_parts(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Fill tensors, divided or whole, from a divided checkpoint of any number of processes."""
    from torch.distributed import checkpoint

    with warnings.catch_warnings():  # one process needs no process group
        warnings.simplefilter("ignore", UserWarning)
        reader = checkpoint.HuggingFaceStorageReader(str(folder / PARTS))
        checkpoint.load(tensors, storage_reader=reader)

"""The weights of a module by name: taken out, told apart, and put back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import nn

from sememe.errors import ArtifactError


def weights_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and lasting buffers by name; a tensor that has two names stands once."""
    found: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


def weights_hash(module: nn.Module) -> str:
    """A hash of every weight: what a run started from."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in module.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy())
    return digest.hexdigest()


def take_weights(module: nn.Module, kept: Mapping[str, torch.Tensor], place: str) -> None:
    """Copy kept weights into a module; `place` names where they come from."""
    for name, tensor in weights_of(module).items():
        if name not in kept or kept[name].shape != tensor.shape:
            raise ArtifactError(f"{place} is of another network: {name} differs.")
        tensor.copy_(kept[name])

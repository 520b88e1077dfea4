"""Read and write weights: by name, the best of a training, and the state in a checkpoint.

A checkpoint has weights, optimizer, step and metrics; no pickle. Nothing else is needed to resume
bit-identically: batches, dropout and the learning rate are functions of the step.
"""

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn, optim

from sememe.errors import ArtifactError
from sememe.progress import History
from sememe.storage.checkpoints import HISTORY, STATE
from sememe.storage.folder import write_json
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.training.averaging import COUNT
from sememe.training.sharding import (
    PARTS,
    divided_like,
    local,
    read_parts,
    sizes_in_parts,
    write_parts,
)


def weights_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and persistent buffers by name; a tensor with two names appears once."""
    found: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


def weights_hash(module: nn.Module) -> str:
    """A hash of every weight: identifies the start of a run."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in module.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy())
    return digest.hexdigest()


def take_weights(module: nn.Module, kept: Mapping[str, torch.Tensor], place: str) -> None:
    """Copy saved weights into a module; `place` names their file in errors."""
    for name, tensor in weights_of(module).items():
        if name not in kept or kept[name].shape != tensor.shape:
            raise ArtifactError(f"{place} is of another network: {name} differs.")
        check_finite(local(kept[name]), name, place)
        tensor.copy_(divided_like(kept[name], tensor))


def check_finite(tensor: torch.Tensor, name: str, place: object) -> None:
    """Raise an error for weights that are NaN or infinite, as would be every result."""
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise ArtifactError(
            f"{place} is damaged: {name} holds values that are not finite numbers (NaN or "
            "infinite). Train or copy the model again."
        )


Weights = dict[str, torch.Tensor]


def arrays_of(tensors: Weights) -> dict[str, np.ndarray]:
    """Tensors by name as arrays."""
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}


def tensors_in(place: Path) -> Weights:
    """The tensors of a file by name, as copies."""
    return {name: torch.from_numpy(np.array(x)) for name, x in read_tensors(place).items()}


_RANKED = "best-{}.safetensors"
_ONE = "best.safetensors"  # the name in earlier versions, which saved a single one


class Best:
    """Saves the weights of the best validations, and ends a training with their average.

    The paper's Transformer averages its last checkpoints; the best ones are the last of a run that
    still improves, and earlier ones if it overfits.
    """

    def __init__(
        self, metric: str, patience: int = 0, *, num_kept: int = 1, is_lowest: bool = False
    ) -> None:
        """Watch the highest, or lowest, values of a metric; ties go to the first.

        `patience` validations in a row without a better one end the run.
        """
        self.metric, self.patience, self.num_kept = metric, patience, num_kept
        self._sign = -1.0 if is_lowest else 1.0
        self.step, self.num_since = 0, 0
        self._kept: list[tuple[float, int, Weights]] = []  # the best first

    @property
    def steps(self) -> list[int]:
        """The steps whose weights are averaged, best first."""
        return [step for _, step, _ in self._kept]

    @property
    def value(self) -> float:
        """The best value so far."""
        return self._sign * self._kept[0][0]

    @property
    def is_stalled(self) -> bool:
        """Whether `patience` validations have passed without improvement."""
        return bool(self.patience) and self.num_since >= self.patience

    def look(self, metrics: Mapping[str, float], step: int, module: nn.Module) -> None:
        """Save the weights if the metric is among the best so far."""
        score = self._sign * metrics[self.metric]
        score = score if math.isfinite(score) else -math.inf  # NaN is never better
        if not self._kept or score > self._kept[0][0]:
            self.step, self.num_since = step, 0
        else:
            self.num_since += 1
        if len(self._kept) == self.num_kept and score <= self._kept[-1][0]:
            return
        own = {name: tensor.to("cpu", copy=True) for name, tensor in weights_of(module).items()}
        self._kept.append((score, step, own))
        self._kept.sort(key=lambda kept: (-kept[0], kept[1]))
        del self._kept[self.num_kept :]

    def restore(self, module: nn.Module) -> None:
        """Load the average of the saved weights into the module, if there are any."""
        if self._kept:
            take_weights(module, self._mean(), "the best weights")

    def _mean(self) -> Weights:
        first, *others = (weights for _, _, weights in self._kept)
        return {
            name: torch.stack([tensor, *(own[name] for own in others)]).mean(0)
            if others and tensor.is_floating_point()
            else tensor
            for name, tensor in first.items()
        }

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the weights into a checkpoint folder; returns what goes into its state."""
        for number, (_, _, weights) in enumerate(self._kept):
            write_tensors(folder / _RANKED.format(number), arrays_of(weights))
        kept = [
            [self._sign * score if math.isfinite(score) else None, step]
            for score, step, _ in self._kept
        ]
        return {"kept": kept, "step": self.step, "num_since": self.num_since}

    def read(self, folder: Path, state: Mapping[str, Any]) -> None:
        """Read what `write` wrote."""
        self.step, self.num_since = int(state["step"]), int(state["num_since"])
        self._kept = []
        one = [[state.get("value"), self.step]] if self.step else []
        for number, (value, step) in enumerate(state.get("kept", one)):
            place = folder / (_RANKED.format(number) if "kept" in state else _ONE)
            if not place.exists():
                raise ArtifactError(f"{place} is missing: start without resume.")
            score = -math.inf if value is None else self._sign * float(value)
            self._kept.append((score, int(step), tensors_in(place)))


_WEIGHTS, _OPTIMIZER = "model.safetensors", "optimizer.safetensors"


def _moments(module: nn.Module, optimizer: optim.Optimizer) -> dict[str, torch.Tensor]:
    """The optimizer's moments by the name of their parameter."""
    found: dict[str, torch.Tensor] = {}
    for name, parameter in module.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            found[f"{name}:{key}"] = value.reshape(1) if value.ndim == 0 else value
    return found


def write_weights(folder: Path, module: nn.Module, optimizer: optim.Optimizer) -> None:
    """Write the weights and the optimizer to a checkpoint."""
    write_tensors(folder / _WEIGHTS, arrays_of(weights_of(module)))
    write_tensors(folder / _OPTIMIZER, arrays_of(_moments(module, optimizer)))


def write_divided(folder: Path, module: nn.Module, optimizer: optim.Optimizer) -> None:
    """Write the parts of them that this process keeps; every process calls it."""
    write_parts(folder, weights_of(module) | _moments(module, optimizer))


def write_state(folder: Path, state: dict[str, Any], history: History) -> None:
    """Write the state and the metrics to a checkpoint."""
    write_json(folder / STATE, state)
    history.save(folder / HISTORY)


def read_weights(folder: Path, module: nn.Module, optimizer: optim.Optimizer) -> None:
    """Restore the weights and the optimizer from a checkpoint, whatever wrote it."""
    parameters = dict(module.named_parameters())
    if (folder / PARTS).is_dir():
        kept, moments = _read_divided(folder, module, parameters)
    else:
        kept, moments = tensors_in(folder / _WEIGHTS), tensors_in(folder / _OPTIMIZER)
    take_weights(module, kept, f"The checkpoint {folder}")
    for name, value in moments.items():
        key = name.rpartition(":")[2]
        parameter = _owner(name, parameters, folder)
        if value.numel() == 1 and key in ("step", COUNT):
            # On the CPU, where the averages are counted.
            device = parameter.device if key == "step" else torch.device("cpu")
            optimizer.state[parameter][key] = value.reshape(()).to(device)
            continue
        if value.numel() != 1 and value.shape != parameter.shape:  # compiled code trusts shapes
            raise ArtifactError(f"The checkpoint {folder} is damaged: {name} has another shape.")
        optimizer.state[parameter][key] = divided_like(value.to(parameter.device), parameter)


def _read_divided(
    folder: Path, module: nn.Module, parameters: Mapping[str, nn.Parameter]
) -> tuple[Weights, Weights]:
    """The weights and the optimizer's moments of a divided checkpoint, divided as they are here."""
    own, tensors = weights_of(module), {}
    for name, size in sizes_in_parts(folder).items():
        like = _owner(name, parameters, folder) if ":" in name else own.get(name)
        if like is not None and like.shape == size:
            tensors[name] = torch.empty_like(like.detach())
        else:
            tensors[name] = torch.empty(size)
    read_parts(folder, tensors)
    return tuple(
        {name: one for name, one in tensors.items() if (":" in name) == is_moment}
        for is_moment in (False, True)
    )  # type: ignore[return-value]


def _owner(name: str, parameters: Mapping[str, nn.Parameter], folder: Path) -> nn.Parameter:
    """The parameter that a moment belongs to."""
    owner = name.rpartition(":")[0]
    if owner not in parameters:
        raise ArtifactError(f"The checkpoint {folder} is of another network: it has {owner}.")
    return parameters[owner]

"""The whole state of a run in a folder: weights, optimizer, step, figures; no pickle.

Nothing else is needed to go on to the bit: batches, dropout and the learning rate are functions
of the step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn, optim

from sememe.errors import ArtifactError, OptionError
from sememe.progress import History
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import read_json, write_json
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.training.budget import Extent
from sememe.training.weights import take_weights, weights_of

STATE, HISTORY, WEIGHTS, OPTIMIZER, PLAN = (
    "state.json", "history.json", "model.safetensors", "optimizer.safetensors", "plan.json",
)  # fmt: skip


def _arrays(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}


def _moments(module: nn.Module, optimizer: optim.Optimizer) -> dict[str, torch.Tensor]:
    """The optimizer's numbers by the name of their parameter."""
    found: dict[str, torch.Tensor] = {}
    for name, parameter in module.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            found[f"{name}:{key}"] = value.reshape(1) if value.ndim == 0 else value
    return found


def write_state(
    folder: Path,
    module: nn.Module,
    optimizer: optim.Optimizer,
    state: dict[str, Any],
    history: History,
) -> None:
    """Fill a checkpoint folder."""
    write_tensors(folder / WEIGHTS, _arrays(weights_of(module)))
    write_tensors(folder / OPTIMIZER, _arrays(_moments(module, optimizer)))
    write_json(folder / STATE, state)
    history.save(folder / HISTORY)


def read_state(folder: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of its run, after checking that it is the run of this plan."""
    state = read_json(folder / STATE)
    if not isinstance(state, dict):
        raise ArtifactError(f"{folder / STATE} is damaged: start again without resume.")
    check_plan(folder, state.get("plan"), plan)
    return state


def read_weights(folder: Path, module: nn.Module, optimizer: optim.Optimizer) -> None:
    """Take up the weights and the optimizer of a checkpoint."""
    kept = {
        name: torch.from_numpy(np.array(x)) for name, x in read_tensors(folder / WEIGHTS).items()
    }
    take_weights(module, kept, f"The checkpoint {folder}")
    parameters = dict(module.named_parameters())
    for name, array in read_tensors(folder / OPTIMIZER).items():
        owner, _, key = name.rpartition(":")
        if owner not in parameters:
            raise ArtifactError(f"The checkpoint {folder} is of another network: it has {owner}.")
        parameter, value = parameters[owner], torch.from_numpy(np.array(array))
        value = value.reshape(()) if key == "step" else value
        optimizer.state[parameter][key] = value.to(parameter.device)


class Beginning(NamedTuple):
    """What a run fixes before its first step: its length, and the precision that auto took."""

    extent: Extent
    precision: str  # empty where an earlier version did not say


def keep_beginning(keeper: Checkpoints, beginning: Beginning, plan: dict[str, Any]) -> None:
    """Write down what a run has fixed."""
    fixed = {**beginning.extent._asdict(), "precision": beginning.precision}
    write_json(keeper.folder / PLAN, {**fixed, "plan": plan})


def kept_beginning(keeper: Checkpoints, plan: dict[str, Any]) -> Beginning | None:
    """What the run to be resumed had fixed, if there is one."""
    place = keeper.folder / PLAN
    if not place.exists():
        if keeper.latest() is not None:
            raise ArtifactError(f"{keeper.folder} has lost its {PLAN}: start without resume.")
        return None
    kept = read_json(place)
    try:
        # Before lengths were corrected, a run was as long as it was planned.
        planned = kept.get("planned", kept["num_steps"])
        turns = tuple((int(at), float(low), int(end)) for at, low, end in kept.get("turns", ()))
        extent = Extent(int(kept["num_steps"]), int(kept["period"]), int(planned), turns)
        beginning = Beginning(extent, str(kept.get("precision", "")))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ArtifactError(f"{place} is damaged: start again without resume.") from None
    check_plan(place, kept.get("plan"), plan)
    return beginning


def check_plan(place: Path, old: Any, plan: dict[str, Any]) -> None:
    """Refuse to go on with a run of other options or other text."""
    if not isinstance(old, dict):
        raise ArtifactError(f"{place} does not say what it was made from; start without resume.")
    if old == plan:
        return
    for part, settings in plan.items():
        before = old.get(part)
        if not isinstance(settings, dict) or not isinstance(before, dict) or part == "content":
            continue
        names = {*before, *settings}
        other = sorted(name for name in names if before.get(name) != settings.get(name))
        if other:
            found = "; ".join(f"{n} was {before.get(n)}, is {settings.get(n)}" for n in other)
            raise OptionError(
                f"{place} was made with other options: {found}. "
                "Take those again, or start anew without resume."
            )
    raise ArtifactError(f"{place} was made from other text; start again without resume.")

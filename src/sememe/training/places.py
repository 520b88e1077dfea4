"""Where a training writes: the folder of the model to be, and its checkpoints beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeVar

from sememe.progress import Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import MANIFEST
from sememe.training.distributed import Processes

Model = TypeVar("Model")


class Asked(Protocol):
    """What a call of `fit` says of the places."""

    @property
    def out(self) -> Path | None:
        """The folder of the model to be."""

    @property
    def resume(self) -> bool:
        """Whether an earlier training is to be gone on with."""

    @property
    def reporter(self) -> Reporter:
        """Who is told."""


def keeper_of(asked: Asked, keep: int = 1) -> Checkpoints | None:
    """The checkpoints, of which the last ones are kept; None where nothing is saved."""
    return None if asked.out is None else Checkpoints(f"{asked.out}.checkpoints", keep=keep)


def finished_before(model: Model, asked: Asked, plan: dict[str, Any]) -> Model | None:
    """The model that the run to be resumed has finished already, where there is one."""
    out, keeper = asked.out, keeper_of(asked)
    if not asked.resume or out is None or keeper is None or not (out / MANIFEST).exists():
        return None
    if keeper.latest() is not None:
        return None
    finished: Any = type(model).load(out)  # type: ignore[attr-defined]
    if finished.plan != plan:
        return None
    asked.reporter.note(f"{out} is finished already.")
    return finished


def save_finished(model: Any, asked: Asked, processes: Processes) -> None:
    """Save the model where it was asked for; its checkpoints go."""
    keeper = keeper_of(asked)
    if keeper is not None and processes.is_main:
        model.save(asked.out)
        keeper.clear()

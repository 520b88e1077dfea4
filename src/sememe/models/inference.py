"""Vectors and outputs of a model for many parts of a text: here, or on a cluster.

The same function computes a part in this process and on a worker, which opens the model once.
Results come in the order of the parts. With a folder to keep them in, those of an interrupted run
are read, not computed again; a result is found by the model's content and that of its part.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sememe.contract import Model
from sememe.errors import WriteError
from sememe.executor import Executor, cluster
from sememe.models.registry import content_hash, load
from sememe.storage.folder import write_file
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings

Arrays = dict[str, np.ndarray]
Work = Callable[[Any, Any], Arrays]
TEXTS_AT_ONCE = 512  # of those that are given all at once
_KEPT: ContextVar[Path | None] = ContextVar("kept", default=None)


@dataclass(frozen=True)
class ModelAt:
    """A saved model, and how it is opened."""

    path: str
    limit: int | None = None
    device: str = "cpu"
    able: str = ""
    precision: str = "fp32"
    language: str = ""  # "": the model's own
    keeps_case: bool = False
    text: TextSettings | None = None  # None: the model's own

    def open(self) -> Any:
        """Open it."""
        model: Model = load(self.path, self.limit, device=self.device, able=self.able)
        model = model.in_precision(self.precision)
        if self.text is not None and self.text != model.text:
            model.text = self.text
        if self.language and self.language != model.text.language:
            model.text = replace(model.text, language=self.language, dictionary="")
        if self.keeps_case:
            model.text = replace(model.text, lowercase=False)
        return model


@dataclass
class OnModel:
    """A function of a model and of a part; what is sent to a worker names the model."""

    at: ModelAt
    work: Work
    model: Any = field(default=None, compare=False)

    def __call__(self, part: Any) -> Arrays:
        """Compute a part."""
        if self.model is None:
            self.model = self.at.open()
        return self.work(self.model, part)

    def __getstate__(self) -> dict[str, Any]:
        return {"at": self.at, "work": self.work, "model": None}


@contextmanager
def keeping(folder: Path | None, *, resume: bool) -> Iterator[None]:
    """Keep the results within this context in a folder, which goes when the work has succeeded."""
    if folder is not None:
        _check_ours(folder)
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
    token = _KEPT.set(folder)
    try:
        yield
    finally:
        _KEPT.reset(token)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _check_ours(folder: Path) -> None:
    """Raise an error if something else is at the path, because it would be removed."""
    if folder.exists() and not (
        folder.is_dir() and all(own.suffix == ".safetensors" for own in folder.iterdir())
    ):
        raise WriteError(
            f"{folder} would take the finished parts, but something else is there; move it or "
            "choose another name."
        )


def computed(on_model: OnModel, parts: Iterable[Any]) -> Iterator[Arrays]:
    """The result of every part in order: kept, from the cluster of this context, or made here."""
    folder, executor = _KEPT.get(), cluster()
    if folder is None:
        return _mapped(executor, on_model, parts)
    return _kept(folder, executor, on_model, parts)


def _mapped(executor: Executor | None, on_model: OnModel, parts: Iterable[Any]) -> Iterator[Arrays]:
    if executor is None or not on_model.at.path:
        return map(on_model, parts)
    return executor.map_loaded(on_model, parts, on_gpus=on_model.at.device != "cpu")


def _kept(
    folder: Path, executor: Executor | None, on_model: OnModel, parts: Iterable[Any]
) -> Iterator[Arrays]:
    folder.mkdir(parents=True, exist_ok=True)
    identity = pickle.dumps((on_model.work, on_model.at)) + _content(on_model.at.path).encode()
    waiting: deque[tuple[Path, bool]] = deque()  # of each part: its place, and whether it is there

    def missing() -> Iterator[Any]:
        """The parts without a result; those before them are noted."""
        for part in parts:
            key = hashlib.blake2b(identity + pickle.dumps(part), digest_size=16).hexdigest()
            path = folder / f"{key}.safetensors"
            waiting.append((path, path.is_file()))
            if not waiting[-1][1]:
                yield part

    # Results come in order: those before one that has come are there.
    for result in _mapped(executor, on_model, missing()):
        while waiting[0][1]:
            yield read_tensors(waiting.popleft()[0])
        with write_file(waiting.popleft()[0]) as scratch:
            write_tensors(scratch, result)
        yield result
    for path, _ in waiting:
        yield read_tensors(path)


@cache
def _content(path: str) -> str:
    return content_hash(path)


# ---- what is computed ---------------------------------------------------------------------------


def _role_vectors(model: Any, part: tuple[str | None, list[str]]) -> Arrays:
    role, texts = part
    rows_ND = model.embed(texts) if role is None else model.embed_role(texts, role)
    return {"rows": np.asarray(rows_ND)}


def embed_parts(
    model: Any, parts: Iterable[list[str]], role: str | None = None
) -> Iterator[np.ndarray]:
    """One vector for each text of each part, perhaps in a role (query, document)."""
    on_model = OnModel(_place_of(model), _role_vectors, model)
    for found in computed(on_model, ((role, part) for part in parts)):
        yield found["rows"]


def embed_all(model: Any, texts: list[str], role: str) -> np.ndarray:
    """One vector for each text."""
    if not is_spread():
        return np.asarray(model.embed_role(texts, role))
    starts = range(0, len(texts), TEXTS_AT_ONCE)
    parts = (texts[start : start + TEXTS_AT_ONCE] for start in starts)
    return np.concatenate([*embed_parts(model, parts, role)])


def is_spread() -> bool:
    """Whether results are computed on a cluster, or kept."""
    return cluster() is not None or _KEPT.get() is not None


def spread(usual: int) -> int:
    """How many items to gather before they are computed, so that all workers have some."""
    executor = cluster()
    return usual if executor is None else usual * max(1, 2 * executor.num_tasks)


def _place_of(model: Any) -> ModelAt:
    """Where an open model is saved, and how it was opened; "": it is used in this process."""
    if model.path is None:
        return ModelAt("")
    device = str(getattr(model, "device", "cpu")).partition(":")[0]
    # A copy, without what it has worked out: the place of a model names its kept results.
    text = replace(model.text) if isinstance(model.text, TextSettings) else None
    return ModelAt(str(Path(model.path).absolute()), device=device, text=text, **model.opened_with)

"""Batches made ahead by threads, so that the network never waits; arrays in, tensors out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import torch

from sememe.cores import in_order
from sememe.training.distributed import Processes
from sememe.training.objective import Objective, Source

# Sources remember what they planned last, so one thread at a time asks them.
_SOURCES = threading.Lock()


class Part(NamedTuple):
    """A share of a step's rows: what the network takes, and what it counts."""

    prepared: Any
    counts: dict[str, int]


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same value with every tensor in it changed; looks into dataclasses, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return replace(value, **{name: mapped(part, change) for name, part in parts.items()})
    if isinstance(value, list):
        return [mapped(part, change) for part in value]
    if isinstance(value, tuple):
        parts_of = [mapped(part, change) for part in value]
        return type(value)(*parts_of) if hasattr(value, "_fields") else tuple(parts_of)
    if isinstance(value, dict):
        return {name: mapped(part, change) for name, part in value.items()}
    return value


def to_device(value: Any, device: torch.device) -> Any:
    """The same value with its tensors on the device."""
    if device.type == "cpu":
        return value
    return mapped(value, lambda tensor: tensor.to(device, non_blocking=True))


def own_parts(
    source: Source, objective: Objective, step: int, accumulate: int, processes: Processes
) -> list[Part]:
    """This process's parts of the batch of a step."""
    with _SOURCES:
        batch = source.batch(step)
    size = processes.size
    if accumulate * size == 1:
        own = [batch]
    else:
        own = [
            batch.part(index * size + processes.rank, accumulate * size)
            for index in range(accumulate)
        ]
    return [Part(objective.prepare(part), objective.counts(part)) for part in own]


@contextmanager
def fed(
    make: Callable[[int], list[Part]], steps: Iterable[int], device: torch.device
) -> Iterator[Iterator[list[Part]]]:
    """Give the parts of those steps in order, a few of them made before their turn."""
    is_cuda = device.type == "cuda"

    def work(step: int) -> list[Part]:
        # Pinned memory is what a GPU can read while the program goes on.
        parts = make(step)
        return mapped(parts, torch.Tensor.pin_memory) if is_cuda else parts

    # On a CPU the network's own threads need the cores.
    pool = ThreadPoolExecutor(4 if is_cuda else 1)
    batches = in_order(pool, work, steps, 8 if is_cuda else 2)
    try:
        yield batches
    finally:
        batches.close()  # type: ignore[attr-defined]
        pool.shutdown(wait=True, cancel_futures=True)

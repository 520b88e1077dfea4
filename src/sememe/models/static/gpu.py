"""What the static models need of a GPU: the device, its memory, and how PyTorch computes there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from sememe.errors import OptionError
from sememe.training.device import choose_device

# Of the free memory: the rest is for the text in flight and for what PyTorch and Triton keep.
_USABLE = 0.9


def device_of(name: str) -> torch.device:
    """The device of this name, which is not auto."""
    return choose_device(name)


def runs_triton(device: torch.device) -> bool:
    """Whether Triton is installed and can compile for this device."""
    return device.type == "cuda" and find_spec("triton") is not None


def name_of(device: torch.device) -> str:
    """The device's name, for messages."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def free_memory(device: torch.device) -> int | None:
    """The bytes that are free on a GPU; None for a CPU, whose system can swap."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def check_memory(device: torch.device, num_bytes: int, what: str) -> None:
    """Raise an error if so much does not fit the GPU, before anything is moved there."""
    free = free_memory(device)
    if free is not None and num_bytes > _USABLE * free:
        raise OptionError(
            f"{what} take {_size(num_bytes)} on the GPU, and {_size(int(_USABLE * free))} can be "
            "used there: lower dim or max_words, raise min_count, or take device cpu."
        )


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:,.1f} GiB"


def copied(array: Any, device: torch.device) -> torch.Tensor:
    """The array on the device, copied from pinned memory, which takes no time of the CPU."""
    own = torch.from_numpy(array)
    return own if device.type == "cpu" else own.pin_memory().to(device, non_blocking=True)


def copy_back(tables: Any, matrices: Mapping[str, np.ndarray], device: torch.device) -> None:
    """Copy the tables on a device, if there are any, into the matrices of the same names."""
    if tables is not None and device.type != "cpu":
        for name, rows in matrices.items():
            torch.from_numpy(rows).copy_(getattr(tables, name))


class Clock:
    """Measures what a device computes between two moments, without waiting for it."""

    def __init__(self, device: torch.device) -> None:
        is_cuda = device.type == "cuda"
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * is_cuda)]
        self._times = [time.perf_counter(), 0.0]
        if is_cuda:
            self._events[0].record()

    def stop(self) -> None:
        """Mark the second moment."""
        self._times[1] = time.perf_counter()
        if self._events:
            self._events[1].record()

    def seconds(self) -> float:
        """The seconds between both; a GPU must have passed the second."""
        if self._events:
            first, last = self._events
            last.synchronize()
            return first.elapsed_time(last) / 1_000
        return self._times[1] - self._times[0]


def settle_cublas() -> None:
    """Let cuBLAS give the same bits twice; it reads this when it is first used."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@contextmanager
def threads(num: int, *, is_exact: bool) -> Iterator[None]:
    """Compute with this many threads on a CPU; is_exact: sum repeated rows in a fixed order."""
    deterministic: Any = torch.utils.deterministic
    old, was_exact = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    fills = deterministic.fill_uninitialized_memory
    try:
        torch.set_num_threads(num)
        torch.use_deterministic_algorithms(is_exact)
        deterministic.fill_uninitialized_memory = False  # a debugging aid that costs time
        yield
    finally:
        torch.set_num_threads(old)
        torch.use_deterministic_algorithms(was_exact)
        deterministic.fill_uninitialized_memory = fills


@contextmanager
def explained_memory() -> Iterator[None]:
    """Turn PyTorch's error about the GPU's memory into a sentence that says what to do."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OptionError(
            "The memory of the GPU is too small for these matrices: lower dim or max_words, raise "
            "min_count, or take device cpu."
        ) from error

"""Where numbers are computed and with how many bits; weights stay float32 everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from sememe.errors import ArtifactError, OptionError

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """The device of that name; auto takes a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise OptionError("device is cuda, but PyTorch finds no GPU here; take cpu or auto.")
    if name == "mps" and not torch.backends.mps.is_available():
        raise OptionError("device is mps, but PyTorch finds no Apple GPU here; take cpu or auto.")
    return torch.device(name, local_rank) if name == "cuda" else torch.device(name)


def multiplies_bf16() -> bool:
    """Whether this CPU has instructions for products of bfloat16, not only for storing it."""
    # Older versions of PyTorch cannot say.
    has: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(has.get("avx512_bf16") or has.get("amx_bf16"))


def choose_precision(name: str, device: torch.device, fast_cpu: str = "fp32") -> str:
    """The precision of that name; auto takes bf16 on a GPU that has it, fp32 on a CPU.

    fast_cpu: what auto takes on a CPU that multiplies bfloat16.
    """
    if name != "auto":
        if name == "fp16" and device.type == "cpu":
            raise OptionError("fp16 needs a GPU; on a CPU take fp32 or bf16.")
        return name
    if device.type == "cpu" and multiplies_bf16():
        return fast_cpu
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"


def resumed_precision(kept: str, device: torch.device) -> str:
    """The precision that a run began with, whatever auto would take where it goes on."""
    if kept not in TYPES:
        raise ArtifactError(f"The run to be resumed names a precision of {kept!r}, unknown here.")
    if kept == "fp16" and device.type == "cpu":
        raise OptionError(
            "The run to be resumed began in fp16, which needs a GPU: resume it where there is one, "
            "or start anew without resume."
        )
    return kept


def seed_device(device: torch.device, seed: int) -> None:
    """Start the random numbers of the CPU and of a device anew.

    `torch.manual_seed` does it for every kind of device, and for those that are not there it writes
    down who called, which takes longer than a layer of a small network does.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[index].manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


@contextmanager
def reproducible(device: torch.device, precision: str, num_threads: int) -> Iterator[None]:
    """Compute with so many threads and, on a CPU, in an order that repeats to the bit.

    PyTorch's own settings and random numbers are given back afterwards.
    """
    deterministic: Any = torch.utils.deterministic
    threads, is_strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    fills = deterministic.fill_uninitialized_memory
    devices = [device] if device.type == "cuda" else []
    # oneDNN makes and keeps a program for every shape, and no two batches have as many tokens: in
    # fp32 that took hundreds of megabytes and a little time. bf16 has no other kernels.
    onednn: Any = torch.backends.mkldnn
    had_onednn = onednn.enabled
    with torch.random.fork_rng(devices=devices):
        try:
            torch.set_num_threads(num_threads)
            onednn.set_flags(had_onednn and (device.type != "cpu" or precision != "fp32"))
            if device.type == "cpu":
                # Sums over repeated indices would otherwise depend on which thread is first.
                torch.use_deterministic_algorithms(True, warn_only=True)
                deterministic.fill_uninitialized_memory = False  # a help in debugging that costs
            yield
        finally:
            torch.set_num_threads(threads)
            onednn.set_flags(had_onednn)
            torch.use_deterministic_algorithms(is_strict, warn_only=warns)
            deterministic.fill_uninitialized_memory = fills

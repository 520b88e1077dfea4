"""What the program runs on: cores, memory, processor, GPU, versions."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from sememe.cores import available_cores
from sememe.ladder.results import Machine

_PACKAGES = ("sememe", "numpy", "numba", "scipy", "torch", "tokenizers")


def this_machine(device: str = "auto") -> Machine:
    """Look at the machine; a GPU counts where networks may use it."""
    gpu, gpu_memory = _gpu() if device in ("auto", "cuda") else ("", 0)
    return Machine(
        cores=available_cores(),
        memory=_memory(),
        processor=_processor(),
        gpu=gpu,
        gpu_memory=gpu_memory,
        system=f"{platform.system()} {platform.release().split('-')[0]}".strip(),
    )


def versions() -> dict[str, str]:
    """The versions that a figure depends on."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _memory() -> int:
    """Bytes of memory, those of the container where it has less."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
    limit = Path("/sys/fs/cgroup/memory.max")
    try:
        return min(total, int(limit.read_text()))
    except (OSError, ValueError):
        return total


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _gpu() -> tuple[str, int]:
    """Its name, and its bytes."""
    if find_spec("torch") is None:
        return "", 0
    import torch

    if not torch.cuda.is_available():
        return "", 0
    found = torch.cuda.get_device_properties(0)
    return found.name, found.total_memory

"""What a training took: its seconds and its peak memory, measured while it shows its progress."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sememe.progress import ProgressTask, Reporter

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _gpu() -> Any:
    """PyTorch's module for the GPU if this process uses one, or None."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def restart_peak_memory() -> None:
    """Forget the peak so far, if the system can; otherwise later peaks include it."""
    if (gpu := _gpu()) is not None:
        gpu.reset_peak_memory_stats()
    with suppress(OSError):
        _CLEAR.write_text("5")


def peak_memory() -> int:
    """The largest number of bytes that this process had on its GPU or, without one, in memory.

    0 if the system cannot say. On a GPU these are the bytes of tensors: what PyTorch reserves
    beyond them grows with the sizes that have occurred, and is given up where memory is scarce.
    """
    if (gpu := _gpu()) is not None and (num_bytes := gpu.max_memory_allocated()):
        return int(num_bytes)
    with suppress(OSError, ValueError, IndexError):
        return int(_STATUS.read_text().split("VmHWM:")[1].split()[0]) << 10
    return 0


class Watch(Reporter):
    """A reporter that also measures the training: its seconds and its peak memory."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self.actual: dict[str, Any] = {}

    def _open(self, task: ProgressTask) -> None:
        super()._open(task)
        if task.title == "training":
            restart_peak_memory()

    def _close(self, task: ProgressTask, has_failed: bool) -> None:
        if task.title == "training":
            own = {"seconds": round(task.elapsed_s, 3), "memory_bytes": peak_memory()}
            self.actual |= own | ({"steps": task.done} if task.unit == "steps" else {})
        super()._close(task, has_failed)

"""A lock file beside an artifact: one process builds, others wait; a dead process holds nothing."""

from __future__ import annotations

import glob
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sememe.storage.folder import write_errors

_PAUSE_S = 0.05


def _try_lock(descriptor: int) -> bool:
    """Take the operating system's lock, which ends with the process that holds it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _acquire(path: Path, note: Callable[[str], None]) -> int:
    has_spoken = False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # A lock on a file that its owner has just removed would guard nothing.
            if _try_lock(descriptor) and _is_same_file(descriptor, path):
                os.truncate(path, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not has_spoken:
            note(f"Waiting for another process that is writing beside {path} …")
            has_spoken = True
        time.sleep(_PAUSE_S)


@contextmanager
def locked(artifact: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of the artifact at the path `artifact` while the block runs."""
    path = artifact.with_name(f".{artifact.name}.lock")
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(path, note)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def remove_leftovers(artifact: Path) -> None:
    """Remove what killed builds left beside `artifact`; its lock must be held."""
    for mark in ("scratch", "new", "old"):
        for leftover in artifact.parent.glob(f".{glob.escape(artifact.name)}.{mark}-*"):
            shutil.rmtree(leftover, ignore_errors=True)

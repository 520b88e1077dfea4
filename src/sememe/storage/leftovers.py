"""What killed processes left: scratch names tell their owner, so that the next one can clear up."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import uuid

_MARK = re.compile(r"-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}")


def _machine() -> str:
    """A name for this machine: several may share a folder, and only ours can be asked after."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def scratch_mark() -> str:
    """A part of a name that no other has: the machine, the process, a random number."""
    return f"{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def is_left_over(name: str) -> bool:
    """Whether `name` holds `-` and the mark of a process of this machine that has ended."""
    found = _MARK.search(name)
    return found is not None and found[1] == _machine() and not _is_alive(int(found[2]))


def _is_alive(process_id: int) -> bool:
    if os.name == "nt":  # where signal 0 would interrupt the process
        return True
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except OSError:  # alive, but another user's
        return True
    return True

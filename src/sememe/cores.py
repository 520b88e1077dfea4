"""How many threads work may be spread over."""

from __future__ import annotations

import os


def available_cores() -> int:
    """The cores that this process may use; a container may be given few of the machine's."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1

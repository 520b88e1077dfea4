"""An environment for a new process in which optional libraries seem not to be installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

NEURAL = ("torch", "tokenizers", "safetensors", "sacrebleu", "sympy", "networkx")

# Python imports a module of this name when it starts, also in processes that tests start.
HIDING = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None:
        None if name.partition(".")[0] in {hidden!r} else find(name, path, target)
)
"""


def without_libraries(folder: Path, hidden: Sequence[str] = NEURAL) -> dict[str, str]:
    """The environment of this process, with some libraries hidden; uses a file in `folder`."""
    (folder / "sitecustomize.py").write_text(HIDING.format(hidden=tuple(hidden)))
    others = os.environ.get("PYTHONPATH")
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), *([others] if others else [])])
    }

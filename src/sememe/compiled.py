"""How kernels are compiled: machine code by numba, without the GIL, kept in the user's cache.

numba's own cache looks at the time stamp of one file and misses an edited callee in another.
Ours lives in a folder named after a hash of all our sources, so any edit starts a fresh one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from sememe.storage.places import cache_dir


@cache
def _sources_hash() -> str:
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    root = Path(__file__).parent
    sources = {path: path.read_bytes() for path in sorted(root.rglob("*.py"))}
    rooms = {path.parent for path, source in sources.items() if b"kernel\ndef " in source}
    for path, source in sources.items():
        # Kernels take constants from their neighbors, so a room with kernels counts whole.
        if path.parent in rooms:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + source)
    return digest.hexdigest()


def _kernels_dir() -> Path:
    return cache_dir() / "kernels" / _sources_hash()


def is_first_use() -> bool:
    """Whether nothing has been compiled yet for these sources on this machine."""
    # numba makes the folders as soon as kernels are imported; the files come with machine code.
    return not any(_kernels_dir().rglob("*.nbc"))


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at first use: no GIL, fused and reordered float arithmetic allowed."""
    # Contraction and reordering let LLVM vectorise a dot product; NaN and infinity keep their
    # meaning, because the divergence checks look for them.
    return _compiled(function, {"reassoc", "contract", "nsz", "arcp", "afn"})


def exact_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at first use: no GIL, float arithmetic in the order it is written."""
    return _compiled(function, False)


def _compiled(function: Callable[..., Any], fastmath: set[str] | bool) -> Callable[..., Any]:
    config: Any = numba.config
    own, config.CACHE_DIR = config.CACHE_DIR, str(_kernels_dir())
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=fastmath)(function)
    finally:
        config.CACHE_DIR = own  # the user's own kernels are none of our business

"""One-hot vectors: the baseline that knows words but no similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sememe.static.onehot.config import OneHotConfig

if TYPE_CHECKING:
    from sememe.static.onehot.model import OneHot as OneHot

__all__ = ["OneHot", "OneHotConfig"]


def __getattr__(name: str) -> Any:
    # The options alone are what the command line needs to print its help.
    if name == "OneHot":
        from sememe.static.onehot.model import OneHot

        return OneHot
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

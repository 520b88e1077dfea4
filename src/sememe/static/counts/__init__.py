"""Counts: co-occurrences, their pointwise mutual information, and its truncated SVD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sememe.static.counts.config import CountsConfig

if TYPE_CHECKING:
    from sememe.static.counts.model import Counts as Counts

__all__ = ["Counts", "CountsConfig"]


def __getattr__(name: str) -> Any:
    # The options alone are what the command line needs to print its help.
    if name == "Counts":
        from sememe.static.counts.model import Counts

        return Counts
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

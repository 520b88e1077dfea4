"""GloVe: vectors whose products are the logarithms of co-occurrence counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sememe.static.glove.config import GloVeConfig

if TYPE_CHECKING:
    from sememe.static.glove.model import GloVe as GloVe

__all__ = ["GloVe", "GloVeConfig"]


def __getattr__(name: str) -> Any:
    # The options alone are what the command line needs to print its help.
    if name == "GloVe":
        from sememe.static.glove.model import GloVe

        return GloVe
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

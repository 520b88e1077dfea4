"""NGram: the classical language model, modified Kneser–Ney smoothing over counted n-grams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sememe.static.ngram.config import NGramConfig

if TYPE_CHECKING:
    from sememe.static.ngram.model import NGram as NGram

__all__ = ["NGram", "NGramConfig"]


def __getattr__(name: str) -> Any:
    # The options alone are what the command line needs to print its help.
    if name == "NGram":
        from sememe.static.ngram.model import NGram

        return NGram
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

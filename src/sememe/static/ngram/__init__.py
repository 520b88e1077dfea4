"""NGram: the classical language model, modified Kneser–Ney smoothing over counted n-grams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

if TYPE_CHECKING:
    from sememe.static.ngram.config import NGramConfig as NGramConfig
    from sememe.static.ngram.model import NGram as NGram

__all__ = ["NGram", "NGramConfig"]

__getattr__ = lazily(__name__, {"NGram": "model", "NGramConfig": "config"})

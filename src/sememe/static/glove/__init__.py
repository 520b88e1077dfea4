"""GloVe: vectors whose products are the logarithms of co-occurrence counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

if TYPE_CHECKING:
    from sememe.static.glove.config import GloVeConfig as GloVeConfig
    from sememe.static.glove.model import GloVe as GloVe

__all__ = ["GloVe", "GloVeConfig"]

__getattr__ = lazily(__name__, {"GloVe": "model", "GloVeConfig": "config"})

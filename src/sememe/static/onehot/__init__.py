"""One-hot vectors: the baseline that knows words but no similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

if TYPE_CHECKING:
    from sememe.static.onehot.config import OneHotConfig as OneHotConfig
    from sememe.static.onehot.model import OneHot as OneHot

__all__ = ["OneHot", "OneHotConfig"]

__getattr__ = lazily(__name__, {"OneHot": "model", "OneHotConfig": "config"})

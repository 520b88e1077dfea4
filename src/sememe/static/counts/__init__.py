"""Counts: co-occurrences, their pointwise mutual information, and its truncated SVD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

if TYPE_CHECKING:
    from sememe.static.counts.config import CountsConfig as CountsConfig
    from sememe.static.counts.model import Counts as Counts

__all__ = ["Counts", "CountsConfig"]

__getattr__ = lazily(__name__, {"Counts": "model", "CountsConfig": "config"})

"""The supervised half of fastText: labels of texts, learned from labelled lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier.config import (
        FastTextClassifierConfig as FastTextClassifierConfig,
    )
    from sememe.static.fasttext.classifier.model import FastTextClassifier as FastTextClassifier

__all__ = ["FastTextClassifier", "FastTextClassifierConfig"]

__getattr__ = lazily(
    __name__, {"FastTextClassifier": "model", "FastTextClassifierConfig": "config"}
)

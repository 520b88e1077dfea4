"""fastText: word vectors from character n-grams, and a classifier of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier.config import (
        FastTextClassifierConfig as FastTextClassifierConfig,
    )
    from sememe.static.fasttext.classifier.model import FastTextClassifier as FastTextClassifier
    from sememe.static.fasttext.config import FastTextConfig as FastTextConfig
    from sememe.static.fasttext.model import FastText as FastText

__all__ = ["FastText", "FastTextClassifier", "FastTextClassifierConfig", "FastTextConfig"]

__getattr__ = lazily(
    __name__,
    {
        "FastText": "model",
        "FastTextClassifier": "classifier.model",
        "FastTextClassifierConfig": "classifier.config",
        "FastTextConfig": "config",
    },
)

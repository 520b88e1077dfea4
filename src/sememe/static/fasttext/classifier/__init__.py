"""The supervised half of fastText: labels of texts, learned from labelled lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sememe.static.fasttext.classifier.config import FastTextClassifierConfig

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier.model import FastTextClassifier as FastTextClassifier
    from sememe.static.fasttext.classifier.model import Prediction as Prediction

__all__ = ["FastTextClassifier", "FastTextClassifierConfig", "Prediction"]


def __getattr__(name: str) -> Any:
    # The options alone are what the command line needs to print its help.
    if name in ("FastTextClassifier", "Prediction"):
        from sememe.static.fasttext.classifier import model

        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The supervised half of fastText: labels of texts, learned from labelled lines."""

from sememe.static.fasttext.classifier.config import FastTextClassifierConfig
from sememe.static.fasttext.classifier.model import FastTextClassifier, Prediction

__all__ = ["FastTextClassifier", "FastTextClassifierConfig", "Prediction"]

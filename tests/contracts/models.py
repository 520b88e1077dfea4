"""The models that keep the promises, each with small options; a new model is added here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import sememe


@dataclass(frozen=True)
class Promised:
    """A model class with options for a run of about a second, and how to see what it learned."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> Any:
        """Make an untrained model."""
        return getattr(sememe, self.name)(**{**self.options, **more})

    @property
    def model_class(self) -> Any:
        return getattr(sememe, self.name)

    def learned(self, model: Any) -> np.ndarray:
        """What two equal trainings must share, to the bit."""
        return np.asarray(model.vectors.vectors)


def _word2vec(**options: Any) -> Promised:
    small = {"dim": 12, "min_count": 2, "epochs": 2, "workers": 1, "seed": 3}
    return Promised("Word2Vec", {**small, **options})


MODELS = {
    f"word2vec-{architecture}-{loss}": _word2vec(architecture=architecture, loss=loss)
    for architecture in ("skipgram", "cbow")
    for loss in ("negative", "hierarchical", "softmax")
}
MODELS["fasttext"] = Promised(
    "FastText", {"dim": 12, "min_count": 2, "epochs": 2, "workers": 1, "seed": 3, "bucket": 1_000}
)
MODELS["counts"] = Promised("Counts", {"dim": 12, "min_count": 2, "workers": 1, "seed": 3})
MODELS["glove"] = Promised(
    "GloVe", {"dim": 12, "min_count": 2, "epochs": 2, "workers": 1, "seed": 3, "window": 5}
)
MODELS["doc2vec"] = Promised(
    "Doc2Vec", {"dim": 12, "min_count": 2, "epochs": 2, "workers": 1, "seed": 3}
)
MODELS["nnlm"] = Promised(
    "NNLM",
    {"dim": 12, "min_count": 2, "steps": 8, "batch_size": 4, "length": 16, "workers": 1, "seed": 3},
)

every_model = pytest.mark.parametrize("promised", MODELS.values(), ids=MODELS)

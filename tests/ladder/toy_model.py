"""A kind of model that the ladder has never heard of: it counts the letters of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from sememe.models.onehot.model import OneHot
from sememe.vectors import WordVectors


class Letters(OneHot):
    """One vector a word: how often it has each letter."""

    kind = "letters"

    def make_vectors(self) -> WordVectors:
        """Letters counted, and a little of the word's number, so that no two words are alike."""
        rows = [
            [word.count(letter) for letter in "aeiorst"] + [0.01 * index, 1.0]
            for index, word in enumerate(self.vocabulary)
        ]
        return WordVectors(self.vocabulary, np.array(rows, np.float32))


def entry() -> dict[str, Any]:
    """What the register of kinds needs to know of it."""
    return {
        "title": "letters",
        "home": f"{__name__}:Letters",
        "options": "sememe.models.onehot.config:OneHotConfig",  # without epochs or dim
        "family": "static",
    }

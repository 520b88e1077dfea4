"""Sub-words around word2vec's update in plain NumPy: what the kernels are tested against."""

from collections.abc import Callable

import numpy as np


def rows_of_word(word: int, ends: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows of one word: its own and those of its n-grams."""
    return rows[ends[word - 1] if word else 0 : ends[word]]


def train_chunk(
    tokens: np.ndarray,
    ends: np.ndarray,
    rows: np.ndarray,
    input: np.ndarray,
    learn: Callable[[np.ndarray], None],
) -> None:
    """Compose the words, let `learn` update them (V, D), and add the changes to each row."""
    pieces = [rows_of_word(word, ends, rows) for word in range(len(ends))]
    words = np.array([input[piece].mean(axis=0) for piece in pieces])
    before = words.copy()
    learn(words)
    for word in set(tokens.tolist()):
        for row in pieces[word]:
            input[row] += words[word] - before[word]

"""What a language model over rows of words is to foretell: the word behind each, or the one before.

B rows, T positions, M predictions. The mark that begins a sentence is never to be predicted
forwards, nor its end backwards: each follows from the mark beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sememe.examples.word_rows import BEGIN_ID, END_ID, UNKNOWN_ID, WordRows


class Neighbors(NamedTuple):
    """From which places which words are to be told; places count row by row of a (T, B) array."""

    places_M: np.ndarray
    targets_M: np.ndarray  # int64


def neighbors_of(batch: WordRows, step: int, vocab_size: int) -> Neighbors:
    """What to tell of the next words (step 1) or of those before (-1); rare ones are unknown."""
    is_asked_TB = asked(batch, step).T
    targets_TB = np.roll(batch.ids_BT, -step, 1).T.astype(np.int64)
    targets_TB = np.where(targets_TB < vocab_size, targets_TB, UNKNOWN_ID)
    return Neighbors(np.flatnonzero(is_asked_TB), targets_TB[is_asked_TB])


def asked(batch: WordRows, step: int) -> np.ndarray:
    """Which places of the rows have a next word (step 1) or one before (-1) to predict, (B, T)."""
    positions_T = np.arange(batch.ids_BT.shape[1])
    lengths_B1 = batch.lengths_B[:, None]
    is_there_BT = (positions_T + step < lengths_B1) & (positions_T + step >= 0)
    is_there_BT &= positions_T < lengths_B1
    return is_there_BT & (np.roll(batch.ids_BT, -step, 1) != (BEGIN_ID if step > 0 else END_ID))

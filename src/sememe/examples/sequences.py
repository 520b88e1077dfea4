"""A sequence of ids as an encoder reads it. T positions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Sequence(NamedTuple):
    """One sequence: ids, and which of its texts each belongs to."""

    ids_T: np.ndarray  # int32
    segments_T: np.ndarray  # int8; 0 for the first text, 1 for the second

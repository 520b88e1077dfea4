"""Windows of running words: rows of ids in, the words around each place out.

B rows, T positions, C words of a window. A window does not pass the ends of its sentence: what lies
beyond is filled with the sentence's own mark, <s> before it and </s> behind it.
"""

from __future__ import annotations

import numpy as np


def windows_before(ids_BT: np.ndarray, size: int, begin_id: int) -> tuple[np.ndarray, np.ndarray]:
    """The `size` words before each place, (B, T, C), the nearest last; and where all are known.

    They are not where a sentence began before its row did.
    """
    num_rows, length = ids_BT.shape
    places_T = np.arange(length)
    begins_BT = np.maximum.accumulate(np.where(ids_BT == begin_id, places_T, -1), axis=1)
    sources_TC = places_T[:, None] + np.arange(-size, 0)
    windows_BTC = ids_BT[:, np.maximum(sources_TC, 0)]
    windows_BTC[sources_TC[None] < begins_BT[:, :, None]] = begin_id
    is_whole_BT = (begins_BT >= 0) | (places_T >= size)
    return windows_BTC, np.broadcast_to(is_whole_BT, (num_rows, length))


def windows_behind(ids_BT: np.ndarray, size: int, end_id: int) -> tuple[np.ndarray, np.ndarray]:
    """The `size` words behind each place, (B, T, C), the nearest first; and where all are known."""
    windows_BTC, is_whole_BT = windows_before(ids_BT[:, ::-1], size, end_id)
    return windows_BTC[:, ::-1, ::-1], is_whole_BT[:, ::-1]

"""Places for labels so that they hide neither each other nor the points; pixels in, pixels out."""

from __future__ import annotations

import numpy as np

_ANGLES = np.radians([0, 180, 90, 270, 45, 135, 225, 315, 22, 158, 202, 338])
_GAPS = (4.0, 11.0, 20.0, 32.0, 46.0)
_NUM_SWEEPS = 4


def _overlap(centre_C2: np.ndarray, size: np.ndarray, boxes_N4: np.ndarray) -> np.ndarray:
    """Area that boxes of one size at C places share with N boxes (left, bottom, right, top)."""
    low, high = centre_C2 - size / 2, centre_C2 + size / 2
    wide = np.minimum(high[:, None, 0], boxes_N4[:, 2]) - np.maximum(
        low[:, None, 0], boxes_N4[:, 0]
    )
    tall = np.minimum(high[:, None, 1], boxes_N4[:, 3]) - np.maximum(
        low[:, None, 1], boxes_N4[:, 1]
    )
    return np.maximum(wide, 0) * np.maximum(tall, 0)


def _candidates(point: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres around a point, nearest first, each with a small cost for its distance and order."""
    directions = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
    centres = [point + directions * (size / 2 + gap) for gap in _GAPS]
    costs = [gap * 2.0 + np.arange(len(_ANGLES)) * 0.5 for gap in _GAPS]
    return np.concatenate(centres), np.concatenate(costs)


def place_labels(
    points_N2: np.ndarray,
    sizes_N2: np.ndarray,
    frame: tuple[float, float, float, float],
    *,
    obstacles_M2: np.ndarray | None = None,
) -> np.ndarray:
    """Choose the centre of each label beside its point, inside `frame` (left, bottom, right, top).

    Labels settle one after another at the cheapest of the places around their point, several
    times over; `obstacles_M2` are further spots to keep free, such as the lines between pairs.
    """
    dot = 4.0
    spots = points_N2 if obstacles_M2 is None else np.concatenate([points_N2, obstacles_M2])
    spot_boxes = np.concatenate([spots - dot, spots + dot], axis=1)
    centres = points_N2 + np.array([1.0, 0.0]) * (sizes_N2 / 2 + _GAPS[0])
    low, high = np.array(frame[:2]), np.array(frame[2:])
    for _ in range(_NUM_SWEEPS):
        before = centres.copy()
        for index, (point, size) in enumerate(zip(points_N2, sizes_N2, strict=True)):
            places, cost = _candidates(point, size)
            others = np.arange(len(centres)) != index
            boxes = np.concatenate([centres - sizes_N2 / 2, centres + sizes_N2 / 2], axis=1)[others]
            cost = cost + 3.0 * _overlap(places, size + 2, boxes).sum(axis=1)
            cost += 3.0 * _overlap(places, size, spot_boxes).sum(axis=1)
            outside = np.maximum(low - (places - size / 2), 0) + np.maximum(
                places + size / 2 - high, 0
            )
            cost += 1e3 * outside.sum(axis=1)
            centres[index] = places[np.argmin(cost)]
        if np.array_equal(before, centres):
            break
    return centres

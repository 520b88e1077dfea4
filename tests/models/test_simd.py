"""Operations on sixteen lanes against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.machine import kernel
from sememe.models.static import simd

LEFT = np.array(
    [0.5, -2, 3e30, 1e-30, 0, -0.0, 7, 8, 9, -1, np.inf, 2, 4, 16, 1e-20, 3], np.float32
)
RIGHT = np.array([2, -4, 1e-5, 3, 5, 1, -7, 8.5, 9, 1, 1, -np.inf, 0.5, 4, 1e20, 7], np.float32)


@kernel
def combine(left, right, out):
    """All operations of two vectors, one after the other."""
    a, b = simd.load(left, 0), simd.load(right, 0)
    simd.store(out, 0, simd.add(a, b))
    simd.store(out, 16, simd.subtract(a, b))
    simd.store(out, 32, simd.multiply(a, b))
    simd.store(out, 48, simd.divide(a, b))
    simd.store(out, 64, simd.smaller(a, b))
    simd.store(out, 80, simd.larger(a, b))
    simd.store(out, 96, simd.square_root(a))


@pytest.fixture(scope="module")
def combined() -> np.ndarray:
    out = np.empty(7 * 16, np.float32)
    combine(LEFT, RIGHT, out)
    return out.reshape(7, 16)


@pytest.mark.parametrize(
    ("index", "operation"),
    list(enumerate([np.add, np.subtract, np.multiply, np.divide, np.minimum, np.maximum])),
)
def test_lane_by_lane(combined, index, operation):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(combined[index], operation(LEFT, RIGHT))


def test_square_root(combined):
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(combined[6], np.sqrt(LEFT))

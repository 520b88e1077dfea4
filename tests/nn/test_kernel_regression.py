"""Attention as regression: equal to the textbook's formula, nearer when it has learned."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from kernel_regression import (
    average_pooling,
    draw,
    kernel_attention,
    learn_sharpness,
    noisy_points,
)


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_attention_is_nadaraya_watson(sharpness):
    keys, values = noisy_points(30, seed=2)
    queries = torch.arange(0, 5, 0.25)
    predictions, weights = kernel_attention(queries, keys, values, sharpness=sharpness)
    kernel = torch.exp(-((queries[:, None] - keys) ** 2) * sharpness**2 / 2)
    expected = kernel / kernel.sum(1, keepdim=True)
    torch.testing.assert_close(weights, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(predictions, expected @ values, atol=1e-5, rtol=1e-4)


def test_without_sharpness_every_point_counts_the_same():
    keys, values = noisy_points(20)
    predictions, _ = kernel_attention(keys, keys, values, sharpness=0.0)
    torch.testing.assert_close(predictions, average_pooling(keys, values))


def test_what_is_learned_is_sharper_and_nearer(tmp_path):
    assert learn_sharpness(*noisy_points()) == pytest.approx(3.1, abs=0.1)
    errors = draw(tmp_path)
    assert errors["learned attention"] < errors["kernel attention"] < errors["average pooling"]
    for name in ("attention-curves.svg", "attention-weights.svg"):
        assert 1_000 < (tmp_path / name).stat().st_size < 50_000

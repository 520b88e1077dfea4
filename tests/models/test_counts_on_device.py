"""Counts decomposed in PyTorch: the singular values and vectors of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sememe
from sememe.errors import OptionError
from sememe.models.counts import on_device
from sememe.models.counts.matrix import SparseMatrix
from sememe.models.static import gpu


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch):
    """Let device cuda mean PyTorch on the CPU."""
    monkeypatch.setattr(gpu, "device_of", lambda name: torch.device("cpu"))


def text(num: int = 12_000) -> list[list[str]]:
    """Sentences of eight words, each mostly from one of four topics of 40 words."""
    random = np.random.default_rng(0)
    drawn = (random.zipf(1.3, (num // 8, 8)) - 1).clip(max=39)
    topic = np.where(random.random(drawn.shape) < 0.8, np.arange(len(drawn))[:, None], 0) % 4
    return [
        [f"{'abcd'[t]}{word}" for t, word in zip(*row, strict=True)]
        for row in zip(topic, drawn, strict=True)
    ]


def fitted(**options) -> sememe.Counts:
    return sememe.Counts(**({"dim": 12, "min_count": 1, "workers": 1} | options)).fit(text())


@pytest.mark.parametrize(
    "options",
    [{}, {"transform": "log"}, {"transform": "counts", "smoothing": 1.0}, {"direction": "left"},
     {"shift": 3.0, "eigenvalue_weight": 0.0}],
)  # fmt: skip
def test_values_and_vectors_are_those_of_the_cpu(options, monkeypatch):
    monkeypatch.setattr(on_device, "BLOCK_CELLS", 700)  # several blocks, pieces of rows
    monkeypatch.setattr(on_device, "_PIECE", 16)
    own, cpu = fitted(device="cuda", **options), fitted(**options)
    np.testing.assert_allclose(
        own.tensors["singular_values"], cpu.tensors["singular_values"], rtol=2e-4
    )
    expected = cpu.vectors.vectors
    # Directions with equal singular values may turn; the space of the first ones may not.
    first = slice(0, 4)
    np.testing.assert_allclose(own.vectors.vectors[:, first], expected[:, first], atol=2e-3)
    for name in ("starts", "columns"):
        np.testing.assert_array_equal(own.tensors[name], cpu.tensors[name])
    np.testing.assert_allclose(own.tensors["values"], cpu.tensors["values"], rtol=1e-6)
    for name in ("cells", "loss"):
        assert own.history[-1][name] == pytest.approx(cpu.history[-1][name], rel=1e-3)


def test_blocks_that_do_not_stay_give_the_same_bits(monkeypatch):
    monkeypatch.setattr(on_device, "BLOCK_CELLS", 700)
    kept = fitted(device="cuda").vectors.vectors
    monkeypatch.setattr(on_device, "_KEPT", 0)
    monkeypatch.setattr(gpu, "free_memory", lambda device: 1 << 30)
    assert fitted(device="cuda").vectors.vectors.tobytes() == kept.tobytes()


def test_products_of_rows_without_cells():
    random = np.random.default_rng(0)
    dense = np.where(random.random((40, 40)) < 0.2, random.integers(1, 9, (40, 40)), 0)
    dense[[0, 7, 39]] = 0
    rows, columns = np.nonzero(dense)
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=40)))
    matrix = SparseMatrix(starts, columns.astype(np.int32), dense[rows, columns].astype(np.float32))
    own = on_device.DeviceMatrix(
        matrix, on_device.kernels.COUNTS, (np.zeros(40), np.zeros(40)), torch.device("cpu"),
        is_kept=True,
    )  # fmt: skip
    other = random.normal(size=(40, 8)).astype(np.float32)
    done: list[int] = []
    found = own.multiply(torch.from_numpy(other), done.append)
    np.testing.assert_allclose(found.numpy(), dense @ other, atol=1e-4)
    assert sum(done) == len(rows)
    np.testing.assert_array_equal(own.gathered().sparse().toarray(), dense)


def test_a_decomposition_larger_than_the_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(gpu, "free_memory", lambda device: 1_000)
    with pytest.raises(OptionError, match="GPU"):
        fitted(device="cuda")


def test_rows_without_svd_need_no_device():
    np.testing.assert_array_equal(
        fitted(device="cuda", dim=0).vectors.vectors, fitted(dim=0).vectors.vectors
    )

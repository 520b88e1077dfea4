"""The reference and the kernel against what Stanford's program made of the same cells."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from sememe.models.glove import kernels, reference
from sememe.models.glove.config import GloVeConfig
from sememe.models.glove.training import row_size, step_limits, with_mean_of_rarest
from sememe.models.static.model import matrix

DATA = Path(__file__).parents[1] / "data" / "glove"
DIM, COSTS = 6, (0.150925, 0.117269)
CONFIG = GloVeConfig(dim=DIM, x_max=2.0)
CELLS = np.fromfile(DATA / "cells.bin", [("row", "<i4"), ("column", "<i4"), ("count", "<f8")])


def parameters(name: str) -> reference.Parameters:
    table = np.fromfile(DATA / name, "<f8").reshape(2, -1, DIM + 1)
    words, contexts = table
    return reference.Parameters(
        words[:, :DIM].copy(),
        contexts[:, :DIM].copy(),
        words[:, DIM].copy(),
        contexts[:, DIM].copy(),
    )


def test_the_reference_does_what_the_program_does():
    at, end, squares = parameters("start.bin"), parameters("end.bin"), parameters("squares.bin")
    sums = at.zeros()
    for cost in COSTS:
        loss = reference.train_cells(
            CELLS["row"] - 1, CELLS["column"] - 1, CELLS["count"], at, sums,
            x_max=2.0, alpha=0.75, rate=0.05, clip=100.0,
        )  # fmt: skip
        assert loss / len(CELLS) == pytest.approx(cost, abs=1e-6)
    for name in vars(at):
        np.testing.assert_allclose(getattr(at, name), getattr(end, name), rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(1 + getattr(sums, name), getattr(squares, name), rtol=1e-9)


def test_the_kernel_does_what_the_program_does():
    start, end, width = parameters("start.bin"), parameters("end.bin"), row_size(DIM)
    words, contexts = (matrix(len(start.words), 2 * width) for _ in range(2))
    words[:, :DIM], contexts[:, :DIM] = start.words, start.contexts
    words[:, DIM], words[:, DIM + 1] = start.word_biases, 1
    contexts[:, DIM], contexts[:, DIM + 1] = 1, start.context_biases
    keys = ((CELLS["row"] - 1) << kernels.COLUMN_BITS | (CELLS["column"] - 1)).astype(np.uint32)
    for cost in COSTS:
        stats = np.zeros(3)
        kernels.train_cells(
            keys, np.log(CELLS["count"]).astype(np.float32), 0, 0, 1, words.reshape(-1),
            contexts.reshape(-1), width, *step_limits(CONFIG), np.float32(CONFIG.alpha),
            np.float32(math.log(CONFIG.x_max)), stats,
        )  # fmt: skip
        assert stats[0] / stats[1] == pytest.approx(cost, abs=2e-6)
    np.testing.assert_allclose(words[:, :DIM], end.words, atol=1e-6)
    np.testing.assert_allclose(contexts[:, :DIM], end.contexts, atol=1e-6)
    np.testing.assert_allclose(words[:, DIM], end.word_biases, atol=2e-6)
    np.testing.assert_allclose(contexts[:, DIM + 1], end.context_biases, atol=2e-6)


def test_the_unknown_word_is_that_of_the_program():
    end = parameters("end.bin")
    numbers = (DATA / "vectors.txt").read_text(encoding="utf-8").splitlines()[-1].split()
    assert numbers[0] == "<unk>"
    expected = np.array(numbers[1:], float)
    np.testing.assert_allclose(with_mean_of_rarest(end.words)[-1], expected[:DIM], atol=1e-6)
    np.testing.assert_allclose(
        with_mean_of_rarest(end.contexts)[-1], expected[DIM + 1 : -1], atol=1e-6
    )

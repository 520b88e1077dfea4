"""The compiled steps of GloVe against the plain reference, and that against autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sememe.models.glove import kernels, reference
from sememe.models.glove.config import GloVeConfig
from sememe.models.glove.training import row_size, step_limits, way_through
from sememe.models.static.model import matrix

NUM_WORDS = 40


class Case:
    """Random parameters and cells, for the reference and for the kernel."""

    def __init__(self, num_cells: int, config: GloVeConfig, seed: int = 0, spread: float = 0.5):
        random = np.random.default_rng(seed)
        self.config, dim = config, config.dim
        shapes = [(NUM_WORDS, dim), (NUM_WORDS, dim), (NUM_WORDS,), (NUM_WORDS,)]
        self.at = reference.Parameters(*(random.normal(0, spread, shape) for shape in shapes))
        self.sums = self.at.zeros()
        self.rows = random.integers(0, NUM_WORDS, num_cells).astype(np.int32)
        self.columns = random.integers(0, NUM_WORDS, num_cells).astype(np.int32)
        self.counts = np.exp(random.normal(2, 2, num_cells)).astype(np.float32)
        self.width = row_size(dim)
        self.words, self.contexts = (matrix(NUM_WORDS, 2 * self.width) for _ in range(2))
        self.words[:, :dim], self.contexts[:, :dim] = self.at.words, self.at.contexts
        self.words[:, dim], self.words[:, dim + 1] = self.at.word_biases, 1
        self.contexts[:, dim], self.contexts[:, dim + 1] = 1, self.at.context_biases

    def run_reference(self) -> float:
        config = self.config
        return reference.train_cells(
            self.rows, self.columns, self.counts, self.at, self.sums, x_max=config.x_max,
            alpha=config.alpha, rate=config.learning_rate, clip=config.grad_clip,
        )  # fmt: skip

    def run_kernel(self, first: int = 0, stride: int = 1, base: int = 0) -> np.ndarray:
        keys = ((self.rows - base) << kernels.COLUMN_BITS | self.columns).astype(np.uint32)
        stats = np.zeros(3)
        kernels.train_cells(
            keys, np.log(self.counts), base, first, stride, self.words.reshape(-1),
            self.contexts.reshape(-1), self.width, *step_limits(self.config),
            np.float32(self.config.alpha), np.float32(math.log(self.config.x_max)), stats,
        )  # fmt: skip
        return stats

    def visited_in(self, order: np.ndarray) -> None:
        self.rows, self.columns = self.rows[order], self.columns[order]
        self.counts = self.counts[order]

    def assert_equal(self, rtol: float = 1e-4, atol: float = 2e-6) -> None:
        dim, width = self.config.dim, self.width
        places = {
            "words": (self.words, slice(0, dim)), "contexts": (self.contexts, slice(0, dim)),
            "word_biases": (self.words, dim), "context_biases": (self.contexts, dim + 1),
        }  # fmt: skip
        for name, (rows, place) in places.items():
            for expected, found in (
                (getattr(self.at, name), rows[:, :width]),
                (getattr(self.sums, name), rows[:, width:]),
            ):
                np.testing.assert_allclose(found[:, place], expected, rtol, atol, err_msg=name)
        assert np.all(self.words[:, dim + 1] == 1) and np.all(self.contexts[:, dim] == 1)
        assert not self.words[:, dim + 2 : width].any()


@pytest.mark.parametrize("dim", [1, 14, 15, 16, 30, 31, 100])
def test_one_step_is_that_of_the_reference(dim):
    case = Case(1, GloVeConfig(dim=dim))
    assert case.run_kernel()[0] == pytest.approx(case.run_reference(), rel=1e-4)
    case.assert_equal()


@pytest.mark.parametrize("options", [{}, {"x_max": 5.0, "alpha": 0.5}, {"learning_rate": 0.01}])
def test_many_steps_are_those_of_the_reference(options):
    case = Case(800, GloVeConfig(dim=20, **options))
    stats = case.run_kernel()
    assert stats[0] == pytest.approx(case.run_reference(), rel=1e-4)
    assert stats[1] == stats[2] == 800
    case.assert_equal(rtol=2e-3, atol=1e-4)


def test_clipping_is_that_of_the_reference_and_spares_biases():
    case, free = (Case(60, GloVeConfig(dim=20, grad_clip=clip), spread=2.0) for clip in (0.5, 100))
    case.run_kernel()
    case.run_reference()
    case.assert_equal(rtol=2e-3, atol=1e-4)
    free.run_kernel()
    assert np.abs(free.words - case.words).max() > 1e-2, "nothing was clipped"


def test_a_way_through_the_cells_visits_each_once():
    for num in (1, 2, 3, 4, 5, 6, 10, 97, 1000, 16_384):
        for key in range(5):
            first, stride = way_through(key, num)
            places = (first + stride * np.arange(num)) % num
            assert sorted(places) == list(range(num))


def test_the_kernel_goes_the_way_and_counts_rows_from_the_base():
    case = Case(301, GloVeConfig(dim=20))
    case.rows = np.maximum(case.rows, 7)
    first, stride = way_through(3, 301)
    case.run_kernel(first, stride, base=7)
    case.visited_in((first + stride * np.arange(301)) % 301)
    case.run_reference()
    case.assert_equal(rtol=2e-3, atol=1e-4)


def test_the_last_row_of_a_block_and_the_last_column_fit_a_key():
    key = np.uint32(511) << np.uint32(kernels.COLUMN_BITS) | np.uint32((1 << 23) - 1)
    assert int(key) == 2**32 - 1


def test_a_random_order_has_everything_once_and_depends_on_its_key():
    orders = [np.empty(1000, np.int64) for _ in range(3)]
    for key, order in zip((1, 1, 2), orders, strict=True):
        kernels.random_order(np.uint64(key), order)
    assert sorted(orders[0]) == list(range(1000))
    assert np.array_equal(orders[0], orders[1]) and not np.array_equal(orders[0], orders[2])
    assert np.abs(np.corrcoef(orders[0], np.arange(1000))[0, 1]) < 0.1


def test_first_steps_follow_the_gradient():
    torch = pytest.importorskip("torch")
    case = Case(1, GloVeConfig(dim=6, learning_rate=0.05))
    row, column, count = int(case.rows[0]), int(case.columns[0]), float(case.counts[0])
    before = {name: torch.tensor(value.copy(), requires_grad=True)
              for name, value in vars(case.at).items()}  # fmt: skip
    far = (before["words"][row] @ before["contexts"][column] + before["word_biases"][row]
           + before["context_biases"][column] - math.log(count))  # fmt: skip
    weight = min(1.0, (count / 100) ** 0.75)
    (0.5 * weight * far**2).backward()
    assert reference.loss(row, column, count, case.at, 100, 0.75) == pytest.approx(
        float(0.5 * weight * far.detach() ** 2)
    )
    case.run_reference()
    for name, value in vars(case.at).items():
        # Sums start at 1, so the first step is the gradient times the rate.
        rate = 1.0 if "biases" in name else 0.05
        moved = before[name].detach().numpy() - value
        np.testing.assert_allclose(moved, rate * before[name].grad.numpy(), atol=1e-12)


def test_counts_of_any_size_leave_finite_numbers():
    counts = [1e-30, 1e30, 3e38, 1e-38, 1.0, 1e-3, 1e6]
    case = Case(7000, GloVeConfig(dim=20, learning_rate=0.05), seed=1)
    case.counts = np.resize(np.array(counts, np.float32), 7000)
    losses = [case.run_kernel()[0] for _ in range(20)]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]
    assert np.isfinite(case.words).all() and np.isfinite(case.contexts).all()


def test_a_cell_without_a_finite_loss_changes_nothing():
    case = Case(5, GloVeConfig(dim=20))
    case.counts[:] = np.inf
    before = case.words.copy(), case.contexts.copy()
    assert np.isnan(case.run_kernel()[0])
    assert np.array_equal(case.words, before[0]) and np.array_equal(case.contexts, before[1])

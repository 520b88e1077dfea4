"""The Triton kernels give the updates and the loss of the plain reference.

Without a GPU they run in Triton's interpreter, which runs one program after the other: then every
tile sees the updates of all tiles before it, stretch by stretch.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

from sememe.examples import kernels as examples
from sememe.examples.windows import keep_limits
from sememe.models.word2vec.tiles import batches, launching, plan, reference

NUM_WORDS = 40
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(num: int, window: int) -> tuple[np.ndarray, ...]:
    """Random words in sentences of various lengths, with windows drawn."""
    random = np.random.default_rng(num)
    ids = random.integers(0, NUM_WORDS, num).astype(np.int32)
    ends = np.append(np.sort(random.integers(1, num, num // 15)), num)
    limits = keep_limits(np.ones(NUM_WORDS, np.int64), 0)
    space = [np.empty(num, np.int32) for _ in range(3)]
    kept = examples.draw_windows(ids, ends, limits, window, np.uint64(3), *space)
    return tuple(own[:kept] for own in space)


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.copy()).to(DEVICE)


def matrices(dim: int, num_rows: int = NUM_WORDS) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(rows, dampings) of both matrices; rows are padded with zeros as in training."""
    random = np.random.default_rng(5)
    rows = [np.zeros((num, -(-dim // 16) * 16)) for num in (num_rows, NUM_WORDS)]
    for own in rows:
        own[:, :dim] = random.normal(0, 0.6 / np.sqrt(dim), (len(own), dim))
    return rows, [random.uniform(0.2, 1, len(own)) for own in rows]


CASES = [
    # dim, window, tile, pool, stretches, words
    (16, 1, 16, 32, 1, 70),
    (100, 5, 16, 64, 3, 150),
    (300, 15, 8, 128, 2, 60),
    (1_024, 4, 3, 32, 2, 30),
]


@pytest.mark.parametrize(
    ("architecture", "is_mean"), [("skipgram", True), ("cbow", True), ("cbow", False)]
)
@pytest.mark.parametrize(("dim", "window", "tile", "pool", "stretches", "num"), CASES)
def test_updates_are_those_of_the_reference(
    architecture, is_mean, dim, window, tile, pool, stretches, num
):
    if DEVICE == "cuda":
        stretches = 1  # programs that run at once may or may not see each other's updates
    words, random = drawn(num, window), np.random.default_rng(1)
    num_tiles = -(-len(words[0]) // tile)
    noise = random.integers(0, NUM_WORDS, (num_tiles, pool)).astype(np.int32)
    rows, dampings = matrices(dim)
    tables = batches.Tables(*(tensor(own).float() for own in (*rows, *dampings)))
    is_skipgram = architecture == "skipgram"
    own = batches.Settings(is_skipgram, is_mean, window, tile, pool, 5)
    stats = launching.train_words(
        batches.Words(*map(tensor, words)), stretches, tensor(noise), tables, own, (0.05, 0.01)
    )
    losses, options = [], {} if is_skipgram else {"is_mean": is_mean}
    starts = plan.tile_starts(len(words[0]), tile, stretches)
    for stretch in starts.T:
        for k, first in enumerate(stretch[stretch >= 0]):
            loss = getattr(reference, f"{architecture}_batch")(
                *words, np.array([first]), tile, noise[first // tile][None], *rows, negatives=5,
                rate=0.05 - 0.04 * k / len(starts), damp_input=dampings[0],
                damp_output=dampings[1], **options,
            )  # fmt: skip
            losses.append((k, *loss))
    error = 5e-3 if DEVICE == "cuda" else 2e-5  # of tf32
    np.testing.assert_allclose(tables.input.cpu().numpy(), rows[0], atol=error)
    np.testing.assert_allclose(tables.output.cpu().numpy(), rows[1], atol=error)
    counted = [one for one in losses if one[0] % batches.LOSS_EVERY == 0]
    assert stats[0].item() == pytest.approx(sum(loss for _, loss, _ in counted), rel=error)
    assert stats[1].item() == sum(pairs for *_, pairs in counted)
    assert stats[2].item() == sum(pairs for *_, pairs in losses)


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
def test_input_vectors_of_several_rows_are_those_of_pytorch(architecture):
    """fastText: a word is the mean of its rows, and each of them gets the full change."""
    words, random = drawn(50, 3), np.random.default_rng(2)
    num_rows = random.integers(1, 9, NUM_WORDS)
    starts = np.append(0, np.cumsum(num_rows))
    pieces = random.integers(0, 25, starts[-1]).astype(np.int32)
    noise = random.integers(0, NUM_WORDS, (-(-len(words[0]) // 8), 32)).astype(np.int32)
    own = batches.Settings(architecture == "skipgram", True, 3, 8, 32, 5)
    found = []
    for path in (batches, launching):
        rows, dampings = matrices(20, 25)
        tables = batches.Tables(
            *(tensor(own).float() for own in (*rows, *dampings)), tensor(starts), tensor(pieces)
        )
        stats = path.train_words(
            batches.Words(*map(tensor, words)), 1, tensor(noise), tables, own, (0.1, 0.1)
        )
        found.append((tables.input.cpu(), tables.output.cpu(), stats.cpu()))
        assert not np.allclose(found[-1][0], rows[0], atol=1e-3)
    error = 5e-3 if DEVICE == "cuda" else 2e-5
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=error, rtol=error)


def test_sizes_of_a_launch():
    assert [launching.power_of_two(num) for num in (1, 16, 17, 26, 64)] == [16, 16, 32, 32, 64]
    own = batches.Settings(True, True, 15, 16, 64, 5)
    assert launching.fits(own, 1_024)
    assert not launching.fits(own, 2_048)
    assert not launching.fits(own._replace(window=100), 112)

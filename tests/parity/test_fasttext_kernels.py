"""The compiled part of fastText against its plain reference, and that against autograd."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sememe.models.fasttext import kernels, reference
from sememe.models.word2vec import kernels as word2vec, reference as plain

NUM_WORDS, NUM_ROWS, DIM, WIDTH, WINDOW, POOL, RATE = 9, 21, 20, 32, 3, 8, 0.05


def make_text(seed: int, num_tokens: int = 40):
    """Words with a row of their own and some shared ones, one sentence, noise, matrices."""
    random = np.random.default_rng(seed)
    pieces = [
        [word, *random.integers(NUM_WORDS, NUM_ROWS, random.integers(0, 6)).tolist()]
        for word in range(NUM_WORDS)
    ]
    ends = np.cumsum([len(piece) for piece in pieces]).astype(np.int64)
    rows = np.concatenate(pieces).astype(np.int32)
    tokens = random.integers(0, NUM_WORDS, num_tokens).astype(np.int32)
    reach = random.integers(1, WINDOW + 1, num_tokens)
    left = np.maximum(0, np.arange(num_tokens) - reach).astype(np.int32)
    right = np.minimum(num_tokens, np.arange(num_tokens) + reach + 1).astype(np.int32)
    noise = random.integers(0, NUM_WORDS, 20 * POOL).astype(np.int32)
    input, output = np.zeros((NUM_ROWS, WIDTH)), np.zeros((NUM_WORDS, WIDTH))
    for matrix in (input, output):
        matrix[:, :DIM] = random.normal(0, 0.5, (len(matrix), DIM))
    return ends, rows, (tokens, left, right), noise, input, output


@pytest.mark.parametrize(("seed", "parts"), [(0, ()), (1, ()), (2, ()), (3, (8, 24))])
def test_a_chunk_equals_the_reference(seed, parts):
    ends, rows, (tokens, left, right), noise, input, output = make_text(seed)
    fast_input, fast_output = input.astype(np.float32), output.astype(np.float32)
    numbers = np.full(NUM_WORDS, seed, np.int32)  # what an earlier chunk may have left
    words, inputs = np.zeros(len(tokens), np.int32), np.zeros(len(tokens), np.int32)
    hidden, before = (np.zeros(len(tokens) * WIDTH, np.float32) for _ in range(2))
    untouched = input.copy()
    for head, tail in pairwise((0, *parts, len(tokens))):
        low, high = left[head:tail].min(), right[head:tail].max()
        num_words = kernels.number_words(tokens, left, right, head, tail, numbers, words, inputs)
        assert sorted(words[:num_words]) == sorted(set(tokens[low:high].tolist()))
        assert np.array_equal(words[inputs[low:high]], tokens[low:high])
        pieces = (words, num_words, ends, rows, fast_input.reshape(-1), WIDTH, hidden, before)
        kernels.put_together(*pieces)
        word2vec.skipgram_negative(
            tokens, inputs, left, right, head, tail, noise, hidden, fast_output.reshape(-1), WIDTH,
            WINDOW, POOL, 8, np.float32(5 / POOL), np.float32(RATE), 1, np.zeros(3),
        )  # fmt: skip
        kernels.share_changes(*pieces)
        place = np.arange(len(tokens))
        is_centre = (place >= head) & (place < tail)
        bounds = np.where(is_centre, left, place), np.where(is_centre, right, place + 1)

        def learn(composed: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] = bounds) -> None:
            plain.skipgram_negative(
                tokens, *bounds, noise, composed, output, pool=POOL, block=8, negatives=5,
                rate=RATE,
            )  # fmt: skip

        reference.train_chunk(tokens, ends, rows, input, learn)
    assert np.abs(input - untouched).max() > 0.05, "nothing was trained"
    np.testing.assert_allclose(fast_input, input, atol=3e-5)
    np.testing.assert_allclose(fast_output, output, atol=3e-5)


def test_the_change_is_the_gradient_times_the_number_of_rows():
    """Facebook's program adds the gradient of the mean to each row; the true one is 1/n of it."""
    torch = pytest.importorskip("torch")
    ends, rows, (tokens, left, right), noise, input, output = make_text(7, num_tokens=8)
    parameters = torch.tensor(input, requires_grad=True)
    loss = torch.zeros((), dtype=torch.float64)
    outputs = torch.tensor(output)
    for c, centre in enumerate(tokens):
        for q in plain.window_of(c, left, right):
            mean = parameters[reference.rows_of_word(tokens[q], ends, rows).tolist()].mean(dim=0)
            loss = loss + torch.nn.functional.softplus(-(outputs[centre] @ mean))
            false = outputs[noise[:POOL].tolist()] @ mean
            loss = loss + 5 / POOL * torch.nn.functional.softplus(false).sum()
    loss.backward()
    # With a mean of n rows the gradient of each is 1/n of the mean's: scale the rows back.
    expected = np.zeros_like(input)
    before = input.copy()

    def learn(composed: np.ndarray) -> None:
        plain.skipgram_negative(
            tokens, left, right, noise, composed, output.copy(), pool=POOL, block=8, negatives=5,
            rate=1.0,
        )  # fmt: skip

    reference.train_chunk(tokens, ends, rows, input, learn)
    change = input - before
    gradient = -parameters.grad.numpy()
    own = list(set(tokens.tolist()))
    for word in own:  # a word's own row is touched by that word alone
        num_rows = len(reference.rows_of_word(word, ends, rows))
        expected[word] = gradient[word] * num_rows
    np.testing.assert_allclose(change[own], expected[own], atol=1e-9)

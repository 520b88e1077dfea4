"""The compiled updates of word2vec against the plain reference, and that against autograd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sememe.examples.windows import build_tree
from sememe.models.word2vec import kernels, reference

NUM_WORDS, DIM, WIDTH, WINDOW, POOL, RATE = 23, 20, 32, 3, 8, 0.3
COMBINATIONS = [
    (architecture, loss, combine)
    for architecture in ("skipgram", "cbow")
    for loss in ("negative", "hierarchical", "softmax")
    for combine in (("mean", "sum") if architecture == "cbow" else ("mean",))
]


@dataclass
class Chunk:
    """Kept words with windows, noise and matrices, as the kernels take them."""

    tokens: np.ndarray
    left: np.ndarray
    right: np.ndarray
    noise: np.ndarray
    input: np.ndarray
    output: np.ndarray
    tree: Any

    def copies(self, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        return self.input.astype(dtype), self.output.astype(dtype)


def make_chunk(
    num_tokens: int, seed: int = 0, window: int = WINDOW, num_words: int = NUM_WORDS
) -> Chunk:
    """Random sentences over few words, so that a block holds the same word several times."""
    random = np.random.default_rng(seed)
    tokens = random.integers(0, num_words, num_tokens).astype(np.int32)
    position = np.arange(num_tokens)
    reach = random.integers(1, window + 1, num_tokens)
    edge = num_tokens * 2 // 3  # two sentences
    start = np.where(position < edge, 0, edge)
    end = np.where(position < edge, edge, num_tokens)
    left = np.maximum(start, position - reach).astype(np.int32)
    right = np.minimum(end, position + reach + 1).astype(np.int32)
    matrices = [np.zeros((num_words, WIDTH), np.float32) for _ in range(2)]
    for matrix in matrices:
        matrix[:, :DIM] = random.normal(0, 0.5, (num_words, DIM))
    noise = random.integers(0, num_words, (num_tokens + 8) * POOL).astype(np.int32)
    tree = build_tree(np.sort(random.integers(1, 1000, num_words))[::-1].astype(np.int64))
    return Chunk(tokens, left, right, noise, *matrices, tree)


def run_kernel(
    chunk: Chunk, architecture: str, loss: str, combine: str, block: int = 2, num_workers: int = 1,
    parts: Sequence[int] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """(input, output, stats) after one chunk of the compiled update, cut at the centres `parts`."""
    matrices = chunk.copies(np.float32)
    flat = [matrix.reshape(-1) for matrix in matrices]
    stats = np.zeros(3)
    edges = (0, *parts, len(chunk.tokens))
    for first, last in pairwise(edges):
        run_part(
            chunk, (architecture, loss, combine), (first, last), block, num_workers, flat, stats
        )
    return *matrices, stats


def run_part(
    chunk: Chunk, kind: tuple[str, str, str], part: tuple[int, int], block: int, num_workers: int,
    flat: list[np.ndarray], stats: np.ndarray,
) -> None:  # fmt: skip
    """One call of the compiled update, for the centres of a part."""
    architecture, loss, combine = kind
    head = (chunk.tokens, chunk.tokens, chunk.left, chunk.right, *part)
    path = (chunk.tree.starts, chunk.tree.nodes, chunk.tree.codes)
    rate, weight, is_mean = np.float32(RATE), np.float32(5 / POOL), combine == "mean"
    if loss == "softmax":
        is_skipgram = architecture == "skipgram"
        kernels.full_softmax(*head, *flat, WIDTH, WINDOW, rate, is_skipgram, is_mean, 1, stats)
    elif (architecture, loss) == ("skipgram", "negative"):
        kernels.skipgram_negative(
            *head, chunk.noise, *flat, WIDTH, WINDOW, POOL, 4 * block, weight, rate, 1, stats
        )
    elif (architecture, loss) == ("cbow", "negative"):
        kernels.cbow_negative(
            *head, chunk.noise, *flat, WIDTH, WINDOW, POOL, block, weight, rate, is_mean, 1, stats
        )
    elif architecture == "skipgram":
        kernels.skipgram_hierarchical(
            *head, *path, chunk.tree.max_length, *flat, WIDTH, WINDOW, rate, num_workers, 1, stats
        )
    else:
        kernels.cbow_hierarchical(*head, *path, *flat, WIDTH, WINDOW, rate, is_mean, 1, stats)


def run_reference(
    chunk: Chunk, architecture: str, loss: str, combine: str, block: int = 2
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """(input, output, loss, pairs) after one chunk of the plain update, in double precision."""
    input, output = chunk.copies(np.float64)
    head = (chunk.tokens, chunk.left, chunk.right)
    options: dict[str, Any] = {"rate": RATE}
    if architecture == "cbow":
        options["is_mean"] = combine == "mean"
    if loss == "softmax":
        options |= {"is_skipgram": architecture == "skipgram", "is_mean": combine == "mean"}
        total, pairs = reference.full_softmax(*head, input, output, **options)
    elif loss == "negative":
        size = 4 * block if architecture == "skipgram" else block
        options |= {"pool": POOL, "block": size, "negatives": 5}
        update = getattr(reference, f"{architecture}_negative")
        total, pairs = update(*head, chunk.noise, input, output, **options)
    else:
        update = getattr(reference, f"{architecture}_hierarchical")
        total, pairs = update(*head, chunk.tree, input, output, **options)
    return input, output, total, pairs


@pytest.mark.parametrize(("architecture", "loss", "combine"), COMBINATIONS)
@pytest.mark.parametrize(("num_tokens", "block"), [(1, 1), (2, 2), (7, 1), (8, 2), (45, 4)])
def test_kernel_equals_reference(architecture, loss, combine, num_tokens, block):
    chunk = make_chunk(num_tokens, seed=num_tokens)
    input, output, stats = run_kernel(chunk, architecture, loss, combine, block)
    expected = run_reference(chunk, architecture, loss, combine, block)
    np.testing.assert_allclose(input, expected[0], atol=3e-5)
    np.testing.assert_allclose(output, expected[1], atol=3e-5)
    np.testing.assert_allclose(stats, [expected[2], expected[3], expected[3]], rtol=1e-5)
    assert not input[:, DIM:].any(), "the padding must stay zero"


@pytest.mark.parametrize(("architecture", "loss", "combine"), COMBINATIONS)
def test_a_chunk_in_parts_is_the_same_chunk(architecture, loss, combine):
    chunk = make_chunk(45, seed=3)
    whole = run_kernel(chunk, architecture, loss, combine, block=2)
    parts = run_kernel(chunk, architecture, loss, combine, block=2, parts=(8, 32))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("window", "num_tokens"), [(5, 45), (6, 45), (13, 30)])
def test_a_wide_window_walks_the_tree_in_steps_of_ten_words(window, num_tokens):
    chunk = make_chunk(num_tokens, seed=window, window=window)
    input, output, stats = run_kernel(chunk, "skipgram", "hierarchical", "mean")
    expected = run_reference(chunk, "skipgram", "hierarchical", "mean")
    np.testing.assert_allclose(input, expected[0], atol=3e-5)
    np.testing.assert_allclose(output, expected[1], atol=3e-5)
    np.testing.assert_allclose(stats, [expected[2], expected[3], expected[3]], rtol=1e-5)


@pytest.mark.parametrize("num_words", [NUM_WORDS, 300])
def test_one_of_four_workers_moves_the_top_of_the_tree_by_a_quarter(num_words):
    chunk = make_chunk(45, num_words=num_words)
    input, output, _ = run_kernel(chunk, "skipgram", "hierarchical", "mean", num_workers=4)
    expected = run_reference(chunk, "skipgram", "hierarchical", "mean")
    top = slice(-kernels.OWN_NODES, None)
    expected[1][top] = 0.75 * chunk.output[top] + 0.25 * expected[1][top]
    np.testing.assert_allclose(input, expected[0], atol=3e-5)
    np.testing.assert_allclose(output, expected[1], atol=3e-5)


@pytest.mark.parametrize(("architecture", "loss", "combine"), COMBINATIONS)
def test_reference_follows_the_gradient(architecture, loss, combine):
    """One centre's update is the rate times minus the gradient that autograd finds."""
    torch = pytest.importorskip("torch")
    chunk = make_chunk(4, seed=5)
    centre = 1
    # Only one centre has a window, so the chunk is a single step.
    for c in range(4):
        if c != centre:
            chunk.left[c], chunk.right[c] = c, c + 1
    input, output, _, _ = run_reference(chunk, architecture, loss, combine)
    tensors = [
        torch.tensor(m, dtype=torch.float64, requires_grad=True) for m in chunk.copies(float)
    ]
    loss_value = torch_loss(torch, chunk, tensors, centre, architecture, loss, combine)
    loss_value.backward()
    for matrix, before, tensor in zip((input, output), chunk.copies(float), tensors, strict=True):
        np.testing.assert_allclose(matrix, before - RATE * tensor.grad.numpy(), atol=1e-12)


def torch_loss(torch, chunk, tensors, centre, architecture, loss, combine):
    """The loss of one centre as its definition says it."""
    input, output = tensors
    context = [int(chunk.tokens[q]) for q in reference.window_of(centre, chunk.left, chunk.right)]
    word = int(chunk.tokens[centre])
    if architecture == "cbow":
        rows = input[context]
        hidden = rows.mean(0) if combine == "mean" else rows.sum(0)
        if combine == "mean":
            # Forward the mean, backward the sum: the step that the C program takes.
            hidden = hidden.detach() + rows.sum(0) - rows.sum(0).detach()
        pairs = [(hidden, word)]
    elif loss == "softmax":
        pairs = [(input[word], other) for other in context]
    else:
        pairs = [(input[other], word) for other in context]
    total = 0.0
    logsigmoid = torch.nn.functional.logsigmoid
    # A centre's block number is 0 for skip-gram (8 centres a block) and cbow (2 a block).
    noise = chunk.noise[:POOL].astype(int)
    for hidden, target in pairs:
        if loss == "softmax":
            total -= torch.log_softmax(output @ hidden, 0)[target]
        elif loss == "negative":
            total -= logsigmoid(output[target] @ hidden)
            total -= 5 / POOL * logsigmoid(-(output[noise] @ hidden)).sum()
        else:
            nodes, codes = chunk.tree.path(target)
            signs = torch.tensor(1.0 - 2.0 * codes)
            total -= logsigmoid(signs * (output[nodes.astype(int)] @ hidden)).sum()
    return total


def test_sigmoid_is_exact_to_float_precision():
    from sememe.models.static.row_kernels import sigmoid

    scores = np.linspace(-20, 20, 4001).astype(np.float32)
    ours = np.array([sigmoid(score) for score in scores])
    np.testing.assert_allclose(ours, reference.sigmoid(scores.astype(float)), atol=3e-7)

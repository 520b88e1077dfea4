"""The tiles in PyTorch: the same draws as on the CPU, and the updates of the plain reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sememe import randomness
from sememe.examples import kernels
from sememe.examples.windows import alias_table, build_tree, keep_limits
from sememe.models.word2vec.tiles import batches, plan, reference, softmax

NUM_WORDS, DIM = 50, 12
KEY = randomness.stream_key(1, 2, 3)


def text(num: int = 4_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words with rare ones (no row), ends of sentences of which some are empty, limits."""
    random = np.random.default_rng(0)
    ids = (random.zipf(1.5, num) - 1).clip(max=NUM_WORDS).astype(np.int32)
    ends = np.append(np.sort(random.integers(0, num, 300)), num)
    counts = np.sort(np.bincount(ids, minlength=NUM_WORDS)[:NUM_WORDS])[::-1]
    return ids, ends, keep_limits(np.maximum(counts, 1), 0.05)


def drawn(window: int = 4) -> tuple[np.ndarray, ...]:
    ids, ends, limits = text()
    space = [np.empty(len(ids), np.int32) for _ in range(3)]
    num = kernels.draw_windows(ids, ends, limits, window, np.uint64(KEY), *space)
    return tuple(own[:num] for own in space)


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(own.copy()) for own in arrays]


def test_random_numbers_are_those_of_the_cpu():
    own = batches.numbers(KEY, torch.arange(1_000))
    np.testing.assert_array_equal(own.numpy().view(np.uint64), randomness.numbers(KEY, 1_000))


@pytest.mark.parametrize("window", [1, 4, 1_000])
def test_subsampling_and_windows_are_those_of_the_cpu(window):
    ids, ends, limits = text()
    own = batches.draw_windows(*tensors(ids, ends, limits.astype(np.int64)), window, KEY)
    for found, expected in zip(own, drawn(window), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


def test_a_text_of_which_nothing_is_kept_has_no_words():
    ids = np.full(10, NUM_WORDS, np.int32)
    limits = text()[2].astype(np.int64)
    own = batches.draw_windows(*tensors(ids, np.array([4, 10]), limits), 3, KEY)
    assert [len(found) for found in own] == [0, 0, 0]


def test_noise_words_are_those_of_the_cpu():
    limits, alias = alias_table(np.arange(1, 90)[::-1], 0.75)
    expected = np.empty(5_000, np.int32)
    kernels.draw_noise(limits, alias, np.uint64(KEY), expected)
    own = batches.draw_noise(*tensors(limits.astype(np.int64), alias), KEY, 5_000)
    np.testing.assert_array_equal(own.numpy(), expected)


@pytest.mark.parametrize(
    ("architecture", "is_mean"), [("skipgram", True), ("cbow", True), ("cbow", False)]
)
@pytest.mark.parametrize(("tile", "stretches", "window"), [(16, 7, 4), (5, 1, 12), (1, 3, 1)])
def test_updates_are_those_of_the_reference(architecture, is_mean, tile, stretches, window):
    words, random = drawn(window), np.random.default_rng(1)
    words = tuple(own[: 3 * 16 * 7 + 3] for own in words)
    num = len(words[0])
    words[2][:] = np.minimum(words[2], num)
    starts = plan.tile_starts(num, tile, stretches)
    noise = random.integers(0, NUM_WORDS, (-(-num // tile), 8)).astype(np.int32)
    rows = [random.normal(0, 0.3, (NUM_WORDS, DIM)) for _ in range(2)]
    dampings = [random.uniform(0.2, 1, NUM_WORDS) for _ in range(2)]
    tables = batches.Tables(*(own.float() for own in tensors(*rows, *dampings)))
    is_skipgram = architecture == "skipgram"
    own = batches.Settings(is_skipgram, is_mean, window, tile, 8, 5)
    stats = batches.train_words(
        batches.Words(*tensors(*words)), stretches, torch.from_numpy(noise), tables, own,
        (0.05, 0.01),
    )  # fmt: skip
    losses = []
    for k, row in enumerate(starts):
        row = row[row >= 0]
        options = {} if is_skipgram else {"is_mean": is_mean}
        losses.append(
            getattr(reference, f"{architecture}_batch")(
                *words, row, tile, noise[row // tile], *rows, negatives=5,
                rate=0.05 - 0.04 * k / len(starts), damp_input=dampings[0],
                damp_output=dampings[1], **options,
            )
        )  # fmt: skip
    np.testing.assert_allclose(tables.input.numpy(), rows[0], atol=2e-5)
    np.testing.assert_allclose(tables.output.numpy(), rows[1], atol=2e-5)
    counted = losses[:: batches.LOSS_EVERY]
    assert stats[0].item() == pytest.approx(sum(loss for loss, _ in counted), rel=1e-5)
    assert stats[1].item() == sum(num for _, num in counted)
    assert stats[2].item() == sum(num for _, num in losses)


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
def test_input_vectors_of_several_rows_are_their_mean_and_change_together(architecture):
    """fastText: every row of a word gets the full change of the word."""
    words, random = tuple(own[:200] for own in drawn(3)), np.random.default_rng(1)
    words[2][:] = np.minimum(words[2], 200)
    starts = np.append(0, np.cumsum(random.integers(1, 6, NUM_WORDS)))
    pieces = random.integers(0, 30, starts[-1]).astype(np.int32)
    owners_VR = np.zeros((NUM_WORDS, 30))
    np.add.at(owners_VR, (np.repeat(np.arange(NUM_WORDS), np.diff(starts)), pieces), 1)
    noise = random.integers(0, NUM_WORDS, (13, 8)).astype(np.int32)
    rows, output = random.normal(0, 0.3, (30, DIM)), random.normal(0, 0.3, (NUM_WORDS, DIM))
    damp_input, damp_output = random.uniform(0.2, 1, 30), random.uniform(0.2, 1, NUM_WORDS)
    tables = batches.Tables(
        *(own.float() for own in tensors(rows, output, damp_input, damp_output)),
        *tensors(starts, pieces),
    )
    is_skipgram = architecture == "skipgram"
    stats = batches.train_words(
        batches.Words(*tensors(*words)), 13, torch.from_numpy(noise), tables,
        batches.Settings(is_skipgram, True, 3, 16, 8, 5), (0.05, 0.05),
    )  # fmt: skip
    hidden = owners_VR / owners_VR.sum(1, keepdims=True) @ rows
    old = hidden.copy()
    loss, num_pairs = getattr(reference, f"{architecture}_batch")(
        *words, np.arange(0, 200, 16), 16, noise, hidden, output, negatives=5, rate=0.05,
        damp_input=np.ones(NUM_WORDS), damp_output=damp_output,
        **({} if is_skipgram else {"is_mean": True}),
    )  # fmt: skip
    rows = rows + damp_input[:, None] * (owners_VR.T @ (hidden - old))
    np.testing.assert_allclose(tables.input.numpy(), rows, atol=2e-5)
    np.testing.assert_allclose(tables.output.numpy(), output, atol=2e-5)
    assert stats.tolist() == pytest.approx([loss, num_pairs, num_pairs], rel=1e-5)


@pytest.mark.parametrize("loss", ["hierarchical", "softmax"])
@pytest.mark.parametrize(("is_skipgram", "is_mean"), [(True, True), (False, True), (False, False)])
def test_softmax_of_both_kinds_is_that_of_the_reference(loss, is_skipgram, is_mean, monkeypatch):
    monkeypatch.setattr(softmax, "MOST_SCORES", 40 * NUM_WORDS)  # several slices
    words, random = tuple(own[:150] for own in drawn(3)), np.random.default_rng(1)
    words[2][:] = np.minimum(words[2], 150)
    tree = build_tree(np.arange(1, NUM_WORDS + 1)[::-1])
    num_outputs = NUM_WORDS - (loss == "hierarchical")
    rows = [random.normal(0, 0.5, (num, DIM)) for num in (NUM_WORDS, num_outputs)]
    dampings = [random.uniform(0.2, 1, len(own)) for own in rows]
    tables = batches.Tables(
        *(own.float() for own in tensors(*rows, *dampings)),
        None, None, *tensors(*softmax.padded_paths(tree)),
    )  # fmt: skip
    own = batches.Settings(is_skipgram, is_mean, 3, 8, 0, 5, loss)
    noise = torch.zeros((19, 0), dtype=torch.int32)
    stats = batches.train_words(
        batches.Words(*tensors(*words)), 5, noise, tables, own, (0.05, 0.01)
    )
    losses, starts = [], plan.tile_starts(150, 8, 5)
    for k, row in enumerate(starts):
        given = [*words, row[row >= 0], 8, *([tree] if loss == "hierarchical" else []), *rows]
        losses.append(
            getattr(reference, f"{loss}_batch")(
                *given, rate=0.05 - 0.04 * k / len(starts), damp_input=dampings[0],
                damp_output=dampings[1], is_skipgram=is_skipgram, is_mean=is_mean,
            )
        )  # fmt: skip
    np.testing.assert_allclose(tables.input.numpy(), rows[0], atol=2e-5)
    np.testing.assert_allclose(tables.output.numpy(), rows[1], atol=2e-5)
    counted = losses[:: batches.LOSS_EVERY]
    assert stats[0].item() == pytest.approx(sum(one for one, _ in counted), rel=1e-5)
    assert stats[1:].tolist() == [sum(n for _, n in counted), sum(n for _, n in losses)]

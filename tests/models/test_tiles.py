"""word2vec in tiles: the plain reference, and the sizes and damping that follow from options."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.examples.kernels import draw_noise, draw_windows
from sememe.examples.windows import alias_table, keep_limits
from sememe.models.word2vec import reference as one_by_one
from sememe.models.word2vec.config import Word2VecConfig
from sememe.models.word2vec.tiles import plan, reference

BATCHES = {"skipgram": reference.skipgram_batch, "cbow": reference.cbow_batch}
NUM_WORDS, DIM = 30, 6


def chunk(num: int = 60, window: int = 3, seed: int = 1) -> tuple[np.ndarray, ...]:
    """Random words in sentences of 12, with windows drawn."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, NUM_WORDS, num).astype(np.int32)
    ends = np.append(np.arange(12, num, 12), num).astype(np.int64)
    limits = keep_limits(np.ones(NUM_WORDS, np.int64), 0)
    space = [np.empty(num, np.int32) for _ in range(3)]
    kept = draw_windows(ids, ends, limits, window, np.uint64(seed), *space)
    return tuple(own[:kept] for own in space)


def matrices(seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.normal(0, 0.5, (NUM_WORDS, DIM)), random.normal(0, 0.5, (NUM_WORDS, DIM))


def plain_loss(architecture, words, starts, tile, noise, input, output, negatives, *, is_mean):
    """The negative-sampling loss of all pairs, written down pair by pair."""
    tokens, left, right = words
    loss = 0.0
    for t, first in enumerate(starts):
        for c in range(first, min(first + tile, len(tokens))):
            around = [tokens[q] for q in range(left[c], right[c]) if q != c]
            if architecture == "skipgram":
                pairs = [(input[tokens[c]], target) for target in around]
            else:
                hidden = sum(input[word] for word in around) if around else None
                pairs = [(hidden / len(around) if is_mean else hidden, tokens[c])] * bool(around)
            for hidden, target in pairs:
                loss += np.log1p(np.exp(-(hidden @ output[target])))
                for word in noise[t]:
                    if word != target:
                        own = np.log1p(np.exp(hidden @ output[word]))
                        loss += negatives / noise.shape[1] * own
    return loss


def slope(function, array: np.ndarray) -> np.ndarray:
    """The gradient by central differences."""
    result, step = np.zeros_like(array), 1e-5
    for place in np.ndindex(array.shape):
        old = array[place]
        array[place] = old + step
        high = function()
        array[place] = old - step
        result[place] = (high - function()) / (2 * step)
        array[place] = old
    return result


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
def test_an_update_is_the_gradient_of_the_plain_loss_of_all_its_pairs(architecture):
    words, starts, tile, negatives = chunk(30), np.array([3, 14]), 4, 5
    noise = np.random.default_rng(3).integers(0, NUM_WORDS, (2, 8))
    noise[0, 0] = words[0][4]  # is a target as well
    input, output = matrices()
    is_mean = False  # the released program gives every context word the gradient of the whole mean
    given = (words, starts, tile, noise, input, output, negatives)
    slopes = [
        slope(lambda: plain_loss(architecture, *given, is_mean=is_mean), rows)
        for rows in (input, output)
    ]
    expected = plain_loss(architecture, *given, is_mean=is_mean)
    old = input.copy(), output.copy()
    options = {} if architecture == "skipgram" else {"is_mean": is_mean}
    loss, _ = BATCHES[architecture](
        *words, starts, tile, noise, input, output, negatives=negatives, rate=0.1,
        damp_input=np.ones(NUM_WORDS), damp_output=np.ones(NUM_WORDS), **options,
    )  # fmt: skip
    assert loss == pytest.approx(expected)
    np.testing.assert_allclose(input - old[0], -0.1 * slopes[0], atol=1e-8)
    np.testing.assert_allclose(output - old[1], -0.1 * slopes[1], atol=1e-8)


def test_a_single_centre_in_flight_is_what_the_cpu_does():
    """cbow: tiles of one centre, one after the other, are the steps of the CPU's own reference."""
    words = chunk(40)
    noise = np.random.default_rng(3).integers(0, NUM_WORDS, (len(words[0]), 8))
    noise = np.where(noise == words[0][:, None], (noise + 1) % NUM_WORDS, noise)
    rows, others = matrices(), matrices()
    ones = np.ones(NUM_WORDS)
    for first in range(len(words[0])):
        reference.cbow_batch(
            *words, np.array([first]), 1, noise[first : first + 1], *rows, negatives=5, rate=0.1,
            damp_input=ones, damp_output=ones, is_mean=True,
        )  # fmt: skip
    one_by_one.cbow_negative(
        *words, noise.reshape(-1), *others, pool=8, block=1, negatives=5, rate=0.1, is_mean=True
    )
    np.testing.assert_allclose(rows, others)


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
def test_noise_words_weigh_as_many_as_negatives_in_expectation(architecture):
    """With output vectors of zero a noise word moves by -½ · rate · weight · hidden per pair."""
    words, starts = chunk(60, seed=4), np.array([0, 16, 32])
    counts, negatives = np.arange(1, NUM_WORDS + 1)[::-1] ** 2, 5
    chance = counts**0.75 / (counts**0.75).sum()
    options = {} if architecture == "skipgram" else {"is_mean": True}
    input, zeros = matrices()[0], np.zeros((NUM_WORDS, DIM))
    found = []
    for draw in range(400):
        noise = np.empty(3 * 16, np.int32)
        draw_noise(*alias_table(counts, 0.75), np.uint64(draw), noise)
        output = zeros.copy()
        BATCHES[architecture](
            *words, starts, 16, noise.reshape(3, 16), input.copy(), output, negatives=negatives,
            rate=1.0, damp_input=np.ones(NUM_WORDS), damp_output=np.ones(NUM_WORDS), **options,
        )  # fmt: skip
        found.append(output)
    expected = zeros.copy()
    for c in range(48):
        around = words[0][one_by_one.window_of(c, *words[1:])]
        if architecture == "skipgram":
            pairs = [(input[words[0][c]], target) for target in around]
        else:
            pairs = [(input[around].mean(0), words[0][c])] * bool(len(around))
        for hidden, target in pairs:
            own = -0.5 * negatives * chance * (np.arange(NUM_WORDS) != target)
            own[target] = 0.5
            expected += own[:, None] * hidden
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (abs(np.mean(found, axis=0) - expected) < 5 * error + 1e-9).all()


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
def test_expected_pair_updates_are_those_of_a_simulated_text(architecture):
    num, window, negatives = 60_000, 4, 3
    random = np.random.default_rng(0)
    chance = 1 / np.arange(1, 201)
    ids = random.choice(200, num, p=chance / chance.sum()).astype(np.int32)
    counts = np.bincount(ids, minlength=200)
    order = np.argsort(-counts, kind="stable")
    ids, counts = np.argsort(order)[ids].astype(np.int32), counts[order]
    config = Word2VecConfig(
        architecture=architecture, window=window, negatives=negatives, sample=0.01
    )
    limits = keep_limits(counts, config.sample)
    space = [np.empty(num, np.int32) for _ in range(3)]
    kept = draw_windows(ids, np.array([num]), limits, window, np.uint64(1), *space)
    tokens, left, right = (own[:kept] for own in space)
    noise: np.ndarray = np.empty(negatives * kept, np.int32)
    draw_noise(*alias_table(counts, config.noise_exponent), np.uint64(2), noise)
    noise = noise.reshape(kept, negatives)
    input, output = np.zeros(200), np.zeros(200)
    for c in range(kept):
        around = tokens[one_by_one.window_of(c, left, right)]
        if architecture == "skipgram":
            input[tokens[c]] += len(around)
            np.add.at(output, around, 1)
            np.add.at(output, noise[c], len(around))
        else:
            np.add.at(input, around, 1)
            output[tokens[c]] += 1
            np.add.at(output, noise[c], 1)
    expected = plan.pair_updates(config, counts, limits, 1)
    for own, simulated in zip(expected, (input, output), strict=True):
        np.testing.assert_allclose(own[:20], simulated[:20] / kept, rtol=0.1)
        assert own.sum() == pytest.approx(simulated.sum() / kept, rel=0.01)
    half = plan.damping(
        expected[0], 2 * plan.threshold(0.05) / expected[0][0], plan.threshold(0.05)
    )
    assert half[0] == pytest.approx(0.5)
    assert half[-1] == 1
    assert plan.threshold(0.05) == plan.threshold(0.025) / 2
    assert plan.threshold(0.05, 0.5) == plan.LEAST_IN_FLIGHT / 0.05 < plan.threshold(0.05)
    assert plan.concentration(np.array([1, 1]), np.array([2**32, 2**32, 0])) == 0.5


def zipf(num_words: int, total: int) -> np.ndarray:
    counts = 1 / np.arange(1, num_words + 1)
    return np.maximum(5, counts / counts.sum() * total).astype(np.int64)


def planned(num_words: int = 70_000, total: int = 20_000_000, **options) -> plan.TilePlan:
    config, counts = Word2VecConfig(**options), zipf(num_words, total)
    limits = keep_limits(counts, config.sample)
    return plan.make_plan(config, counts, limits, total // 25, int(counts.sum()))


def test_fewer_centres_are_in_flight_where_they_would_overshoot():
    usual = planned()
    assert (usual.tile, usual.stretches) == (16, plan.MOST_STRETCHES)
    fast, frequent, few = planned(learning_rate=0.1), planned(sample=0), planned(num_words=100)
    assert fast.in_flight < usual.in_flight
    assert frequent.in_flight < usual.in_flight
    assert few.in_flight < usual.in_flight
    for own in (usual, fast, frequent, few):
        assert 1 / plan.DEEPEST <= own.damp_output.min() <= own.damp_output.max() <= 1
        assert (np.diff(own.damp_output) >= 0).all(), "rarer words are damped less"
    assert planned(num_words=1, total=1_000, learning_rate=10).in_flight == 1


def test_a_short_text_has_few_stretches_and_small_chunks():
    assert planned(total=3_000, num_words=200).stretches < 30
    assert plan.chunk_size(1_000) == plan.SMALLEST_CHUNK
    assert plan.chunk_size(10**9) == plan.LARGEST_CHUNK
    assert 20_000_000 / plan.chunk_size(20_000_000) >= plan.STEPS_PER_EPOCH
    assert planned().stretches_of(16 * plan.SHORTEST * 3 + 1) == 3
    assert planned().stretches_of(1) == 1


@pytest.mark.parametrize(("num", "tile", "stretches"), [(100, 16, 2), (7, 4, 9), (161, 8, 5)])
def test_every_tile_is_trained_once_and_neighbors_are_not_in_flight_together(num, tile, stretches):
    starts = plan.tile_starts(num, tile, stretches)
    found = starts[starts >= 0]
    assert sorted(found) == list(range(0, num, tile))
    for row in starts:
        own = row[row >= 0]
        assert (row[: len(own)] == own).all(), "those that are missing stand last"
        if len(starts) > 1:
            assert (np.diff(own) > tile).all()


def test_the_pool_is_a_power_of_two_within_limits():
    sizes = {
        plan.pool_size(
            Word2VecConfig(architecture=architecture, window=window, negatives=negatives)
        )
        for architecture in ("skipgram", "cbow")
        for window in (1, 5, 15)
        for negatives in (1, 5, 20, 1000)
    }
    assert sizes == {32, 64, 128}
    assert plan.pool_size(Word2VecConfig()) == 64


def test_rows_of_several_words_are_in_flight_as_often_as_all_of_them():
    """fastText: an n-gram's row changes with every word that has it."""
    rows = plan.InputRows(np.array([0, 2, 3, 5]), np.array([0, 3, 1, 2, 3], np.int32), 4)
    assert rows.spread(np.array([1.0, 2.0, 4.0])).tolist() == [1, 2, 4, 5]
    config, counts = Word2VecConfig(), zipf(1_000, 1_000_000)
    limits = keep_limits(counts, config.sample)
    given = (config, counts, limits, 40_000, int(counts.sum()))
    shared = plan.InputRows(
        np.arange(0, 2_001, 2), np.stack([np.arange(1_000), np.full(1_000, 1_000)], 1).ravel(),
        1_001,
    )  # fmt: skip
    alone, together = plan.make_plan(*given), plan.make_plan(*given, shared)
    assert together.in_flight < alone.in_flight
    assert together.damp_input[1_000] == together.damp_input.min() < 1

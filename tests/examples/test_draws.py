"""Random draws: windows, noise words, Huffman codes; fast ones against plain ones."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from plain_examples import keep_probability

from sememe.examples.kernels import draw_noise, draw_windows
from sememe.examples.windows import alias_table, build_tree, draw_windows_reference, keep_limits
from sememe.randomness import fast_number, fill_uniform, number, stream_key


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40))
@settings(max_examples=200, deadline=None)
def test_fast_numbers_equal_plain_ones(key, index):
    assert int(fast_number(np.uint64(key), index)) == number(key, index)


def test_numbers_are_those_of_splitmix64():
    # The first outputs of the published generator for the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [number(1234567, index) for index in range(3)] == expected


def test_keys_of_neighboring_positions_are_unrelated():
    keys = {stream_key(seed, purpose, step) for seed in range(5) for purpose in range(5)
            for step in range(40)}  # fmt: skip
    assert len(keys) == 1000


def test_uniform_rows_do_not_depend_on_how_they_are_cut():
    whole, parts = np.zeros((6, 16), np.float32), np.zeros((6, 16), np.float32)
    fill_uniform(whole, 10, np.float32(-0.5), np.float32(0.5), np.uint64(9), 0)
    fill_uniform(parts[:2], 10, np.float32(-0.5), np.float32(0.5), np.uint64(9), 0)
    fill_uniform(parts[2:], 10, np.float32(-0.5), np.float32(0.5), np.uint64(9), 2)
    np.testing.assert_array_equal(whole, parts)
    assert not whole[:, 10:].any()
    assert -0.5 <= whole.min() < whole.max() < 0.5


@given(
    st.lists(st.lists(st.integers(0, 5), max_size=12), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(0, 2**63),
)
@settings(max_examples=60, deadline=None)
def test_windows_equal_plain_ones_and_stay_inside_sentences(sentences, window, key):
    ids = np.array([word for sentence in sentences for word in sentence], np.int32)
    ends = np.cumsum([len(sentence) for sentence in sentences]).astype(np.int64)
    limits = keep_limits(np.array([500, 50, 5, 3, 1]), 0.01)
    buffers = [np.zeros(len(ids) + 1, np.int32) for _ in range(3)]
    num = draw_windows(ids, ends, limits, window, np.uint64(key), *buffers)
    tokens, left, right = draw_windows_reference(ids, ends, limits, window, key)
    assert [list(buffer[:num]) for buffer in buffers] == [tokens, left, right]
    assert 5 not in tokens, "a word without a row is never kept"
    for c in range(num):
        assert left[c] <= c < right[c]
        assert c - left[c] <= window and right[c] - c - 1 <= window


def test_keep_probability_follows_the_c_program():
    # A word of 1 % of the text at threshold 1e-3: sqrt(0.1) + 0.1.
    assert keep_probability(100, 10_000, 1e-3) == pytest.approx(0.4162, abs=1e-4)
    assert keep_probability(1, 10_000, 1e-3) == 1.0
    assert keep_probability(100, 10_000, 0) == 1.0
    limits = keep_limits(np.array([100, 9_900]), 1e-3)
    assert limits[0] / 2**32 == pytest.approx(0.4162, abs=1e-4)
    assert limits[2] == 0


def test_noise_words_come_by_count_to_the_power():
    counts = np.array([1000, 100, 10, 1])
    out = np.empty(400_000, np.int32)
    draw_noise(*alias_table(counts, 0.75), np.uint64(7), out)
    expected = counts**0.75 / (counts**0.75).sum()
    seen = np.bincount(out, minlength=4) / len(out)
    # Four standard errors of a proportion.
    np.testing.assert_allclose(seen, expected, atol=4 * np.sqrt(0.25 / len(out)))


def test_noise_with_one_word():
    out = np.empty(10, np.int32)
    draw_noise(*alias_table(np.array([3]), 0.75), np.uint64(7), out)
    assert not out.any()


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=60))
@settings(max_examples=60, deadline=None)
def test_huffman_codes_are_prefix_free_and_as_short_as_a_heap_makes_them(counts):
    counts = np.array(sorted(counts, reverse=True), np.int64)
    tree = build_tree(counts)
    codes = ["".join(map(str, tree.path(word)[1])) for word in range(len(counts))]
    assert len(set(codes)) == len(counts)
    assert not any(a != b and b.startswith(a) for a in codes for b in codes)
    heap = list(counts)
    heapq.heapify(heap)
    best = 0
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        best += joined
        heapq.heappush(heap, joined)
    assert sum(count * len(code) for count, code in zip(counts, codes, strict=True)) == best
    roots = {int(tree.path(word)[0][0]) for word in range(len(counts))}
    assert roots == {len(counts) - 2}, "every path starts at the root"

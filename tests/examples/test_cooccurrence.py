"""Co-occurrence counts against the plain reference and Stanford's program, in every memory."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from plain_examples import count_pairs_plainly

from sememe.errors import OptionError, WriteError
from sememe.examples.cooccurrence import counting
from sememe.examples.cooccurrence.counting import Cells, PairSettings, count_pairs
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build
from sememe.tokens.store import TokenStore

PLENTY = 64 << 20
sentences_of_letters = st.lists(
    st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=40), min_size=1, max_size=12
)
pair_settings = st.builds(
    PairSettings,
    window=st.integers(1, 12),
    weighting=st.sampled_from(["flat", "harmonic"]),
    direction=st.sampled_from(["both", "left", "right"]),
)


def open_store(sentences: list[list[str]]) -> TokenStore:
    return open_or_build(sentences, TextSettings(), min_count=1)


def ids_of(store: TokenStore, sentences: list[list[str]]) -> list[list[int]]:
    return [[store.vocabulary.id(word) for word in sentence] for sentence in sentences]


def count(store: TokenStore, what: PairSettings, num_words: int = 100, **options: object) -> Cells:
    with tempfile.TemporaryDirectory() as folder:
        blocks = list(
            count_pairs(
                store, num_words, what, **{"memory": PLENTY, "scratch": Path(folder), **options}
            )
        )
        assert not any(Path(folder).iterdir())
    return Cells(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def as_dict(cells: Cells) -> dict[tuple[int, int], float]:
    keys = zip(cells.rows.tolist(), cells.columns.tolist(), strict=True)
    return dict(zip(keys, cells.values.tolist(), strict=True))


@settings(max_examples=40, deadline=None)
@given(sentences_of_letters, pair_settings, st.integers(1, 10))
def test_counts_are_those_of_the_reference(sentences, what, num_words):
    store = open_store(sentences)
    cells = count(store, what, num_words, workers=2)
    expected = count_pairs_plainly(ids_of(store, sentences), num_words, what)
    assert list(as_dict(cells)) == list(expected)  # also in the same order
    assert cells.values.tolist() == pytest.approx(list(expected.values()), rel=1e-6)
    assert [array.dtype for array in cells] == [np.int32, np.int32, np.float32]


@settings(max_examples=25, deadline=None)
@given(sentences_of_letters, pair_settings, st.integers(0, 2**32 - 1))
def test_neither_memory_nor_workers_change_a_bit(sentences, what, seed):
    generator = np.random.default_rng(seed)
    # One sentence that is longer than the smallest chunk, so that chunks cut through it.
    long = list(generator.choice(list("abcdefghijk"), 2_000))
    store = open_store([*sentences, long, *sentences])
    plenty = count(store, what, 8)
    for workers in (1, 2, 3):
        assert all(map(np.array_equal, count(store, what, 8, workers=workers), plenty))
    for memory in (15_000, 20_000, 40_000):
        few = count(store, what, 8, workers=2, memory=memory)
        assert all(map(np.array_equal, few, plenty))


def big_store(num: int = 60_000, num_words: int = 400) -> TokenStore:
    generator = np.random.default_rng(5)
    ids = (num_words * generator.random(num) ** 3).astype(int)
    return open_store([[f"w{word}" for word in line] for line in np.split(ids, num // 50)])


def test_a_small_memory_makes_many_parts(monkeypatch):
    """Also rows that are too long to be read from all parts at once."""
    from sememe.examples.cooccurrence import counting as spills

    store, what = big_store(), PairSettings(window=3)
    whole = count(store, what, 400)
    long_rows, parts = [], []
    merge_long, write = spills._merge_long_row, spills.Part.write
    monkeypatch.setattr(
        spills, "_merge_long_row", lambda *given: long_rows.append(1) or merge_long(*given)
    )
    monkeypatch.setattr(
        spills.Part, "write", lambda *given: parts.append(given[0].path) or write(*given)
    )
    few = count(store, what, 400, memory=150_000, workers=2)
    assert len(parts) > 5 and long_rows
    assert all(map(np.array_equal, few, whole))


@pytest.mark.parametrize("memory", [PLENTY, 400_000])
def test_rows_of_frequent_words_are_shared_among_threads(monkeypatch, memory):
    store, what = big_store(), PairSettings(window=4)
    whole = count(store, what, 400)
    monkeypatch.setattr(counting, "_LEAST_WORK", 100)
    parts = []
    count_rows = counting.RowCounter.run

    def run(self, work, tasks):
        for rows in count_rows(self, work, tasks):
            parts.append(rows.goes_on)
            yield rows

    monkeypatch.setattr(counting.RowCounter, "run", run)
    shared = count(store, what, 400, workers=3, memory=memory)
    assert any(parts) and not all(parts)
    assert all(map(np.array_equal, shared, whole))


def test_blocks_hold_whole_rows(tmp_path):
    store = big_store()
    blocks = list(count_pairs(store, 400, PairSettings(), memory=400_000, scratch=tmp_path))
    assert len(blocks) > 5
    for before, after in itertools.pairwise(blocks):
        assert before.rows[-1] < after.rows[0]


def test_memory_stays_within_what_was_given(tmp_path):
    import tracemalloc

    store = big_store(600_000, 2_000)
    memory = 3_000_000
    num_cells = sum(
        len(cells.rows)
        for cells in count_pairs(
            store, 2_000, PairSettings(), memory=memory, workers=2, scratch=tmp_path
        )
    )  # compiles and fills caches
    tracemalloc.start()
    for cells in count_pairs(
        store, 2_000, PairSettings(), memory=memory, workers=2, scratch=tmp_path
    ):
        num_cells -= len(cells.rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert num_cells == 0 and peak < memory


STANFORD = Path(__file__).parent / "stanford"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("symmetric.bin", PairSettings(window=4)),
        ("asymmetric.bin", PairSettings(window=3, weighting="flat", direction="right")),
    ],
)
def test_the_matrix_is_that_of_stanfords_program(name, what):
    """Made by vocab_count -min-count 2 and cooccur -max-product 9; its ids start at 1.

    With nothing to overflow that program counts its first record twice, hence the small product.
    """
    lines, entries = (
        (STANFORD / name).read_text(encoding="utf-8").splitlines()
        for name in ("text.txt", "vocab.txt")
    )
    store = open_or_build([line.split() for line in lines], TextSettings(), min_count=2)
    words = [entry.split()[0] for entry in entries]
    records = np.fromfile(STANFORD / name, [("row", "<i4"), ("column", "<i4"), ("value", "<f8")])
    expected = {(words[r - 1], words[c - 1]): value for r, c, value in records.tolist()}
    cells = count(store, what, len(store.vocabulary))
    name_of = store.vocabulary
    found = {(name_of[r], name_of[c]): value for (r, c), value in as_dict(cells).items()}
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_transposed_matrix_is_that_of_the_other_direction():
    store = big_store(3_000, 40)
    left = as_dict(count(store, PairSettings(window=4, direction="left")))
    right = as_dict(count(store, PairSettings(window=4, direction="right")))
    both = as_dict(count(store, PairSettings(window=4)))
    assert {(c, r): value for (r, c), value in left.items()} == right
    for (row, column), value in both.items():
        sides = left.get((row, column), 0) + right.get((row, column), 0)
        assert value == pytest.approx(sides, rel=1e-6)


def test_scratch_is_cleared_when_the_reader_stops_or_fails(tmp_path):
    store, what = big_store(), PairSettings(window=3)
    stream = count_pairs(store, 400, what, memory=150_000, scratch=tmp_path)
    next(stream)
    assert any(tmp_path.iterdir())
    stream.close()
    assert not any(tmp_path.iterdir())

    stream = count_pairs(store, 400, what, memory=150_000, scratch=tmp_path)
    next(stream)
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt())
    assert not any(tmp_path.iterdir())


def test_a_full_disk_is_one_clear_sentence(tmp_path, monkeypatch):
    import errno

    from sememe.examples.cooccurrence import counting as spills

    class Full(np.ndarray):
        @property
        def data(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    count_chunk = counting.RowCounter.count
    monkeypatch.setattr(
        counting.RowCounter,
        "count",
        lambda *given: (
            rows._replace(columns=rows.columns.view(Full)) for rows in count_chunk(*given)
        ),
    )
    with pytest.raises(WriteError, match="disk is full"):
        list(count_pairs(big_store(), 400, PairSettings(), memory=150_000, scratch=tmp_path))
    assert spills and not any(tmp_path.iterdir())


def test_too_little_memory_says_how_much_is_needed(tmp_path):
    with pytest.raises(OptionError, match="give at least"):
        next(count_pairs(big_store(), 400, PairSettings(), memory=1_000, scratch=tmp_path))


@pytest.mark.parametrize(
    "bad", [{"window": 0}, {"window": 10**6}, {"weighting": "linear"}, {"direction": "up"}]
)
def test_settings_out_of_range_are_named(bad):
    with pytest.raises(OptionError, match=next(iter(bad))):
        PairSettings(**bad)

"""Rows of running words: every word once an epoch, sentences in their marks, random access."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.errors import InputError, OptionError
from sememe.examples.word_rows import BEGIN_ID, END_ID, NUM_MARKS, UNKNOWN_ID, WordRowBatches
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build
from sememe.tokens.store import TokenStore

DOCUMENTS = [
    "a b c. d e.", "f g h i j k l m n.", "王 很 好。 o p.", "q.", "r s t. u v w x. y z rare.",
] * 2  # fmt: skip
DOCUMENTS[-1] = "r s t. u v w x. y z."


@pytest.fixture
def store(tmp_path) -> TokenStore:
    return open_or_build(
        DOCUMENTS, TextSettings(lowercase=False), min_count=2, path=tmp_path / "store"
    )


def stream_of(store: TokenStore, documents: list[int]) -> list[int]:
    """The stream written out sentence by sentence."""
    found: list[int] = []
    ends = [0, *store.sentence_ends.tolist()]
    for document in documents:
        first = store.document_ends[document - 1] if document else 0
        for sentence in range(first, store.document_ends[document]):
            words = store.ids[ends[sentence] : ends[sentence + 1]].tolist()
            known = [
                NUM_MARKS + word if word < len(store.vocabulary) else UNKNOWN_ID for word in words
            ]
            found += [BEGIN_ID, *known, END_ID]
    return found


def held(store: TokenStore, share: float) -> list[int]:
    from sememe.tokens.store import is_held_out

    return np.flatnonzero(is_held_out(np.arange(len(store.document_ends)), share)).tolist()


def test_validation_rows_are_the_stream_of_held_out_documents(store):
    source = WordRowBatches(store, length=7, batch_size=3, split="validation", validation_share=0.4)
    own = held(store, 0.4)
    assert 0 < len(own) < len(DOCUMENTS)
    batches = [source.batch(step) for step in range(source.batches_per_epoch)]
    found = [
        token
        for batch in batches
        for row, length in zip(batch.ids_BT, batch.lengths_B, strict=True)
        for token in row[:length].tolist()
    ]
    assert found == stream_of(store, own)
    assert UNKNOWN_ID in stream_of(store, range(len(DOCUMENTS)))  # "rare" is left without an id
    assert np.array_equal(source.batch(len(batches)).ids_BT, batches[0].ids_BT)


@pytest.mark.parametrize("length", [2, 5, 7, 64, 500])
def test_an_epoch_holds_every_word_once_in_its_order(store, length):
    source = WordRowBatches(store, length=length, batch_size=1, validation_share=0.4)
    own = [index for index in range(len(DOCUMENTS)) if index not in held(store, 0.4)]
    ring = stream_of(store, own)
    assert source.num_tokens == len(ring)
    for epoch in range(2):
        steps = range(epoch * source.rows_per_epoch, (epoch + 1) * source.rows_per_epoch)
        rows = [source.batch(step) for step in steps]
        found = [row.ids_BT[0, : row.lengths_B[0]].tolist() for row in rows]
        assert sorted(token for row in found for token in row) == sorted(ring)
        twice = ring + ring
        for row in found:
            assert any(twice[i : i + len(row)] == row for i in range(len(ring)))


def test_batches_are_functions_of_the_seed_and_the_step(store):
    def make(seed: int) -> WordRowBatches:
        return WordRowBatches(store, length=5, batch_size=4, seed=seed)

    source, other = make(1), make(1)
    later = other.batch(9)
    for step in range(10):
        batch = source.batch(step)
    assert np.array_equal(batch.ids_BT, later.ids_BT) and batch.key == later.key
    assert not np.array_equal(make(2).batch(9).ids_BT, later.ids_BT)
    assert source.num_steps(2.0) == -(-2 * source.rows_per_epoch // 4)


def test_parts_share_the_rows(store):
    batch = WordRowBatches(store, length=5, batch_size=5).batch(0)
    parts = [batch.part(index, 2) for index in range(2)]
    assert np.array_equal(parts[0].ids_BT, batch.ids_BT[::2])
    assert np.array_equal(parts[1].ids_BT, batch.ids_BT[1::2])


def test_what_cannot_be_is_refused(store):
    with pytest.raises(InputError, match="held out"):
        WordRowBatches(store, length=5, batch_size=1, split="validation", validation_share=0.0)
    with pytest.raises(OptionError, match="length"):
        WordRowBatches(store, length=1, batch_size=1)

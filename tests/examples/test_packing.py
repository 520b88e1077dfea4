"""Packed rows: full sentences of one document, running text; orders; every token once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from plain_examples import plan_full_sentences_plainly, read_documents
from subword_text import Store, Tokenizer, made_up

from sememe.errors import OptionError
from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.packing.rows import DOCUMENTS, Documents, FullSentences, PackedBatches
from sememe.randomness import permute, permute_reference, stream_key

SOURCES = (MaskedBatches, PackedBatches)


def numbered(sizes: list[list[int]]) -> tuple[Store, Tokenizer]:
    """Documents with sentences of these sizes, each token another one."""
    total = sum(map(sum, sizes))
    tokenizer = Tokenizer([f"t{index}" for index in range(total)])
    words = iter(tokenizer.pieces[7:])
    documents = [[" ".join(next(words) for _ in range(size)) for size in doc] for doc in sizes]
    return Store(documents, tokenizer), tokenizer


texts = st.lists(
    st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(any), min_size=1, max_size=8
)


@given(texts, st.integers(3, 50), st.integers(0, 2**31), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_full_sentences_equal_plain_ones_and_use_every_token_once(sizes, length, seed, epoch):
    store, _ = numbered(sizes)
    rows = FullSentences(Documents(store, "train"), length, seed)
    spans, is_next = rows.plan(epoch, 0)
    plain = plan_full_sentences_plainly(
        read_documents(store.sentence_ends, store.document_ends),
        stream_key(seed, DOCUMENTS, epoch), length - 2,
    )  # fmt: skip
    assert [tuple(span) for span in spans[:, :2].tolist()] == plain
    assert not is_next.any() and (spans[:, 2] == spans[:, 3]).all()
    used = np.concatenate([np.arange(start, end) for start, end in plain])
    assert sorted(used.tolist()) == list(range(store.num_tokens))


@given(texts, st.integers(2, 40), st.integers(1, 5), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_running_text_uses_every_token_once_an_epoch(sizes, length, batch_size, seed):
    store, tokenizer = numbered(sizes)
    source = PackedBatches(store, tokenizer, length=length, batch_size=batch_size, seed=seed)
    total = store.num_tokens + len(sizes)
    num_rows = source.rows_per_epoch
    assert num_rows == -(-total // length) and source.num_steps(1) == -(-num_rows // batch_size)
    whole = source.rows(0, 2 * num_rows)
    for epoch in range(2):
        own = slice(epoch * num_rows, (epoch + 1) * num_rows)
        rows = [row[:n] for row, n in zip(whole.ids_BT[own], whole.lengths_B[own], strict=True)]
        ids = np.concatenate(rows)
        text, num_ends = ids[ids != tokenizer.sep_id], (ids == tokenizer.sep_id).sum()
        assert sorted(text.tolist()) == sorted(store.ids.tolist()) and num_ends == len(sizes)
        for row in rows:  # neighbors in a row are neighbors in the text, over ends of text too
            places = row[row != tokenizer.sep_id].astype(int)
            gaps = np.diff(places)
            assert ((gaps == 1) | (gaps == 1 - store.num_tokens)).all()
    step = source.batch(1)
    np.testing.assert_array_equal(step.ids_BT, source.rows(batch_size, batch_size).ids_BT)
    assert step.hidden_N is None and step.segments_BT is None


def test_ends_of_text_stand_between_documents():
    store, tokenizer = numbered([[3, 2], [4], [1]])
    source = PackedBatches(store, tokenizer, length=16, batch_size=1)
    row = source.batch(0).ids_BT[0, :13]
    whole = [7, 8, 9, 10, 11, 3, 12, 13, 14, 15, 3, 16, 3]
    offset = whole.index(row[0]) if row[0] != 3 else None
    candidates = [i for i, token in enumerate(whole) if token == row[0]]
    assert any(np.roll(whole, -start).tolist() == row.tolist() for start in candidates)
    assert offset is None or np.roll(whole, -offset).tolist() == row.tolist()


def test_epochs_cut_the_text_at_other_places_and_validation_never_moves():
    store, tokenizer = made_up(80)
    train = PackedBatches(store, tokenizer, length=32, batch_size=4)
    num = train.rows_per_epoch
    first, second = (
        {tuple(row) for row in train.rows(epoch * num, num).ids_BT.tolist()} for epoch in range(2)
    )
    assert len(first & second) < 0.1 * num
    fixed = PackedBatches(store, tokenizer, length=32, batch_size=4, split="validation")
    rows = fixed.rows(0, fixed.rows_per_epoch)
    text = np.concatenate([r[:n] for r, n in zip(rows.ids_BT, rows.lengths_B, strict=True)])
    expected = []
    bounds = [0, *store.sentence_ends[store.document_ends - 1].tolist()]
    for document in np.flatnonzero(store.is_validation(np.arange(80))):
        expected += [*store.ids[bounds[document] : bounds[document + 1]].tolist(), 3]
    assert text.tolist() == expected
    again = fixed.batch(fixed.batches_per_epoch)
    np.testing.assert_array_equal(again.ids_BT, fixed.batch(0).ids_BT)
    last = fixed.batch(fixed.batches_per_epoch - 1)
    assert len(last.ids_BT) == fixed.rows_per_epoch - 4 * (fixed.batches_per_epoch - 1)


@given(st.integers(1, 300), st.integers(0, 2**64 - 1))
@settings(max_examples=80, deadline=None)
def test_an_order_holds_every_number_once_and_equals_the_plain_one(size, key):
    order = [int(permute(place, size, np.uint64(key))) for place in range(size)]
    assert sorted(order) == list(range(size))
    assert order == [permute_reference(place, size, key) for place in range(size)]


def test_orders_are_even():
    # Where the number 0 goes in many orders of 10: each place about as often.
    places = np.zeros(10)
    for key in range(4000):
        order = [permute(place, 10, np.uint64(stream_key(key))) for place in range(10)]
        places[order.index(0)] += 1
    assert abs(places - 400).max() < 5 * np.sqrt(4000 * 0.1 * 0.9)


def test_empty_documents_and_sentences_do_no_harm():
    tokenizer = Tokenizer(["a", "天"])
    store = Store([[], ["a 天", ""], [""], ["", "天", "a"], []], tokenizer)
    packed = PackedBatches(store, tokenizer, length=16, batch_size=1)
    row = packed.batch(0)
    assert row.lengths_B[0] == 6 and (row.ids_BT == tokenizer.sep_id).sum() == 2
    masked = MaskedBatches(store, tokenizer, length=16, batch_size=8)
    assert masked.batch(0).ids_BT.shape == (8, 8)
    full = MaskedBatches(store, tokenizer, length=16, batch_size=2, next_sentence=False)
    assert sorted(full.batch(0).lengths_B.tolist()) == [4, 4]


def test_large_ids_make_the_same_rows():
    store, tokenizer = made_up(20)
    small = [source(store, tokenizer) for source in (_masked, _packed)]
    store.ids = store.ids.astype(np.uint32)
    for one, other in zip(
        small, [_masked(store, tokenizer), _packed(store, tokenizer)], strict=True
    ):
        np.testing.assert_array_equal(one.ids_BT, other.ids_BT)


def _masked(store, tokenizer):
    return MaskedBatches(store, tokenizer, length=32, batch_size=4).batch(0)


def _packed(store, tokenizer):
    return PackedBatches(store, tokenizer, length=32, batch_size=4).batch(0)


def test_rows_of_no_size_are_refused():
    store, tokenizer = made_up(20)
    with pytest.raises(OptionError, match="length"):
        PackedBatches(store, tokenizer, length=1, batch_size=4)
    with pytest.raises(OptionError, match="length"):
        FullSentences(Documents(store, "train"), 2, 1)

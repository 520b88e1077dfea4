"""Next-sentence pairs: what BERT's data program would make of a text; fast against plain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from plain_examples import plan_pairs_plainly, read_documents
from subword_text import Store, Tokenizer, made_up

from sememe.errors import InputError
from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.packing.rows import (
    DOCUMENTS,
    LABELS,
    PAIRS,
    SHORT_SHARE,
    Documents,
    SentencePairs,
)
from sememe.randomness import stream_key


def store_of(sizes: list[list[int]]):
    """Documents with sentences of these sizes."""
    tokenizer = Tokenizer(["a"])
    return Store([[" ".join("a" * size) for size in document] for document in sizes], tokenizer)


texts = st.lists(
    st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any), min_size=2, max_size=8
)


@given(texts, st.integers(8, 60), st.integers(0, 2**31), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_pairs_equal_plain_ones(sizes, length, seed, epoch):
    store = store_of(sizes)
    pairs = SentencePairs(Documents(store, "train"), length, seed)
    assert pairs.num_blocks == 1
    spans, is_next = pairs.plan(epoch, 0)
    plain = plan_pairs_plainly(
        read_documents(store.sentence_ends, store.document_ends),
        stream_key(seed, DOCUMENTS, epoch), stream_key(seed, PAIRS, epoch),
        stream_key(seed, LABELS, epoch, 0), length - 3, int(SHORT_SHARE * 2**32),
    )  # fmt: skip
    assert spans.tolist() == plain.spans
    assert is_next.tolist() == plain.is_next
    assert pairs.trimmed(epoch) == plain.num_trimmed
    assert pairs.labelled(epoch) == len(is_next) - plain.is_next.count(-1)


@given(texts, st.integers(8, 60), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_pairs_keep_documents_apart_and_use_every_token_once_unless_trimmed(sizes, length, seed):
    store = store_of(sizes)
    pairs = SentencePairs(Documents(store, "train"), length, seed)
    spans, is_next = pairs.plan(0, 0)
    starts = np.cumsum([0, *map(sum, sizes)])

    def document(token):
        return int(np.searchsorted(starts, token, "right")) - 1

    num_used = np.zeros(store.num_tokens, int)
    for (a, a_end, b, b_end), follows in zip(spans.tolist(), is_next.tolist(), strict=True):
        assert a < a_end and b < b_end and a_end - a + b_end - b <= length - 3
        assert document(a) == document(a_end - 1) and document(b) == document(b_end - 1)
        is_own = document(a) == document(b)
        assert follows == is_own or follows == -1
        num_used[a:a_end] += 1
        if is_own:
            assert a_end <= b
            num_used[b:b_end] += 1
    assert num_used.max() <= 1
    assert (num_used == 0).sum() == pairs.trimmed(0)


def labels_of(planner: SentencePairs, epoch: int = 0) -> np.ndarray:
    """The labels of an epoch, of which exactly half must be true."""
    is_next = np.concatenate([planner.plan(epoch, b)[1] for b in range(planner.num_blocks)])
    assert (is_next == 1).sum() == (is_next == 0).sum() == planner.labelled(epoch) / 2
    return is_next


@pytest.mark.parametrize("seed", range(1, 21))
def test_exactly_half_of_the_labelled_pairs_of_an_epoch_follow(seed):
    source = MaskedBatches(*made_up(50), length=32, batch_size=4, seed=seed)
    for epoch in range(3):
        assert (labels_of(source._planner, epoch) >= 0).mean() > 0.5
    first = source.rows(0, source.rows_per_epoch).is_next_B
    assert sorted(first) == sorted(labels_of(source._planner)), "what the network sees"
    assert source.num_labelled == (first >= 0).sum()
    held_out = MaskedBatches(*made_up(50), length=32, batch_size=4, split="validation", seed=seed)
    labels_of(held_out._planner)


@given(texts, st.integers(8, 60), st.integers(0, 2**31), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_half_follow_in_any_text(sizes, length, seed, epoch):
    store = store_of(sizes)
    labels_of(SentencePairs(Documents(store, "train"), length, seed), epoch)


def test_every_block_is_half_true(monkeypatch):
    from sememe.examples.packing import rows as module

    monkeypatch.setattr(module, "_BLOCK_EXAMPLES", 40)
    source = MaskedBatches(*made_up(80), length=32, batch_size=4)
    assert source._planner.num_blocks > 3
    labels_of(source._planner)


def test_a_label_says_nothing_about_the_place_of_a():
    # A first sentence is easy to recognise. So its label must not be more often false.
    store = store_of([[10] * 3] * 4000)
    spans, is_next = SentencePairs(Documents(store, "train"), 103, 1).plan(0, 0)
    is_first = spans[:, 0] % 30 == 0
    for own in (is_first, ~is_first):
        labels = is_next[own & (is_next >= 0)]
        assert len(labels) > 900
        assert abs(labels.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(labels))


def test_only_what_nothing_follows_or_a_small_surplus_has_no_label():
    store = store_of([[10] * 7] * 3000)
    spans, is_next = SentencePairs(Documents(store, "train"), 203, 1).plan(0, 0)
    is_last = spans[:, 1] % 70 == 0
    assert (is_next[is_last] == -1).all()
    assert 0 < (is_next[~is_last] == -1).mean() < 0.03


def test_half_of_the_pairs_follow_and_one_in_ten_is_short():
    store = store_of([[10] * 60] * 60)
    spans, is_next = SentencePairs(Documents(store, "train"), 103, 1).plan(0, 0)
    sizes = spans[:, 1] - spans[:, 0] + spans[:, 3] - spans[:, 2]
    num = len(spans)
    assert num > 400
    assert is_next[is_next >= 0].mean() == 0.5
    assert 0.02 < (sizes < 70).mean() < 0.25
    assert (sizes == 100).mean() > 0.7


def test_rows_are_cls_a_sep_b_sep():
    store, tokenizer = made_up(40)
    source = MaskedBatches(store, tokenizer, length=40, batch_size=8)
    for step in range(source.batches_per_epoch):
        batch = source.batch(step)
        for row, length in enumerate(batch.lengths_B.tolist()):
            ids, segments = batch.ids_BT[row, :length], batch.segments_BT[row]
            seps = np.flatnonzero(ids == tokenizer.sep_id).tolist()
            assert ids[0] == tokenizer.cls_id and len(seps) == 2 and seps[1] == length - 1
            assert seps[0] > 1 and seps[1] > seps[0] + 1
            expected = [0] * (seps[0] + 1) + [1] * (seps[1] - seps[0])
            assert segments.tolist() == expected + [0] * (len(segments) - length)
        assert set(batch.is_next_B.tolist()) <= {-1, 0, 1}


def test_epochs_run_into_each_other_and_use_every_pair_once():
    store, tokenizer = made_up(50)
    source = MaskedBatches(store, tokenizer, length=32, batch_size=7)
    first = source._sequence.take(0, source._sequence.num_before(2))
    cut = source._sequence.num_before(1)
    for epoch, rows in enumerate((first.spans_N4[:cut], first.spans_N4[cut:])):
        planned = source._planner.plan(epoch, 0)[0]
        assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, planned.tolist()))
    assert source.num_steps(1) == -(-cut // 7)
    assert source.num_steps(2) == -(-len(first.spans_N4) // 7)
    assert len(source.batch(source.num_steps(1)).ids_BT) == 7, "all batches are full"


def test_blocks_hold_each_document_once(monkeypatch):
    from sememe.examples.packing import rows as module

    monkeypatch.setattr(module, "_BLOCK_EXAMPLES", 40)
    store, tokenizer = made_up(80)
    source = MaskedBatches(store, tokenizer, length=32, batch_size=4)
    assert source._planner.num_blocks > 3
    blocks = [source._planner.plan(0, block)[0] for block in range(source._planner.num_blocks)]
    monkeypatch.undo()
    whole = MaskedBatches(store, tokenizer, length=32, batch_size=4)
    assert whole._planner.num_blocks == 1
    np.testing.assert_array_equal(np.concatenate(blocks), whole._planner.plan(0, 0)[0])
    onwards = [source.batch(step).ids_BT for step in range(source.batches_per_epoch)]
    again = MaskedBatches(store, tokenizer, length=32, batch_size=4)
    assert sum(map(len, onwards)) == again.batches_per_epoch * 4


def test_validation_documents_are_never_learned_from():
    store, _ = made_up(50)
    firsts = np.concatenate([[0], store.sentence_ends[store.document_ends - 1]])
    is_held = store.is_validation(np.arange(50))
    for split, wanted in (("train", False), ("validation", True)):
        spans, _ = SentencePairs(Documents(store, split), 32, 1).plan(0, 0)
        documents = np.searchsorted(firsts, spans[:, [0, 2]], "right") - 1
        assert (is_held[documents] == wanted).all()
        assert set(documents[:, 0].tolist()) == set(np.flatnonzero(is_held == wanted).tolist())


def test_a_long_sentence_is_used_whole_over_the_epochs():
    store = store_of([[500], [3]])
    pairs = SentencePairs(Documents(store, "train"), 35, 1)
    seen = np.zeros(store.num_tokens, bool)
    for epoch in range(25):
        for a, a_end, b, b_end in pairs.plan(epoch, 0)[0].tolist():
            seen[a:a_end] = seen[b:b_end] = True
    assert seen.all()


def test_one_document_has_no_other_to_take_from():
    with pytest.raises(InputError, match="second document"):
        SentencePairs(Documents(store_of([[5, 5]]), "train"), 32, 1)


def test_no_validation_documents_is_said():
    tokenizer = Tokenizer(["a"])
    with pytest.raises(InputError, match="held out"):
        Documents(Store([["a a"]], tokenizer), "validation")


def test_a_text_smaller_than_a_batch_is_seen_again_and_again():
    store, tokenizer = made_up(3)
    source = MaskedBatches(store, tokenizer, length=64, batch_size=100)
    assert source.rows_per_epoch < 50 and source.batches_per_epoch == 1
    batch = source.batch(300)
    assert len(batch.ids_BT) == 100
    again = MaskedBatches(store, tokenizer, length=64, batch_size=100).batch(300)
    np.testing.assert_array_equal(batch.ids_BT, again.ids_BT)

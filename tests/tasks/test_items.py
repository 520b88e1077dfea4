"""Items and their batches: every row once an epoch, by length, a function of seed and step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

pytest.importorskip("torch")

from sememe.examples.batches import TokenSequence
from sememe.examples.labelled.rows import AnswerRow
from sememe.nn.encoders import kept_sizes
from sememe.nn.heads import LabelSetHead
from sememe.tasks.objective import Item, ItemBatches, fingerprint, random_order
from sememe.tasks.training import held_out, weighted


def item(length: int, number: int, target: int = 0) -> Item:
    ids = np.full(length, number, np.int32)
    return Item((TokenSequence(ids, np.zeros(length, np.int8)),), number, np.array(target))


@given(
    st.integers(1, 200), st.integers(1, 40), st.integers(1, 5), st.integers(0, 3), st.integers(0, 4)
)
def test_an_epoch_sees_every_item_once(num, batch_size, sort_batches, seed, epoch):
    items = [item(1 + index * 7 % 13, index) for index in range(num)]
    source = ItemBatches(items, batch_size=batch_size, seed=seed, sort_batches=sort_batches)
    first = epoch * source.batches_per_epoch
    batches = [source.order(first + number) for number in range(source.batches_per_epoch)]
    assert sorted(np.concatenate(batches)) == list(range(num))
    assert all(len(batch) <= batch_size for batch in batches)
    assert source.num_steps(2) == 2 * source.batches_per_epoch


def test_batches_are_a_function_of_seed_and_step():
    items = [item(1 + index % 9, index) for index in range(100)]

    def orders(seed, steps):
        source = ItemBatches(items, batch_size=8, seed=seed, sort_batches=4)
        return [source.order(step).tolist() for step in steps]

    assert orders(1, range(30)) == orders(1, reversed(range(30)))[::-1]
    assert orders(1, range(13)) != orders(2, range(13))
    assert orders(1, range(13)) != orders(1, range(13, 26))  # another epoch, another order


def test_sorting_leaves_little_padding():
    random = np.random.default_rng(0)
    items = [item(int(random.integers(1, 100)), index) for index in range(640)]

    def padding(sort_batches):
        source = ItemBatches(items, batch_size=16, seed=1, sort_batches=sort_batches)
        batches = [source.batch(step).items for step in range(40)]
        lengths = [[one.num_tokens for one in batch] for batch in batches]
        return sum(max(own) * len(own) for own in lengths) / sum(map(sum, lengths))

    assert padding(1) > 1.7 and padding(20) < 1.15


def test_parts_share_a_batch_and_are_never_empty():
    batch = ItemBatches([item(3, n) for n in range(3)], batch_size=3, seed=1).batch(0)
    parts = [batch.part(index, 4) for index in range(4)]
    assert [len(part.items) for part in parts] == [1, 1, 1, 1]
    assert [part.items[0].weight for part in parts] == [1, 1, 1, 0]


def test_orders_are_permutations_that_keys_decide():
    assert sorted(random_order(1_000, 5)) == list(range(1_000))
    assert random_order(1_000, 5).tolist() != random_order(1_000, 6).tolist()
    # Near the middle on average, wherever in the order.
    assert abs(random_order(1_000, 5)[:500].mean() - 500) < 40


def test_a_fingerprint_tells_items_apart():
    items = [item(3, 1), item(4, 2)]
    others = [[item(3, 1)], [item(3, 1), item(4, 3)], [item(3, 1, target=1), item(4, 2)]]
    assert fingerprint(items) == fingerprint([item(3, 1), item(4, 2)])
    assert len({fingerprint(own) for own in [items, *others]}) == 4


def test_held_out_rows_are_always_the_same():
    rows = list(range(100))
    kept, dev = held_out(rows, 0.2)
    assert len(dev) == 20 and sorted(kept + dev) == rows and held_out(rows, 0.2) == (kept, dev)
    assert held_out(rows, 0.0) == (rows, [])


def test_questions_about_one_context_are_held_out_together():
    rows = [
        AnswerRow(id=f"{n}", question="where?", context=f"context {n // 4}", source="")
        for n in range(40)
    ]
    kept, dev = held_out(rows, 0.2)
    assert len(dev) == 8 and len(kept) == 32
    assert not {row.context for row in kept} & {row.context for row in dev}
    assert held_out(rows[:4], 0.2) == (rows[:4], [])
    assert dev != rows[:20] and dev != rows[-20:]


def test_balanced_classes_weigh_the_same():
    items = [item(2, n, target=int(n < 2)) for n in range(10)]
    own = weighted(items, ["common", "rare"], "balanced")
    sums = [sum(one.weight for one in own if int(one.target) == c) for c in (0, 1)]
    np.testing.assert_allclose(sums, [5, 5])
    own = weighted(items, ["common", "rare"], "rare=3")
    assert [one.weight for one in own] == [3, 3] + [1] * 8


def test_labels_of_a_set_weigh_where_they_hold():
    sets = [(0,), (0, 1), (0,), (0,)]
    items = [
        replace(item(2, n), target=np.array([(label, 1) for label in own], np.float32))
        for n, own in enumerate(sets)
    ]
    labels, head = ["always", "rare", "never"], LabelSetHead(4, 3)
    own = weighted(items, labels, "balanced")
    dense = head.collate([one.target for one in own])
    np.testing.assert_array_equal(dense[0], [[1, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(dense[1], [[1, 1, 0], [1, 3, 1]])  # 3 rows lack it, 1 has it
    own = weighted(items, labels, "always=0.5,never=9")
    np.testing.assert_array_equal(head.collate([own[1].target])[0, 1], [0.5, 1, 1])
    assert own[0].weight == 1 and own[0].target.dtype == np.float32


@given(st.integers(0, 60), st.integers(0, 60), st.integers(2, 50))
def test_texts_are_cut_as_if_token_by_token(first, second, room):
    sizes = [first, second]
    while sum(sizes) > room:  # as the released BERT does
        sizes[0 if sizes[0] > sizes[1] else 1] -= 1
    assert kept_sizes([first, second], room) == sizes
    assert kept_sizes([first], room) == [min(first, room)]

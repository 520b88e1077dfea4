"""Mixing texts, parts of batches, examples as people read them."""

from __future__ import annotations

import numpy as np
import pytest
from subword_text import Store, Tokenizer, made_up

from sememe.errors import OptionError
from sememe.examples.batches import join_batches, preview, render
from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.packing.rows import MixedBatches, PackedBatches
from sememe.tokens.subwords.training import smoothed_shares


def two_languages(make=MaskedBatches, **options):
    """A large text of a and b, a small one of 天 and 地, one vocabulary."""
    tokenizer = Tokenizer(["a", "b", "天", "地"])
    large = Store([["a b a b a b"] * 6] * 200, tokenizer, held_out=10)
    small = Store([["天 地 天 地"] * 6] * 20, tokenizer, held_out=10)
    settings = {"length": 24, "batch_size": 8, **options}
    return [make(store, tokenizer, **settings) for store in (large, small)], tokenizer


def test_shares_are_sizes_to_a_power():
    shares = smoothed_shares([1000, 100, 10], 0.7)
    assert shares == pytest.approx(np.array([125.89, 25.12, 5.01]) / 156.02, abs=1e-3)
    assert smoothed_shares([5, 1], 0) == pytest.approx([0.5, 0.5])
    with pytest.raises(OptionError):
        smoothed_shares([5, 1], 1.5)


@pytest.mark.parametrize("make", [MaskedBatches, PackedBatches])
def test_rows_come_from_each_text_by_its_share(make):
    sources, tokenizer = two_languages(make)
    mixed = MixedBatches(sources, seed=2)
    first_chinese = tokenizer.id("天")
    num_chinese = num_rows = 0
    for step in range(200):
        batch = mixed.batch(step)
        assert len(batch.ids_BT) == 8
        has_chinese = (batch.ids_BT >= first_chinese).any(axis=1)
        if make is PackedBatches:
            assert not ((batch.ids_BT >= 7) & (batch.ids_BT < first_chinese))[has_chinese].any()
        num_chinese, num_rows = num_chinese + has_chinese.sum(), num_rows + 8
    share = mixed.shares[1]
    if make is PackedBatches:  # random tokens of masked rows may come from either text
        bound = 4 * np.sqrt(share * (1 - share) / num_rows)
        assert num_chinese / num_rows == pytest.approx(share, abs=bound)
    again = MixedBatches(sources, seed=2)
    for step in (150, 7, 8, 0):
        for name, value in vars(again.batch(step)).items():
            np.testing.assert_array_equal(value, getattr(mixed.batch(step), name))


def test_mixed_validation_is_one_text_after_the_other():
    sources, _ = two_languages(split="validation")
    mixed = MixedBatches(sources)
    assert mixed.batches_per_epoch == sum(source.batches_per_epoch for source in sources)
    steps = [*range(sources[0].batches_per_epoch), *range(sources[1].batches_per_epoch)]
    owners = [sources[0]] * sources[0].batches_per_epoch
    owners += [sources[1]] * sources[1].batches_per_epoch
    for step, (own_step, owner) in enumerate(zip(steps, owners, strict=True)):
        np.testing.assert_array_equal(mixed.batch(step).ids_BT, owner.batch(own_step).ids_BT)


def test_batches_of_other_sizes_cannot_be_mixed():
    sources, tokenizer = two_languages()
    other = PackedBatches(made_up(20)[0], tokenizer, length=24, batch_size=4)
    with pytest.raises(OptionError, match="batch_size"):
        MixedBatches([*sources, other])
    with pytest.raises(OptionError, match="batch_size"):
        MixedBatches([])


def test_parts_of_a_batch_make_up_the_whole():
    store, tokenizer = made_up(60)
    batch = MaskedBatches(store, tokenizer, length=32, batch_size=7).batch(0)
    parts = [batch.part(index, 3) for index in range(3)]
    assert [len(part.ids_BT) for part in parts] == [3, 2, 2]
    assert sum(part.num_tokens for part in parts) == batch.num_tokens
    joined = join_batches(parts, tokenizer.pad_id)
    order = [0, 3, 6, 1, 4, 2, 5]
    np.testing.assert_array_equal(joined.ids_BT, batch.ids_BT[order])
    np.testing.assert_array_equal(joined.segments_BT, batch.segments_BT[order])
    np.testing.assert_array_equal(joined.is_next_B, batch.is_next_B[order])

    def targets(rows):
        places = zip(rows.hidden_N.tolist(), rows.targets_N.tolist(), strict=True)
        return [(divmod(place, rows.ids_BT.shape[1]), target) for place, target in places]

    moved = {(order.index(row), place): t for (row, place), t in targets(batch)}
    assert dict(targets(joined)) == moved


def test_joined_rows_are_as_wide_as_the_widest():
    store, tokenizer = made_up(60)
    narrow = MaskedBatches(store, tokenizer, length=16, batch_size=2).batch(0)
    wide = MaskedBatches(store, tokenizer, length=64, batch_size=2).batch(0)
    joined = join_batches([narrow, wide], tokenizer.pad_id)
    assert joined.ids_BT.shape == (4, wide.ids_BT.shape[1])
    seen, true = joined.ids_BT.copy(), narrow.ids_BT.copy()
    seen.reshape(-1)[joined.hidden_N] = joined.targets_N
    true.reshape(-1)[narrow.hidden_N] = narrow.targets_N
    np.testing.assert_array_equal(seen[:2, : true.shape[1]], true)
    assert (seen[:2, true.shape[1] :] == tokenizer.pad_id).all()


def test_a_preview_shows_tokens_masks_segments_and_targets():
    tokenizer = Tokenizer(["play", "##ing", *"天地玄黄"])
    store = Store([["play|ing 天 地 play", "玄 黄 play|ing"] * 3, ["黄 天"] * 5], tokenizer)
    config = MaskingConfig(mask_share=1, random_share=0)
    rows = preview(MaskedBatches(store, tokenizer, config, length=32, batch_size=2), tokenizer)
    assert 1 <= len(rows) <= 3
    for row in rows:
        assert row.tokens[0] == "[CLS]" and row.tokens[-1] == "[SEP]"
        assert {row.tokens[place] for place in row.hidden} == {"[MASK]"}
        assert set(row.hidden.values()) <= {"play", "##ing", *"天地玄黄"}
        shown = str(row)
        assert shown.count("[MASK] ←") == len(row.hidden)
        assert "\nA: [CLS]" in shown and "\nB: " in shown
        assert ("B follows A" in shown) == (row.is_next == 1)
        assert ("no next-sentence label" in shown) == (row.is_next == -1)
    text = render(rows)
    assert text.startswith("{seen ← true}") and text.count("[CLS]") == len(rows)


def test_a_preview_of_running_text():
    store, tokenizer = made_up(40)
    rows = preview(PackedBatches(store, tokenizer, length=16, batch_size=2), tokenizer, num_rows=5)
    assert len(rows) == 5
    assert render(rows).startswith("16 tokens\n")

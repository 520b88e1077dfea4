"""Masked batches: how many tokens are hidden, which, what stands for them; fast against plain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from plain_examples import choose_units, find_units, replace_tokens
from subword_text import Store, Tokenizer, cut, made_up

from sememe.errors import InputError, OptionError
from sememe.examples.masking.batches import MaskedBatches, Masker
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.masking.kernels import fill_rows
from sememe.examples.packing.rows import Documents, Examples


def all_batches(source):
    return [source.batch(step) for step in range(source.batches_per_epoch)]


def original(batch):
    """The rows before anything was hidden."""
    ids = batch.ids_BT.copy()
    ids.reshape(-1)[batch.hidden_N] = batch.targets_N
    return ids


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_of_all_tokens_so_many_are_masked_replaced_and_kept(rate):
    store, tokenizer = made_up(600)
    source = MaskedBatches(
        store, tokenizer, MaskingConfig(rate=rate), length=64, batch_size=32, next_sentence=False,
    )  # fmt: skip
    num = hidden = masked = kept = 0
    for batch in all_batches(source):
        # Rounding weighs on short rows: of 10 tokens 2 are hidden.
        is_long_B = batch.lengths_B >= 40
        is_own_N = is_long_B[batch.hidden_N // batch.ids_BT.shape[1]]
        seen = batch.ids_BT.reshape(-1)[batch.hidden_N][is_own_N]
        num, hidden = num + int(batch.lengths_B[is_long_B].sum()), hidden + len(seen)
        masked += (seen == tokenizer.mask_id).sum()
        kept += (seen == batch.targets_N[is_own_N]).sum()
    assert num > 20_000
    # A random token is the true one now and then.
    chance = 1 / (tokenizer.vocab_size - 7)
    expected = {"masked": 0.8, "kept": 0.1 + 0.1 * chance}
    assert hidden / num == pytest.approx(rate, abs=0.005)
    for name, found in (("masked", masked), ("kept", kept)):
        share = expected[name]
        bound = 4 * math.sqrt(hidden * share * (1 - share))
        assert abs(found - hidden * share) < bound, name


@pytest.mark.parametrize("next_sentence", [True, False])
@pytest.mark.parametrize("unit", ["token", "word"])
def test_every_row_hides_what_bert_hides(next_sentence, unit):
    store, tokenizer = made_up(60)
    source = MaskedBatches(
        store, tokenizer, MaskingConfig(unit=unit), length=48, batch_size=8, seed=3,
        next_sentence=next_sentence,
    )  # fmt: skip
    for batch in all_batches(source):
        assert not set(batch.targets_N.tolist()) & tokenizer.special_ids
        assert not np.isin(batch.ids_BT, [5, 6]).any(), "unused tokens never appear"
        assert (np.diff(batch.hidden_N) > 0).all()
        rows = batch.hidden_N // batch.ids_BT.shape[1]
        for row, length in enumerate(batch.lengths_B.tolist()):
            target, num = max(1, round(0.15 * length)), int((rows == row).sum())
            assert num == target if unit == "token" else 1 <= num <= max(target, 3)
            assert (batch.ids_BT[row, length:] == tokenizer.pad_id).all()
            assert (batch.ids_BT[row, :length] != tokenizer.pad_id).all()


def test_masks_differ_between_epochs_and_validation_stays():
    store, tokenizer = made_up(60)

    def made(split, **options):
        return MaskedBatches(
            store, tokenizer, length=48, batch_size=8, next_sentence=False, split=split, **options
        )

    train, validation = made("train"), made("validation")
    num = train.num_steps(1)
    masks = {}
    for step in range(num * 2):
        batch = train.batch(step)
        for row, before in enumerate(original(batch)):
            text = tuple(before[: batch.lengths_B[row]].tolist())
            masks.setdefault(text, set()).add(tuple(batch.ids_BT[row].tolist()))
    assert sum(len(seen) > 1 for seen in masks.values()) > 0.8 * len(masks)
    for step in range(validation.batches_per_epoch):
        first, again = validation.batch(step), validation.batch(step + validation.batches_per_epoch)
        np.testing.assert_array_equal(first.ids_BT, again.ids_BT)
        np.testing.assert_array_equal(first.hidden_N, again.hidden_N)


def test_a_batch_depends_on_seed_and_step_alone():
    store, tokenizer = made_up(80)

    def made(seed=5):
        return MaskedBatches(store, tokenizer, length=32, batch_size=8, seed=seed)

    onwards, jumping, other = made(), made(), made(seed=6)
    batches = {step: onwards.batch(step) for step in range(150)}
    for step in (149, 3, 80, 81, 0):
        batch = jumping.batch(step)
        for name, value in vars(batches[step]).items():
            np.testing.assert_array_equal(value, getattr(batch, name))
        assert not np.array_equal(batch.ids_BT, other.batch(step).ids_BT)


def test_whole_words_are_hidden_whole_in_chinese_too():
    tokenizer = Tokenizer(["play", "##ing", "well", *"我们在北京大学学习自然语言"])
    sentence = "我|们 在 北|京|大|学 学|习 自|然 语|言 play|ing well"
    store = Store([[sentence] * 3] * 20, tokenizer)
    source = MaskedBatches(
        store, tokenizer, MaskingConfig(unit="word", rate=0.3), length=64, batch_size=4,
        next_sentence=False,
    )  # fmt: skip
    starts = {1 + start for start in np.flatnonzero(store.word_starts[: store.sentence_ends[2]])}
    found = set()
    for batch in all_batches(source):
        width, before = batch.ids_BT.shape[1], original(batch)
        for row in range(len(before)):
            places = batch.hidden_N[batch.hidden_N // width == row] - row * width
            runs = []
            for place in places.tolist():
                if place in starts:
                    runs.append([])
                runs[-1].append(tokenizer.token(before[row, place]))
            found |= {tuple(run) for run in runs}
    assert found == {tuple(cut(word)) for word in sentence.split()}


def test_random_tokens_are_never_special_and_all_others_come():
    store, tokenizer = made_up(200)
    config = MaskingConfig(mask_share=0, random_share=1, rate=0.5)
    source = MaskedBatches(store, tokenizer, config, length=64, batch_size=16)
    seen = np.concatenate([b.ids_BT.reshape(-1)[b.hidden_N] for b in all_batches(source)])
    assert set(seen.tolist()) == set(range(7, tokenizer.vocab_size))


@given(
    seed=st.integers(0, 2**31),
    unit=st.sampled_from(["token", "word", "phrase"]),
    rate=st.sampled_from([0.05, 0.15, 0.4, 0.8, 1.0]),
)
@settings(max_examples=40, deadline=None)
def test_rows_equal_plain_ones(tmp_path_factory, seed, unit, rate):
    store, tokenizer = made_up(6, seed=seed)
    documents = Documents(store, "train")
    random = np.random.default_rng(seed)
    phrases, options = set(), {}
    if unit == "phrase":
        starts = random.integers(0, store.num_tokens - 6, 20)
        phrases = {tuple(store.ids[s : s + random.integers(2, 6)].tolist()) for s in starts}
        phrases.add(tuple(store.ids[:2].tolist()))
        path = tmp_path_factory.mktemp("lexicon") / "lexicon.txt"
        path.write_text("placeholder 上", encoding="utf-8")
        options = {"lexicon": str(path)}
    config = MaskingConfig(rate=rate, unit=unit, **options)
    cuts = np.sort(random.integers(0, store.num_tokens + 1, (5, 4)), axis=1)
    cuts[:, 1] = np.minimum(cuts[:, 1], cuts[:, 0] + 20)
    cuts[:, 3] = np.minimum(cuts[:, 3], cuts[:, 2] + 20)
    examples = Examples(cuts, np.zeros(5, np.int8), random.integers(0, 2**63, 5).astype(np.uint64))
    ids_BT, segments_BT = np.empty((5, 48), np.int32), np.empty((5, 48), np.int8)
    lengths_B = np.empty(5, np.int32)
    fill_rows(documents.ids, cuts, 2, 3, 0, ids_BT, segments_BT, lengths_B)
    before = ids_BT.copy()
    masker = made_masker(documents, tokenizer, config, phrases)
    hidden_N, targets_N = masker.hide(examples, ids_BT, lengths_B)
    at = 0
    for row in range(5):
        places, plain = hide_plainly(store, tokenizer, config, phrases, examples, row)
        own = hidden_N[hidden_N // 48 == row] - 48 * row
        assert own.tolist() == places
        assert ids_BT[row, : lengths_B[row]].tolist() == plain
        assert targets_N[at : at + len(own)].tolist() == before[row, own].tolist()
        at += len(own)


def made_masker(documents, tokenizer, config, phrases):
    """A masker with these phrases, whatever its lexicon says."""
    from sememe.examples.masking.batches import build_trie

    plain = MaskingConfig(rate=config.rate)
    masker = Masker(documents, tokenizer, plain)
    masker._config = config
    arrays = [np.array(phrase, np.int32) for phrase in sorted(phrases)]
    masker._trie = build_trie(arrays, tokenizer.vocab_size)
    return masker


def hide_plainly(store, tokenizer, config, phrases, examples, row):
    """(hidden places, the row as it is seen) by the plain reference."""
    ids, units, tokens = store.ids.tolist(), [], [tokenizer.cls_id]
    for start, end in examples.spans_N4[row].reshape(2, 2).tolist():
        if len(tokens) > 1 and start == end:
            continue
        found = find_units(
            ids[start:end], (store.word_starts[start:end] != 0).tolist(), tokenizer.special_ids,
            phrases, tokenizer.is_continuation, config.unit,
        )  # fmt: skip
        units += [[len(tokens) + place for place in unit] for unit in found]
        tokens += [*ids[start:end], tokenizer.sep_id]
    key = int(examples.keys_N[row])
    hidden = choose_units(units, max(1, round(config.rate * len(tokens))), key)
    replacements = list(range(7, tokenizer.vocab_size))
    return hidden, replace_tokens(tokens, hidden, config, key, tokenizer.mask_id, replacements)


def test_special_tokens_of_the_text_are_never_hidden():
    tokenizer = Tokenizer(["a", "b"])
    store = Store([["a unknown b unknown", "unknown unknown a"]] * 10, tokenizer)
    source = MaskedBatches(
        store, tokenizer, MaskingConfig(rate=1.0, mask_share=1, random_share=0), length=32,
        batch_size=4, next_sentence=False,
    )  # fmt: skip
    batch = source.batch(0)
    assert set(batch.targets_N.tolist()) == {tokenizer.id("a"), tokenizer.id("b")}
    assert (batch.ids_BT == tokenizer.unk_id).sum() == 4 * 4


def test_rows_are_no_wider_than_they_must_be():
    store, tokenizer = made_up(300)
    source = MaskedBatches(store, tokenizer, length=64, batch_size=8, next_sentence=False)
    for batch in all_batches(source):
        assert len(batch.ids_BT) == 8 and batch.ids_BT.shape[1] % 8 == 0
        assert 0 <= batch.ids_BT.shape[1] - batch.lengths_B.max() < 8


@pytest.mark.parametrize(
    "options",
    [{"rate": 0}, {"rate": 1.1}, {"mask_share": 0.95}, {"unit": "sentence"}, {"lexicon": "x"},
     {"rate": float("nan")}],
)  # fmt: skip
def test_shares_that_cannot_be_are_refused(options):
    with pytest.raises(OptionError):
        MaskingConfig(**options)


def test_whole_words_need_words_of_several_tokens():
    tokenizer = Tokenizer(["a", "b"])
    store = Store([["a b a"], ["b a"]], tokenizer)
    with pytest.raises(InputError, match="is a single token"):
        MaskedBatches(store, tokenizer, MaskingConfig(unit="word"), length=16, batch_size=2)


@pytest.mark.parametrize("options", [{"length": 1}, {"batch_size": 0}, {"length": 5}])
def test_sizes_that_cannot_be_are_refused(options):
    store, tokenizer = made_up(20)
    with pytest.raises(OptionError):
        MaskedBatches(store, tokenizer, **{"length": 32, "batch_size": 2, **options})

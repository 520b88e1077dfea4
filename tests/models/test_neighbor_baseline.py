"""The model that counts neighbors beside one made of plain dictionaries."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.packing.rows import PackedBatches
from sememe.models.language import baselines
from sememe.models.language.baselines import neighbor_metrics, token_counts, unigram_metrics

NUM_TOKENS = 40
TOKENIZER = SimpleNamespace(
    vocab_size=NUM_TOKENS, kind="wordpiece", pad_id=0, unk_id=1, cls_id=2, sep_id=3, mask_id=4,
    end_id=3, special_ids=frozenset(range(5)), is_continuation=np.zeros(NUM_TOKENS, bool),
    token=lambda index: f"w{index}",
)  # fmt: skip


def made_up_store(num_documents: int = 240, seed: int = 0) -> SimpleNamespace:
    """Documents in which each token says something of the next; every fourth is held out."""
    random = np.random.default_rng(seed)
    ids, sentence_ends, document_ends = [], [], []
    for _ in range(num_documents):
        for _ in range(random.integers(1, 6)):
            token = int(random.integers(5, NUM_TOKENS))
            for _ in range(random.integers(1, 20)):
                ids.append(token)
                token = 5 + (2 * token + int(random.integers(0, 4)) ** 2) % (NUM_TOKENS - 5)
            sentence_ends.append(len(ids))
        document_ends.append(len(sentence_ends))
    return SimpleNamespace(
        ids=np.array(ids, np.uint16), word_starts=np.ones(len(ids), np.uint8),
        sentence_ends=np.array(sentence_ends), document_ends=np.array(document_ends),
        is_validation=lambda documents: np.asarray(documents) % 4 == 3,
    )  # fmt: skip


def training_documents(store) -> list[list[int]]:
    ends = [0, *(int(store.sentence_ends[end - 1]) for end in store.document_ends)]
    return [
        store.ids[start:end].tolist()
        for index, (start, end) in enumerate(pairwise(ends))
        if not store.is_validation(index)
    ]


class Plain:
    """Answers by counts in dictionaries; of equally frequent answers the commoner token."""

    def __init__(self, counts: np.ndarray) -> None:
        order = sorted(range(len(counts)), key=lambda token: counts[token])
        self.rank = {token: place for place, token in enumerate(order)}
        self.top = int(counts.argmax())
        self.seen: defaultdict[tuple, Counter] = defaultdict(Counter)

    def best(self, context: tuple) -> tuple[int, float]:
        seen = self.seen.get(context)
        if not seen:
            return self.top, 0.0
        token = max(seen, key=lambda token: (seen[token], self.rank[token]))
        return token, seen[token] / seen.total()

    def answer(self, both: tuple, singles: list[tuple]) -> int:
        if both in self.seen:
            return self.best(both)[0]
        # The last of equals: the token after a place, or the only one there is.
        return max(reversed([self.best(single) for single in singles]), key=lambda pair: pair[1])[0]


def masked_reference(store, batches, counts) -> dict[str, float]:
    plain = Plain(counts)
    for ids in training_documents(store):
        for place, token in enumerate(ids):
            before = ids[place - 1] if place else None
            after = ids[place + 1] if place + 1 < len(ids) else None
            plain.seen["both", before, after][token] += 1
            plain.seen["before", before][token] += 1
            plain.seen["after", after][token] += 1
    num_right = num_right_or_shown = num_asked = 0
    for batch in batches:
        ids = batch.ids_BT.reshape(-1).tolist()
        for place, target in zip(batch.hidden_N.tolist(), batch.targets_N.tolist(), strict=True):
            left, shown, right = ids[place - 1 : place + 2]
            answer = plain.answer(("both", left, right), [("before", left), ("after", right)])
            num_right += answer == target
            if shown in plain.seen["before", left] or shown in plain.seen["after", right]:
                answer = shown
            num_right_or_shown += answer == target
            num_asked += 1
    return {
        "neighbor_accuracy": num_right / num_asked,
        "neighbor_or_shown_accuracy": num_right_or_shown / num_asked,
    }


def next_reference(store, batches, counts) -> dict[str, float]:
    plain = Plain(counts)
    stream: list = [None, None]
    for ids in training_documents(store):
        stream += [*ids, TOKENIZER.end_id]
    for two_before, before, token in zip(stream, stream[1:], stream[2:], strict=False):
        plain.seen["both", two_before, before][token] += 1
        plain.seen["before", before][token] += 1
    results = []
    for batch in batches:
        for ids, length in zip(batch.ids_BT.tolist(), batch.lengths_B, strict=True):
            for place in range(1, length):
                two_before = ids[place - 2] if place > 1 else "nothing"
                before = ids[place - 1]
                both = ("both", two_before, before)
                results.append(plain.answer(both, [("before", before)]) == ids[place])
    return {"neighbor_accuracy": sum(results) / len(results)}


@pytest.mark.parametrize("block", [1 << 24, 50], ids=["one block", "many blocks"])
@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("next_sentence", [True, False])
def test_masked_places_equal_the_reference(monkeypatch, block, unit, next_sentence):
    monkeypatch.setattr(baselines, "_BLOCK", block)
    store = made_up_store()
    if unit == "word":
        store.word_starts[::3] = 0
    source = MaskedBatches(
        store, TOKENIZER, MaskingConfig(unit=unit, rate=0.3), length=24, batch_size=4,
        split="validation", next_sentence=next_sentence,
    )  # fmt: skip
    counts = token_counts(store, NUM_TOKENS)
    found = neighbor_metrics(store, source, TOKENIZER, counts, 30)
    batches = [source.batch(step) for step in range(30)]
    assert found == masked_reference(store, batches, counts)
    # The text is made so that neighbors tell more than frequency, and the shown token yet more.
    assert unigram_metrics(counts, source, 30)["unigram_accuracy"] < found["neighbor_accuracy"]
    assert found["neighbor_accuracy"] < found["neighbor_or_shown_accuracy"]


@pytest.mark.parametrize("block", [1 << 24, 50], ids=["one block", "many blocks"])
def test_next_tokens_equal_the_reference(monkeypatch, block):
    monkeypatch.setattr(baselines, "_BLOCK", block)
    store = made_up_store(seed=1)
    source = PackedBatches(store, TOKENIZER, length=16, batch_size=4, split="validation")
    counts = token_counts(store, NUM_TOKENS)
    found = neighbor_metrics(store, source, TOKENIZER, counts, 100)
    batches = [source.batch(step) for step in range(source.batches_per_epoch)]
    assert found == next_reference(store, batches, counts)
    assert unigram_metrics(counts, source, 100)["unigram_accuracy"] < found["neighbor_accuracy"]


def test_contexts_that_never_occurred_leave_the_most_frequent_token():
    store = made_up_store(num_documents=4)
    # Documents 0 to 2 are training text of even tokens; what is held out has odd ones alone.
    bounds = [0, *(int(store.sentence_ends[end - 1]) for end in store.document_ends)]
    store.ids[: bounds[3]] = 6
    store.ids[bounds[3] :] = 7 + 2 * (np.arange(bounds[4] - bounds[3]) % 5)
    source = PackedBatches(store, TOKENIZER, length=16, batch_size=4, split="validation")
    counts = token_counts(store, NUM_TOKENS)
    found = neighbor_metrics(store, source, TOKENIZER, counts, 5)
    assert found["neighbor_accuracy"] == unigram_metrics(counts, source, 5)["unigram_accuracy"]

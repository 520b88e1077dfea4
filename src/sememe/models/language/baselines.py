"""Accuracy of counting tokens: the baselines for what a network learns.

Held-out batches and the training text in, accuracies out. For BERT the tokens before and after are
known, for GPT the two before. The baseline predicts the token that was most frequent between these
two neighbors; if it has never seen both together, the one most frequent next to the more
informative neighbor; otherwise the most frequent token of all.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sememe.examples.batches import Batch
from sememe.examples.packing.kernels import copy_stream
from sememe.examples.packing.rows import Documents

_BLOCK = 1 << 24


def token_counts(store: Any, vocab_size: int) -> np.ndarray:
    """How often each token occurs in the text, plus one."""
    counts = np.ones(vocab_size, np.int64)
    for first in range(0, len(store.ids), _BLOCK):
        counts += np.bincount(store.ids[first : first + _BLOCK], minlength=vocab_size)
    return counts


def targets_of(batch: Batch) -> np.ndarray:
    """The targets of a batch: the masked tokens, or every one after a row's first."""
    if batch.targets_N is not None:
        return batch.targets_N
    is_asked_BT = np.arange(batch.ids_BT.shape[1]) < batch.lengths_B[:, None]
    return batch.ids_BT[:, 1:][is_asked_BT[:, 1:]]


def unigram_metrics(counts: np.ndarray, source: Any, num_batches: int) -> dict[str, float]:
    """Loss and accuracy of predicting tokens by their frequency, on a source's first batches.

    For sentence pairs also the accuracy of always giving the more frequent answer.
    """
    batches = [*map(source.batch, range(min(num_batches, source.batches_per_epoch)))]
    targets = np.concatenate([*map(targets_of, batches)])
    losses = -np.log(counts / counts.sum())
    found = {
        "unigram_loss": float(losses[targets].mean()),
        "unigram_accuracy": float((targets == counts.argmax()).mean()),
    }
    pairs = [own[own >= 0] for batch in batches if (own := batch.is_next_B) is not None]
    if any(map(len, pairs)):
        # The same answer always.
        found["next_baseline"] = 0.5 + abs(float(np.concatenate(pairs).mean()) - 0.5)
    return found


_FILTER_BITS = 22


class TokenQuestions(NamedTuple):
    """N positions to predict, each with the two neighboring tokens that the network sees."""

    first_N: np.ndarray  # BERT: the token before; GPT: the one two before, or none in its row
    second_N: np.ndarray  # BERT: the token after; GPT: the token before
    shown_N: np.ndarray  # the visible token at the position itself, -1 if it is masked
    targets_N: np.ndarray


class MostFrequent:
    """The most frequent token in each of some contexts, counted part by part.

    Only contexts that will be needed are counted: all contexts of a text take too much memory.
    """

    def __init__(self, contexts: np.ndarray, counts: np.ndarray) -> None:
        self._size = len(counts)
        # Ties go to the token that is more frequent overall.
        self._by_count = np.argsort(counts, kind="stable")
        self._rank = np.argsort(self._by_count)
        self._is_asked = np.zeros(1 << _FILTER_BITS, bool)
        self._is_asked[_short(contexts)] = True
        self._grams, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)

    def add(self, contexts: np.ndarray, tokens: np.ndarray) -> None:
        """Count tokens in their contexts; ids that are not tokens separate documents."""
        is_counted = self._is_asked[_short(contexts)] & (tokens < self._size)
        grams = np.sort(contexts[is_counted] * self._size + self._rank[tokens[is_counted]])
        starts = _starts(grams)
        grams, counts = grams[starts], np.diff(starts, append=len(grams))
        if len(self._grams):
            grams = np.concatenate([self._grams, grams])
            order = np.argsort(grams, kind="stable")
            starts = _starts(grams[order])
            counts = np.concatenate([self._counts, counts])[order]
            grams, counts = grams[order][starts], np.add.reduceat(counts, starts)
        self._grams, self._counts = grams, counts

    def answers(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The most frequent token of each context and its frequency there; -1 and 0 if unknown."""
        if not len(self._grams):
            return np.full(len(contexts), -1), np.zeros(len(contexts))
        known, ranks = np.divmod(self._grams, self._size)
        starts = _starts(known)
        best = np.maximum.reduceat(self._counts * self._size + ranks, starts)
        sums = np.add.reduceat(self._counts, starts)
        known = known[starts]
        places = np.searchsorted(known, contexts).clip(max=len(known) - 1)
        is_known = known[places] == contexts
        counts, ranks = np.divmod(best[places], self._size)
        shares = np.where(is_known, counts / sums[places], 0.0)
        return np.where(is_known, self._by_count[ranks], -1), shares

    def has(self, contexts: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Whether each token was seen in its context."""
        return np.isin(contexts * self._size + self._rank[tokens], self._grams)


def _short(contexts: np.ndarray) -> np.ndarray:
    """A few bits of each context, by Fibonacci hashing."""
    mixed = contexts.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return mixed >> np.uint64(64 - _FILTER_BITS)


def _starts(values: np.ndarray) -> np.ndarray:
    """Where runs of equal values start."""
    return np.flatnonzero(np.concatenate([values[:1] == values[:1], values[1:] != values[:-1]]))


class NeighborCounts:
    """Counts neighboring tokens, and predicts from these counts alone."""

    def __init__(self, questions: TokenQuestions, counts: np.ndarray, *, is_masked: bool) -> None:
        self._questions, self._is_masked = questions, is_masked
        self._most_frequent = int(counts.argmax())
        self._base = len(counts) + 1  # one more id than tokens, for the ends of documents
        self._both = MostFrequent(self._pairs(questions.first_N, questions.second_N), counts)
        self._first = MostFrequent(questions.first_N, counts)
        self._second = MostFrequent(questions.second_N, counts)

    def _pairs(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return first * self._base + second

    def add(self, ids: np.ndarray) -> None:
        """Count all sequences of three tokens."""
        first, second, tokens = ids[:-2], ids[1:-1], ids[2:]
        if self._is_masked:
            second, tokens = tokens, second
            self._first.add(first, tokens)  # GPT backs off to the nearest token alone
        self._both.add(self._pairs(first, second), tokens)
        self._second.add(second, tokens)

    def answers(self) -> np.ndarray:
        """The most likely token given the neighbors at each position."""
        first_N, second_N = self._questions.first_N, self._questions.second_N
        found_N, share_N = self._first.answers(first_N)
        other_N, other_share_N = self._second.answers(second_N)
        answers_N = np.where(share_N > other_share_N, found_N, other_N)
        answers_N[answers_N < 0] = self._most_frequent
        both_N, _ = self._both.answers(self._pairs(first_N, second_N))
        return np.where(both_N >= 0, both_N, answers_N)

    def is_plausible(self) -> np.ndarray:
        """Whether the token shown at each position ever occurred next to one of its neighbors."""
        first_N, second_N, shown_N, _ = self._questions
        is_known_N = self._first.has(first_N, shown_N) | self._second.has(second_N, shown_N)
        return (shown_N >= 0) & is_known_N


def neighbor_metrics(
    store: Any, source: Any, tokenizer: Any, counts: np.ndarray, num_batches: int
) -> dict[str, float]:
    """Accuracy of a model that counts neighbors in the training text, on a source's first batches.

    `counts` are those of single tokens. In a masked batch a tenth of the selected positions show
    their own token and a tenth a random one, which a network learns to use;
    `neighbor_or_shown_accuracy` is that of a model that repeats a shown token if it ever occurred
    next to a neighbor.
    """
    batches = [source.batch(step) for step in range(min(num_batches, source.batches_per_epoch))]
    is_masked = batches[0].targets_N is not None
    ask = _masked_questions if is_masked else _next_questions
    asked = [ask(batch, tokenizer) for batch in batches]
    questions = TokenQuestions(*map(np.concatenate, zip(*asked, strict=True)))
    model = NeighborCounts(questions, counts, is_masked=is_masked)
    for ids in _texts(store, tokenizer, is_masked):
        model.add(ids)
    answers_N = model.answers()
    metrics = {"neighbor_accuracy": float((answers_N == questions.targets_N).mean())}
    if is_masked:
        answers_N = np.where(model.is_plausible(), questions.shown_N, answers_N)
        metrics["neighbor_or_shown_accuracy"] = float((answers_N == questions.targets_N).mean())
    return metrics


def _masked_questions(batch: Batch, tokenizer: Any) -> TokenQuestions:
    """The tokens before, after and at the masked positions; the ends of a row are never masked."""
    assert batch.hidden_N is not None and batch.targets_N is not None
    ids, places_N = batch.ids_BT.reshape(-1).astype(np.int64), batch.hidden_N
    shown_N = np.where(ids[places_N] == tokenizer.mask_id, -1, ids[places_N])
    return TokenQuestions(ids[places_N - 1], ids[places_N + 1], shown_N, batch.targets_N)


def _next_questions(batch: Batch, tokenizer: Any) -> TokenQuestions:
    """The two tokens before each token after a row's first."""
    ids_BT = batch.ids_BT.astype(np.int64)
    two_before_BT = np.pad(ids_BT[:, :-2], ((0, 0), (1, 0)), constant_values=tokenizer.vocab_size)
    is_asked_BT = np.arange(1, ids_BT.shape[1]) < batch.lengths_B[:, None]
    before_N, targets_N = ids_BT[:, :-1][is_asked_BT], ids_BT[:, 1:][is_asked_BT]
    return TokenQuestions(
        two_before_BT[is_asked_BT], before_N, np.full_like(targets_N, -1), targets_N
    )


def _texts(store: Any, tokenizer: Any, is_masked: bool) -> Iterator[np.ndarray]:
    """The training documents concatenated, in blocks that overlap by two ids.

    Two ids that are not tokens come before the first document. After each one comes what a packed
    row has there; for BERT, whose rows hold one document, another such id.
    """
    none = int(tokenizer.vocab_size)
    end_id = none if is_masked else int(tokenizer.end_id)
    documents = Documents(store, "train")
    stream_ends = np.cumsum(documents.sizes + 1)
    last = np.full(2, none, np.int32)
    for start in range(0, int(stream_ends[-1]), _BLOCK):
        ids = np.empty(min(_BLOCK, int(stream_ends[-1]) - start), np.int32)
        copy_stream(documents.ids, documents.firsts, stream_ends, start, end_id, ids, len(ids))
        block = np.concatenate([last, ids])
        last = block[-2:]
        yield block.astype(np.int64)

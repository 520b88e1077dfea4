"""The training run of fastText: word2vec's, with words put together from rows of sub-words."""

from __future__ import annotations

from typing import Any

import numpy as np

from sememe.static.chunks import CHUNK
from sememe.static.fasttext.config import FastTextConfig
from sememe.static.model import StaticModel
from sememe.static.word2vec.training import WindowRun
from sememe.tokens.ngrams import floret_rows_of_all, ngram_rows
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary

# Words that share an n-gram learn from each other only between chunks, and each adds its whole
# change to the shared row: with about 160 of them in a chunk training diverged, with 40 it scored
# as with 5 (docs/experiments.md).
_SHARERS = 24
_CHUNK = 512
_WORKERS = 2  # as many may have a whole chunk under way


def chunk_size(meetings: np.ndarray, num_tokens: int) -> int:
    """How many words of text a step may take, so that no shared row is met too often in it.

    meetings: how often the whole text meets each of them, sub-sampled words left out.
    """
    if not meetings.size:
        return CHUNK
    return int(min(_CHUNK, max(32, _SHARERS * num_tokens / meetings.max())))


def part_size(num_kept: float, num_workers: int, block: int) -> int:
    """How many of the `num_kept` words that a chunk keeps are put together, learned and shared.

    What other workers have not shared yet counts as what a chunk has not: with 14 of them and
    whole chunks the loss leapt up. Windows reach over the edges of parts, so that only these
    meetings depend on the number of workers. Parts are whole blocks.
    """
    if num_workers <= _WORKERS:
        return CHUNK
    return max(block, int(num_kept * _WORKERS / num_workers) // block * block)


def used_rows(rows: np.ndarray, ends: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """(buckets, rows): the buckets that some n-gram falls into, and `rows` numbered by them.

    Most buckets of a small text stay empty: they need no memory and no training. The ones that
    the text meets most often come first, so that the rows in use lie close together.
    """
    num_words = len(ends)
    uses = np.bincount(rows, np.repeat(np.asarray(counts, np.float64), np.diff(ends, prepend=0)))[
        num_words:
    ]
    buckets = np.flatnonzero(uses).astype(np.int32)
    buckets = buckets[np.argsort(-uses[buckets], kind="stable")]
    places = np.arange(num_words + len(uses), dtype=np.int32)
    places[num_words + buckets] = np.arange(num_words, num_words + len(buckets), dtype=np.int32)
    return buckets, places[rows]


class FastTextRun(WindowRun):
    """A run whose input rows belong to words and n-grams."""

    def __init__(
        self, config: FastTextConfig, store: TokenStore, vocabulary: Vocabulary, id_map: np.ndarray
    ) -> None:
        """id_map: from the store's ids to the vocabulary's."""
        from sememe.examples.windows import keep_limits

        counts, pieces = np.asarray(vocabulary.counts), (config.minn, config.maxn, config.bucket)
        self.buckets: np.ndarray | None = None
        if config.hash_count:
            self.ends, self.rows = floret_rows_of_all(vocabulary, *pieces, config.hash_count)
            num_own, num_shared = 0, config.bucket
        else:
            self.ends, rows = ngram_rows(vocabulary, *pieces)
            self.buckets, self.rows = used_rows(rows, self.ends, counts)
            num_own, num_shared = len(vocabulary), len(self.buckets)
        kept = counts * (keep_limits(counts, config.sample)[:-1] / 2.0**32)
        meetings = np.bincount(self.rows, np.repeat(kept, np.diff(self.ends, prepend=0)))
        self.chunk_size = chunk_size(meetings[num_own:], store.num_tokens)
        self._num_shared = num_shared
        super().__init__(config, store, vocabulary, id_map, num_own + num_shared)
        num_kept = self.chunk_size * kept.sum() / store.num_tokens
        self.part_size = part_size(num_kept, config.num_workers, self.block)

    def greeting(self) -> str:
        """One line that says what is about to be trained."""
        return f"{super().greeting()}, {self._num_shared:,} rows of n-grams"

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the matrices to the model, with the buckets that its n-gram rows stand for."""
        super().hand_over(model, is_final=is_final)
        if self.buckets is not None:
            places = np.arange(len(self.buckets), dtype=np.int32)
            model.tensors["pruned"] = np.stack([self.buckets, places], axis=1)

    def take(self, model: StaticModel) -> None:
        """Copy what a model of fewer words has learned, of words and of n-grams."""
        if self.buckets is None:  # words have no rows of their own
            super().take(model)
            return
        dim, num_old, num_new = self.config.dim, len(model.vocabulary), len(self.vocabulary)
        input, output = self.matrices["input"], self.matrices["output"]
        output[: len(model.output), :dim] = model.output
        input[:num_old, :dim] = model.input[:num_old]
        old_buckets, old_places = model.tensors["pruned"].T
        _, mine, theirs = np.intersect1d(self.buckets, old_buckets, return_indices=True)
        input[num_new + mine, :dim] = model.input[num_old + old_places[theirs]]

    def new_space(self) -> list[np.ndarray]:
        """Make room for a chunk's words, their windows and the words put together."""
        space = super().new_space()
        numbers = np.zeros(len(self.vocabulary), np.int32)
        words, inputs = (np.empty(self.chunk_size, np.int32) for _ in range(2))
        hidden, before = (np.zeros(self.chunk_size * self.width, np.float32) for _ in range(2))
        return [*space, numbers, words, inputs, hidden, before]

    def step(self, step: int, space: list[Any], stats: np.ndarray) -> None:
        """Train on the chunk of `step`."""
        from sememe.static.fasttext.kernels import number_words, put_together, share_changes

        tokens, left, right, numbers, words, inputs, hidden, before = space
        num = self.draw(step, [tokens, left, right])
        noise = self.draw_noise(step, num)
        for head in range(0, num, self.part_size):
            part = (head, min(head + self.part_size, num))
            num_words = number_words(tokens, left, right, *part, numbers, words, inputs)
            rows = (words, num_words, self.ends, self.rows, self.input, self.width, hidden, before)
            put_together(*rows)
            self.learn(step, (tokens, inputs, left, right, *part), noise, hidden, stats)
            share_changes(*rows)

"""Rows of texts as ids, and training batches of them.

The batch of a step is a function of (seed, step), so that a run can be resumed at any step.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sememe.errors import InputError
from sememe.examples.pair_batches import Side
from sememe.examples.sentence_rows import SentenceRows
from sememe.models.sentence.encoders import Trainable
from sememe.randomness import numbers, random_order, stream_key

_ROWS, _DELETED = 0x721, 0x722  # purposes of random streams
_TEXTS_AT_ONCE = 8_192


@dataclass(frozen=True)
class Examples:
    """Rows as ids: the columns of texts, an empty third one where a row has no negative."""

    kind: str
    columns: tuple[Side, ...]
    scores: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def fingerprint(self) -> str:
        """What identifies these rows."""
        digest = hashlib.blake2b(self.kind.encode(), digest_size=16)
        for side in self.columns:
            digest.update(side.digest())
        digest.update(b"" if self.scores is None else self.scores.tobytes())
        return digest.hexdigest()


def encode_rows(
    rows: SentenceRows, trainable: Trainable, prompts: Mapping[str, str]
) -> tuple[Examples, int]:
    """The rows as ids, and the number of texts that were cut; rows without tokens are dropped."""
    parts: list[tuple[Side, ...]] = []
    scores: list[float] = []
    num_cut = 0
    before = [prompts.get("query", ""), *[prompts.get("document", "")] * 2]
    for start in range(0, len(rows), _TEXTS_AT_ONCE):
        some = rows.rows[start : start + _TEXTS_AT_ONCE]
        columns: list[list[np.ndarray]] = []
        for index in range(len(some[0].texts)):
            texts = [row.texts[index] for row in some]
            found = trainable.ids([before[index] + text for text in texts])
            empty = np.empty(0, np.int32)
            columns.append([ids if text else empty for ids, text in zip(found, texts, strict=True)])
        num_cut += sum(len(ids) >= trainable.room for column in columns for ids in column)
        kept = [
            place
            for place, own in enumerate(zip(*columns[:2], strict=True))
            if all(len(ids) for ids in own)
        ]
        parts.append(tuple(Side(column[place] for place in kept) for column in columns))
        scores += [some[place].score for place in kept]
    columns_of = tuple(Side.joined(own) for own in zip(*parts, strict=True))
    if not len(columns_of[0]):
        raise InputError("No row is left: none of the texts has a token that the model knows.")
    if rows.kind != "scored":
        return Examples(rows.kind, columns_of), num_cut
    scaled = (np.array(scores) - rows.lowest) / (rows.highest - rows.lowest)
    return Examples(rows.kind, columns_of, scaled.astype(np.float32)), num_cut


@dataclass(frozen=True)
class SentenceBatch:
    """Rows that are processed together: the texts of each column."""

    kind: str
    columns: tuple[list[np.ndarray], ...]
    scores: np.ndarray | None = None
    weight: float = 1.0

    def part(self, index: int, num_parts: int) -> SentenceBatch:
        """Every `num_parts`-th row from `index` on; a row of weight 0 if none is left."""
        is_empty = index >= len(self.columns[0])
        own = slice(0, 1) if is_empty else slice(index, None, num_parts)
        scores = None if self.scores is None else self.scores[own]
        columns = tuple(column[own] for column in self.columns)
        return SentenceBatch(self.kind, columns, scores, 0.0 if is_empty else self.weight)


class SentenceBatches:
    """Training batches, each epoch in its own random order; a last, smaller batch is left out."""

    def __init__(
        self,
        examples: Examples,
        *,
        batch_size: int,
        seed: int,
        is_word_start_V: np.ndarray | None = None,
        deletion: float = 0.0,
    ) -> None:
        """With `is_word_start_V` some words of each text are deleted, for a decoder to restore."""
        self.examples, self.seed = examples, seed
        self.batch_size = min(batch_size, len(examples))
        self.is_word_start_V, self.deletion = is_word_start_V, deletion
        self._planned: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    @property
    def batches_per_epoch(self) -> int:
        """Batches per epoch."""
        return len(self.examples) // self.batch_size

    def num_steps(self, epochs: float) -> int:
        """Steps of `epochs` epochs."""
        return math.ceil(epochs * self.batches_per_epoch)

    def batch(self, step: int) -> SentenceBatch:
        """The batch of a step."""
        epoch, number = divmod(step, self.batches_per_epoch)
        if self._planned[0] != epoch:
            key = stream_key(self.seed, _ROWS, epoch)
            self._planned = epoch, random_order(len(self.examples), key)
        order = self._planned[1][number * self.batch_size : (number + 1) * self.batch_size]
        examples = self.examples
        columns = tuple([side[index] for index in order] for side in examples.columns)
        scores = None if examples.scores is None else examples.scores[order]
        if examples.kind != "texts":
            return SentenceBatch(examples.kind, columns, scores)
        (texts,) = columns
        if self.is_word_start_V is None:
            return SentenceBatch("pairs", (texts, texts))
        key = stream_key(self.seed, _DELETED, step)
        drawn = numbers(key, sum(map(len, texts))) >= np.uint64(int(self.deletion * 2**64))
        ends = np.cumsum([len(own) for own in texts])[:-1]
        kept = np.split(drawn, ends)
        noisy = [
            without_words(own, is_kept, self.is_word_start_V)
            for own, is_kept in zip(texts, kept, strict=True)
        ]
        return SentenceBatch("denoised", (noisy, texts))


def without_words(ids: np.ndarray, is_kept: np.ndarray, is_word_start_V: np.ndarray) -> np.ndarray:
    """The ids of a text without some of its words; special tokens and one word stay."""
    inner = ids[1:-1]
    if len(inner) < 2:
        return ids
    is_start = is_word_start_V[inner]
    is_start[0] = True
    word = np.cumsum(is_start) - 1
    stays = is_kept[1:-1][is_start]
    if not stays.any():
        stays[0] = True
    return np.concatenate([ids[:1], inner[stays[word]], ids[-1:]])

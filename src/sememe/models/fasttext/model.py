"""FastText: a corpus in, vectors of words and of their character n-grams out.

The training run is that of word2vec, with word vectors composed from sub-word rows.
"""

from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.examples.windows import keep_limits
from sememe.models.fasttext.config import FastTextConfig
from sememe.models.fasttext.kernels import number_words, put_together, share_changes
from sememe.models.fitting import Prepared, Request
from sememe.models.static.model import ANY, StaticModel
from sememe.models.word2vec.training import CHUNK, DeviceModel, WindowRun
from sememe.tokens.ngrams import floret_rows_of_all, ngram_rows
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.subwords import SubwordVectors

# Words that share an n-gram are updated together only between chunks, and each adds its full change
# to the shared row: with about 160 of them in a chunk training diverged, with 40 it scored as with
# 5 (docs/experiments.md).
_SHARERS = 24
_CHUNK = 512
_WORKERS = 2  # as many may have a whole chunk in progress


def chunk_size(meetings: np.ndarray, num_tokens: int) -> int:
    """The number of words in a step, limited so that no shared row is used too often in it.

    meetings: how often the text uses each of them, without sub-sampled words.
    """
    if not meetings.size:
        return CHUNK
    return int(min(_CHUNK, max(32, _SHARERS * num_tokens / meetings.max())))


def part_size(num_kept: float, num_workers: int, block: int) -> int:
    """How many of the `num_kept` words of a chunk are composed, trained and shared together.

    Changes that other workers have not shared yet count like those of the chunk itself: with 14 of
    them and full chunks the loss jumped. Windows cross the edges of parts, so that only this
    depends on the number of workers. Parts are complete blocks.
    """
    if num_workers <= _WORKERS:
        return CHUNK
    return max(block, int(num_kept * _WORKERS / num_workers) // block * block)


def used_rows(rows: np.ndarray, ends: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """(buckets, rows): the buckets that some n-gram falls into, and `rows` renumbered.

    Most buckets of a small text stay empty: they need no memory and no training. The most
    frequently used ones come first, so that the rows in use are close together.
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
        self, config: FastTextConfig, store: TokenStore, vocabulary: Vocabulary, id_map: np.ndarray,
        chunk: int = CHUNK,
    ) -> None:  # fmt: skip
        """id_map: from the store's ids to the vocabulary's; chunk: the most words of a step."""

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
        self._meetings, self.num_shared = meetings[num_own:], num_shared
        super().__init__(config, store, vocabulary, id_map, num_own + num_shared, chunk)
        num_kept = self.chunk_size * kept.sum() / store.num_tokens
        self.part_size = part_size(num_kept, config.num_workers, self.block)

    def step_size(self, store: TokenStore) -> int:
        """The number of words of text per step."""
        return min(self.most_words, chunk_size(self._meetings, store.num_tokens))

    def input_uses(self, of_words: np.ndarray) -> np.ndarray:
        """The uses of the rows, from those of the words that they are part of."""
        of_rows = np.repeat(of_words, np.diff(self.ends, prepend=0))
        return np.bincount(self.rows, of_rows, len(self.matrices["input"]))

    def start_message(self) -> str:
        """One line that describes the training about to start."""
        return f"{super().start_message()}, {self.num_shared:,} rows of n-grams"

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the matrices to the model, with the buckets of its n-gram rows."""
        super().hand_over(model, is_final=is_final)
        if self.buckets is not None:
            places = np.arange(len(self.buckets), dtype=np.int32)
            model.tensors["pruned"] = np.stack([self.buckets, places], axis=1)

    def take(self, model: StaticModel) -> None:
        """Copy the word and n-gram vectors of a smaller model."""
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
        """Allocate buffers for a chunk's words, their windows and the composed vectors."""
        space = super().new_space()
        numbers = np.zeros(len(self.vocabulary), np.int32)
        words, inputs = (np.empty(self.chunk_size, np.int32) for _ in range(2))
        hidden, before = (np.zeros(self.chunk_size * self.width, np.float32) for _ in range(2))
        return [*space, numbers, words, inputs, hidden, before]

    def step(self, step: int, space: list[Any], stats: np.ndarray) -> None:
        """Train on the chunk of `step`."""

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


class FastText(DeviceModel):
    """Word vectors composed from character n-grams (Bojanowski et al. 2017).

    model = sememe.FastText(dim=100).fit("corpus.txt")
    model.vectors["unseenword"]
    """

    kind = "fasttext"
    config_class = FastTextConfig
    run_class = FastTextRun
    tile_run = ("sememe.models.fasttext.tiles", "FastTextTileRun")

    def prepare_tokens(self, tokens: TokenStore, request: Request) -> Prepared:
        """Return the plan of a run on a token store, and the function that trains."""
        if self.config.hash_count and request.start is not None:
            raise OptionError(
                "In a compact table no word has a row that could take a given vector: "
                "leave out start or hash_count."
            )
        return super().prepare_tokens(tokens, request)

    def make_vectors(self) -> SubwordVectors:
        """The vectors of words and of their n-grams."""
        config = self.config
        if config.hash_count:
            return SubwordVectors.hashed(
                self.input, minn=config.minn, maxn=config.maxn, hash_count=config.hash_count,
                words=self.vocabulary,
            )  # fmt: skip
        return SubwordVectors(
            self.vocabulary, self.input, minn=config.minn, maxn=config.maxn, bucket=config.bucket,
            pruned=self.tensors["pruned"],
        )  # fmt: skip

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with their shapes."""
        rows: tuple[int, ...] = (ANY, self.config.dim)
        shapes = {"input": rows, "output": rows}
        return shapes if self.config.hash_count else {**shapes, "pruned": (ANY, 2)}

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model, including the options of its n-grams."""
        return {**super().manifest(), "subwords": self.make_vectors().subwords.options()}

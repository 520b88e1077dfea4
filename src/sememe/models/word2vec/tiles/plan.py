"""The sizes of a training in tiles, derived from its options and its text.

A tile is `tile` neighboring words (centres), the words of their windows, and `pool` noise words
that they share; a noise word weighs negatives ÷ pool. The text is cut into stretches. One tile of
each stretch is in flight at the same time: its gradients are computed from rows that do not yet
have the updates of the others. Tiles in flight together come from different places of the text,
because neighbors share most of their words.

Many updates of one row from the same old values overshoot. So the update of a row is multiplied by
min(1, threshold ÷ expected pair updates of this row in flight), its damping, and as many stretches
are in flight as keep the strongest damping above 1 ÷ DEEPEST. V words.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sememe.examples.windows import HuffmanTree
from sememe.models.word2vec.config import WindowConfig

# Measured on one H200 with 100 dimensions, window 5 and 77,331 words (docs/experiments.md):
# 200 pair updates in flight do no harm at a learning rate of 0.025, and 132 stretches of tiles of
# 16 centres fill the GPU.
STEP_IN_FLIGHT = 200 * 0.025
# Where few words are most of the text, the updates of a row point the same way, and less of them
# overshoots: measured with sample 0 and with a hundred words at rates up to 0.1.
LEAST_IN_FLIGHT = 24 * 0.025
SPREAD = 2e-3  # chance that two centres are the same word, up to which nothing is lowered
MOST_STRETCHES = 132
DEEPEST = 8.0
# Tiles of a stretch: with fewer in flight at first, a short text learns as fast as on the CPU.
SHORTEST = 64
TILES = {"skipgram": 16, "cbow": 8}
SMALLEST_POOL, LARGEST_POOL = 32, 128
SMALLEST_CHUNK, LARGEST_CHUNK = 1 << 14, 1 << 21
STEPS_PER_EPOCH = 16  # at least, unless the text is short


class InputRows(NamedTuple):
    """Input vectors that are means of several rows: rows[starts[w]:starts[w + 1]] for word w."""

    starts: np.ndarray  # int64 (V + 1)
    rows: np.ndarray  # int32
    num_rows: int

    def spread(self, expected_V: np.ndarray) -> np.ndarray:
        """The expected updates of every row, from those of every word."""
        weights = np.repeat(expected_V, np.diff(self.starts))
        return np.bincount(self.rows, weights, self.num_rows)


@dataclass(frozen=True)
class TilePlan:
    """How many centres, noise words and stretches; the damping of each row."""

    tile: int
    pool: int
    stretches: int
    damp_input: np.ndarray  # float32, for each row
    damp_output: np.ndarray

    @property
    def in_flight(self) -> int:
        """The number of centres whose updates do not see each other."""
        return self.tile * self.stretches

    def stretches_of(self, num_words: int) -> int:
        """The number of stretches for a part of the text: fewer if they would be too short."""
        num_tiles = -(-num_words // self.tile)
        return max(1, min(self.stretches, num_tiles // SHORTEST))


def threshold(rate: float, concentration: float = 0.0) -> float:
    """The number of pair updates of a row in flight that need no damping at this learning rate."""
    step = STEP_IN_FLIGHT * min(1.0, SPREAD / max(concentration, 1e-12))
    return max(LEAST_IN_FLIGHT, step) / max(rate, 1e-12)


def concentration(counts: np.ndarray, limits: np.ndarray) -> float:
    """The chance that two words of the sub-sampled text are the same."""
    kept = counts * (limits[:-1] / 2.0**32)
    return float(((kept / kept.sum()) ** 2).sum())


def pair_updates(
    config: WindowConfig, counts: np.ndarray, limits: np.ndarray, num_sentences: int,
    tree: HuffmanTree | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Expected pair updates per centre of each row of the input and of the output matrix.

    A noise update counts by its weight, one of full softmax by its probability; a node of a tree is
    updated with every word below it. The number of words in a window is an upper bound: the mean
    window, or all other words of a mean sentence.
    """
    kept = counts * (limits[:-1] / 2.0**32)
    share = kept / kept.sum()
    noise = np.power(np.maximum(counts, 1).astype(np.float64), config.noise_exponent)
    noise *= config.negatives / noise.sum()
    around = min(config.window + 1.0, max(1.0, kept.sum() / max(1, num_sentences) - 1))
    if config.loss == "softmax":
        noise = share
    output = share + noise
    if tree is not None:
        words = np.repeat(share, np.diff(tree.starts))
        output = np.bincount(tree.nodes, words, minlength=max(len(counts) - 1, 1))
    return around * share, (around if config.architecture == "skipgram" else 1.0) * output


def damping(expected: np.ndarray, in_flight: float, most: float) -> np.ndarray:
    """min(1, threshold ÷ expected pair updates in flight), float32."""
    return np.minimum(1, most / np.maximum(expected * in_flight, 1e-30)).astype("f4")


def chunk_size(num_tokens: int) -> int:
    """The number of words of text per step of a run: a power of two."""
    size = SMALLEST_CHUNK
    while size < LARGEST_CHUNK and 2 * size * STEPS_PER_EPOCH <= num_tokens:
        size *= 2
    return size


def pool_size(config: WindowConfig) -> int:
    """The number of noise words per tile: a power of two; 0 without negative sampling."""
    if config.loss != "negative":
        return 0
    wanted = config.negatives * (2 * config.window if config.architecture == "skipgram" else 4)
    size = SMALLEST_POOL
    while size < min(wanted, LARGEST_POOL):
        size *= 2
    return size


def make_plan(
    config: WindowConfig, counts: np.ndarray, limits: np.ndarray, num_sentences: int,
    num_tokens: int, input_rows: InputRows | None = None, tree: HuffmanTree | None = None,
) -> TilePlan:  # fmt: skip
    """The plan of a run over a text of this many sentences and tokens, rare words included."""
    input_R, output_V = pair_updates(config, counts, limits, num_sentences, tree)
    if input_rows is not None:
        input_R = input_rows.spread(input_R)
    highest = max(float(input_R.max()), float(output_V.max()))
    most = threshold(config.start_rate, concentration(counts, limits))
    allowed = max(1, int(DEEPEST * most / highest))
    tile = min(TILES[config.architecture], allowed)
    kept = float((counts * (limits[:-1] / 2.0**32)).sum())
    per_chunk = kept * min(1.0, chunk_size(num_tokens) / max(1, num_tokens))
    stretches = max(1, min(MOST_STRETCHES, allowed // tile, int(per_chunk / (SHORTEST * tile))))
    dampings = (damping(own, tile * stretches, most) for own in (input_R, output_V))
    return TilePlan(tile, pool_size(config), stretches, *dampings)


def tile_starts(num_words: int, tile: int, stretches: int) -> np.ndarray:
    """The first centres of all tiles: row k has those in flight together, -1 for none."""
    num_tiles = -(-num_words // tile)
    per = -(-num_tiles // stretches)
    number = np.arange(stretches)[None, :] * per + np.arange(per)[:, None]
    return np.where(number < num_tiles, number * tile, -1)

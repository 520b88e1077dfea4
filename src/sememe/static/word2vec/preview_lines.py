"""The first lines of a text as the arrays of training's first step, for the preview.

The draws are those of training: same seed, streams and tables. Only the first megabytes of the
text are read, so that an answer comes at once; counts, and with them sub-sampling and noise
words, are those of that part.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.static.word2vec import reference
from sememe.static.word2vec.config import Word2VecConfig
from sememe.text.settings import TextSettings

NUM_LINES = 3
_MOST_CENTRES = 128  # of the lines shown; a "line" may be a whole book
Line = list[tuple[str, str]]  # words and their fates: kept, thinned (sub-sampled), rare
Chunk = tuple[np.ndarray, np.ndarray, np.ndarray]  # kept words, bounds of their windows


@dataclass
class FirstLines:
    """Kept words, the bounds of their windows, pools of noise, and the matrices to be changed."""

    config: Word2VecConfig
    num_tokens: int  # of the part of the text that was read
    num_words: int
    lines: list[Line]
    words: list[str]  # by the ids used here
    tokens: np.ndarray
    left: np.ndarray
    right: np.ndarray
    noise: np.ndarray
    pool: int
    block: int
    tree: Any
    input: np.ndarray
    output: np.ndarray

    @property
    def is_skipgram(self) -> bool:
        """Whether single words predict, not joined windows."""
        return self.config.architecture == "skipgram"

    def learn(self, chunk: Chunk, noise: np.ndarray, block: int) -> None:
        """Change the matrices by plain updates over a chunk."""
        config, matrices = self.config, (self.input, self.output)
        options: dict[str, Any] = {"rate": config.start_rate}
        if not self.is_skipgram or config.loss == "softmax":
            options["is_mean"] = config.combine == "mean"
        if config.loss == "softmax":
            reference.full_softmax(*chunk, *matrices, is_skipgram=self.is_skipgram, **options)
        elif config.loss == "hierarchical":
            walk = (reference.cbow_hierarchical, reference.skipgram_hierarchical)
            walk[self.is_skipgram](*chunk, self.tree, *matrices, **options)
        else:
            step = (reference.cbow_negative, reference.skipgram_negative)
            options |= {"pool": self.pool, "block": block, "negatives": config.negatives}
            step[self.is_skipgram](*chunk, noise, *matrices, **options)

    def pairs(self) -> list[tuple[np.ndarray, int, int]]:
        """(source words, target word, centre) in the direction in which the kernels predict."""
        found: list[tuple[np.ndarray, int, int]] = []
        for c, centre in enumerate(self.tokens):
            context = self.tokens[reference.window_of(c, self.left, self.right)]
            if not self.is_skipgram:
                found += [(context, int(centre), c)] if len(context) else []
            elif self.config.loss == "softmax":
                found += [(self.tokens[c : c + 1], int(word), c) for word in context]
            else:
                found += [(context[n : n + 1], int(centre), c) for n in range(len(context))]
        return found

    def pool_of(self, c: int) -> np.ndarray:
        """The noise words that centre c shares with its neighbors."""
        return self.noise[c // self.block * self.pool :][: self.pool]


def read_lines(corpus: Any, config: Word2VecConfig, text: TextSettings) -> FirstLines:
    """Draw windows and noise as step 0 of training does, and keep what the first lines need."""
    from sememe.examples.huffman import build_tree
    from sememe.examples.noise import alias_table, draw_noise
    from sememe.examples.randomness import stream_key
    from sememe.examples.windows import keep_limits
    from sememe.static.rows import matrix
    from sememe.static.word2vec.training import NOISE, block_size, pool_size, start_rows

    sentences = _first_sentences(corpus, text)
    words, counts = _count(sentences, config)
    tokens, left, right, lines = _draw_lines(sentences, words, counts, config)
    num_tokens, num_words = sum(map(len, sentences)), len(words)
    pool = pool_size(config)
    block = block_size(config, counts, keep_limits(counts, config.sample))
    noise: np.ndarray = np.empty(-(-len(tokens) // block) * pool, np.int32)
    table = alias_table(counts, config.noise_exponent)
    draw_noise(*table, np.uint64(stream_key(config.seed, NOISE, 0)), noise)
    rows = matrix(num_words, config.dim)
    start_rows(rows, config.dim, config.seed)
    input: np.ndarray = rows[:, : config.dim].astype(float)
    tree = build_tree(counts) if config.loss == "hierarchical" else None
    if config.loss == "negative":
        # The reference makes whole matrices for every block: words that do not occur would cost.
        used, ids = np.unique(np.concatenate([tokens, noise]), return_inverse=True)
        words, input = [words[word_id] for word_id in used], input[used]
        tokens, noise = ids[: len(tokens)], ids[len(tokens) :]
    output = np.zeros_like(input)  # one row more than a tree has nodes
    return FirstLines(
        config, num_tokens, num_words, lines, words, tokens, left, right, noise, pool, block, tree,
        input, output,
    )  # fmt: skip


def _first_sentences(corpus: Any, text: TextSettings) -> list[list[str]]:
    from sememe.text.records import decode_documents
    from sememe.text.stream import segment

    with closing(segment(corpus, text)) as stream:  # type: ignore[type-var]
        return list(chain.from_iterable(decode_documents(next(iter(stream)).data)))


def _count(sentences: list[list[str]], config: Word2VecConfig) -> tuple[list[str], np.ndarray]:
    """(words, counts) in the order of a token store: falling count, then bytes."""
    counts = Counter(chain.from_iterable(sentences))
    words = [word for word, count in counts.items() if count >= config.min_count]
    if not words:
        raise InputError(
            f"No word occurs {config.min_count:,} times in the first {counts.total():,} words: "
            "lower min_count or add text."
        )
    words.sort(key=lambda word: (-counts[word], word.encode("utf-8", "surrogatepass")))
    words = words[: config.max_words or None]
    return words, np.array([counts[word] for word in words])


def _draw_lines(
    sentences: list[list[str]], words: list[str], counts: np.ndarray, config: Word2VecConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Line]]:
    """(kept words, bounds of their windows, lines) up to the end of the lines shown."""
    from sememe.examples.randomness import number, stream_key
    from sememe.examples.windows import draw_windows_plainly, keep_limits
    from sememe.static.chunks import CHUNK
    from sememe.static.word2vec.training import WINDOWS

    id_of, rare = {word: word_id for word_id, word in enumerate(words)}, len(words)
    ids = [id_of.get(word, rare) for row in sentences for word in row][:CHUNK]
    ends = np.minimum(np.cumsum([len(row) for row in sentences]), len(ids))
    limits, key = keep_limits(counts, config.sample), stream_key(config.seed, WINDOWS, 0)
    drawn = draw_windows_plainly(np.array(ids), ends, limits, config.window, key)
    lines: list[Line] = []
    num_centres = start = 0
    for row, end in zip(sentences, ends.tolist(), strict=True):
        is_kept = [number(key, p) >> 32 < int(limits[ids[p]]) for p in range(start, end)]
        fates = ["kept" if k else "thinned" for k in is_kept]
        fates = ["rare" if ids[start + n] == rare else fate for n, fate in enumerate(fates)]
        if sum(is_kept) > 1:
            lines.append(list(zip(row, fates, strict=False)))
        num_centres, start = min(num_centres + sum(is_kept), _MOST_CENTRES), end
        if len(lines) == NUM_LINES or num_centres == _MOST_CENTRES:
            break
    if not lines:
        raise InputError("Every window of the first lines is empty: try min_count 1 and sample 0.")
    size = max(drawn[2][:num_centres])
    tokens, left, right = (np.array(column[:size], np.int32) for column in drawn)
    left[num_centres:] = right[num_centres:] = 0  # words of other windows, without one of their own
    return tokens, left, right, lines

"""What word2vec sees and does, for learning: a text in, its first pairs and one update out.

The draws are those of training's first step (same seed, streams and tables), the arithmetic is
that of `reference`. Only the first megabytes of the text are read, so that an answer comes at
once; counts, and with them sub-sampling and noise words, are those of that part.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.static.word2vec import reference
from sememe.static.word2vec.config import Word2VecConfig
from sememe.text.settings import TextSettings

NUM_LINES, NUM_PAIRS, NUM_SHOWN = 3, 10, 5
_MOST_CENTRES = 128  # of the lines shown; a "line" may be a whole book
_PASSES = 40
_WORK = 2e8  # multiplications that full softmax may take; its passes are fewer

Line = list[tuple[str, str]]  # words and their fates: kept, thinned (sub-sampled), rare


@dataclass(frozen=True)
class Decision:
    """One question about a pair, asked of one output vector, and its part of the update."""

    name: str  # a word; with a tree the node (row of the output matrix) and the turn there
    label: int
    weight: float
    score: float  # dot product
    probability: float  # sigmoid of the score, or its softmax
    step: float  # rate × weight × (label - probability)


@dataclass(frozen=True)
class Pair:
    """Words whose input vector (joined, if several) predicts a target."""

    source: list[str]
    target: str
    decisions: list[Decision]


@dataclass(frozen=True)
class Change:
    """A vector before and after the update of the first pair."""

    name: str
    before: list[float]
    after: list[float]


@dataclass(frozen=True)
class Preview:
    """What is shown; `pairs` are as after `num_passes` over the lines, `update` is the first's."""

    config: dict[str, Any]
    rate: float
    num_tokens: int
    num_words: int
    lines: list[Line]
    pairs: list[Pair]
    pool: int  # noise words that `block` centres share; 0 without negative sampling
    block: int
    num_passes: int
    update: list[Decision]  # all of them, equal noise words as one
    inputs: list[Change]
    outputs: list[Change]


@dataclass
class _Scene:
    """The first lines as training's arrays, and the matrices it would change."""

    config: Word2VecConfig
    words: list[str]
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
        return self.config.architecture == "skipgram"

    @property
    def options(self) -> dict[str, Any]:
        needs_mean = not self.is_skipgram or self.config.loss == "softmax"
        mean = {"is_mean": self.config.combine == "mean"} if needs_mean else {}
        return {"rate": self.config.start_rate, **mean}

    def learn(self, chunk: Sequence[np.ndarray], noise: np.ndarray, block: int) -> None:
        """Change the matrices by plain updates over a chunk (words, bounds of their windows)."""
        config, matrices, options = self.config, (self.input, self.output), self.options
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

    def decide(self, source: np.ndarray, target: int, noise: np.ndarray) -> list[Any]:
        """(row of the output matrix, decision) for everything the pair is asked."""
        config, words = self.config, self.words
        hidden = reference.joined(self.input, source, config.combine == "mean")
        if config.loss == "hierarchical":
            rows, codes = self.tree.path(target)
            labels, weights = 1 - codes.astype(int), np.ones(len(rows))
            turns = ("left", "right")
            names = [f"{row} {turns[code]}" for row, code in zip(rows, codes, strict=True)]
        elif config.loss == "negative":
            rows = np.array([target, *noise])
            labels = np.array([1] + [0] * len(noise))
            weights = np.where(labels, 1.0, config.negatives / self.pool)
            names = [words[row] for row in rows]
        else:
            likely = np.argsort(-(self.output @ hidden), kind="stable")[: NUM_SHOWN + 1]
            rows = np.array([target, *likely[likely != target][:NUM_SHOWN]])
            labels, weights = (rows == target).astype(int), np.ones(len(rows))
            names = [words[row] for row in rows]
        scores = self.output[rows] @ hidden
        if config.loss == "softmax":
            chances = np.exp(scores - np.logaddexp.reduce(self.output @ hidden))
        else:
            chances = reference.sigmoid(scores)
        steps = config.start_rate * weights * (labels - chances)
        columns = (names, *(x.tolist() for x in (labels, weights, scores, chances, steps)))
        return [(int(row), Decision(*d)) for row, *d in zip(rows, *columns, strict=True)]


def preview(corpus: Any, config: Word2VecConfig, text: TextSettings) -> Preview:
    """Draw the first pairs of a training and compute the update of the first of them."""
    sentences = _first_sentences(corpus, text)
    num_tokens, counts = sum(map(len, sentences)), Counter(chain.from_iterable(sentences))
    words = [word for word, count in counts.items() if count >= config.min_count]
    words.sort(key=lambda word: (-counts[word], word.encode("utf-8", "surrogatepass")))
    words = words[: config.max_words or None]
    if not words:
        raise InputError(
            f"No word occurs {config.min_count:,} times in the first {num_tokens:,} words: "
            "lower min_count or add text."
        )
    scene, lines = _set_up(sentences, words, np.array([counts[w] for w in words]), config)
    cost = len(scene.tokens) * scene.output.size if config.loss == "softmax" else 1
    num_passes = min(_PASSES, 1 + int(_WORK / cost))
    for _ in range(num_passes):
        scene.learn(scene.tokens, scene.left, scene.right, scene.noise, scene.block)
    pairs = []
    for number, (source, target, c) in enumerate(scene.pairs()[:NUM_PAIRS]):
        # Pairs next to each other show different parts of their pool.
        noise = np.roll(scene.pool_of(c), -number * config.negatives)[: config.negatives]
        decisions = [decision for _, decision in scene.decide(source, target, noise)]
        pairs.append(Pair([scene.words[w] for w in source], scene.words[target], decisions))
    is_drawn = config.loss == "negative"
    return Preview(
        config.to_dict(), config.start_rate, num_tokens, len(words), lines, pairs,
        scene.pool * is_drawn, scene.block * is_drawn, num_passes, *_update(scene),
    )  # fmt: skip


def _first_sentences(corpus: Any, text: TextSettings) -> list[list[str]]:
    from sememe.text.records import decode_documents
    from sememe.text.stream import segment

    with closing(segment(corpus, text)) as stream:  # type: ignore[type-var]
        return list(chain.from_iterable(decode_documents(next(iter(stream)).data)))


def _set_up(
    sentences: list[list[str]], words: list[str], counts: np.ndarray, config: Word2VecConfig
) -> tuple[_Scene, list[Line]]:
    """Draw windows and noise as step 0 of training does; keep what the first lines need."""
    from sememe.examples.huffman import build_tree
    from sememe.examples.noise import alias_table, draw_noise
    from sememe.examples.randomness import stream_key
    from sememe.static.rows import matrix
    from sememe.static.word2vec.fitting import start_rows
    from sememe.static.word2vec.training import _NOISE, pool_size

    tokens, left, right, lines = _draw_lines(sentences, words, counts, config)
    pool, block = pool_size(config)
    noise = np.empty(-(-len(tokens) // block) * pool, np.int32)
    table = alias_table(counts, config.noise_exponent)
    draw_noise(*table, np.uint64(stream_key(config.seed, _NOISE, 0)), noise)
    rows = matrix(len(words), config.dim)
    start_rows(rows, config.dim, config.seed)
    input = rows[:, : config.dim].astype(float)
    tree = build_tree(counts) if config.loss == "hierarchical" else None
    if config.loss == "negative":
        # The reference makes whole matrices for every block: words that do not occur would cost.
        used, ids = np.unique(np.concatenate([tokens, noise]), return_inverse=True)
        words, input = [words[word_id] for word_id in used], input[used]
        tokens, noise = ids[: len(tokens)], ids[len(tokens) :]
    output = np.zeros_like(input)  # one row more than a tree has nodes
    scene = _Scene(config, words, tokens, left, right, noise, pool, block, tree, input, output)
    return scene, lines


def _draw_lines(
    sentences: list[list[str]], words: list[str], counts: np.ndarray, config: Word2VecConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Line]]:
    """(kept words, bounds of their windows, lines) up to the end of the lines shown."""
    from sememe.examples.randomness import number, stream_key
    from sememe.examples.windows import draw_windows_plainly, keep_limits
    from sememe.static.word2vec.training import _WINDOWS, CHUNK

    id_of, rare = {word: word_id for word_id, word in enumerate(words)}, len(words)
    ids = [id_of.get(word, rare) for row in sentences for word in row][:CHUNK]
    ends = np.minimum(np.cumsum([len(row) for row in sentences]), len(ids))
    limits, key = keep_limits(counts, config.sample), stream_key(config.seed, _WINDOWS, 0)
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


def _update(scene: _Scene) -> tuple[list[Decision], list[Change], list[Change]]:
    """(decisions, changed input vectors, changed output vectors) of the first pair alone."""
    source, target, c = scene.pairs()[0]
    noise = scene.pool_of(c)
    merged: dict[tuple[int, int], Decision] = {}
    for row, one in scene.decide(source, target, noise):
        if old := merged.get((row, one.label)):  # a noise word drawn twice
            one = replace(one, weight=old.weight + one.weight, step=old.step + one.step)
        merged[row, one.label] = one
    # A chunk with one centre, the last word.
    is_turned = scene.is_skipgram and scene.config.loss == "softmax"
    tokens = np.array([target, *source] if is_turned else [*source, target])
    left, right = np.zeros_like(tokens), np.zeros_like(tokens)
    right[-1] = len(tokens)
    old_input, old_output = scene.input.copy(), scene.output.copy()
    scene.learn(tokens, left, right, noise, len(tokens))
    inputs = {scene.words[w]: (old_input[w], scene.input[w]) for w in source}
    outputs = {
        decision.name: (old_output[row], scene.output[row]) for (row, _), decision in merged.items()
    }
    changes = (
        [Change(name, old.tolist(), new.tolist()) for name, (old, new) in vectors.items()]
        for vectors in (inputs, outputs)
    )
    return list(merged.values()), *changes

"""What word2vec sees and does, for learning: a text in, its first pairs and one update out.

The pairs are those of training's first step (preview_lines), the arithmetic is that of
`reference`; preview_text writes both for a terminal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sememe.errors import DivergedError
from sememe.static.word2vec import reference
from sememe.static.word2vec.config import Word2VecConfig
from sememe.static.word2vec.preview_lines import FirstLines, Line, read_lines
from sememe.text.settings import TextSettings

NUM_PAIRS, NUM_SHOWN = 10, 5
_PASSES = 40
_WORK = 2e8  # multiplications that full softmax may take; its passes are fewer


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


def preview(corpus: Any, config: Word2VecConfig, text: TextSettings) -> Preview:
    """Draw the first pairs of a training and compute the update of the first of them."""
    first = read_lines(corpus, config, text)
    cost = len(first.tokens) * first.output.size if config.loss == "softmax" else 1
    num_passes = min(_PASSES, 1 + int(_WORK / cost))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(num_passes):
            first.learn((first.tokens, first.left, first.right), first.noise, first.block)
    if not np.isfinite(first.input).all() or not np.isfinite(first.output).all():
        raise DivergedError(
            f"{num_passes} passes over the first lines diverged: lower learning_rate "
            f"({config.start_rate})."
        )
    pairs = []
    for number, (source, target, c) in enumerate(first.pairs()[:NUM_PAIRS]):
        # Pairs next to each other show different parts of their pool.
        noise = np.roll(first.pool_of(c), -number * config.negatives)[: config.negatives]
        decisions = [decision for _, decision in _decide(first, source, target, noise)]
        pairs.append(Pair([first.words[w] for w in source], first.words[target], decisions))
    pool, block = (first.pool, first.block) if config.loss == "negative" else (0, 0)
    return Preview(
        config.to_dict(), config.start_rate, first.num_tokens, first.num_words, first.lines, pairs,
        pool, block, num_passes, *_update(first),
    )  # fmt: skip


def _decide(
    first: FirstLines, source: np.ndarray, target: int, noise: np.ndarray
) -> list[tuple[int, Decision]]:
    """(row of the output matrix, decision) for everything the pair is asked."""
    config, words = first.config, first.words
    hidden = reference.joined(first.input, source, config.combine == "mean")
    if config.loss == "hierarchical":
        rows, codes = first.tree.path(target)
        labels, weights = 1 - codes.astype(int), np.ones(len(rows))
        turns = ("left", "right")
        names = [f"{row} {turns[code]}" for row, code in zip(rows, codes, strict=True)]
    elif config.loss == "negative":
        rows = np.array([target, *noise])
        labels = np.array([1] + [0] * len(noise))
        weights = np.where(labels, 1.0, config.negatives / first.pool)
        names = [words[row] for row in rows]
    else:
        likely = np.argsort(-(first.output @ hidden), kind="stable")[: NUM_SHOWN + 1]
        rows = np.array([target, *likely[likely != target][:NUM_SHOWN]])
        labels, weights = (rows == target).astype(int), np.ones(len(rows))
        names = [words[row] for row in rows]
    scores = first.output[rows] @ hidden
    if config.loss == "softmax":
        chances = np.exp(scores - np.logaddexp.reduce(first.output @ hidden))
    else:
        chances = reference.sigmoid(scores)
    steps = config.start_rate * weights * (labels - chances)
    columns = (names, *(x.tolist() for x in (labels, weights, scores, chances, steps)))
    return [(int(row), Decision(*d)) for row, *d in zip(rows, *columns, strict=True)]


def _update(first: FirstLines) -> tuple[list[Decision], list[Change], list[Change]]:
    """(decisions, changed input vectors, changed output vectors) of the first pair alone."""
    source, target, c = first.pairs()[0]
    noise = first.pool_of(c)
    merged: dict[tuple[int, int], Decision] = {}
    for row, one in _decide(first, source, target, noise):
        if old := merged.get((row, one.label)):  # a noise word drawn twice
            one = replace(one, weight=old.weight + one.weight, step=old.step + one.step)
        merged[row, one.label] = one
    # A chunk with one centre, the last word.
    is_turned = first.is_skipgram and first.config.loss == "softmax"
    tokens = np.array([target, *source] if is_turned else [*source, target])
    left, right = np.zeros_like(tokens), np.zeros_like(tokens)
    right[-1] = len(tokens)
    old_input, old_output = first.input.copy(), first.output.copy()
    first.learn((tokens, left, right), noise, len(tokens))
    inputs = [_change(first.words[w], old_input[w], first.input[w]) for w in dict.fromkeys(source)]
    rows = {row: decision.name for (row, _), decision in merged.items()}
    outputs = [_change(rows[row], old_output[row], first.output[row]) for row in rows]
    return list(merged.values()), inputs, outputs


def _change(name: str, before: np.ndarray, after: np.ndarray) -> Change:
    return Change(name, before.tolist(), after.tolist())

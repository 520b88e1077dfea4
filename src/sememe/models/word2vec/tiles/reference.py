"""The updates of a batch of tiles in plain NumPy: what the fast paths are tested against.

A batch has the tiles in flight together: their first centres `starts` and, for each, a row of
`noise`. All gradients are computed from the rows before the batch, and the update of a row is
multiplied by its damping. A noise word that is the target of a pair does not count for that pair.
`tokens`, `left` and `right` are subsampled words and the bounds of their windows, as everywhere.
"""

import numpy as np

from sememe.examples.windows import HuffmanTree
from sememe.models.word2vec.reference import Loss, joined, sigmoid, window_of


def skipgram_batch(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, starts: np.ndarray, tile: int,
    noise: np.ndarray, input: np.ndarray, output: np.ndarray, *, negatives: int, rate: float,
    damp_input: np.ndarray, damp_output: np.ndarray,
) -> Loss:  # fmt: skip
    """A centre predicts every word of its window."""
    loss, num_pairs = 0.0, 0
    weight = negatives / noise.shape[1]
    d_input, d_output = np.zeros_like(input), np.zeros_like(output)
    for first, drawn in zip(starts, noise, strict=True):
        for c in range(first, min(first + tile, len(tokens))):
            hidden = input[tokens[c]]
            for target in tokens[window_of(c, left, right)]:
                others = drawn[drawn != target]
                true, false = output[target] @ hidden, output[others] @ hidden
                loss += np.logaddexp(0, -true) + weight * np.logaddexp(0, false).sum()
                num_pairs += 1
                g_true, g_false = 1 - sigmoid(true), -weight * sigmoid(false)
                d_input[tokens[c]] += g_true * output[target] + g_false @ output[others]
                d_output[target] += g_true * hidden
                np.add.at(d_output, others, np.outer(g_false, hidden))
    input += rate * damp_input[:, None] * d_input
    output += rate * damp_output[:, None] * d_output
    return loss, num_pairs


def cbow_batch(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, starts: np.ndarray, tile: int,
    noise: np.ndarray, input: np.ndarray, output: np.ndarray, *, negatives: int, rate: float,
    damp_input: np.ndarray, damp_output: np.ndarray, is_mean: bool,
) -> Loss:  # fmt: skip
    """The joined window predicts its centre; every word of it gets the full gradient."""
    loss, num_pairs = 0.0, 0
    weight = negatives / noise.shape[1]
    d_input, d_output = np.zeros_like(input), np.zeros_like(output)
    for first, drawn in zip(starts, noise, strict=True):
        for c in range(first, min(first + tile, len(tokens))):
            context = tokens[window_of(c, left, right)]
            if not len(context):
                continue
            hidden, target = joined(input, context, is_mean), tokens[c]
            others = drawn[drawn != target]
            true, false = output[target] @ hidden, output[others] @ hidden
            loss += np.logaddexp(0, -true) + weight * np.logaddexp(0, false).sum()
            num_pairs += 1
            g_true, g_false = 1 - sigmoid(true), -weight * sigmoid(false)
            change = g_true * output[target] + g_false @ output[others]
            d_output[target] += g_true * hidden
            np.add.at(d_output, others, np.outer(g_false, hidden))
            np.add.at(d_input, context, np.broadcast_to(change, (len(context), len(change))))
    input += rate * damp_input[:, None] * d_input
    output += rate * damp_output[:, None] * d_output
    return loss, num_pairs


def hierarchical_batch(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, starts: np.ndarray, tile: int,
    tree: HuffmanTree, input: np.ndarray, output: np.ndarray, *, rate: float,
    damp_input: np.ndarray, damp_output: np.ndarray, is_skipgram: bool, is_mean: bool,
) -> Loss:  # fmt: skip
    """A word around (skip-gram) or the joined window (cbow) predicts the path of the centre."""
    loss, num_pairs = 0.0, 0
    d_input, d_output = np.zeros_like(input), np.zeros_like(output)
    for c in (c for first in starts for c in range(first, min(first + tile, len(tokens)))):
        around = tokens[window_of(c, left, right)]
        nodes, codes = tree.path(int(tokens[c]))
        labels, path = 1.0 - codes, output[nodes]
        for context in around[:, None] if is_skipgram else [around] * bool(len(around)):
            hidden = joined(input, context, is_mean)
            scores = path @ hidden
            loss += np.logaddexp(0, np.where(labels, -scores, scores)).sum()
            num_pairs += 1
            g = labels - sigmoid(scores)
            d_output[nodes] += np.outer(g, hidden)
            np.add.at(d_input, context, np.broadcast_to(g @ path, (len(context), len(hidden))))
    input += rate * damp_input[:, None] * d_input
    output += rate * damp_output[:, None] * d_output
    return loss, num_pairs


def softmax_batch(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, starts: np.ndarray, tile: int,
    input: np.ndarray, output: np.ndarray, *, rate: float, damp_input: np.ndarray,
    damp_output: np.ndarray, is_skipgram: bool, is_mean: bool,
) -> Loss:  # fmt: skip
    """p(target | hidden) ∝ exp(output[target] · hidden) over all words."""
    loss, num_pairs = 0.0, 0
    d_input, d_output = np.zeros_like(input), np.zeros_like(output)
    for c in (c for first in starts for c in range(first, min(first + tile, len(tokens)))):
        around, own = tokens[window_of(c, left, right)], tokens[c : c + 1]
        if not len(around):
            continue
        sources, targets = (own, around) if is_skipgram else (around, own)
        hidden = joined(input, sources, is_mean)
        scores = output @ hidden
        log_p = scores - np.logaddexp.reduce(scores)
        loss -= log_p[targets].sum()
        num_pairs += len(targets)
        g = -len(targets) * np.exp(log_p)
        np.add.at(g, targets, 1.0)
        d_output += np.outer(g, hidden)
        np.add.at(d_input, sources, np.broadcast_to(g @ output, (len(sources), len(hidden))))
    input += rate * damp_input[:, None] * d_input
    output += rate * damp_output[:, None] * d_output
    return loss, num_pairs

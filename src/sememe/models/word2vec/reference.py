"""word2vec's updates in plain NumPy, simple and slow: what the kernels are tested against.

Every function takes a chunk like the kernels (kept words, bounds of their windows) and updates
`input` and `output` (rows of D floats) in place; it returns (loss, number of pairs).
"""

import numpy as np

from sememe.examples.windows import HuffmanTree

Loss = tuple[float, int]
WORDS_PER_STEP = 10  # the number that the kernel of hierarchical skip-gram takes at once


def sigmoid(score: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-score)), without overflow."""
    return np.exp(-np.logaddexp(0, -score))


def window_of(c: int, left: np.ndarray, right: np.ndarray) -> list[int]:
    """Positions in the window of centre c, without c."""
    return [q for q in range(left[c], right[c]) if q != c]


def joined(input: np.ndarray, words: np.ndarray, is_mean: bool) -> np.ndarray:
    """Mean or sum of the vectors of `words`."""
    return input[words].mean(axis=0) if is_mean else input[words].sum(axis=0)


def skipgram_negative(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, noise: np.ndarray,
    input: np.ndarray, output: np.ndarray, *, pool: int, block: int, negatives: int, rate: float,
) -> Loss:  # fmt: skip
    """Step through blocks of centres; all gradients of a block are computed before its update."""
    loss, num_pairs = 0.0, 0
    for number, first in enumerate(range(0, len(tokens), block)):
        noise_words = noise[number * pool : (number + 1) * pool]
        d_input, d_output = np.zeros_like(input), np.zeros_like(output)
        for c in range(first, min(first + block, len(tokens))):
            for q in window_of(c, left, right):
                hidden, target = input[tokens[q]], output[tokens[c]]
                true, false = target @ hidden, output[noise_words] @ hidden
                weight = negatives / pool
                loss += np.logaddexp(0, -true) + weight * np.logaddexp(0, false).sum()
                num_pairs += 1
                g_true, g_false = 1 - sigmoid(true), -weight * sigmoid(false)
                d_input[tokens[q]] += g_true * target + g_false @ output[noise_words]
                d_output[tokens[c]] += g_true * hidden
                np.add.at(d_output, noise_words, np.outer(g_false, hidden))
        input += rate * d_input
        output += rate * d_output
    return loss, num_pairs


def cbow_negative(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, noise: np.ndarray,
    input: np.ndarray, output: np.ndarray, *,
    pool: int, block: int, negatives: int, rate: float, is_mean: bool,
) -> Loss:  # fmt: skip
    """Step through centres; `block` of them share a pool of noise words."""
    loss, num_pairs = 0.0, 0
    for c in range(len(tokens)):
        context = tokens[window_of(c, left, right)]
        if not len(context):
            continue
        noise_words = noise[c // block * pool : (c // block + 1) * pool]
        hidden, weight = joined(input, context, is_mean), negatives / pool
        true, false = output[tokens[c]] @ hidden, output[noise_words] @ hidden
        loss += np.logaddexp(0, -true) + weight * np.logaddexp(0, false).sum()
        num_pairs += 1
        g_true, g_false = 1 - sigmoid(true), -weight * sigmoid(false)
        change = g_true * output[tokens[c]] + g_false @ output[noise_words]
        output[tokens[c]] += rate * g_true * hidden
        np.add.at(output, noise_words, rate * np.outer(g_false, hidden))
        step_context(input, context, rate * change)
    return loss, num_pairs


def step_context(input: np.ndarray, context: np.ndarray, change: np.ndarray) -> None:
    """Update every context vector by the full gradient of the joined vector.

    For the mean this is the gradient times the number of context words: the released C program does
    so, and common learning rates assume it.
    """
    np.add.at(input, context, np.broadcast_to(change, (len(context), len(change))))


def skipgram_hierarchical(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, tree: HuffmanTree,
    input: np.ndarray, output: np.ndarray, *, rate: float,
) -> Loss:  # fmt: skip
    """For each centre, every word of its window predicts its path; ten of them are one step."""
    loss, num_pairs = 0.0, 0
    for c in range(len(tokens)):
        words = tokens[window_of(c, left, right)]
        nodes, codes = tree.path(int(tokens[c]))
        labels = 1.0 - codes
        for first in range(0, len(words), WORDS_PER_STEP):
            context = words[first : first + WORDS_PER_STEP]
            rows, path = input[context], output[nodes]
            scores = rows @ path.T
            loss += np.logaddexp(0, np.where(labels, -scores, scores)).sum()
            num_pairs += len(context)
            g = rate * (labels - sigmoid(scores))
            output[nodes] += g.T @ rows
            np.add.at(input, context, g @ path)
    return loss, num_pairs


def cbow_hierarchical(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, tree: HuffmanTree,
    input: np.ndarray, output: np.ndarray, *, rate: float, is_mean: bool,
) -> Loss:  # fmt: skip
    """For each centre, its joined window predicts its path."""
    loss, num_pairs = 0.0, 0
    for c in range(len(tokens)):
        context = tokens[window_of(c, left, right)]
        if not len(context):
            continue
        nodes, codes = tree.path(int(tokens[c]))
        hidden, path, labels = joined(input, context, is_mean), output[nodes], 1.0 - codes
        scores = path @ hidden
        loss += np.logaddexp(0, np.where(labels, -scores, scores)).sum()
        num_pairs += 1
        g = rate * (labels - sigmoid(scores))
        output[nodes] += np.outer(g, hidden)
        step_context(input, context, g @ path)
    return loss, num_pairs


def full_softmax(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray,
    input: np.ndarray, output: np.ndarray, *, rate: float, is_skipgram: bool, is_mean: bool,
) -> Loss:  # fmt: skip
    """The definition: p(target | hidden) ∝ exp(output[target] · hidden) over all words."""
    loss, num_pairs = 0.0, 0
    for c in range(len(tokens)):
        context = tokens[window_of(c, left, right)]
        if not len(context):
            continue
        targets = context if is_skipgram else tokens[c : c + 1]
        hidden = input[tokens[c]].copy() if is_skipgram else joined(input, context, is_mean)
        scores = output @ hidden
        log_p = scores - np.logaddexp.reduce(scores)
        loss -= log_p[targets].sum()
        num_pairs += len(targets)
        g = -len(targets) * np.exp(log_p)
        np.add.at(g, targets, 1.0)
        change = rate * (g @ output)
        output += rate * np.outer(g, hidden)
        if is_skipgram:
            input[tokens[c]] += change
        else:
            step_context(input, context, change)
    return loss, num_pairs

"""Examples of static models: context windows, noise words and Huffman codes.

Token ids in, kept words and window bounds out (Mikolov et al. 2013b). Noise words are drawn by
count to a power with Walker's alias method; the Huffman tree is that of hierarchical softmax.
"""

from dataclasses import dataclass

import numpy as np

from sememe.examples.kernels import fill_alias, join_nodes
from sememe.randomness import number


def keep_limits(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Per id, the 32-bit limit under which a random number keeps the word; 0 for the unknown."""
    ratio = threshold * int(counts.sum()) / np.maximum(counts, 1).astype(np.float64)
    chance = np.sqrt(ratio) + ratio if threshold > 0 else np.ones(len(counts))
    return np.append(np.minimum(chance, 1.0) * 2.0**32, 0).astype(np.uint64)


def draw_windows_reference(
    ids: np.ndarray, sentence_ends: np.ndarray, limits: np.ndarray, window: int, key: int
) -> tuple[list[int], list[int], list[int]]:
    """Same result as `draw_windows`, in plain Python."""
    tokens: list[int] = []
    left: list[int] = []
    right: list[int] = []
    start = 0
    for end in sentence_ends:
        first = len(tokens)
        tokens += [
            int(ids[p]) for p in range(start, end) if number(key, p) >> 32 < int(limits[ids[p]])
        ]
        start = int(end)
        for c in range(first, len(tokens)):
            reach = 1 + ((number(key, len(ids) + c) >> 32) * window >> 32)
            left.append(max(first, c - reach))
            right.append(min(len(tokens), c + reach + 1))
    return tokens, left, right


def alias_table(counts: np.ndarray, exponent: float) -> tuple[np.ndarray, np.ndarray]:
    """(limits, alias): column i stays i when a 32-bit number is below limits[i], else alias[i]."""
    weights = np.power(np.maximum(counts, 1).astype(np.float64), exponent)
    limits = np.full(len(counts), 2**32, np.uint64)
    alias = np.empty(len(counts), np.int32)
    fill_alias(weights * (len(weights) / weights.sum()), limits, alias)
    return limits, alias


@dataclass(frozen=True)
class HuffmanTree:
    """Word w has the inner nodes nodes[starts[w]:starts[w+1]] and the branches `codes`."""

    starts: np.ndarray  # int64 (V + 1)
    nodes: np.ndarray  # int32, row of the output matrix
    codes: np.ndarray  # uint8, 0 or 1

    @property
    def max_length(self) -> int:
        """Length of the longest code."""
        return int(np.diff(self.starts).max(initial=0))

    def path(self, word_id: int) -> tuple[np.ndarray, np.ndarray]:
        """(inner nodes from the root down, branches) of one word."""
        span = slice(int(self.starts[word_id]), int(self.starts[word_id + 1]))
        return self.nodes[span], self.codes[span]


def build_tree(counts: np.ndarray) -> HuffmanTree:
    """Build the tree for words in order of falling count."""
    num_words = len(counts)
    parent = np.zeros(2 * num_words - 1, np.int64)
    turn = np.zeros(2 * num_words - 1, np.uint8)
    if num_words > 1:
        join_nodes(np.asarray(counts, np.int64), parent, turn)
    root = 2 * num_words - 2
    levels_nodes, levels_codes, at = [], [], np.arange(num_words)
    is_open = at != root
    while is_open.any():
        levels_nodes.append(np.where(is_open, parent[at] - num_words, -1).astype(np.int32))
        levels_codes.append(np.where(is_open, turn[at], 0).astype(np.uint8))
        at = np.where(is_open, parent[at], at)
        is_open = at != root
    if not levels_nodes:
        return HuffmanTree(np.zeros(num_words + 1, np.int64), np.empty(0, np.int32),
                           np.empty(0, np.uint8))  # fmt: skip
    # Levels run from the leaf up; words want them from the root down.
    nodes_WL = np.stack(levels_nodes[::-1], axis=1)
    codes_WL = np.stack(levels_codes[::-1], axis=1)
    is_used_WL = nodes_WL >= 0
    starts = np.concatenate([[0], np.cumsum(is_used_WL.sum(axis=1))]).astype(np.int64)
    return HuffmanTree(starts, nodes_WL[is_used_WL], codes_WL[is_used_WL])

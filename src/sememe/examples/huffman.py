"""Huffman codes: the binary tree that hierarchical softmax walks (Mikolov et al. 2013b)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sememe.compiled import kernel


@dataclass(frozen=True)
class HuffmanTree:
    """Word w passes the inner nodes nodes[starts[w]:starts[w+1]] and takes the turns `codes`."""

    starts: np.ndarray  # int64 (V + 1)
    nodes: np.ndarray  # int32, row of the output matrix
    codes: np.ndarray  # uint8, 0 or 1

    @property
    def max_length(self) -> int:
        """Length of the longest code."""
        return int(np.diff(self.starts).max(initial=0))

    def path(self, word_id: int) -> tuple[np.ndarray, np.ndarray]:
        """(inner nodes from the root down, turns) of one word."""
        span = slice(int(self.starts[word_id]), int(self.starts[word_id + 1]))
        return self.nodes[span], self.codes[span]


@kernel
def _join(counts, parent, turn):
    """Join the two rarest nodes again and again; `counts` has the words in falling order."""
    num_words = counts.shape[0]
    weight = np.empty(2 * num_words - 1, np.int64)
    weight[:num_words] = counts
    leaf = num_words - 1
    inner = num_words
    for new in range(num_words, 2 * num_words - 1):
        for side in range(2):
            # Inner nodes are made in rising order, so both queues are sorted: no heap is needed.
            if leaf >= 0 and (inner >= new or weight[leaf] < weight[inner]):
                child = leaf
                leaf -= 1
            else:
                child = inner
                inner += 1
            parent[child] = new
            turn[child] = side
            weight[new] = weight[child] if side == 0 else weight[new] + weight[child]


def build_tree(counts: np.ndarray) -> HuffmanTree:
    """Build the tree for words in order of falling count."""
    num_words = len(counts)
    parent = np.zeros(2 * num_words - 1, np.int64)
    turn = np.zeros(2 * num_words - 1, np.uint8)
    if num_words > 1:
        _join(np.asarray(counts, np.int64), parent, turn)
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

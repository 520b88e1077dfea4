"""What knowing only how frequent tokens are would score: the measure of what context adds."""

from __future__ import annotations

from typing import Any

import numpy as np

from sememe.examples.batches import Batch

_BLOCK = 1 << 24


def token_counts(store: Any, vocab_size: int) -> np.ndarray:
    """How often each token occurs in the text, one added to each."""
    counts = np.ones(vocab_size, np.int64)
    for first in range(0, len(store.ids), _BLOCK):
        counts += np.bincount(store.ids[first : first + _BLOCK], minlength=vocab_size)
    return counts


def targets_of(batch: Batch) -> np.ndarray:
    """The tokens that a batch asks for: the hidden ones, or every one after a row's first."""
    if batch.targets_N is not None:
        return batch.targets_N
    is_asked_BT = np.arange(batch.ids_BT.shape[1]) < batch.lengths_B[:, None]
    return batch.ids_BT[:, 1:][is_asked_BT[:, 1:]]


def unigram_figures(counts: np.ndarray, source: Any, num_batches: int) -> dict[str, float]:
    """Loss and accuracy on a source's first batches of always giving tokens by their counts."""
    batches = range(min(num_batches, source.batches_per_epoch))
    targets = np.concatenate([targets_of(source.batch(step)) for step in batches])
    losses = -np.log(counts / counts.sum())
    return {
        "unigram_loss": float(losses[targets].mean()),
        "unigram_accuracy": float((targets == counts.argmax()).mean()),
    }

"""PV-DBOW's update in plain NumPy, simple and slow: what the kernel is tested against."""

import numpy as np

from sememe.models.word2vec.reference import Loss, sigmoid


def learn_documents(
    tokens: np.ndarray, owners: np.ndarray, noise: np.ndarray, documents: np.ndarray,
    output: np.ndarray, *, pool: int, block: int, negatives: int, rate: float, is_frozen: bool,
) -> Loss:  # fmt: skip
    """Step through the words; update `documents` and, unless it is frozen, `output`."""
    loss, weight = 0.0, negatives / pool
    for n, (token, owner) in enumerate(zip(tokens, owners, strict=True)):
        noise_words = noise[n // block * pool : (n // block + 1) * pool]
        hidden = documents[owner].copy()
        true, false = output[token] @ hidden, output[noise_words] @ hidden
        loss += np.logaddexp(0, -true) + weight * np.logaddexp(0, false).sum()
        g_true, g_false = 1 - sigmoid(true), -weight * sigmoid(false)
        documents[owner] += rate * (g_true * output[token] + g_false @ output[noise_words])
        if not is_frozen:
            output[token] += rate * g_true * hidden
            np.add.at(output, noise_words, rate * np.outer(g_false, hidden))
    return loss, len(tokens)

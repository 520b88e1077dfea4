"""Doc2Vec's update in plain NumPy, simple and slow: what the kernel is tested against."""

import numpy as np

from sememe.models.word2vec.reference import Loss, sigmoid


def learn_documents(
    tokens: np.ndarray, windows: np.ndarray, owners: np.ndarray, noise: np.ndarray,
    documents: np.ndarray, input: np.ndarray, output: np.ndarray, *, combine: str, window: int,
    pool: int, negatives: int, rate: float, is_frozen: bool,
) -> Loss:  # fmt: skip
    """Step through the words; update `documents` and, unless they are frozen, words.

    windows: (words, 2), the bounds of the words around each; empty ones are PV-DBOW's.
    """
    loss, weight, dim = 0.0, negatives / pool, documents.shape[1]
    for n, (token, owner) in enumerate(zip(tokens, owners, strict=True)):
        noise_words = noise[n * pool : (n + 1) * pool]
        around = [q for q in range(*windows[n]) if q != n]
        if combine == "concat":
            parts = np.zeros((2 * window + 1, dim))
            parts[0] = documents[owner]
            places = [q - n + window + (q < n) for q in around]
            parts[places] = input[tokens[around]]
            hidden = parts.reshape(-1)
        else:
            hidden = documents[owner] + input[tokens[around]].sum(0)
            hidden = hidden / (len(around) + 1) if combine == "mean" else hidden
        true, false = output[token] @ hidden, output[noise_words] @ hidden
        loss += np.logaddexp(0, -true) + weight * np.logaddexp(0, false).sum()
        g_true, g_false = 1 - sigmoid(true), -weight * sigmoid(false)
        change = rate * (g_true * output[token] + g_false @ output[noise_words])
        documents[owner] += change[:dim]
        if not is_frozen:
            output[token] += rate * g_true * hidden
            np.add.at(output, noise_words, rate * np.outer(g_false, hidden))
            more = change.reshape(-1, dim)[places] if combine == "concat" else change
            np.add.at(input, tokens[around], more)
    return loss, len(tokens)

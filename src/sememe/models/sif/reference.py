"""SIF and uSIF as their papers write them, sentence by sentence: what the model is tested against.

V words, D dimensions, S sentences.
"""

from collections.abc import Sequence

import numpy as np


def sif_weights(counts_V: np.ndarray, a: float) -> np.ndarray:
    """The weight of each word (Arora et al. 2017, algorithm 1)."""
    return a / (a + counts_V / counts_V.sum())


def usif_weights(counts_V: np.ndarray, mean_length: float) -> np.ndarray:
    """The weight of each word (Ethayarajh 2018, algorithm 1)."""
    num_words, chances_V = len(counts_V), counts_V / counts_V.sum()
    threshold = 1 - (1 - 1 / num_words) ** mean_length
    alpha = max(sum(chance > threshold for chance in chances_V), 1) / num_words
    a = (1 - alpha) / (alpha * num_words / 2)
    return a / (a / 2 + chances_V)


def sentence_means(
    sentences: Sequence[Sequence[int]], rows_VD: np.ndarray, weights_V: np.ndarray
) -> np.ndarray:
    """The weighted mean of each sentence, which is a list of word ids, (S, D)."""
    return np.array(
        [np.mean([weights_V[word] * rows_VD[word] for word in own], axis=0) for own in sentences]
    )


def without_common(
    means_SD: np.ndarray, fitted_SD: np.ndarray, num: int, *, is_weighted: bool
) -> np.ndarray:
    """Subtract the projections on the first singular vectors of `fitted_SD`; uSIF weighs them."""
    _, sigma, components = np.linalg.svd(fitted_SD, full_matrices=False)
    shares = sigma[:num] ** 2 / (sigma[:num] ** 2).sum() if is_weighted else np.ones(num)
    result_SD = means_SD.copy()
    for share, component_D in zip(shares, components[:num], strict=True):
        result_SD -= share * np.outer(means_SD @ component_D, component_D)
    return result_SD

"""Clusters of the uses of a word, and the words that are typical of their sentences.

N uses, D dimensions, W words of their sentences, C clusters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sememe.errors import OptionError
from sememe.examples.running_words import places_in
from sememe.explore.uses import Use, settings_for
from sememe.search.topics import stop_words
from sememe.text.characters import is_han

MOST_CLUSTERS = 6
_FEWEST = 8  # different uses
_NUM_NAMES = 3  # words that name a cluster
_SMOOTHING = 0.02  # of a word's share of the sentences


def clustered(
    units_ND: np.ndarray, uses: Sequence[Use], word: str, num: int
) -> tuple[np.ndarray, list[list[str]]]:
    """The cluster of each use, the largest first, and the words typical of their sentences.

    Without a number, the one of the best silhouette is chosen.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score
    from threadpoolctl import threadpool_limits

    num_places = len(np.unique(units_ND.round(5), axis=0))
    if num_places < _FEWEST or num == 1:
        return np.zeros(len(units_ND), np.int64), [[]]
    if num >= num_places:
        raise OptionError(f"{num_places} different uses are too few for {num} clusters.")

    def fit(own: int) -> np.ndarray:
        engine = KMeans(own, random_state=1, n_init=5)
        return np.asarray(engine.fit_predict(units_ND))

    # Sums of several threads would differ in their last digits from run to run.
    with threadpool_limits(1, user_api="openmp"):
        choices = [num] if num else range(2, min(MOST_CLUSTERS, num_places - 1) + 1)
        labels = max(
            map(fit, choices), key=lambda own: silhouette_score(units_ND, own) if not num else 0
        )
    order = np.argsort(-np.bincount(labels), kind="stable")
    numbers = np.argsort(order)[labels]
    return numbers, typical_words(uses, numbers, word)


def typical_words(uses: Sequence[Use], numbers: np.ndarray, word: str) -> list[list[str]]:
    """For each cluster the words that its sentences have more often than the others."""
    settings = settings_for(word)
    skipped = stop_words(settings) | {word.lower()}
    sentences = [own.sentence for own in uses]
    found: dict[str, np.ndarray] = {}
    sizes = np.bincount(numbers)
    for number, sentence, places in zip(
        numbers, sentences, places_in(sentences, settings), strict=True
    ):
        for text in {sentence[start:end].lower() for start, end in places} - skipped:
            if text.isalpha() and len(text) >= (2 if is_han(text[0]) else 3):
                found.setdefault(text, np.zeros(len(sizes)))[number] += 1
    if not found:
        return [[] for _ in sizes]
    words, counts_WC = sorted(found), np.array([found[text] for text in sorted(found)])
    inside_WC = counts_WC / sizes
    outside_WC = (counts_WC.sum(1, keepdims=True) - counts_WC) / np.maximum(1, sizes.sum() - sizes)
    # A word of all sentences tells nothing, nor does a word of a single one.
    scores_WC = inside_WC * np.log((inside_WC + _SMOOTHING) / (outside_WC + _SMOOTHING))
    scores_WC[counts_WC < 2] = -1
    best_CW = np.argsort(-scores_WC, axis=0, kind="stable")[:_NUM_NAMES].T
    return [
        [words[index] for index in best if scores_WC[index, number] > 0]
        for number, best in enumerate(best_CW)
    ]

"""Doc2Vec beside gensim's (dm=0, dbow_words=1): topics of documents that neither has seen."""

from __future__ import annotations

import numpy as np
import pytest

import sememe

gensim = pytest.importorskip("gensim.models.doc2vec")

NUM_TRAIN, NUM_TEST, DIM, EPOCHS = 400, 200, 20, 20


def documents() -> list[list[str]]:
    """Even and odd documents have topics of their own in one word of six."""
    random = np.random.default_rng(0)

    def word(topic: int) -> str:
        if random.random() < 1 / 6:
            return f"topic{topic}-{random.integers(40)}"
        return f"common{random.integers(30)}"

    sizes = [30] * NUM_TRAIN + random.integers(6, 20, NUM_TEST).tolist()
    return [[word(index % 2) for _ in range(size)] for index, size in enumerate(sizes)]


def accuracy(trained_ND: np.ndarray, inferred_ND: np.ndarray) -> float:
    """How many inferred documents are nearer, by cosine, to the mean of their own topic."""
    means = np.stack([trained_ND[first::2].mean(0) for first in (0, 1)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return float(((inferred_ND @ means.T).argmax(1) == np.arange(len(inferred_ND)) % 2).mean())


def test_inferred_vectors_tell_topics_apart_as_well_as_gensims() -> None:
    texts = documents()
    train, test = texts[:NUM_TRAIN], texts[NUM_TRAIN:]
    ours = sememe.Doc2Vec(dim=DIM, epochs=EPOCHS, min_count=1, workers=1).fit(train)
    tagged = [gensim.TaggedDocument(words, [index]) for index, words in enumerate(train)]
    peer = gensim.Doc2Vec(
        tagged, dm=0, dbow_words=1, vector_size=DIM, epochs=EPOCHS, min_count=1, workers=1, seed=1
    )
    own = accuracy(ours.documents, np.stack([ours.infer(words) for words in test]))
    peers = accuracy(
        peer.dv.vectors,
        np.stack([peer.infer_vector(words, epochs=ours.config.infer_epochs) for words in test]),
    )
    print(f"topics right: ours {own:.3f}, gensim's {peers:.3f}")
    assert own >= 0.85 and own >= peers - 0.04

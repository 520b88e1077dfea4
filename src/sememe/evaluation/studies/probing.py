"""What frozen vectors tell of a text: passages with labels in, the score of a linear model out.

The labels come with the text: the column or package a document is of or, where documents are long,
the document that a passage is from. N passages, D numbers of a vector, C classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sememe.evaluation.logistic import fit_logistic, logistic_scores
from sememe.examples.documents import Documents

_SHORTEST = 16  # tokens of a passage
_PASSAGE = 64
_MIN_PER_CLASS = 20
_MAX_PER_CLASS = 200
_MAX_DOCUMENTS = 20
_TEST_SHARE = 0.3


class Passages(NamedTuple):
    """Texts as ids with the numbers of their classes, some of them to test with."""

    ids_N: list[np.ndarray]
    classes_N: np.ndarray
    is_test_N: np.ndarray
    classes: str  # such as 14 packages
    question: str  # what is asked of them, in words

    @property
    def majority(self) -> float:
        """The accuracy of always answering with the most frequent class."""
        most = np.bincount(self.classes_N[~self.is_test_N]).argmax()
        return float((self.classes_N[self.is_test_N] == most).mean())


def find_passages(store: Any, length: int, seed: int) -> Passages | None:
    """Passages of at most `length` tokens with a class each; None where the text offers none."""
    if store.label_ids is not None:
        found = _labelled(store, length, seed)
        if found is not None:
            return found
    return _of_documents(store, min(length, _PASSAGE))


def _labelled(store: Any, length: int, seed: int) -> Passages | None:
    """Held-out documents with their labels, as many of each label at the most."""
    documents = Documents(store, "validation")
    # A label of the built-in corpus is a package and a module; the package is the class.
    is_library = "library" in (store.fingerprint or {})
    names = [label.split()[0] if is_library and label else label for label in store.labels]
    labels = [names[label_id] for label_id in store.label_ids[documents.indices]]
    order = np.random.default_rng(seed).permutation(len(labels))
    members: dict[str, list[int]] = {}
    for place in order.tolist():
        if labels[place] and documents.sizes[place] >= _SHORTEST:
            members.setdefault(labels[place], []).append(place)
    kept = [own[:_MAX_PER_CLASS] for _, own in sorted(members.items())]
    kept = [own for own in kept if len(own) >= _MIN_PER_CLASS]
    if len(kept) < 2:
        return None
    ids, classes, is_test = [], [], []
    for number, own in enumerate(kept):
        num_test = round(_TEST_SHARE * len(own))
        for index, place in enumerate(own):
            first = documents.firsts[place]
            ids.append(documents.ids[first : first + min(length, documents.sizes[place])])
            classes.append(number)
            is_test.append(index < num_test)
    named = f"{len(kept)} {'packages' if is_library else 'labels'}"
    question = f"which of {named} a held-out document is of"
    return Passages(ids, np.array(classes), np.array(is_test), named, question)


def _of_documents(store: Any, length: int) -> Passages | None:
    """Passages of the longest documents; the last ones of each are to test with."""
    # An unlabelled text was trained on, but nobody said which passage is of which document.
    documents = Documents(store, "train")
    longest = np.argsort(-documents.sizes, kind="stable")[:_MAX_DOCUMENTS]
    longest = longest[documents.sizes[longest] >= _MIN_PER_CLASS * length]
    if len(longest) < 2:
        return None
    ids, classes, is_test = [], [], []
    for number, place in enumerate(longest.tolist()):
        num = min(_MAX_PER_CLASS, int(documents.sizes[place]) // length)
        for index in range(num):
            first = documents.firsts[place] + index * length
            ids.append(documents.ids[first : first + length])
            classes.append(number)
            is_test.append(index >= round((1 - _TEST_SHARE) * num))
    named = f"{len(longest)} documents"
    question = f"which of {named} a passage is from"
    return Passages(ids, np.array(classes), np.array(is_test), named, question)


def embed_passages(network: Any, tokenizer: Any, passages: Passages) -> np.ndarray:
    """The mean over the last layer's vectors of each passage, special tokens counted, (N, D)."""
    import torch

    from sememe.networks.framing import device_of, frame, stacked

    vectors_ND = np.empty((len(passages.ids_N), network.config.width), np.float32)
    order = np.argsort([len(ids) for ids in passages.ids_N], kind="stable")
    with torch.no_grad():
        for first in range(0, len(order), 64):
            group = order[first : first + 64]
            rows = [frame(network, tokenizer, passages.ids_N[place]) for place in group]
            batch = stacked(rows, device_of(network))
            hidden_BTD = network(*batch).float()
            places_T = torch.arange(hidden_BTD.shape[1], device=hidden_BTD.device)
            is_own_BT = places_T < batch.lengths_B[:, None]
            sums_BD = (hidden_BTD * is_own_BT[:, :, None]).sum(1)
            vectors_ND[group] = (sums_BD / batch.lengths_B[:, None]).cpu().numpy()
    return vectors_ND


def probe(vectors_ND: np.ndarray, passages: Passages) -> float:
    """The share of the test passages that a logistic regression on the others puts right."""
    is_test_N, classes_N = passages.is_test_N, passages.classes_N
    scaled_ND = _scaled(vectors_ND, ~is_test_N)
    known_N = classes_N[~is_test_N]
    weights_DC = fit_logistic(scaled_ND[~is_test_N], known_N, int(known_N.max()) + 1, num_steps=200)
    scores_NC = logistic_scores(scaled_ND[is_test_N], weights_DC)
    return float((scores_NC.argmax(1) == classes_N[is_test_N]).mean())


def _scaled(vectors_ND: np.ndarray, is_known_N: np.ndarray) -> np.ndarray:
    """The vectors with mean 0 and spread 1 in every dimension over those that are known."""
    known_ND = vectors_ND[is_known_N].astype(np.float64)
    spread_D = known_ND.std(0)
    return (vectors_ND - known_ND.mean(0)) / np.where(spread_D > 0, spread_D, 1.0)

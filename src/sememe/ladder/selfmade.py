"""Labelled rows made from held-out text: does this sentence follow, which document is this from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sememe.examples.labelled import TextRow
from sememe.ladder.sentences import sentences_of
from sememe.ladder.text import LadderText

FOLLOWS, OTHER = "follows", "other"
_FEWEST_CHARACTERS = {"chinese": 8, "unicode": 25, "whitespace": 25}
_MOST_CHARACTERS = 300
_SENTENCES = 2  # of a passage
_MOST_DOCUMENTS = 20
_FEWEST_PASSAGES = 12
_TEST_SHARE = 0.3


def _documents(text: LadderText, most_characters: int = 20_000_000) -> Iterator[list[str]]:
    """The sentences of held-out documents that are long enough to tell something."""
    fewest, num = _FEWEST_CHARACTERS[text.settings.mode], 0
    for document in text.heldout_documents():
        num += len(document)
        sentences = (one.strip() for one in sentences_of(document[:100_000], text.settings))
        yield [one[:_MOST_CHARACTERS] for one in sentences if len(one) >= fewest]
        if num > most_characters:
            return


def next_sentence_rows(
    text: LadderText, num_train: int, num_test: int
) -> tuple[list[TextRow], list[TextRow]]:
    """Pairs of sentences, half of which follow each other; rows of a document stay together."""
    rng = np.random.default_rng(text.settings.lowercase + 1)
    documents = [own for own in _documents(text, 4_000_000) if len(own) > 1]
    if len(documents) < 4:
        return [], []
    share = min(0.5, num_test / (num_train + num_test))
    num_held = max(2, round(share * len(documents)))
    parts = documents[num_held:], documents[:num_held]
    made = [_pairs(own, num, rng) for own, num in zip(parts, (num_train, num_test), strict=True)]
    return made[0], made[1]


def _pairs(documents: list[list[str]], num: int, rng: np.random.Generator) -> list[TextRow]:
    if len(documents) < 2:
        return []
    places = [(d, s) for d, own in enumerate(documents) for s in range(0, len(own) - 1, 2)]
    rows = []
    for index, place in enumerate(rng.permutation(len(places))[:num].tolist()):
        document, sentence = places[place]
        own = documents[document]
        if index % 2:
            second, label = own[sentence + 1], FOLLOWS
        else:
            other = int(rng.integers(len(documents) - 1))
            chosen = documents[other + (other >= document)]
            second, label = chosen[int(rng.integers(len(chosen)))], OTHER
        rows.append(TextRow(text=own[sentence], second=second, label=label))
    return rows


def origin_rows(
    text: LadderText, num_train: int, num_test: int
) -> tuple[list[TextRow], list[TextRow]]:
    """Passages of the longest held-out documents; the last ones of each are asked."""
    documents = sorted(_documents(text), key=len, reverse=True)[:_MOST_DOCUMENTS]
    kept = [own for own in documents if len(own) >= _SENTENCES * _FEWEST_PASSAGES]
    if len(kept) < 2:
        return [], []
    train, test = [], []
    for number, sentences in enumerate(kept):
        passages = [
            " ".join(sentences[first : first + _SENTENCES])
            for first in range(0, len(sentences) - _SENTENCES + 1, _SENTENCES)
        ]
        num_asked = round(_TEST_SHARE * len(passages))
        rows = [TextRow(text=one, label=f"document {number + 1}") for one in passages]
        train += rows[: -num_asked or None]
        test += rows[len(rows) - num_asked :]
    rng = np.random.default_rng(1)
    train = [train[index] for index in rng.permutation(len(train))[:num_train]]
    test = [test[index] for index in rng.permutation(len(test))[:num_test]]
    return train, test

"""Baselines: the most frequent label, tag or answer.

Training rows and test rows in, predictions out.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from sememe.examples.labelled.rows import AnswerRow, TagRow, TextRow


def majority_labels(train: Sequence[TextRow], rows: Sequence[TextRow]) -> list[str]:
    """The most frequent label of the training rows, for every row."""
    return [_most_frequent(Counter(str(row.label) for row in train))] * len(rows)


def majority_tags(train: Sequence[TagRow], rows: Sequence[TagRow]) -> list[list[str]]:
    """The most frequent tag of each word; for an unseen word that of all words."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in train:
        for word, tag in zip(row.words, row.tags or (), strict=True):
            counts[word][tag] += 1
            counts[""][tag] += 1
    best = {word: _most_frequent(own) for word, own in counts.items()}
    return [[best.get(word, best[""]) for word in row.words] for row in rows]


def majority_answers(train: Sequence[AnswerRow], rows: Sequence[AnswerRow]) -> list[str]:
    """The most frequent answer of the training rows that occurs in the context."""
    counts = Counter(answer.text for row in train for answer in row.answers)
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    return [
        next((text for text in ranked if f" {text} " in f" {row.context} "), "") for row in rows
    ]


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda value: (-counts[value], value))

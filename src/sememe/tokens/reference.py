"""Counting, encoding and phrases in plain Python: what the kernels must agree with."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from sememe.text.words import Records


class ReferenceStore(NamedTuple):
    """What a token store holds, as lists; `words` by falling count, ties by bytes."""

    words: list[bytes]
    counts: list[int]
    ids: list[int]
    sentence_ends: list[int]
    document_ends: list[int]


def split(records: Iterable[Records]) -> list[list[list[bytes]]]:
    """Documents of sentences of words; empty sentences are omitted, empty documents stay."""
    documents = []
    for record in records:
        for document in record.data.split(b"\x1d")[:-1]:
            sentences = [
                [word for word in sentence.split(b"\x1f") if word]
                for sentence in document.split(b"\x1e")
            ]
            documents.append([sentence for sentence in sentences if sentence])
    return documents


def encode(records: Iterable[Records], min_count: int) -> ReferenceStore:
    """Count words, number those with `min_count` occurrences, and write the text in numbers."""
    documents = split(records)
    counts = Counter(word for document in documents for sentence in document for word in sentence)
    kept = sorted(
        (word for word, count in counts.items() if count >= min_count),
        key=lambda word: (-counts[word], word),
    )
    word_ids = {word: word_id for word_id, word in enumerate(kept)}
    result = ReferenceStore(kept, [counts[word] for word in kept], [], [], [])
    for document in documents:
        for sentence in document:
            result.ids.extend(word_ids.get(word, len(kept)) for word in sentence)
            result.sentence_ends.append(len(result.ids))
        result.document_ends.append(len(result.sentence_ends))
    return result


def score_pairs(
    sentences: Iterable[list[str | None]], *, min_count: int, threshold: float
) -> dict[tuple[str, str], float]:
    """Scores of the pairs above `threshold`; None is a word too rare to have an id."""
    words: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    num_tokens = 0
    for sentence in sentences:
        num_tokens += len(sentence)
        words.update(word for word in sentence if word is not None)
        for first, second in pairwise(sentence):
            if first is not None and second is not None:
                pairs[first, second] += 1
    scores = {
        (first, second): (count - min_count) / words[first] / words[second] * num_tokens
        for (first, second), count in pairs.items()
        if count > min_count
    }
    return {pair: score for pair, score in scores.items() if score > threshold}


def join_pairs(
    sentence: list[str | None], pairs: Mapping[tuple[str, str], float]
) -> list[str | None]:
    """Join the pairs of one sentence from left to right."""
    joined: list[str | None] = []
    index = 0
    while index < len(sentence):
        pair = tuple(sentence[index : index + 2])
        if pair in pairs:
            joined.append("_".join(map(str, pair)))
            index += 2
        else:
            joined.append(sentence[index])
            index += 1
    return joined

"""How documents become examples, without haste: what the kernels of packing and pairs must equal.

A text is a list of documents, a document a list of sentences, a sentence its (start, end) in ids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sememe.examples.permutation import permute_plainly
from sememe.examples.randomness import number
from sememe.examples.sentence_pairs_kernels import (
    DOCUMENT,
    NEXT,
    PIECE,
    SENTENCE,
    SHORT,
    SPLIT,
    TARGET,
    TRIM,
)

Piece = tuple[int, int]
Document = list[Piece]


class PairPlan(NamedTuple):
    """What `plan_pairs` gives."""

    spans: list[list[int]]
    is_next: list[int]
    num_trimmed: int


def read_documents(sentence_ends: np.ndarray, document_ends: np.ndarray) -> list[Document]:
    """The text of a store as lists."""
    starts = [0, *sentence_ends.tolist()]
    sentences = list(zip(starts, sentence_ends.tolist(), strict=False))
    bounds = [0, *document_ends.tolist()]
    return [sentences[bounds[d] : bounds[d + 1]] for d in range(len(document_ends))]


def cut_sentence(sentence: Piece, max_piece: int) -> list[Piece]:
    """Pieces of a sentence that are no longer than `max_piece`, and of equal size."""
    start, size = sentence[0], sentence[1] - sentence[0]
    num = -(-size // max_piece)
    cuts = [start + index * size // num for index in range(num)] + [sentence[1]]
    return [(cuts[index], cuts[index + 1]) for index in range(num)]


def below(key: int, index: int, size: int) -> int:
    """A draw as a whole number below `size`."""
    return (number(key, index) >> 32) * size >> 32


def plan_pairs_plainly(
    documents: list[Document], order_key: int, plan_key: int, room: int, short_limit: int
) -> PairPlan:
    """Cut all documents into pairs, in their random order; none of them may be empty."""
    plan = PairPlan([], [], 0)
    for place in range(len(documents)):
        slot = permute_plainly(place, len(documents), order_key)
        pieces = [p for sentence in documents[slot] for p in cut_sentence(sentence, room // 2)]
        index = 0
        while pieces:
            key = number(number(plan_key, slot), index)
            is_short = number(key, SHORT) >> 32 < short_limit
            target = 2 + below(key, TARGET, room - 1) if is_short else room
            gathered = _gather(pieces, target)
            num_own = 1 + below(key, SPLIT, len(gathered) - 1) if len(gathered) > 1 else 1
            own = gathered[:num_own]
            follows = len(gathered) > 1 and number(key, NEXT) >> 63 == 0
            if follows:
                used, other = gathered, gathered[num_own:]
            else:
                used = own
                other = _other_text(documents, slot, key, target - (own[-1][1] - own[0][0]), room)
            span = _trimmed([own[0][0], own[-1][1], other[0][0], other[-1][1]], room, key)
            plan.spans.append(span)
            plan.is_next.append(int(follows))
            num_seen = span[1] - span[0] + (span[3] - span[2] if follows else 0)
            plan = plan._replace(num_trimmed=plan.num_trimmed + used[-1][1] - used[0][0] - num_seen)
            pieces = pieces[len(used) :]
            index += 1
    return plan


def _gather(pieces: list[Piece], target: int) -> list[Piece]:
    num = 1
    while num < len(pieces) and pieces[num - 1][1] - pieces[0][0] < target:
        num += 1
    return pieces[:num]


def _other_text(
    documents: list[Document], slot: int, key: int, target: int, room: int
) -> list[Piece]:
    others = documents[:slot] + documents[slot + 1 :]
    document = others[below(key, DOCUMENT, len(others))]
    sentence = below(key, SENTENCE, len(document))
    while document[sentence][0] == document[sentence][1]:
        sentence = (sentence + 1) % len(document)
    pieces = cut_sentence(document[sentence], room // 2)
    pieces = pieces[below(key, PIECE, len(pieces)) :]
    for later in document[sentence + 1 :]:
        pieces += cut_sentence(later, room // 2)
    return _gather(pieces, target)


def _trimmed(span: list[int], room: int, key: int) -> list[int]:
    draw = TRIM
    while (size_a := span[1] - span[0]) + (size_b := span[3] - span[2]) > room:
        longer = 0 if size_a > size_b else 2
        if number(key, draw) >> 63:
            span[longer] += 1
        else:
            span[longer + 1] -= 1
        draw += 1
    return span


def plan_full_sentences_plainly(
    documents: list[Document], order_key: int, room: int
) -> list[Piece]:
    """Cut all documents into runs of whole sentences, in their random order."""
    runs: list[Piece] = []
    for place in range(len(documents)):
        document = documents[permute_plainly(place, len(documents), order_key)]
        run: list[Piece] = []
        for piece in (p for sentence in document for p in cut_sentence(sentence, room)):
            if run and piece[1] - run[0][0] > room:
                runs.append((run[0][0], run[-1][1]))
                run = []
            run.append(piece)
        runs.append((run[0][0], run[-1][1]))
    return runs

"""How examples are made, without haste: what the kernels of examples must equal.

A text is a list of documents, a document a list of sentences, a sentence its (start, end) in ids.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sememe.examples.cooccurrence.config import PairSettings
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.packing.kernels import (
    DOCUMENT,
    NEXT,
    PIECE,
    SENTENCE,
    SHORT,
    SPLIT,
    TARGET,
    TRIM,
)
from sememe.randomness import number, permute_reference


def keep_probability(count: int, total: int, threshold: float) -> float:
    """Chance that one occurrence of a word survives sub-sampling (Mikolov et al. 2013b, 2.3)."""
    if threshold <= 0 or count <= 0:
        return 1.0
    ratio = threshold * total / count
    # The paper stops at the square root; the released C program adds `ratio`.
    # We follow the program, so that our vectors can be compared with its own.
    return min(1.0, math.sqrt(ratio) + ratio)


def count_pairs_plainly(
    sentences: Iterable[Sequence[int]], num_words: int, settings: PairSettings
) -> dict[tuple[int, int], float]:
    """Count the pairs of every sentence: {(row, column): value}, exact until the last step."""
    cells: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        words = [word for word in sentence if word < num_words]
        for place, word in enumerate(words):
            for before in range(max(0, place - settings.window), place):
                distance = place - before
                weight = Fraction(1, distance if settings.weighting == "harmonic" else 1)
                if settings.direction != "right":
                    cells[word, words[before]] += weight  # type: ignore[assignment]
                if settings.direction != "left":
                    cells[words[before], word] += weight  # type: ignore[assignment]
    return {cell: float(value) for cell, value in sorted(cells.items())}


_PLACES = 1 << 32


def find_spans(
    ids: list[int], phrases: set[tuple[int, ...]], is_continuation: np.ndarray
) -> list[tuple[int, int]]:
    """The phrases in a text: the first one from the left, the longest there, none inside a word."""
    longest, spans, start = max(map(len, phrases), default=0), [], 0
    while start < len(ids):
        for end in range(min(start + longest, len(ids)), start + 1, -1):
            is_whole = end == len(ids) or not is_continuation[ids[end]]
            if is_whole and tuple(ids[start:end]) in phrases:
                spans.append((start, end))
                start = end
                break
        else:
            start += 1
    return spans


def find_units(
    ids: list[int],
    is_word_start: list[bool],
    special_ids: frozenset[int],
    phrases: set[tuple[int, ...]],
    is_continuation: np.ndarray,
    unit: str,
) -> list[list[int]]:
    """The places of each unit of one segment, in its order; special tokens belong to none."""
    starts = [unit == "token" or is_start for is_start in is_word_start]
    for start, end in find_spans(ids, phrases, is_continuation) if unit == "phrase" else []:
        starts[start:end] = [True] + [False] * (end - start - 1)
        if end < len(ids):
            starts[end] = True
    units: list[list[int]] = []
    is_open = False
    for place, token_id in enumerate(ids):
        if token_id in special_ids:
            is_open = False
        elif starts[place] or not is_open:
            units.append([place])
            is_open = True
        else:
            units[-1].append(place)
    return units


def choose_units(units: list[list[int]], target: int, key: int) -> list[int]:
    """The places to hide: units in a random order, as long as they do not pass `target`."""
    units = list(units)
    hidden: list[int] = []
    for index in range(len(units)):
        if len(hidden) >= target:
            break
        other = index + ((number(key, index) >> 32) * (len(units) - index) >> 32)
        units[index], units[other] = units[other], units[index]
        if len(hidden) + len(units[index]) <= target:
            hidden += units[index]
    return sorted(hidden or (units[0] if units else []))


def replace_tokens(
    row: list[int],
    hidden: list[int],
    config: MaskingConfig,
    key: int,
    mask_id: int,
    replacements: list[int],
) -> list[int]:
    """The row as the network sees it."""
    row = list(row)
    for place in hidden:
        draw = number(key, _PLACES + place)
        share = (draw >> 32) / 2**32
        if share < config.mask_share:
            row[place] = mask_id
        elif share < config.mask_share + config.random_share:
            row[place] = replacements[(draw & 0xFFFFFFFF) * len(replacements) >> 32]
    return row


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
    documents: list[Document],
    order_key: int,
    plan_key: int,
    label_key: int,
    room: int,
    short_limit: int,
) -> PairPlan:
    """Cut all documents into pairs, in their random order; none of them may be empty."""
    plan = PairPlan([], [], 0)
    for place in range(len(documents)):
        slot = permute_reference(place, len(documents), order_key)
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
            plan.is_next.append(int(follows) if len(gathered) > 1 else -1)
            num_seen = span[1] - span[0] + (span[3] - span[2] if follows else 0)
            plan = plan._replace(num_trimmed=plan.num_trimmed + used[-1][1] - used[0][0] - num_seen)
            pieces = pieces[len(used) :]
            index += 1
    num_true, num_false = plan.is_next.count(1), plan.is_next.count(0)
    order = [permute_reference(i, len(plan.is_next), label_key) for i in range(len(plan.is_next))]
    same = [pair for pair in order if plan.is_next[pair] == int(num_true > num_false)]
    for pair in same[: abs(num_true - num_false)]:
        plan.is_next[pair] = -1
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
        document = documents[permute_reference(place, len(documents), order_key)]
        run: list[Piece] = []
        for piece in (p for sentence in document for p in cut_sentence(sentence, room)):
            if run and piece[1] - run[0][0] > room:
                runs.append((run[0][0], run[-1][1]))
                run = []
            run.append(piece)
        runs.append((run[0][0], run[-1][1]))
    return runs

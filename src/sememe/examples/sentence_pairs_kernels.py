"""The kernel that pairs sentences: A and what follows it, or A and text from another document."""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.examples.packing_kernels import first_sentence, first_token, num_pieces, piece_end
from sememe.examples.permutation import permute
from sememe.examples.randomness import fast_number

_HALF = np.uint64(32)
# The draws of one example, by their place in its stream.
SHORT, TARGET, SPLIT, NEXT, DOCUMENT, SENTENCE, PIECE, TRIM = range(8)


@kernel
def below(key, index, size):
    """The `index`-th draw of the stream `key` as a whole number below `size`."""
    return np.int64(((fast_number(key, index) >> _HALF) * np.uint64(size)) >> _HALF)


@kernel
def _gather(sentence_ends, sentence, last_sentence, start, target, max_piece, ends, sentences):
    """Fill `ends` with the ends of pieces from `start` on until `target` tokens are reached.

    sentences: the sentence that each piece belongs to. Returns the number of pieces.
    """
    num, end = 0, start
    while sentence < last_sentence and (num == 0 or end - start < target):
        if end == sentence_ends[sentence]:
            sentence += 1
            continue
        end = piece_end(sentence_ends, sentence, end, max_piece)
        ends[num], sentences[num] = end, sentence
        num += 1
    return num


@kernel
def _other_text(sentence_ends, document_ends, document, target, max_piece, key, ends, sentences):
    """Start and end of about `target` tokens of `document`, from a random sentence of it on."""
    first = first_sentence(document_ends, document)
    last = document_ends[document]
    sentence = first + below(key, SENTENCE, last - first)
    while first_token(sentence_ends, sentence) == sentence_ends[sentence]:  # empty
        sentence = sentence + 1 if sentence + 1 < last else first
    start = first_token(sentence_ends, sentence)
    size = sentence_ends[sentence] - start
    pieces = num_pieces(size, max_piece)
    start += below(key, PIECE, pieces) * size // pieces
    num = _gather(sentence_ends, sentence, last, start, target, max_piece, ends, sentences)
    return start, ends[num - 1]


@kernel
def _trim(span, room, key):
    """Take single tokens off the front or the back of the longer of A and B until both fit."""
    draw = TRIM
    while span[1] - span[0] + span[3] - span[2] > room:
        longer = 0 if span[1] - span[0] > span[3] - span[2] else 2
        if fast_number(key, draw) >> np.uint64(63):
            span[longer] += 1
        else:
            span[longer + 1] -= 1
        draw += 1


@kernel
def _pair(
    sentence_ends, document_ends, documents, slot, start, ends, num_gathered, target, max_piece,
    key, span, space,
):  # fmt: skip
    """Fill `span` with A, some of the gathered pieces, and B; returns (pieces used, B follows)."""
    num_own = 1 + below(key, SPLIT, num_gathered - 1) if num_gathered > 1 else np.int64(1)
    span[0], span[1] = start, ends[num_own - 1]
    if num_gathered > 1 and fast_number(key, NEXT) >> np.uint64(63) == 0:
        span[2], span[3] = span[1], ends[num_gathered - 1]
        return num_gathered, True
    other = below(key, DOCUMENT, len(documents) - 1)
    other = documents[other + 1 if other >= slot else other]
    span[2], span[3] = _other_text(
        sentence_ends, document_ends, other, target - (span[1] - span[0]), max_piece, key,
        space[0], space[1],
    )  # fmt: skip
    return num_own, False


@kernel
def plan_pairs(
    sentence_ends, document_ends, documents, first, last, order_key, plan_key, room, max_piece,
    short_limit, spans, is_next,
):  # fmt: skip
    """Cut documents into pairs (spans, is_next); returns (number of them, tokens trimmed off).

    The documents are those at the places first … last of their random order; each has a stream of
    its own, so a part of the plan does not depend on the others. What passes the rows of `spans`
    is only counted. short_limit: the 32-bit limit under which a draw makes a short example.
    """
    ends, sentences = np.empty(room + 1, np.int64), np.empty(room + 1, np.int64)
    span, space = np.empty(4, np.int64), np.empty((2, room + 1), np.int64)
    num, num_trimmed = 0, 0
    for place in range(first, last):
        slot = permute(place, len(documents), order_key)
        document = documents[slot]
        document_key = fast_number(plan_key, document)
        sentence, last_sentence = first_sentence(document_ends, document), document_ends[document]
        start, index = first_token(sentence_ends, sentence), 0
        while True:
            key = fast_number(document_key, index)
            target = np.int64(room)
            if fast_number(key, SHORT) >> _HALF < short_limit:
                target = 2 + below(key, TARGET, room - 1)
            num_gathered = _gather(
                sentence_ends, sentence, last_sentence, start, target, max_piece, ends, sentences
            )
            if num_gathered == 0:
                break
            num_used, follows = _pair(
                sentence_ends, document_ends, documents, slot, start, ends, num_gathered, target,
                max_piece, key, span, space,
            )  # fmt: skip
            _trim(span, room, key)
            num_seen = span[1] - span[0] + (span[3] - span[2] if follows else 0)
            num_trimmed += ends[num_used - 1] - start - num_seen
            if num < len(spans):
                spans[num, :] = span
                is_next[num] = follows
            num, index = num + 1, index + 1
            start, sentence = ends[num_used - 1], sentences[num_used - 1]
    return num, num_trimmed

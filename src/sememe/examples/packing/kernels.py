"""Kernels that split documents into examples, order those, pair sentences, and copy running text.

sentence_ends are int64 offsets into the ids, document_ends int64 offsets into sentence_ends. A
sentence longer than `max_piece` tokens is cut into parts of equal size.
"""

import numpy as np

from sememe.machine import kernel
from sememe.randomness import fast_number, permute


@kernel
def start_of(ends, index):
    """Where the sentence or document `index` starts, given where each of them ends."""
    return ends[index - 1] if index else np.int64(0)


@kernel
def piece_end(sentence_ends, sentence, start, max_piece):
    """The end of the part of `sentence` that starts at the token `start`."""
    first = start_of(sentence_ends, sentence)
    size = sentence_ends[sentence] - first
    pieces = -(-size // max_piece)
    index = ((start - first) * pieces + size - 1) // size
    return first + (index + 1) * size // pieces


@kernel
def plan_full_sentences(
    sentence_ends, document_ends, documents, first, last, order_key, room, spans
):
    """Split documents into runs of complete sentences that fill `room`; return their number.

    The documents are those at the positions first … last of their random order. The runs go to the
    int64 array `spans` (n, 4), if it has rows for them; B is empty.
    """
    num = 0
    for place in range(first, last):
        document = documents[permute(place, len(documents), order_key)]
        sentence = start_of(document_ends, document)
        start = start_of(sentence_ends, sentence)
        end = start
        while sentence < document_ends[document]:
            if end == sentence_ends[sentence]:  # used up, or empty
                sentence += 1
                continue
            next_end = piece_end(sentence_ends, sentence, end, room)
            if next_end - start > room:
                num = _add_run(spans, num, start, end)
                start = end
            end = next_end
        num = _add_run(spans, num, start, end)
    return num


@kernel
def _add_run(spans, num, start, end):
    if num < len(spans):
        spans[num, 0], spans[num, 1], spans[num, 2], spans[num, 3] = start, end, end, end
    return num + 1


@kernel
def copy_stream(ids, firsts, stream_ends, start, end_id, row, num):
    """Fill row[:num] with the running text from `start` on, an end of text after each document.

    The stream is a ring: after its last document comes its first. firsts: the first token of each
    document; stream_ends: where it ends in the stream, its end of text included.
    """
    start %= stream_ends[-1]
    place = np.searchsorted(stream_ends, start, "right")
    done = 0
    while done < num:
        begun = start_of(stream_ends, place)
        size = stream_ends[place] - begun - 1
        for index in range(start - begun, size):
            if done == num:
                return
            row[done] = ids[firsts[place] + index]
            done += 1
        if done < num:
            row[done] = end_id
            done += 1
        place = place + 1 if place + 1 < len(stream_ends) else 0
        start = start_of(stream_ends, place)


@kernel
def fill_stream_rows(ids, firsts, stream_ends, place, keys, end_id, pad_id, ids_BT, lengths_B):
    """Fill rows with the running text at the positions from `place` on of the epoch's order.

    keys: two uint64, of the order and of the offset at which the first row starts; none: rows in
    their natural order.
    """
    length, size = ids_BT.shape[1], stream_ends[-1]
    num_rows = (size + length - 1) // length
    offset = np.int64(0)
    if len(keys):
        offset = np.int64(fast_number(keys[1], 0) >> np.uint64(1)) % size
    for index in range(len(ids_BT)):
        row = place + index
        if len(keys):
            row = permute(row, num_rows, keys[0])
        num = min(length, size - row * length)
        copy_stream(ids, firsts, stream_ends, offset + row * length, end_id, ids_BT[index], num)
        ids_BT[index, num:] = pad_id
        lengths_B[index] = num


_HALF = np.uint64(32)
# The draws of one example, by their place in its stream.
SHORT, TARGET, SPLIT, NEXT, DOCUMENT, SENTENCE, PIECE, TRIM = range(8)


@kernel
def below(key, index, size):
    """The `index`-th draw of the stream `key` as a whole number below `size`."""
    return np.int64(((fast_number(key, index) >> _HALF) * np.uint64(size)) >> _HALF)


@kernel
def _gather(sentence_ends, sentence, last_sentence, start, target, max_piece, ends, sentences):
    """Fill `ends` with the ends of parts from `start` on until `target` tokens are reached.

    sentences: the sentence of each part. Returns the number of parts.
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
    first = start_of(document_ends, document)
    last = document_ends[document]
    sentence = first + below(key, SENTENCE, last - first)
    while start_of(sentence_ends, sentence) == sentence_ends[sentence]:  # empty
        sentence = sentence + 1 if sentence + 1 < last else first
    start = start_of(sentence_ends, sentence)
    size = sentence_ends[sentence] - start
    pieces = -(-size // max_piece)
    start += below(key, PIECE, pieces) * size // pieces
    num = _gather(sentence_ends, sentence, last, start, target, max_piece, ends, sentences)
    return start, ends[num - 1]


@kernel
def _trim(span, room, key):
    """Drop single tokens from either end of the longer of A and B until both fit."""
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
    """Fill `span` with A, some of the gathered parts, and B; returns (parts used, B follows)."""
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


# A part that nothing follows could only get a false B, which would tell a network the answer: such
# a row has no label, and only its masked tokens are learned.
TRUE, FALSE, UNLABELLED = np.int8(1), np.int8(0), np.int8(-1)


@kernel
def plan_pairs(
    sentence_ends, document_ends, documents, first, last, order_key, plan_key, room, max_piece,
    short_limit, spans, is_next,
):  # fmt: skip
    """Split documents into pairs (spans, is_next); returns how many, tokens trimmed off, labels.

    The documents are those at the places first … last of their random order; each has a stream of
    its own, so a part of the plan does not depend on the others. What passes the rows of `spans`
    is only counted. short_limit: the 32-bit limit under which a draw makes a short example. The
    last two of the result are the numbers of true and of false pairs.
    """
    ends, sentences = np.empty(room + 1, np.int64), np.empty(room + 1, np.int64)
    span, space = np.empty(4, np.int64), np.empty((2, room + 1), np.int64)
    num, num_trimmed, num_true, num_false = 0, 0, 0, 0
    for place in range(first, last):
        slot = permute(place, len(documents), order_key)
        document = documents[slot]
        document_key = fast_number(plan_key, document)
        sentence, last_sentence = start_of(document_ends, document), document_ends[document]
        start, index = start_of(sentence_ends, sentence), 0
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
                is_next[num] = follows if num_gathered > 1 else UNLABELLED
            num_true += follows
            num_false += num_gathered > 1 and not follows
            num, index = num + 1, index + 1
            start, sentence = ends[num_used - 1], sentences[num_used - 1]
    return num, num_trimmed, num_true, num_false


@kernel
def balance_labels(is_next, key):
    """Take the label of random pairs with the more frequent answer, until both are as frequent."""
    surplus = (is_next == TRUE).sum() - (is_next == FALSE).sum()
    answer = TRUE if surplus > 0 else FALSE
    place, surplus = 0, abs(surplus)
    while surplus:
        pair = permute(place, len(is_next), key)
        if is_next[pair] == answer:
            is_next[pair] = UNLABELLED
            surplus -= 1
        place += 1


@kernel
def shuffle_examples(spans, is_next, first, order_key, mask_key, out_spans, out_is_next, out_keys):
    """Fill the outputs with the examples from place `first` of the random order on."""
    for index in range(len(out_spans)):
        example = permute(first + index, len(spans), order_key)
        out_spans[index, :] = spans[example]
        out_is_next[index] = is_next[example]
        out_keys[index] = fast_number(mask_key, example)


@kernel
def count_draws(key, first, last, limits, counts):
    """Add to `counts` how often each source is drawn for the rows `first` … `last`."""
    for row in range(first, last):
        draw = fast_number(key, row) >> _HALF
        source = 0
        while draw >= limits[source]:
            source += 1
        counts[source] += 1

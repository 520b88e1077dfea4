"""Kernels that cut documents into examples and copy running text.

sentence_ends are int64 offsets into the ids, document_ends int64 offsets into sentence_ends. A
sentence longer than `max_piece` tokens is cut into pieces of equal size, so that none is too long.
An example is a row of four offsets into the ids: where A starts and ends, where B starts and ends.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel
from sememe.examples.permutation import permute
from sememe.examples.randomness import fast_number


@kernel
def first_sentence(document_ends, document):
    """The first sentence of a document."""
    return document_ends[document - 1] if document else np.int64(0)


@kernel
def first_token(sentence_ends, sentence):
    """The first token of a sentence."""
    return sentence_ends[sentence - 1] if sentence else np.int64(0)


@kernel
def num_pieces(size, max_piece):
    """The number of pieces that a sentence of `size` tokens is cut into."""
    return (size + max_piece - 1) // max_piece


@kernel
def piece_end(sentence_ends, sentence, start, max_piece):
    """The end of the piece of `sentence` that starts at the token `start`."""
    first = first_token(sentence_ends, sentence)
    size = sentence_ends[sentence] - first
    pieces = num_pieces(size, max_piece)
    index = ((start - first) * pieces + size - 1) // size
    return first + (index + 1) * size // pieces


@kernel
def plan_full_sentences(
    sentence_ends, document_ends, documents, first, last, order_key, room, spans
):
    """Cut documents into runs of whole sentences that fill `room`; returns their number.

    The documents are those at the places first … last of their random order. The runs go to the
    int64 array `spans` (n, 4), where it has rows for them; B is empty.
    """
    num = 0
    for place in range(first, last):
        document = documents[permute(place, len(documents), order_key)]
        sentence = first_sentence(document_ends, document)
        start = first_token(sentence_ends, sentence)
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
def measure_documents(sentence_ends, document_ends, sizes):
    """Fill the int64 array `sizes` with the tokens of every document."""
    start = np.int64(0)
    for document in range(len(document_ends)):
        end = first_token(sentence_ends, document_ends[document])
        sizes[document] = end - start
        start = end


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
        begun = stream_ends[place - 1] if place else np.int64(0)
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
        start = stream_ends[place - 1] if place else np.int64(0)


@kernel
def fill_stream_rows(ids, firsts, stream_ends, place, keys, end_id, pad_id, ids_BT, lengths_B):
    """Fill rows with the running text at the places from `place` on of the epoch's order of rows.

    keys: two uint64, of the order and of the offset at which the first row starts; none: rows as
    they come.
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

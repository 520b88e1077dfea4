# ruff: noqa: SIM109 (plain comparisons compile to plain machine code)
"""Chunks over UTF-8 bytes, without the GIL: the rules of chunks.py, fast.

Documents and the ends of their sentences in, record bytes out; `out` must hold 3 × the text, 2 ×
the ends of sentences and documents and 16 bytes.
"""

import numpy as np

from sememe.machine import kernel
from sememe.text.kernels import SENTENCE_END, WORD_END, close, close_document, decode

CONTINUES = 0x1C  # is in front of a chunk inside a word
# What a character is to GPT-2's pattern, as far as it must be known; the last four are ASCII.
OTHER, BLANK, UNSURE, HAN, HAN_MARK = 0, 1, 2, 3, 4
LETTER, DIGIT, MARK, APOSTROPHE = 5, 6, 7, 8


@kernel
def is_han(code_point):
    """Whether BERT splits this character off, whatever is beside it; and a letter for GPT.

    The ends of the ranges are those of Unicode 3.1: later characters are letters to some versions
    of the tokenizers library only, and take the slow way through it.
    """
    if code_point < 0x3400:
        return False
    if code_point <= 0x4DB5 or (code_point >= 0x4E00 and code_point <= 0x9FA5):
        return True
    return code_point >= 0x20000 and code_point <= 0x2A6D6


@kernel
def is_punctuation(byte):
    """Whether an ASCII byte is neither letter, digit, blank nor control."""
    if byte < 33 or byte > 126:
        return False
    is_letter = (byte >= 65 and byte <= 90) or (byte >= 97 and byte <= 122)
    return not (is_letter or (byte >= 48 and byte <= 57))


@kernel
def wordpiece_chunks(text, ends, cuts, words, has_words, splits_han, out, is_kept):
    """Split documents at blanks, ASCII punctuation, Han characters and ends of sentences.

    `words` are the offsets at which the segmenter's words start, where `has_words`. The number
    of bytes written to `out`.
    """
    o = 0
    i = 0
    cut = 0
    word = 0
    for document in range(len(ends)):
        end = ends[document]
        document_start = o
        sentence_start = o
        chunk_start = -1
        while i < end:
            if cut < len(cuts) and cuts[cut] <= i:
                o = close(out, o, WORD_END, chunk_start >= 0)
                o = close(out, o, SENTENCE_END, o > sentence_start)
                chunk_start = -1
                sentence_start = o
                while cut < len(cuts) and cuts[cut] <= i:
                    cut += 1
            b = text[i]
            size = 1
            is_alone = False
            if b < 0x80:
                if b <= 32 or b == 127:
                    # BERT takes these for blanks, and all other controls out of the text.
                    if b == 32 or b == 9 or b == 10 or b == 13:
                        o = close(out, o, WORD_END, chunk_start >= 0)
                        chunk_start = -1
                    i += 1
                    continue
                is_alone = is_punctuation(b)
            else:
                code_point, size = decode(text, i, end)
                is_alone = splits_han and is_han(code_point)
            if is_alone:
                o = close(out, o, WORD_END, chunk_start >= 0)
                chunk_start = -1
            if chunk_start < 0:
                chunk_start = o
                if has_words:
                    while word < len(words) and words[word] < i:
                        word += 1
                    if word == len(words) or words[word] != i:
                        out[o] = CONTINUES
                        o += 1
            for offset in range(size):
                out[o + offset] = text[i + offset]
            o += size
            i += size
            if is_alone:
                o = close(out, o, WORD_END, chunk_start >= 0)
                chunk_start = -1
        o = close_document(out, o, chunk_start >= 0, sentence_start, document_start)
        is_kept[document] = o > document_start
    return o


@kernel
def is_blank(byte):
    """Whether a byte is a blank, or a separator that is written as one."""
    return byte == 32 or (byte >= 9 and byte <= 13) or (byte >= 28 and byte <= 31)


@kernel
def kind_of(text, i, end):
    """What the character at `i` is to GPT-2's pattern, and its size."""
    b = text[i]
    if b < 0x80:
        if (b >= 65 and b <= 90) or (b >= 97 and b <= 122):
            return LETTER, 1
        if b == 32 or (b >= 9 and b <= 13):
            return BLANK, 1
        if b >= 48 and b <= 57:
            return DIGIT, 1
        if b < 32 or b == 127:
            return UNSURE, 1
        return (APOSTROPHE if b == 39 else MARK), 1
    code_point, size = decode(text, i, end)
    if is_han(code_point):
        return HAN, size
    is_mark = code_point == 0x3001 or code_point == 0x3002
    is_mark |= code_point >= 0x300A and code_point <= 0x300F
    is_mark |= code_point == 0xFF01 or code_point == 0xFF0C or code_point == 0xFF1F
    is_mark |= code_point == 0xFF1A or code_point == 0xFF1B or code_point == 0x2026
    is_mark |= code_point >= 0x201C and code_point <= 0x201D
    if is_mark:
        return HAN_MARK, size
    # Blanks to some editions of the pattern's engine, or next to such in the tables.
    is_unsure = code_point == 0x85 or code_point == 0xA0 or code_point == 0x1680
    is_unsure |= code_point == 0x180E or (code_point >= 0x2000 and code_point <= 0x200F)
    is_unsure |= code_point >= 0x2028 and code_point <= 0x202F
    is_unsure |= code_point >= 0x205F and code_point <= 0x2064
    is_unsure |= code_point == 0x3000 or code_point == 0xFEFF
    return (UNSURE if is_unsure else OTHER), size


@kernel
def parts(last_kind, kind):
    """Whether GPT-2's pattern parts two neighbors, neither of them a blank, whatever else is."""
    if kind == LETTER or kind == DIGIT:
        # An apostrophe may take letters with it ('re).
        return last_kind == MARK or (last_kind != kind and last_kind >= LETTER and last_kind < MARK)
    if kind == MARK or kind == APOSTROPHE:
        return last_kind == LETTER or last_kind == DIGIT
    return (kind == HAN and last_kind == HAN_MARK) or (kind == HAN_MARK and last_kind == HAN)


@kernel
def bpe_chunks(text, ends, cuts, out, is_kept):
    """Split documents where GPT-2's pattern does so whatever follows; the bytes written to `out`.

    A sentence ends at the first such place after its end. Blanks around a document are left out.
    """
    o = 0
    i = 0
    cut = 0
    for document in range(len(ends)):
        end = ends[document]
        next_document = end
        document_start = o
        sentence_start = o
        while i < end and is_blank(text[i]):
            i += 1
        while end > i and is_blank(text[end - 1]):
            end -= 1
        chunk_start = -1
        last_kind = UNSURE
        while i < end:
            kind, size = kind_of(text, i, end)
            is_cut = False
            if kind == BLANK:
                if last_kind != BLANK:
                    is_cut = last_kind != UNSURE
                elif i + 1 < end:
                    # The last of several blanks goes with what follows.
                    next_kind, _ = kind_of(text, i + 1, end)
                    is_cut = next_kind != BLANK and next_kind != UNSURE
            else:
                is_cut = parts(last_kind, kind)
            if is_cut and chunk_start >= 0:
                o = close(out, o, WORD_END, chunk_start >= 0)
                chunk_start = -1
                if cut < len(cuts) and cuts[cut] <= i:
                    o = close(out, o, SENTENCE_END, o > sentence_start)
                    sentence_start = o
            while cut < len(cuts) and cuts[cut] <= i and chunk_start < 0:
                cut += 1
            if chunk_start < 0:
                chunk_start = o
            for offset in range(size):
                b = text[i + offset]
                out[o + offset] = 32 if b >= 0x1C and b <= 0x1F else b
            o += size
            i += size
            last_kind = kind
        i = next_document
        while cut < len(cuts) and cuts[cut] <= i:
            cut += 1
        o = close_document(out, o, chunk_start >= 0, sentence_start, document_start)
        is_kept[document] = o > document_start
    return o


@kernel
def expand(chunk_ids, piece_ends, pieces, ids, starts, sizes):
    """Write the tokens of every chunk: ids, and whether each starts a word (the lowest bit).

    `sizes` gets the number of tokens of each chunk.
    """
    num = 0
    for chunk in range(len(chunk_ids)):
        chunk_id = np.int64(chunk_ids[chunk])
        start = piece_ends[chunk_id - 1] if chunk_id else 0
        for place in range(start, piece_ends[chunk_id]):
            ids[num] = pieces[place] >> 1
            starts[num] = pieces[place] & 1
            num += 1
        sizes[chunk] = piece_ends[chunk_id] - start
    return num


@kernel
def measure(sizes, sentences, documents, sentence_sizes, document_sizes):
    """Write the sizes of sentences in tokens and of documents in sentences; how many sentences.

    `sentences` are sizes in chunks, `documents` in sentences; sentences without a token go.
    """
    num = 0
    chunk = 0
    sentence = 0
    for document in range(len(documents)):
        first = num
        for _ in range(documents[document]):
            size = 0
            for _ in range(sentences[sentence]):
                size += sizes[chunk]
                chunk += 1
            sentence += 1
            if size:
                sentence_sizes[num] = size
                num += 1
        document_sizes[document] = num - first
    return num

"""Cleaning in plain Python: what the kernels of this folder compute, for tests."""

import re
from collections.abc import Sequence

from sememe.randomness import GOLDEN, mix
from sememe.text import characters as ch
from sememe.text.cleaning import kernels
from sememe.text.cleaning.fingerprints import (
    MOST_KEPT,
    bands_and_rows,
    character_tables,
    hash_functions,
)
from sememe.text.cleaning.kernels import PRIME, SYMBOL
from sememe.text.cleaning.lines import suspect_table

_MASK = 2**64 - 1
_MARKUP = re.compile(r"<[!/]|<(?=L)|&#|&(?=L)|\{\{|\[\[")
_LINK = re.compile(r"://|www\.")
_LATIN_RUN = re.compile(f"[\xa1-\xfe]{{{kernels.LATIN_RUN}}}")


def look(line: str) -> tuple[int, int, int]:
    """The flags of a line, its width (-1 if it is blank), and its number of characters."""
    classes = character_tables()[0]
    values = [int(classes[ord(char)]) for char in line]
    kinds = [value & ch.CLASS_MASK for value in values]
    num = {kind: kinds.count(kind) for kind in range(ch.CLASS_MASK + 1)}
    num_symbols = sum(
        bool(value & SYMBOL) and kind not in (ch.LETTER, ch.IDEOGRAPH, ch.DIGIT)
        for value, kind in zip(values, kinds, strict=True)
    )
    width = num_symbols + num[ch.LETTER] + num[ch.DIGIT] + 2 * num[ch.IDEOGRAPH]
    filled = [
        value
        for value, kind in zip(values, kinds, strict=True)
        if kind not in (ch.SPACE, ch.NEWLINE)
    ]
    last = filled[-1] if filled else 0
    is_ended = last & ch.CLASS_MASK in (ch.PERIOD, ch.TERMINATOR, ch.FULL_STOP) or (
        last & ch.CLASS_MASK == ch.BRACKET and not last & ch.OPENING
    )
    # Letters after a mark count whatever they are.
    shape = "".join(
        "L" if kind == ch.LETTER else char for char, kind in zip(line, kinds, strict=True)
    )
    num_letters = num[ch.LETTER] + num[ch.IDEOGRAPH]
    is_long = len(line) >= kernels.LONG_LINE
    flags = (
        kernels.SUSPECT * _is_suspect(line, num[ch.IDEOGRAPH])
        | kernels.MARKUP * bool(_MARKUP.search(shape))
        | kernels.LINK * bool(_LINK.search(line))
        | kernels.NUMBERED * (num[ch.DIGIT] > 0 and num_letters <= kernels.MOST_LETTERS)
        | kernels.OPEN * (is_long and not is_ended)
    )
    return flags, width if filled else -1, len(line)


def _is_suspect(line: str, num_ideographs: int) -> bool:
    table = suspect_table()
    bits = [int(table[ord(char)]) if ord(char) < 0x10000 else 0 for char in line]
    if any(own & kernels.ALWAYS for own in (bits[:-1] if line.endswith("\r") else bits)):
        return True
    size = kernels.NUM_ENCODINGS
    two, three, later = (
        [own >> (place * size) & (2**size - 1) for own in bits] for place in range(3)
    )
    if any(two[i] & later[i + 1] for i in range(len(bits) - 1)):
        return True
    if any(three[i] & later[i + 1] & later[i + 2] for i in range(len(bits) - 2)):
        return True
    num_garbled = sum(bool(own & kernels.GARBLED_HAN) for own in bits)
    return bool(_LATIN_RUN.search(line)) or (num_garbled >= 2 and 5 * num_garbled >= num_ideographs)


def text_hash(text: str) -> int:
    """The hash of a text without the white space around it."""
    data = text.encode().strip(bytes(range(33)))
    value = len(data)
    for byte in data:
        value = (value ^ byte) * PRIME & _MASK
    hashed: int = mix(value)
    return hashed


def units(text: str, by_characters: bool) -> list[int]:
    """The hashes of the words of a text, or of its characters."""
    classes, lower = character_tables()
    found, word = [], 0
    for char in [*text, "\n"]:
        value, code = int(classes[ord(char)]), int(lower[ord(char)])
        kind = value & ch.CLASS_MASK
        if kind == ch.FORMAT:
            continue
        is_word = kind in (ch.LETTER, ch.DIGIT, ch.MARK)
        if is_word and not by_characters:
            if word or kind != ch.MARK:
                word = ((word ^ code) * PRIME + 1) & _MASK
            continue
        if word:
            found.append(mix(word))
            word = 0
        if kind == ch.IDEOGRAPH or value & SYMBOL or (is_word and kind != ch.MARK):
            found.append(mix((code + GOLDEN) & _MASK))
    return found


def shingles(text: str, by_characters: bool, size: int) -> set[int]:
    """The hashes of all runs of `size` units; of all units together if they are fewer."""
    own = units(text, by_characters)
    if len(own) < size:
        return {mix((_joined(own) + len(own)) & _MASK) >> 32} if own else set()
    return {mix(_joined(own[i : i + size])) >> 32 for i in range(len(own) - size + 1)}


def _joined(own: Sequence[int]) -> int:
    value = 0
    for unit in own:
        value = (value * GOLDEN + unit) & _MASK
    return value


def keys(own: set[int], threshold: float) -> list[int]:
    """The key of each band: a hash of some of the smallest values of the hash functions."""
    bands, rows = bands_and_rows(threshold)
    factors, offsets = (array.tolist() for array in hash_functions())
    signature = [
        min(((factor * value + offset) % 2**32 for value in own), default=2**32 - 1)
        for factor, offset in zip(factors, offsets, strict=True)
    ]
    found = []
    for band in range(bands):
        key = 0
        for value in signature[band * rows : (band + 1) * rows]:
            key = mix((key + value + GOLDEN) & _MASK)
        found.append(key >> 32)
    return found


def similarity(a: set[int], b: set[int]) -> float:
    """The Jaccard similarity of two sets of shingles; of a sample of them if one is large."""
    union = sorted(a | b)
    if max(len(a), len(b)) >= MOST_KEPT:
        union = union[:MOST_KEPT]
    return sum(value in a and value in b for value in union) / max(len(union), 1)


def near_duplicates(texts: Sequence[str], threshold: float, size: int = 5) -> dict[int, int]:
    """For each text that resembles an earlier kept one, that one: by comparing all pairs."""
    sets = [shingles(text, False, size) for text in texts]
    found: dict[int, int] = {}
    kept: list[int] = []
    for index, own in enumerate(sets):
        like = next((other for other in kept if similarity(own, sets[other]) >= threshold), None)
        if like is None or not own:
            kept.append(index)
        else:
            found[index] = like
    return found

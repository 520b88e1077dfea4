"""Words in flat arrays sorted by their bytes, eight at a time, without a Python object a word."""

from __future__ import annotations

import numpy as np

_BLOCK = 1 << 18
# So few words are sorted plainly: two huge words alike would take a round for every eight bytes.
_FEW = 512


def _prefixes(
    word_bytes: np.ndarray, starts: np.ndarray, ends: np.ndarray, depth: int
) -> np.ndarray:
    """Bytes depth..depth+8 of each word as one big-endian number, zeros past its end."""
    keys = np.empty(len(starts), np.uint64)
    for low in range(0, len(starts), _BLOCK):  # blocks keep the index array small
        first, last = starts[low : low + _BLOCK] + depth, ends[low : low + _BLOCK]
        key = np.zeros(len(first), np.uint64)
        for offset in range(8):
            index = first + offset
            inside = index < last
            byte = word_bytes[np.where(inside, index, 0)].astype(np.uint64)
            key = (key << np.uint64(8)) | np.where(inside, byte, np.uint64(0))
        keys[low : low + _BLOCK] = key
    return keys


def sort_words(word_bytes: np.ndarray, word_ends: np.ndarray) -> np.ndarray:
    """Word ids ordered by the words' bytes, equal words by id, as Python's sorted would."""
    ends = np.asarray(word_ends, np.int64)
    if not len(word_bytes):
        return np.arange(len(ends), dtype=np.uint32)
    starts = np.concatenate(([0], ends[:-1]))
    sizes = ends - starts
    keys = _prefixes(word_bytes, starts, ends, 0)
    order = np.argsort(keys, kind="stable")
    groups, places = _tied(keys[order], np.zeros(len(order), np.int64), np.arange(len(order)))
    depth = 8
    # Only words that share all bytes so far go on to the next eight.
    while len(places):
        ids = order[places]
        if len(places) <= _FEW:
            order[places] = _sorted_plainly(word_bytes, starts, ends, ids, groups)
            break
        if depth >= int(sizes[ids].max()):
            # What is left differs in trailing NUL bytes alone, or not at all.
            order[places] = ids[np.lexsort((ids, sizes[ids], groups))]
            break
        keys = _prefixes(word_bytes, starts[ids], ends[ids], depth)
        inner = np.lexsort((keys, groups))
        order[places] = ids[inner]
        groups, places = _tied(keys[inner], groups[inner], places)
        depth += 8
    return order.astype(np.uint32)


def _tied(
    keys: np.ndarray, groups: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The runs of more than one equal (group, key): their new group numbers and places."""
    is_new = np.ones(len(keys), bool)
    is_new[1:] = (keys[1:] != keys[:-1]) | (groups[1:] != groups[:-1])
    is_alone = is_new & np.append(is_new[1:], True)
    return np.cumsum(is_new)[~is_alone], places[~is_alone]


def _sorted_plainly(
    word_bytes: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    ids: np.ndarray,
    groups: np.ndarray,
) -> list[int]:
    """`ids` sorted by (group, bytes, id) with Python's own sort."""
    keyed = [
        (group, word_bytes[starts[word_id] : ends[word_id]].tobytes(), word_id)
        for group, word_id in zip(groups.tolist(), ids.tolist(), strict=True)
    ]
    return [word_id for _, _, word_id in sorted(keyed)]

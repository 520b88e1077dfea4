"""How tokens of one row are hidden, without haste: what the kernels of masking must equal."""

from __future__ import annotations

import numpy as np

from sememe.examples.masking_config import MaskingConfig
from sememe.examples.randomness import number

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

"""Sums of words as people write them: `king - man + woman` in, signed words out."""

from __future__ import annotations

from sememe.errors import OptionError

_SIGNS = {"+": 1, "-": -1, "−": -1}


def parse_sum(text: str) -> list[tuple[int, str]]:
    """Read `king - man + woman` as signed words; signs stand alone, so `t-shirt` is a word."""
    parts = text.split()
    if parts and parts[0] not in _SIGNS:
        parts = ["+", *parts]
    signs, words = parts[::2], parts[1::2]
    is_right = all(sign in _SIGNS for sign in signs) and not any(word in _SIGNS for word in words)
    if not words or len(signs) != len(words) or not is_right:
        raise OptionError(
            f"“{text}” is no sum of words; write it as king - man + woman, with spaces."
        )
    return [(_SIGNS[sign], word) for sign, word in zip(signs, words, strict=True)]


def looks_like_sum(text: str) -> bool:
    """Whether a sign stands between words; one alone may be a word of the vectors."""
    parts = text.split()
    return len(parts) > 2 and any(part in _SIGNS for part in parts)

"""Tags of words: their schemes, their spans, and their positions on sub-word tokens.

    iob1   I-X inside a span; B-X only where a span follows another of its type (CoNLL-2003)
    iob2   B-X opens every span, I-X continues
    bioes  B-X … E-X, and S-X for a span of one word (also read: BMES and BILOU)
    none   tags without a prefix, such as parts of speech; a run of one tag is a span

Spans are read as in the official scorer conlleval: an I-X that follows nothing of its type opens a
span, so tags that break the rules of their scheme are still valid.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError

Scheme = Literal["iob1", "iob2", "bioes", "none"]
SCHEMES = ("iob1", "iob2", "bioes", "none")
OUTSIDE = "O"
# The target of a place that has no tag of its own: cross_entropy skips it.
IGNORE_ID = -100

# Other letters for the same: M and L and U of BMES and BILOU; E and S may end in either.
_LETTERS = {"B": "B", "I": "I", "O": "O", "E": "E", "S": "S", "M": "I", "L": "E", "U": "S"}


class Span(NamedTuple):
    """Words `start` to `end` with their type."""

    type: str
    start: int
    end: int


def check_scheme(scheme: str) -> None:
    """Raise an error for an unknown scheme."""
    if scheme not in SCHEMES:
        raise OptionError(f"scheme must be one of {', '.join(SCHEMES)}, not {scheme!r}.")


def split_tag(tag: str) -> tuple[str, str]:
    """The letter (B, I, O, E, S) and the type of a tag; letter "" if it has no such form."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    letter, mark, kind = tag.partition("-" if "-" in tag[:2] else "_")
    if mark and kind and len(letter) == 1 and letter in _LETTERS:
        return _LETTERS[letter], kind
    return "", tag


def plain_tag(tag: str) -> str:
    """A tag in the spelling of scorers: B_X and M-X are B-X and I-X."""
    letter, kind = split_tag(tag)
    return f"{letter}-{kind}" if letter and kind else tag


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """Detect the scheme of tags."""
    letters: set[str] = set()
    opens_with_inside = False
    for tags in sentences:
        previous = (OUTSIDE, "")
        for tag in tags:
            letter, kind = split_tag(tag)
            if not letter:
                return "none"
            letters.add(letter)
            if letter == "I" and (previous[0] == OUTSIDE or previous[1] != kind):
                opens_with_inside = True
            previous = letter, kind
    if letters & {"E", "S"}:
        return "bioes"
    return "iob1" if opens_with_inside else "iob2"


def spans_of(tags: Sequence[str], scheme: Scheme = "iob2") -> list[Span]:
    """The spans of one sentence's tags."""
    check_scheme(scheme)
    spans: list[Span] = []
    start, open_kind, was_closed = 0, "", True
    for index, tag in enumerate([*tags, OUTSIDE]):
        letter, kind = _read(tag, scheme)
        goes_on = letter in ("I", "E") and kind == open_kind and not was_closed
        if open_kind and not goes_on:
            spans.append(Span(open_kind, start, index))
            open_kind = ""
        if letter != OUTSIDE and not goes_on:
            start, open_kind = index, kind
        was_closed = letter in ("E", "S", OUTSIDE)
    return spans


def _read(tag: str, scheme: Scheme) -> tuple[str, str]:
    if scheme == "none":
        # Every word continues with a run of its own tag.
        return (OUTSIDE, "") if tag == OUTSIDE else ("I", tag)
    letter, kind = split_tag(tag)
    return letter or "I", kind


def tags_of(spans: Iterable[Span], num_words: int, scheme: Scheme = "iob2") -> list[str]:
    """Turn spans that do not overlap into the tags of `num_words` words."""
    check_scheme(scheme)
    tags = [OUTSIDE] * num_words
    last_end, last_kind = -1, ""
    for span in sorted(spans, key=lambda span: span.start):
        if span.start < last_end or not 0 <= span.start < span.end <= num_words:
            raise InputError(
                f"The span {span.type} of words {span.start} to {span.end} overlaps another, or "
                f"leaves the {num_words} words of its sentence."
            )
        letters = _letters(span.end - span.start, scheme)
        if scheme == "iob1" and span.start == last_end and span.type == last_kind:
            letters[0] = "B"
        for index, letter in enumerate(letters, span.start):
            tags[index] = span.type if scheme == "none" else f"{letter}-{span.type}"
        last_end, last_kind = span.end, span.type
    return tags


def _letters(num_words: int, scheme: Scheme) -> list[str]:
    if scheme == "bioes":
        return ["S"] if num_words == 1 else ["B", *["I"] * (num_words - 2), "E"]
    return ["B" if scheme == "iob2" else "I", *["I"] * (num_words - 1)]


def convert_tags(tags: Sequence[str], source: Scheme, target: Scheme) -> list[str]:
    """Convert the tags of one sentence to another scheme, with the same spans."""
    if source == target:
        return list(tags)
    if "none" in (source, target):
        raise OptionError("Tags without prefixes are not spans: they cannot change their scheme.")
    return tags_of(spans_of(tags, source), len(tags), target)


def fixed_tags(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """The tags of one sentence, corrected if they break their scheme."""
    return tags_of(spans_of(tags, scheme), len(tags), scheme)


# ---- words and sub-words ------------------------------------------------------------------


class WordPieces(NamedTuple):
    """The sub-word tokens of a sentence, and the position of each word's first one."""

    ids: np.ndarray
    firsts: np.ndarray


def join_pieces(words: Sequence[np.ndarray], unknown_id: int) -> WordPieces:
    """Concatenate the tokens of words; every word has a first token.

    A word that the tokenizer removes becomes an unknown one.
    """
    pieces = [own if len(own) else np.array([unknown_id]) for own in words]
    ends = np.cumsum([len(own) for own in pieces], dtype=np.int64)
    firsts = np.concatenate([[0], ends[:-1]]) if len(ends) else np.empty(0)
    ids = np.concatenate(pieces) if pieces else np.empty(0)
    return WordPieces(ids.astype(np.int64), firsts.astype(np.int64))


def targets_of(pieces: WordPieces, tag_ids: Sequence[int]) -> np.ndarray:
    """The tag's id on each word's first token, IGNORE_ID on the rest (Devlin et al. 2019, 5.3)."""
    targets = np.full(len(pieces.ids), IGNORE_ID, np.int64)
    targets[pieces.firsts] = tag_ids
    return targets

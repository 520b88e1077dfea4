"""Answers as spans of a context: windows over its tokens, targets, and the best spans.

S tokens of a context, W tokens of a window, L the maximum answer length in tokens. Character spans
of the user's text come in and go out; tokens have their positions in it.
"""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sememe.errors import OptionError


class ContextWindow(NamedTuple):
    """Tokens `start` up to `end` of a context."""

    start: int
    end: int


class TokenSpan(NamedTuple):
    """The tokens from `first` to `last`, both included."""

    first: int
    last: int


class ScoredSpan(NamedTuple):
    """A span of tokens, its score (start plus end), and its probability among all spans."""

    first: int
    last: int
    score: float
    probability: float


class WindowScores(NamedTuple):
    """The start and end scores of each token of a window."""

    window: ContextWindow
    starts_W: np.ndarray
    ends_W: np.ndarray


def context_windows(num_tokens: int, size: int, stride: int) -> list[ContextWindow]:
    """Split a context into windows of `size` tokens, starting every `stride` tokens."""
    if size < 1 or stride < 1:
        raise OptionError(
            f"A window of {size} tokens of the context, {stride} from one to the next, cannot see "
            "it all: give the sequences more length, or a stride of at least 1."
        )
    step = min(stride, size)  # no token may be between two windows
    starts = range(0, max(num_tokens - size, 0) + step, step)
    return [ContextWindow(start, min(start + size, num_tokens)) for start in starts]


def token_span(start: int, end: int, starts_S: np.ndarray, ends_S: np.ndarray) -> TokenSpan | None:
    """The tokens that contain the characters `start` to `end`; None if there are none."""
    first = int(np.searchsorted(ends_S, start, "right"))
    last = int(np.searchsorted(starts_S, end, "left")) - 1
    return TokenSpan(first, last) if first <= last else None


def window_target(
    span: TokenSpan | None, window: ContextWindow, offset: int, null_index: int
) -> np.ndarray:
    """The positions of start and end in a window's sequence, whose context begins at `offset`.

    If a window does not contain the entire answer, both are `null_index`.
    """
    if span is None or span.first < window.start or span.last >= window.end:
        return np.array([null_index, null_index], np.int64)
    shift = offset - window.start
    return np.array([span.first + shift, span.last + shift], np.int64)


def char_span(
    text: str, span: TokenSpan, starts_S: np.ndarray, ends_S: np.ndarray
) -> tuple[int, int]:
    """The characters of the text for a span of tokens, without surrounding blanks.

    Combining marks after the last letter belong to it, even if the tokenizer strips accents.
    """
    start, end = int(starts_S[span.first]), int(ends_S[span.last])
    limit = int(starts_S[span.last + 1]) if span.last + 1 < len(starts_S) else len(text)
    while end < limit and unicodedata.category(text[end]) in ("Mn", "Mc", "Me", "Cf"):
        end += 1
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


# ---- the best spans -----------------------------------------------------------------------


def span_scores(windows: Sequence[WindowScores], num_tokens: int, max_size: int) -> np.ndarray:
    """The score of every valid span of a context, (S, L): [first, last - first].

    Start and end must be in one window, in this order; if two windows contain a span, the higher
    score counts. All others are -inf.
    """
    table_SL = np.full((num_tokens, max_size), -np.inf)
    for (start, end), starts_W, ends_W in windows:
        for size in range(min(max_size, end - start)):
            scores = starts_W[: end - start - size] + ends_W[size:]
            own = table_SL[start : end - size, size]
            np.maximum(own, scores, out=own)
    return table_SL


def best_spans(
    table_SL: np.ndarray, num_best: int, null_score: float = -np.inf
) -> list[ScoredSpan]:
    """The best spans, best first; normalized over all spans and, if scored, no answer."""
    scores = table_SL.ravel()
    total = np.logaddexp.reduce(scores, initial=null_score)
    num_best = min(num_best, int(np.isfinite(scores).sum()))
    if not num_best:
        return []
    found = np.argpartition(-scores, num_best - 1)[:num_best]
    # Equal scores: the span that comes first.
    found = found[np.lexsort((found, -scores[found]))]
    max_size = table_SL.shape[1]
    return [
        ScoredSpan(
            int(index) // max_size,
            int(index) // max_size + int(index) % max_size,
            float(scores[index]),
            float(np.exp(scores[index] - total)),
        )
        for index in found
    ]

"""Modified Kneser–Ney smoothing (Chen & Goodman 1999, section 3): counts in, a tree to ask out.

What lmplz of KenLM does (Heafield et al. 2013): n-grams of the highest order, and those that begin
with <s>, are counted as they stand; shorter ones by how many different words come before them.
Every order has three discounts, and what they take is spread by the order below; the words alone
share theirs evenly with <unk>.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from sememe.progress import Reporter
from sememe.static.ngram.counting import Level
from sememe.static.ngram.trie import Trie, laid_out, log10

# What lmplz takes with --discount_fallback where a text is too small to tell.
FALLBACK = (0.5, 1.0, 1.5)
_NONE = np.empty(0, np.int64)

Discounts = tuple[float, float, float]
Spread = Callable[[np.ndarray, Callable[[int, int], None]], None]


def estimate(
    levels: list[Level], cuts: Sequence[int], *, workers: int, reporter: Reporter
) -> tuple[Trie, list[Discounts]]:
    """Smooth the counts of all orders; gives the tree and the discounts of each order.

    n-grams of k words that were seen cuts[k - 1] times or less are left out.
    """
    from sememe.static.ngram import estimation_kernels as kernels

    discounts: list[Discounts] = []
    probs: list[np.ndarray] = []
    backoffs: list[np.ndarray] = []
    kept: list[np.ndarray | None] = []
    with _threads(workers) as spread, reporter.task("smoothing", len(levels), "orders") as task:
        suffixes = _suffixes(levels, spread)
        # Below the words alone: an even chance for each of them, </s> and <unk>.
        lower = np.array([1.0 / (len(levels[0].words) - 1)])
        for k, level in enumerate(levels):
            adjusted = _adjusted(levels, suffixes, k)
            found = discounts_of(adjusted)
            if found is None:
                reporter.note(_fallback_note(k + 1))
            discounts.append(found or FALLBACK)
            starts = levels[k - 1].starts if k else np.array([0, len(level.words) - 1])
            own, left = np.zeros(len(level.words)), np.ones(len(starts) - 1)
            given = (
                starts, adjusted, level.counts, cuts[k] if k else -1,
                np.array([0.0, *discounts[k]]), suffixes[k], lower,
            )  # fmt: skip
            spread(starts, _bound(kernels.estimate, given, (own, left)))
            kept.append(level.counts > cuts[k] if k and cuts[k] else None)
            if k:
                probs.append(log10(lower))
                backoffs.append(log10(left))
            # What nobody asks for again makes room: a large text has many n-grams.
            suffixes[k], level.counts, lower = _NONE, _NONE, own
            task.update(k + 1)
        probs.append(log10(lower))
    return laid_out(levels, kept, probs, backoffs), discounts


def discounts_of(adjusted: np.ndarray) -> Discounts | None:
    """The discounts of n-grams seen once, twice and more often; None where they cannot be told."""
    from sememe.static.ngram.estimation_kernels import count_counts

    tally = np.zeros(5, np.int64)
    count_counts(adjusted, tally)
    return closed_form(tally.tolist())


def closed_form(tally: Sequence[int]) -> Discounts | None:
    """The discounts where tally[c] n-grams have the count c (Chen & Goodman, equation 26).

    None where a text has no n-gram of some small count, or its counts are too odd.
    """
    if not all(tally[1:4]):
        return None
    share = tally[1] / (tally[1] + 2 * tally[2])
    found = [c - (c + 1) * share * tally[c + 1] / tally[c] for c in (1, 2, 3)]
    if any(not 0 <= discount <= c for c, discount in enumerate(found, start=1)):
        return None
    return found[0], found[1], found[2]


def _fallback_note(order: int) -> str:
    shown = ", ".join(f"{discount:g}" for discount in FALLBACK)
    return f"The text is too small or repeats itself: the discounts of {order}-grams are {shown}."


def _suffixes(levels: list[Level], spread: Spread) -> list[np.ndarray]:
    """For each n-gram the place of the one without its first word, a level below."""
    from sememe.static.ngram.estimation_kernels import link

    found = [np.zeros(len(levels[0].words), np.uint32)]
    if len(levels) > 1:
        found.append(levels[1].words)
    for grand, parents, own in zip(levels, levels[1:], levels[2:], strict=False):
        suffixes = np.empty(len(own.words), np.uint32)
        given = (own.words, parents.starts, found[-1], parents.words, grand.starts)
        spread(parents.starts, _bound(link, given, (suffixes,)))
        found.append(suffixes)
    return found


def _adjusted(levels: list[Level], suffixes: list[np.ndarray], k: int) -> np.ndarray:
    """The counts that the probabilities of one order come from."""
    from sememe.static.ngram.estimation_kernels import count_extensions

    counts = levels[k].counts
    begin = len(levels[0].words) - 1  # <s>; what begins with it is the last of every level
    adjusted = np.array(counts) if not k else counts
    if k + 1 < len(levels):
        adjusted = np.zeros(len(counts), np.int64)
        count_extensions(suffixes[k + 1], adjusted)
        first = begin
        for below in levels[:k]:
            first = int(below.starts[first])
        adjusted[first:] = counts[first:]
    if not k:
        adjusted[begin] = 0  # nothing predicts <s>
    return adjusted


def _bound(
    kernel: Callable[..., None], given: tuple[object, ...], out: tuple[np.ndarray, ...]
) -> Callable[[int, int], None]:
    """A kernel that only wants to know which parents are its own."""
    return lambda first, last: kernel(*given, first, last, *out)


@contextmanager
def _threads(num: int) -> Iterator[Spread]:
    """Work on parents in threads, each with a run of them that has its share of children."""
    with ThreadPoolExecutor(num) as pool:

        def spread(starts: np.ndarray, work: Callable[[int, int], None]) -> None:
            shares = np.linspace(starts[0], starts[-1], 4 * num + 1)[1:-1]
            edges = [0, *np.searchsorted(starts, shares).tolist(), len(starts) - 1]
            list(pool.map(work, edges[:-1], edges[1:]))

        yield spread

"""An n-gram language model as a tree in flat arrays, which can be memory-mapped and queried.

Nodes of all levels are concatenated: first every word by its id, then the n-grams of two words
sorted by their words, then those of three. The children of node i are the nodes starts[i] …
starts[i + 1]. A node stores the logarithm (base 10, as in ARPA files) of its last word's
probability after the others, and of its back-off weight.

Counts become a tree by modified Kneser–Ney smoothing (Chen & Goodman 1999, section 3), as in lmplz
of KenLM (Heafield et al. 2013): n-grams of the highest order, and those that begin with <s>, have
their plain counts; shorter ones count the distinct words before them. Every order has three
discounts, and the discounted mass is distributed by the order below; unigrams share theirs evenly
with <unk>.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from sememe.errors import ArtifactError
from sememe.models.ngram import kernels
from sememe.models.ngram.counting import Level
from sememe.models.ngram.kernels import count_counts, count_extensions, keep, link, read
from sememe.progress import Reporter

NAMES = ("words", "probs", "backoffs", "starts", "level_ends")
# The logarithm of zero in ARPA files.
NEVER = -99.0


@dataclass(frozen=True)
class NGramTrie:
    """The arrays; N nodes, of which M are not of the highest order."""

    words: np.ndarray  # uint32 (N): the last word
    probs: np.ndarray  # float32 (N)
    backoffs: np.ndarray  # float32 (M)
    starts: np.ndarray  # uint32 (M + 1)
    level_ends: np.ndarray  # int64 (order)

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.level_ends)

    @property
    def num_ids(self) -> int:
        """Words, <unk>, </s> and <s>."""
        return int(self.level_ends[0])

    @property
    def sizes(self) -> list[int]:
        """How many n-grams there are of each length."""
        return np.diff(self.level_ends, prepend=0).tolist()

    def to_tensors(self) -> dict[str, np.ndarray]:
        """The arrays by name, as saved."""
        return {name: getattr(self, name) for name in NAMES}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray]) -> NGramTrie:
        """The tree in saved arrays, after validating them."""
        if missing := [name for name in NAMES if name not in tensors]:
            raise ArtifactError(f"The model lacks its tensors {', '.join(missing)}.")
        trie = cls(**{name: tensors[name] for name in NAMES})
        if not trie._is_sound():
            raise ArtifactError("The tensors of the model do not fit each other.")
        return trie

    def _is_sound(self) -> bool:
        """Whether readers can follow the arrays without bounds checks."""
        kinds = (np.uint32, np.float32, np.float32, np.uint32, np.int64)
        if any(getattr(self, name).dtype != kind for name, kind in zip(NAMES, kinds, strict=True)):
            return False
        ends, starts, words = self.level_ends, self.starts, self.words
        if ends.ndim != 1 or not len(ends) or np.any(np.diff(ends, prepend=0) < 0) or ends[0] < 3:
            return False
        num_nodes, num_inner = int(ends[-1]), int(ends[-2]) if len(ends) > 1 else 0
        shapes = ((num_nodes,), (num_nodes,), (num_inner,), (num_inner + 1,))
        return (
            tuple(getattr(self, name).shape for name in NAMES[:-1]) == shapes
            and not np.any(starts[1:] < starts[:-1])
            # The children of the first node of a level are the first of the next.
            and np.array_equal(starts[[0, *ends[:-1]]], ends)
            and np.array_equal(words[: ends[0]], np.arange(ends[0]))
            and int(words.max()) < ends[0]
        )

    # ---- asking ---------------------------------------------------------------------------------

    def state(self, ids: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        """The state of a reader after <s> and these ids: the nodes of the last 1, 2, … words."""
        nodes = np.full(self.order + 1, -1, np.int64)
        if self.order > 1:
            nodes[1] = self.num_ids - 1
        self.advance(nodes, np.asarray(ids, np.uint32))
        return nodes

    def advance(self, nodes: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Advance a state in place; return the log10 probability of each id."""

        out = np.empty(len(ids), np.float32)
        read(self.words, self.probs, self.backoffs, self.starts, nodes, ids, out)
        return out

    def distribution(self, nodes: np.ndarray) -> np.ndarray:
        """The probability of every id to come next, float64; that of <s> is 0."""
        logs = self.probs[: self.num_ids].astype(np.float64)
        for node in nodes[1 : self.order]:
            if node < 0:
                continue
            logs += self.backoffs[node]
            first, last = int(self.starts[node]), int(self.starts[node + 1])
            logs[self.words[first:last]] = self.probs[first:last]
        logs[-1] = -np.inf
        return 10.0**logs

    def ngrams(self, length: int, first: int, last: int) -> np.ndarray:
        """The ids of the n-grams at the nodes first … last, all of one length, one row each."""
        nodes, columns = np.arange(first, last), []
        for _ in range(length - 1):
            columns.append(self.words[nodes])
            nodes = np.searchsorted(self.starts, nodes.astype(np.uint32), "right") - 1
        columns.append(self.words[nodes])
        return np.stack(columns[::-1], axis=1)


def log10(numbers: np.ndarray) -> np.ndarray:
    """The base-10 logarithm as float32, NEVER for zero; overwrites its input."""
    with np.errstate(divide="ignore"):
        np.log10(numbers, out=numbers)
    return np.maximum(numbers, NEVER, out=numbers).astype(np.float32)


def laid_out(
    levels: list[Level],
    kept: list[np.ndarray | None],
    probs: list[np.ndarray],
    backoffs: list[np.ndarray],
) -> NGramTrie:
    """Concatenate the levels, without the n-grams that are pruned (None: keep all).

    probs and backoffs are logarithms; the longest n-grams have no back-off.
    """

    def of_kept(arrays: list[np.ndarray]) -> Iterator[np.ndarray]:
        for own, is_kept in zip(arrays, kept, strict=False):
            yield own if is_kept is None else own[is_kept]

    sizes = [
        len(level.words) if own is None else int(own.sum())
        for level, own in zip(levels, kept, strict=True)
    ]
    ends = np.cumsum(sizes)
    words, starts = np.empty(ends[-1], np.uint32), np.empty(ends[-1] - sizes[-1] + 1, np.uint32)
    for k, level in enumerate(levels):
        span = slice(ends[k] - sizes[k], ends[k])
        if k + 1 == len(levels):
            words[span] = level.words if kept[k] is None else level.words[kept[k]]
            continue
        places = _places(kept[k + 1], len(levels[k + 1].words)) + ends[k]
        is_kept = np.ones(len(level.words), np.bool_) if kept[k] is None else kept[k]
        keep(level.words, is_kept, level.starts, places, words[span], starts[span])
    starts[-1] = ends[-1]
    return NGramTrie(
        words=words,
        probs=np.concatenate([*of_kept(probs)]),
        backoffs=np.concatenate([np.empty(0, np.float32), *of_kept(backoffs)]),
        starts=starts,
        level_ends=ends,
    )


def _places(is_kept: np.ndarray | None, size: int) -> np.ndarray:
    """The new position of each node among those that are kept, and their number."""
    return np.arange(size + 1) if is_kept is None else np.concatenate([[0], np.cumsum(is_kept)])


# What lmplz uses with --discount_fallback if a text is too small for an estimate.
FALLBACK = (0.5, 1.0, 1.5)
_NONE = np.empty(0, np.int64)

Discounts = tuple[float, float, float]
Spread = Callable[[np.ndarray, Callable[[int, int], None]], None]


def estimate(
    levels: list[Level], cuts: Sequence[int], *, workers: int, reporter: Reporter
) -> tuple[NGramTrie, list[Discounts]]:
    """Smooth the counts of all orders; return the tree and the discounts of each order.

    n-grams of k words with at most cuts[k - 1] occurrences are pruned.
    """

    discounts: list[Discounts] = []
    probs: list[np.ndarray] = []
    backoffs: list[np.ndarray] = []
    kept: list[np.ndarray | None] = []
    with _threads(workers) as spread, reporter.task("smoothing", len(levels), "orders") as task:
        suffixes = _suffixes(levels, spread)
        # Below the unigrams: a uniform distribution over the words, </s> and <unk>.
        lower = np.array([1.0 / (len(levels[0].words) - 1)])
        for k, level in enumerate(levels):
            adjusted = _adjusted(levels, suffixes, k)
            found = discounts_of(adjusted)
            if found is None:
                reporter.note(
                    f"The text is too small or repeats itself: the discounts of {k + 1}-grams are "
                    f"{', '.join(f'{discount:g}' for discount in FALLBACK)}."
                )
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
            # Freed early: a large text has many n-grams.
            suffixes[k], level.counts, lower = _NONE, _NONE, own
            task.update(k + 1)
        probs.append(log10(lower))
    return laid_out(levels, kept, probs, backoffs), discounts


def discounts_of(adjusted: np.ndarray) -> Discounts | None:
    """The discounts of n-grams seen once, twice and more often; None where they cannot be told."""

    tally = np.zeros(5, np.int64)
    count_counts(adjusted, tally)
    return closed_form(tally.tolist())


def closed_form(tally: Sequence[int]) -> Discounts | None:
    """The discounts if tally[c] n-grams have the count c (Chen & Goodman, equation 26).

    None if a text has no n-gram of some small count, or its counts are too irregular.
    """
    if not all(tally[1:4]):
        return None
    share = tally[1] / (tally[1] + 2 * tally[2])
    found = [c - (c + 1) * share * tally[c + 1] / tally[c] for c in (1, 2, 3)]
    if any(not 0 <= discount <= c for c, discount in enumerate(found, start=1)):
        return None
    return found[0], found[1], found[2]


def _suffixes(levels: list[Level], spread: Spread) -> list[np.ndarray]:
    """For each n-gram the position of the one without its first word, a level below."""

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
    """The counts from which the probabilities of one order are computed."""

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
    """A kernel that only needs to know which parents are its own."""
    return lambda first, last: kernel(*given, first, last, *out)


@contextmanager
def _threads(num: int) -> Iterator[Spread]:
    """Process parents in threads, each with a range that has about as many children."""
    with ThreadPoolExecutor(num) as pool:

        def spread(starts: np.ndarray, work: Callable[[int, int], None]) -> None:
            shares = np.linspace(starts[0], starts[-1], 4 * num + 1)[1:-1]
            edges = [0, *np.searchsorted(starts, shares).tolist(), len(starts) - 1]
            list(pool.map(work, edges[:-1], edges[1:]))

        yield spread

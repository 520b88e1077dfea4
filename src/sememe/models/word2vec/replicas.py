"""word2vec and fastText on several workers: each trains a replica, and the replicas are merged.

Member k of N does the steps s = k (mod N) of the run, with the learning rate and the random draws
of those steps, so that one member alone does what one process does, to the bit. Replicas are merged
in rounds. A round is a small part of the words done so far, because vectors change most at first;
the very first steps are done by one member. Rows that are used often are merged after each round,
all rows after several.

A row is merged as w + a · (sum of the members' changes of w). The mean (a = 1/N) takes steps N
times too short for words that a single member may have met; the sum (a = 1) overshoots for frequent
ones, which every member has moved to about the same place. What N members move one after another,
where each goes the share 1 - q of the way that is left, is 1 - q^N: so a = (1 - q^N) / (N (1 - q)),
with q = exp(-curvature · learning rate · pairs of the row in this round).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.executor import Executor
from sememe.models.static.loop import Crew
from sememe.models.static.together import BLOCK_BYTES, JointRun
from sememe.teams import Team
from sememe.tokens.store import TokenStore

if TYPE_CHECKING:
    from sememe.models.word2vec.training import WindowRun

CHUNK = 4_096  # words of a step, where there are several members
# The first part, by one member: this many words, or this share of the run if that is less.
ALONE_WORDS, ALONE_SHARE = 1 << 20, 0.03
GROWTH = 0.01  # words of a round ÷ words before it
MOST_WORDS = 1 << 24  # words of each member in a round
ROUNDS = 2  # between merges of all rows
FREQUENT_USES = 1.0  # pairs in a round, from which on a row is merged after it
# Measured (docs/experiments.md): with less of it frequent rows grow too long, or training diverges.
CURVATURE = {"input": 0.8, "output": 0.2}
_PROCESS_BYTES = 300 << 20


class Block(NamedTuple):
    """Rows that are merged at a time: places `start` to `stop` in the order of falling use."""

    name: str
    start: int
    stop: int


def merge_share(pairs: np.ndarray, num: int, curvature: float) -> np.ndarray:
    """The factor `a` of each row, for the expected number of pairs · learning rate of a member."""
    steps = -curvature * pairs
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.expm1(num * steps) / (num * np.expm1(steps))
    return np.where(steps > -1e-9, 1.0, share).astype(np.float32)


class Replica:
    """A member's matrices, and how it trains and merges them."""

    def __init__(self, make: Callable[[], WindowRun], num: int, number: int) -> None:
        self.run, self.num, self.number = make(), num, number
        self._uses = self.run.uses()
        self._orders = {name: order_of(uses) for name, uses in self._uses.items()}
        # The values that all members had after the last merge, of the rows that this one joins.
        self._bases: dict[Block, np.ndarray] = {}

    def put(self, name: str, start: int, rows: np.ndarray) -> None:
        """Take over rows of a matrix."""
        self.run.matrices[name][start : start + len(rows)] = rows

    def begin(self, blocks: list[Block]) -> None:
        """Keep what all members start from."""
        for block in blocks:
            self._bases[block] = self.give(block)[self.number]

    def rows(self, name: str, start: int, stop: int) -> np.ndarray:
        """Rows of a matrix."""
        return self.run.matrices[name][start:stop].copy()

    def train(self, first: int, last: int, num: int) -> np.ndarray:
        """Do this member's steps from `first` to `last`, if `num` members share them; stats."""
        crew = Crew(self.run, first + (self.number - first) % num, last, stride=num)
        crew.advance(lambda _: True)
        return crew.stats()

    def give(self, block: Block, *_: float) -> list[np.ndarray]:
        """The rows of a block, a part for each member."""
        rows, order = self.run.matrices[block.name], self._orders[block.name]
        return [rows[order[start:stop]] for start, stop in self._parts(block)]

    def join(self, block: Block, words: float, rate: float, *given: np.ndarray) -> np.ndarray:
        """Merge a part of a block after each member has trained on this many words of text."""
        base = self._bases[block]
        start, stop = self._parts(block)[self.number]
        pairs = self._uses[block.name][self._orders[block.name][start:stop]] * words * rate
        change = np.zeros_like(base)
        for rows in given:
            change += rows
            change -= base
        change *= merge_share(pairs, self.num, CURVATURE[block.name])[:, None]
        self._bases[block] = base + change
        return self._bases[block]

    def take(self, block: Block, words: float, rate: float, *joined: np.ndarray) -> None:
        """Take over the rows that all members have joined."""
        order = self._orders[block.name]
        for (start, stop), rows in zip(self._parts(block), joined, strict=True):
            self.run.matrices[block.name][order[start:stop]] = rows

    def _parts(self, block: Block) -> list[tuple[int, int]]:
        edges = np.linspace(block.start, block.stop, self.num + 1).astype(int).tolist()
        return list(pairwise(edges))


class ReplicaRun(JointRun):
    """A run of word2vec or fastText whose steps are done by several replicas."""

    run: WindowRun

    def __init__(self, run: WindowRun, start: Callable[[], Team], num: int) -> None:
        super().__init__(run, start, num)
        self.edges = round_edges(run.num_steps, run.chunk_size, num)
        # Rows that are used often enough in a round of typical size.
        words = float(np.median(np.diff(self.edges))) / num * run.chunk_size
        self._frequent: list[Block] = []
        self._rest: list[Block] = []
        for name, uses in run.uses().items():
            num_frequent = int(np.count_nonzero(uses * words >= FREQUENT_USES))
            self._frequent += self._blocks(name, 0, num_frequent)
            self._rest += self._blocks(name, num_frequent, len(uses))

    def after(self, step: int) -> int:
        """The step after the next merge of all rows."""
        place = bisect_right(self.edges, step)
        # The first part ends at the first edge.
        place += -(place - 1) % ROUNDS
        return self.edges[min(place, len(self.edges) - 1)]

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Let the members do the steps up to the next merge of all rows; add their stats."""
        super().step(step, space, stats)
        if self.num > 1 and self._is_alone(step):
            self.collect()
            self.is_placed = False  # the other members have not learned anything yet

    def take(self, model: Any) -> None:
        """Copy the vectors of a smaller model."""
        self.run.take(model)

    def scatter(self, step: int) -> None:
        """Give all matrices to every replica."""
        for name, rows in self.matrices.items():
            for _, start, stop in self._blocks(name, 0, len(rows)):
                self.team.ask("put", name, start, rows[start:stop])
        self.team.ask("begin", [*self._frequent, *self._rest])

    def gather(self, step: int) -> dict[str, np.ndarray]:
        """The matrices of the first replica; after a merge all are equal."""
        found = {name: np.empty_like(rows) for name, rows in self.matrices.items()}
        for name, rows in found.items():
            for _, start, stop in self._blocks(name, 0, len(rows)):
                rows[start:stop] = self.team.ask_one(0, "rows", name, start, stop)
        return found

    def advance(self, step: int) -> np.ndarray:
        """Train in rounds up to the next merge of all rows."""
        end, stats = self.after(step), np.zeros(3)
        if self.num == 1 or self._is_alone(step):
            return stats + self.team.ask_one(0, "train", step, end, 1)
        first = step
        while first < end:
            last = self.edges[bisect_right(self.edges, first)]
            stats += sum(self.team.ask("train", first, last, self.num))
            self._merge(self._frequent, first, last)
            first = last
        self._merge(self._rest, step, end)
        return stats

    def _is_alone(self, step: int) -> bool:
        return step < self.edges[1]

    def _merge(self, blocks: list[Block], first: int, last: int) -> None:
        words = (self.words_at(last) - self.words_at(first)) / self.num
        for block in blocks:
            self.team.exchange("give", "join", "take", block, words, self.rate_at(first))

    def _blocks(self, name: str, start: int, stop: int) -> Iterator[Block]:
        size = max(1, BLOCK_BYTES // (4 * self.run.width))
        for at in range(start, stop, size):
            yield Block(name, at, min(at + size, stop))


def order_of(uses: np.ndarray) -> np.ndarray:
    """The rows from the one that is used most to the one that is used least."""
    return np.argsort(-uses, kind="stable")


def round_edges(num_steps: int, chunk: int, num: int) -> list[int]:
    """The steps at which a round begins, and the end; the first round is that of one member."""
    edges = [0, min(num_steps, max(1, min(ALONE_WORDS // chunk, int(ALONE_SHARE * num_steps))))]
    while edges[-1] < num_steps:
        wanted = min(MOST_WORDS // chunk, int(GROWTH * edges[-1] / num))
        edges.append(min(num_steps, edges[-1] + num * max(1, wanted)))
    return edges


def memory_of(run: WindowRun) -> int:
    """The bytes that a member needs: matrices and what they were, parts on their way, Python."""
    return 2 * sum(rows.nbytes for rows in run.matrices.values()) + 4 * BLOCK_BYTES + _PROCESS_BYTES


def new_run(
    run_class: Any, executor: Executor, config: Any, store: TokenStore, *words: Any
) -> ReplicaRun:
    """A run whose steps are done by the workers of a cluster."""
    first = run_class(config, store, *words)
    layout = executor.layout(config.workers, memory_of(first))
    config = replace(config, workers=layout.threads)
    chunk = CHUNK if layout.num > 1 else first.chunk_size
    first.close()
    open_run = partial(_open, run_class, config, store.path, words, chunk)
    make = partial(Replica, open_run, layout.num)
    return ReplicaRun(open_run(), partial(executor.team, make, layout), layout.num)


def _open(run_class: Any, config: Any, path: Path, words: tuple[Any, ...], chunk: int) -> WindowRun:
    """The run of one process, wherever it is."""
    run: WindowRun = run_class(config, TokenStore.open(path), *words, chunk=chunk)
    return run

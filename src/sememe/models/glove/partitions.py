"""GloVe on several workers: each owns a part of the words, and the contexts go round.

Words and contexts are dealt to N groups (`cells`). In turn t, member k trains on the cells with
words of group k and contexts of group (k + t) mod N: no two members have a row in common, so the
steps are those of one process in another order (Gemulla et al. 2011). Then each hands its contexts,
with their AdaGrad sums, to the one before it. N turns have visited all cells. A member holds one
N-th of both matrices.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sememe.executor import Executor
from sememe.models.glove.cells import CellFile
from sememe.models.glove.config import GloVeConfig
from sememe.models.glove.kernels import random_order
from sememe.models.glove.training import ORDER, GloVeRun, row_size
from sememe.models.static.loop import Crew
from sememe.models.static.model import matrix
from sememe.models.static.together import BLOCK_BYTES, JointRun
from sememe.randomness import stream_key
from sememe.teams import Layout

PIECE_CELLS = 1 << 25  # of a member between two moments at which the run can stop


class Partition(GloVeRun):
    """A member's words, and the contexts that it holds now."""

    def __init__(
        self, config: GloVeConfig, path: Path, num_words: int, num: int, num_steps: int, number: int
    ) -> None:
        """num_steps: of a turn."""
        self.num, self.pieces, self.number = num, num_steps, number
        group = -(-num_words // num)
        words, contexts = (matrix(group, 2 * row_size(config.dim)) for _ in range(2))
        self._set_up(config, CellFile.open_checked(path), words, contexts)
        self._turn, self._parts = -1, np.empty(0, np.int64)

    def put(self, name: str, start: int, rows: np.ndarray) -> None:
        """Take over rows of a group."""
        self.matrices[name][start : start + len(rows)] = rows

    def rows(self, name: str, start: int, stop: int) -> np.ndarray:
        """Rows of a group."""
        return self.matrices[name][start:stop].copy()

    def train(self, step: int) -> np.ndarray:
        """Do this member's part of a step; its stats."""
        turn, piece = divmod(step, self.pieces)
        if turn != self._turn:
            columns = (self.number + turn) % self.num
            parts = self.cells.steps_of(self.number, columns, self.num)
            order = np.empty(len(parts), np.int64)
            key = stream_key(self.config.seed, ORDER, turn * self.num + self.number)
            random_order(np.uint64(key), order)
            self._turn, self._parts = turn, parts[order]
        edges = [len(self._parts) * edge // self.pieces for edge in (piece, piece + 1)]
        crew = Crew(self, *edges)
        crew.advance(lambda _: True)
        return crew.stats()

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Train on one of the parts of a turn."""
        draw = (self._turn * self.num + self.number) * self.num_steps + step
        self.learn(int(self._parts[step]), draw, stats)

    def give(self, start: int, stop: int) -> list[np.ndarray]:
        """Rows of the contexts, for the member before this one."""
        given = [np.empty((0, 0), np.float32)] * self.num
        given[self.number - 1] = self.rows("contexts", start, stop)
        return given

    def join(self, start: int, stop: int, *given: np.ndarray) -> None:
        """Take over the rows that the member after this one gave."""
        self.put("contexts", start, given[(self.number + 1) % self.num])

    def take(self, start: int, stop: int, *joined: None) -> None:
        """There is nothing more to take."""


class PartitionRun(JointRun):
    """A run of GloVe whose cells are divided among the members."""

    run: GloVeRun

    def __init__(self, run: GloVeRun, executor: Executor, layout: Layout) -> None:
        num = layout.num
        self.pieces = max(1, run.cells.num_cells // (num * num * PIECE_CELLS))
        config = replace(run.config, workers=layout.threads)
        place = (run.cells.path, len(run.vocabulary), num, self.pieces)
        make = partial(Partition, config, *place)
        super().__init__(run, partial(executor.team, make, layout), num)
        self.num_steps = num * self.pieces * run.config.epochs
        self.vocabulary = run.vocabulary

    def begin(self) -> None:
        """Initialize the matrices."""
        self.run.begin()

    def words_at(self, step: int) -> int:
        """Words of text that correspond to the cells before `step`."""
        return step * self.tokens_per_epoch // (self.num * self.pieces)

    def scatter(self, step: int) -> None:
        """Give every member its words, and the contexts of its turn."""
        for name, group, member in self._groups(step):
            rows = self.matrices[name][group :: self.num]
            for start, stop in self._slices():
                self.team.ask_one(member, "put", name, start, rows[start:stop])

    def gather(self, step: int) -> dict[str, np.ndarray]:
        """The words and contexts of all members before `step`."""
        found = {name: np.empty_like(rows) for name, rows in self.matrices.items()}
        for name, group, member in self._groups(step):
            rows = found[name][group :: self.num]
            for start, stop in self._slices():
                own = self.team.ask_one(member, "rows", name, start, min(stop, len(rows)))
                rows[start:stop] = own
        return found

    def advance(self, step: int) -> np.ndarray:
        """Train on a piece of a turn; after the last one the contexts go to the next members."""
        stats = sum(self.team.ask("train", step), np.zeros(3))
        if (step + 1) % self.pieces == 0 and self.num > 1:
            for start, stop in self._slices():
                self.team.exchange("give", "join", "take", start, stop)
        return stats

    def _groups(self, step: int) -> list[tuple[str, int, int]]:
        """The name of a matrix, a group of its rows, and the member that has it before a step."""
        turn = step // self.pieces
        members = range(self.num)
        return [
            *(("words", member, member) for member in members),
            *(("contexts", (member + turn) % self.num, member) for member in members),
        ]

    def _slices(self) -> list[tuple[int, int]]:
        num_rows = -(-len(self.run.vocabulary) // self.num)
        size = max(1, BLOCK_BYTES // (8 * self.run.width))
        return [(start, min(start + size, num_rows)) for start in range(0, num_rows, size)]

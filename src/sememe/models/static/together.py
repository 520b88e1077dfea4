"""A static model trained by several workers together: the run that the loop drives here.

A `JointRun` stands for the run of one process. Its members are on the nodes of a cluster, or in
this process; `run.matrices` is the copy here, which is brought up to date occasionally. If a member
is lost, all members begin again with that copy and repeat the steps since.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from sememe.errors import ClusterError
from sememe.models.static.loop import StaticRun
from sememe.models.static.model import StaticModel
from sememe.teams import LostMembersError, Team

BLOCK_BYTES = 64 << 20  # of rows that a member sends or takes at a time
_MOST_LOSSES = 5  # in a row, without a step done
_COPY_S, _COPY_SHARE = 5.0, 0.05  # copying takes at most this share of the time


class JointRun(StaticRun):
    """A run whose steps are done by the members of a team."""

    def __init__(self, run: StaticRun, start: Callable[[], Team], num: int) -> None:
        """run: that of one process, for everything but the steps; `start` makes the team."""
        self.run, self.num = run, num
        self.num_steps, self.tokens_per_epoch = run.num_steps, run.tokens_per_epoch
        self.start_rate, self.matrices = run.start_rate, run.matrices
        self.num_workers = 1  # one thread here asks the team
        self._start = start
        self._team: Team | None = None
        self._since: list[int] = []  # the steps done since the copy here
        self.is_placed = False  # whether the members have matrices
        self._copied_s, self._copy_s = time.monotonic(), 0.0

    @property
    def team(self) -> Team:
        """The members, which are made at the first step."""
        if self._team is None:
            self._team = self._start()
        return self._team

    @abstractmethod
    def scatter(self, step: int) -> None:
        """Give the matrices here to the members, which will do `step` next."""

    @abstractmethod
    def advance(self, step: int) -> np.ndarray:
        """Let the members do the steps from `step` on, up to the next call; their stats."""

    @abstractmethod
    def gather(self, step: int) -> dict[str, np.ndarray]:
        """The members' matrices; `step` comes next."""

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Let the members do a step; add its stats."""
        stats += self._safely(lambda: self._next(step))
        self._since.append(step)
        if time.monotonic() - self._copied_s > max(_COPY_S, self._copy_s / _COPY_SHARE):
            self.collect()

    def collect(self) -> None:
        """Bring the matrices here up to date."""
        if self._since:
            self._safely(self._copy)

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the matrices to the model."""
        self.collect()
        self.run.hand_over(model, is_final=is_final)

    def start_message(self) -> str:
        """One line that describes the training about to start."""
        self._safely(lambda: self.team)  # here Ctrl-C ends the wait for cores
        return f"{self.run.start_message()}, in each of {self.num} processes on the cluster"

    def words_at(self, step: int) -> int:
        """Words of text before `step`, over all epochs."""
        return self.run.words_at(step)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        return self.run.rate_at(step)

    def close(self) -> None:
        """End the members and close files."""
        if self._team is not None:
            self._team.close()
            self._team = None
        self.run.close()

    def _next(self, step: int) -> np.ndarray:
        self._settle(step)
        return self.advance(step)

    def _settle(self, step: int) -> None:
        """Let members without matrices begin with those here, and repeat the steps up to `step`."""
        if not self.is_placed:
            self.scatter(self._since[0] if self._since else step)
            for own in self._since:
                self.advance(own)
            self.is_placed = True

    def _copy(self) -> None:
        step = self.after(self._since[-1])
        self._settle(step)
        begun_s = time.monotonic()
        # Members may be lost meanwhile: the copy here is replaced by a complete one only.
        for name, rows in self.gather(step).items():
            self.matrices[name][:] = rows
        self._since.clear()
        self._copied_s = time.monotonic()
        self._copy_s = self._copied_s - begun_s

    def _safely(self, work: Callable[[], Any]) -> Any:
        """Do work with the team, again if members are lost."""
        lost: list[int] = []
        for _ in range(_MOST_LOSSES):
            try:
                if lost:
                    self.team.replace(lost)
                return work()
            except LostMembersError as error:
                lost, self.is_placed = error.members, False
        raise ClusterError(
            f"Workers of the cluster were lost {_MOST_LOSSES} times in a row; the last checkpoint "
            "can be resumed."
        )

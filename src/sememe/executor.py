"""Where independent tasks run: in threads of this process, or in the workers of a cluster.

Rooms that count and compute hand a function and its items to an executor. With threads, both are
used as they are; a cluster sends them to other machines, so that they must be picklable and must
find their files at the same paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from sememe.machine import available_cores, in_order
from sememe.teams import Layout, LocalTeam, Make, Team

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Runs tasks in parallel, on this machine or on others."""

    @property
    def num_tasks(self) -> int:
        """How many tasks run at a time."""
        ...

    @property
    def cores(self) -> int:
        """The cores of each task."""
        ...

    @property
    def memory(self) -> int | None:
        """The bytes that each task may use; None if the tasks share those of this process."""
        ...

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield work(item) of every item in order; an error of a task is raised here."""
        ...

    def layout(self, threads: int, memory: int) -> Layout:
        """The team that there is room for: members of this many threads (0: any) and bytes each."""
        ...

    def team(self, make: Make, layout: Layout) -> Team:
        """Make members that keep what they know: make(number) where each of them is."""
        ...

    def map_loaded(
        self, work: Callable[[Item], Result], items: Iterable[Item], *, on_gpus: bool = False
    ) -> Iterator[Result]:
        """Like `map`, for work that loads much: each worker keeps it, and may have a GPU."""
        ...


class Threads:
    """The cores of this process."""

    cores = 1
    memory = None

    def __init__(self, workers: int = 0) -> None:
        self.num_tasks = workers or available_cores()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield work(item) of every item in order."""
        with ThreadPoolExecutor(self.num_tasks) as pool:
            yield from in_order(pool, work, items, self.num_tasks)

    def layout(self, threads: int, memory: int) -> Layout:
        """One member in each of `workers` threads."""
        return Layout(self.num_tasks, threads or 1, memory)

    def team(self, make: Make, layout: Layout) -> Team:
        """Members in threads of this process."""
        return LocalTeam(make, layout.num)

    def map_loaded(
        self, work: Callable[[Item], Result], items: Iterable[Item], *, on_gpus: bool = False
    ) -> Iterator[Result]:
        """Yield work(item) of every item in order."""
        return map(work, items)


_CLUSTER: ContextVar[Executor | None] = ContextVar("cluster", default=None)


def cluster() -> Executor | None:
    """The cluster that the work of this context runs on; None for this process alone."""
    return _CLUSTER.get()


@contextmanager
def running_on(executor: Executor | None) -> Iterator[None]:
    """Let the work within this context run on a cluster; None: in this process."""
    token = _CLUSTER.set(executor)
    try:
        yield
    finally:
        _CLUSTER.reset(token)

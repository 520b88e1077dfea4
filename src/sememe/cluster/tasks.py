"""An executor whose tasks run on the workers of a Ray cluster.

A task that is lost with its worker or its node is repeated on another one; tasks write to new files
only, so that nothing of a lost one is read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sememe.cluster.team import RayTeam, first_line, layout_on
from sememe.errors import ClusterError, SememeError
from sememe.storage.folder import write_errors
from sememe.teams import Layout, Make

if TYPE_CHECKING:
    from sememe.cluster.connection import Node

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_TRIES = 5
_MEMORY_SHARE = 0.5  # of a core's part of the memory; the rest is for reading and for Ray


@dataclass(frozen=True)
class _InPlace:
    """A function called in the working folder of the command, so that paths may be relative.

    A worker of a cluster begins in the folder where `ray start` ran.
    """

    place: str
    work: Callable[[Any], Any]

    def __call__(self, item: Any) -> Any:
        with suppress(OSError):  # a folder that only the first machine has
            os.chdir(self.place)
        return self.work(item)


class RayTasks:
    """Runs tasks of one core each on all cores of a cluster, and teams."""

    cores = 1

    def __init__(
        self, ray: Any, nodes: Callable[[], Sequence[Node]], num_workers: int = 0,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        """nodes: what lists the living nodes; num_workers: members of a team; 0: one per node."""
        self.ray, self._nodes, self._note = ray, nodes, note
        self._num_workers = num_workers
        found = nodes()
        self.node_cores = min((node.cores for node in found if node.cores), default=1)
        self.num_gpus = sum(node.gpus for node in found)
        self._pool: tuple[bytes, _Pool] | None = None
        self.num_tasks = sum(node.cores for node in found)
        if not self.num_tasks:
            raise ClusterError("The cluster has no cores for tasks: no node offers any.")
        self.memory = int(
            _MEMORY_SHARE * min(node.memory / node.cores for node in found if node.cores)
        )

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield work(item) of every item in order, at most twice as many begun as cores."""
        self.close()
        ray = self.ray
        # Sent once, however many items there are.
        shared = ray.put(_InPlace(str(Path.cwd()), work))
        run = ray.remote(_run).options(num_cpus=self.cores, max_retries=_MOST_TRIES)
        pending: deque[Any] = deque()
        try:
            for item in items:
                pending.append(run.remote(shared, item))
                if len(pending) > 2 * self.num_tasks:
                    yield computed(ray, pending.popleft(), "A task")
            while pending:
                yield computed(ray, pending.popleft(), "A task")
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)

    def layout(self, threads: int, memory: int) -> Layout:
        """The members that the nodes have room for, by --num-workers and the model's workers."""
        return layout_on(self._nodes(), self._num_workers, threads, memory)

    def team(self, make: Make, layout: Layout) -> RayTeam:
        """Members on the nodes of the cluster."""
        self.close()
        return RayTeam(self.ray, self._nodes, self._note, make, layout)

    def check_folder(self, folder: Path) -> None:
        """Raise an error unless every node sees a folder, which is made."""
        folder = folder.absolute()
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for name, is_there in on_each_node(self.ray, _is_folder, folder):
            if not is_there:
                raise ClusterError(
                    f"The node {name} does not see the folder {folder}: choose one on storage that "
                    "all nodes share."
                )

    def call(self, function: Callable[..., Result], *arguments: Any, gpus: int = 0) -> Result:
        """Call a function on a node, one with GPUs if it needs some."""
        task = self.ray.remote(function).options(num_cpus=1, num_gpus=gpus, max_retries=3)
        found: Result = computed(self.ray, task.remote(*arguments), "A task")
        return found

    def map_loaded(
        self, work: Callable[[Item], Result], items: Iterable[Item], *, on_gpus: bool = False
    ) -> Iterator[Result]:
        """Like `map`; each worker keeps what `work` has loaded, and has a GPU if there are any."""
        key = self.ray.cloudpickle.dumps(work)
        if self._pool is None or self._pool[0] != key:
            self.close()
            has_gpus = on_gpus and self.num_gpus
            needs = {"num_cpus": self.cores, "num_gpus": 1 if has_gpus else 0}
            num = self.num_gpus if has_gpus else self.num_tasks
            self._pool = key, _Pool(self.ray, work, num, needs)
        return self._pool[1].map(items)

    def close(self) -> None:
        """End the workers that have loaded something."""
        if self._pool is not None:
            self._pool[1].close()
            self._pool = None


def on_each_node(
    ray: Any, function: Callable[..., Result], *arguments: Any
) -> Iterator[tuple[str, Result]]:
    """Call a function on each living node that has cores; yield the node's name and the result."""
    for node in ray.nodes():
        if not node["Alive"] or not node["Resources"].get("CPU"):
            continue
        name = node["NodeManagerHostname"]
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        there = strategy(node["NodeID"], soft=False)
        task = ray.remote(function).options(num_cpus=0, scheduling_strategy=there)
        try:
            found = computed(ray, task.remote(*arguments), f"The node {name}")
        except ClusterError as error:
            if isinstance(error.__cause__, ray.exceptions.TaskUnschedulableError):
                continue  # it has gone meanwhile
            raise
        yield name, found


def _is_folder(folder: Path) -> bool:
    return folder.is_dir()


def _run(work: Callable[[Any], Any], item: Any) -> Any:
    return work(item)


def computed(ray: Any, reference: Any, what: str) -> Any:
    """The result of a task; `what` names it in errors."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, SememeError):
            raise error.cause from None
        raise ClusterError(
            f"{what} failed on the cluster: {first_line(error.cause or error)}."
        ) from error
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"{what} was lost on the cluster {_MOST_TRIES} times: {first_line(error)}. Nodes that "
            "run out of memory need fewer tasks: `ray start --num-cpus`."
        ) from error


class _Worker:
    """A process of the cluster that keeps what it has loaded."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def ready(self) -> bool:
        """Whether it runs."""
        return True

    def do(self, item: Any) -> Any:
        """Compute an item."""
        return self._work(item)


class _Pool:
    """Workers with one loaded function; a worker that is lost gives its items to the others."""

    def __init__(self, ray: Any, work: Callable[[Any], Any], num: int, needs: dict[str, Any]):
        self.ray, self._needs = ray, needs
        self._shared = ray.put(_InPlace(str(Path.cwd()), work))
        self._starting: dict[Any, Any] = {}  # the answer of `ready`, and its worker
        self._alive: set[Any] = set()
        self._num_lost = 0
        for _ in range(num):
            self._start()

    def _start(self) -> None:
        worker = self.ray.remote(_Worker).options(**self._needs).remote(self._shared)
        self._starting[worker.ready.remote()] = worker

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of every item in order; a few more than workers are begun."""
        ray, source = self.ray, enumerate(items)
        again: deque[tuple[int, Any, int]] = deque()  # number, item, tries
        running: dict[Any, tuple[Any, int, Any, int]] = {}
        results: dict[int, Any] = {}
        loads: dict[Any, int] = {}  # how many of these items each worker has
        is_over, num_yielded = False, 0
        try:
            while True:
                limit = 4 * (len(self._alive) + len(self._starting))
                while worker := self._free(loads):
                    if again:
                        number, item, tries = again.popleft()
                    elif is_over or len(running) + len(results) >= limit:
                        break
                    elif (following := next(source, None)) is None:
                        is_over = True
                        break
                    else:
                        (number, item), tries = following, 0
                    loads[worker] = loads.get(worker, 0) + 1
                    running[worker.do.remote(item)] = worker, number, item, tries
                while num_yielded in results:
                    yield results.pop(num_yielded)
                    num_yielded += 1
                if is_over and not running and not again:
                    return
                if not running and not again and self._alive:
                    continue
                ready, _ = ray.wait([*running, *self._starting], num_returns=1)
                for reference in ready:
                    if reference in self._starting:
                        self._begin(reference)
                        continue
                    worker, number, item, tries = running.pop(reference)
                    try:
                        results[number] = computed(ray, reference, "A part")
                    except ClusterError as error:
                        self._lose(worker, error, tries)
                        again.append((number, item, tries + 1))
                    else:
                        loads[worker] -= 1
        finally:
            for reference in running:
                ray.cancel(reference)

    def _free(self, loads: dict[Any, int]) -> Any:
        """A worker with fewer than two items: one that it computes, and one that waits."""
        worker = min(self._alive, key=lambda own: loads.get(own, 0), default=None)
        return worker if worker is not None and loads.get(worker, 0) < 2 else None

    def close(self) -> None:
        """End the workers, so that their cores are free."""
        for worker in (*self._alive, *self._starting.values()):
            self.ray.kill(worker)

    def _begin(self, reference: Any) -> None:
        worker = self._starting.pop(reference)
        try:
            self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self._num_lost += 1
            if self._num_lost > _MOST_TRIES:
                raise ClusterError(f"Workers do not start: {first_line(error)}.") from error
            self._start()
            return
        self._alive.add(worker)

    def _lose(self, worker: Any, error: ClusterError, tries: int) -> None:
        """Continue without a worker whose process or node has gone; raise any other error."""
        if not isinstance(error.__cause__, self.ray.exceptions.RayActorError):
            raise error
        if tries + 1 >= _MOST_TRIES:
            raise error
        if worker in self._alive:
            self._alive.remove(worker)
            self._start()  # where there is room, now or later


class Ended(NamedTuple):
    """The last news of a job: nothing went wrong, or why it ended; `is_lost` with its worker."""

    why: str = ""
    is_lost: bool = False


class Streams:
    """Jobs that tell news while they run, each on a worker that has what it needs."""

    def __init__(self, ray: Any, work: Callable[[Any], Iterator[Any]]) -> None:
        self.ray, self._shared = ray, ray.put(_InPlace(str(Path.cwd()), work))
        self._running: dict[Any, Any] = {}  # the stream of each job

    def start(self, job: Any, *, cores: float, gpus: float) -> None:
        """Begin a job where there is room for it, now or later."""
        # Not repeated by Ray: a job may have to begin elsewhere than at its start.
        task = self.ray.remote(_stream).options(
            num_cpus=cores, num_gpus=gpus, max_retries=0, num_returns="streaming"
        )
        self._running[task.remote(self._shared, job)] = job

    def news(self) -> Iterator[tuple[Any, Any]]:
        """Yield each job with what it tells, at last `Ended`, until no job is left."""
        ray = self.ray
        try:
            while self._running:
                (stream, *_), _ = ray.wait([*self._running], num_returns=1)
                job = self._running[stream]
                try:
                    message = ray.get(next(stream))
                except StopIteration:
                    message = Ended()
                except ray.exceptions.RayTaskError as error:
                    message = Ended(first_line(error.cause or error))
                except ray.exceptions.RayError as error:
                    message = Ended(first_line(error), is_lost=True)
                if isinstance(message, Ended):
                    del self._running[stream]
                yield job, message
        finally:
            for stream in self._running:
                ray.cancel(stream, force=True)


def _stream(work: Callable[[Any], Iterator[Any]], job: Any) -> Iterator[Any]:
    yield from work(job)

"""Long work in the background: a function in, progress and its result out; and recent results.

The page starts a job, follows its progress, and then reads the result. A job has the key of what it
computes, so that the same work is done once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from sememe.errors import InputError, SememeError

Report = Callable[[float, str], None]
_MOST_JOBS = 64  # whose results are kept
_CANCELLED = "Cancelled."


class CancelledError(SememeError):
    """A job that nobody wants any more."""


class Job:
    """Running work: how far it is, and its result."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.share, self.message = 0.0, ""
        self.future: Future[Any] = Future()
        self.is_cancelled = threading.Event()

    def report(self, share: float, message: str = "") -> None:
        """Note the progress, from 0 to 1; ends a job that was cancelled."""
        if self.is_cancelled.is_set():
            raise CancelledError(_CANCELLED)
        self.share, self.message = share, message or self.message

    def state(self) -> dict[str, Any]:
        """The progress in JSON values."""
        state, error = "running", ""
        if self.future.done():
            failure = self.future.exception()
            state, error = ("failed", str(failure)) if failure else ("done", "")
        elif self.is_cancelled.is_set():  # it ends at its next report, or before it begins
            state, error = "failed", _CANCELLED
        return {
            "id": self.key, "state": state, "progress": self.share, "message": self.message,
            **({"error": error} if error else {}),
        }  # fmt: skip


class Jobs:
    """The jobs of a service by key; a few run at a time."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._pool = ThreadPoolExecutor(4, "sememe-job")

    def start(self, key: str, work: Callable[[Report], Any], *, is_new: bool = False) -> Job:
        """Begin work, unless it was begun before and did not fail (`is_new`: and still runs)."""
        job = self._jobs.get(key)
        if job is not None:
            is_over = job.future.done() and (is_new or job.future.exception() is not None)
            if not is_over and not job.is_cancelled.is_set():
                return job
        self._jobs.pop(key, None)  # the new one is the latest
        job = self._jobs[key] = Job(key)
        # One that runs is kept: the page shows it, and can cancel it.
        over = [old for old, own in self._jobs.items() if own.future.done()]
        for old in over[: max(0, len(self._jobs) - _MOST_JOBS)]:
            del self._jobs[old]
        self._pool.submit(self._run, job, work)
        return job

    @staticmethod
    def _run(job: Job, work: Callable[[Report], Any]) -> None:
        try:
            job.report(0.0)
            job.future.set_result(work(job.report))
        except BaseException as error:  # whatever it is, the page is told
            job.future.set_exception(error)

    def find(self, key: str) -> Job:
        """The job of a key."""
        if (job := self._jobs.get(key)) is None:
            raise InputError("There is no such job: start it again.")
        return job

    def result(self, key: str) -> Any:
        """What a finished job has computed."""
        job = self.find(key)
        if not job.future.done():
            raise InputError("The job is not finished.")
        return job.future.result()

    def cancel(self, key: str) -> None:
        """End a job at its next report."""
        self.find(key).is_cancelled.set()

    def close(self) -> None:
        """End all jobs."""
        for job in self._jobs.values():
            job.is_cancelled.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


Result = TypeVar("Result")


class Recent(Generic[Result]):
    """The latest results by key; several threads may use it.

    A key that holds `weakref.ref(model)` is only that of this very model, not of one loaded later.
    A result above the limit is kept until the next one comes.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[Hashable, tuple[Result, int]] = {}  # the latest is last
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Result | None:
        """The result of a key, which is now the latest; None if it is not kept."""
        with self._lock:
            if (found := self._kept.pop(key, None)) is None:
                return None
            self._kept[key] = found
            return found[0]

    def put(self, key: Hashable, result: Result, num_bytes: int) -> None:
        """Keep a result; the oldest ones go until the others are within the limit."""
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = result, num_bytes
            total = sum(size for _, size in self._kept.values())
            for old in list(self._kept)[:-1]:
                if total <= self._most_bytes:
                    break
                total -= self._kept.pop(old)[1]

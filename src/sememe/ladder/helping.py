"""A process beside a ladder: a brief and jobs come in over its standard input, news go out.

`python -m sememe.ladder.helping` is started by beside.py. It ends when the pipe closes, so that it
cannot outlive the ladder. Processes of `multiprocessing` would import the user's script again.
"""

from __future__ import annotations

import _thread
import os
import pickle
import queue
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from sememe.errors import SememeError
from sememe.ladder.climbing import Brief, News, asking, training
from sememe.ladder.questions import Interview
from sememe.ladder.results import Rung
from sememe.progress import SILENT, Reporter
from sememe.progress.reporter import Task

if TYPE_CHECKING:
    from sememe.ladder.tasks import Questions

_STATUS_S = 1.0
ENDING_S = 20.0  # after which a helper that does not stop is ended


class Job(NamedTuple):
    """What a helper is given: a rung to train, or to ask the questions of some names."""

    rung: Rung
    wanted: tuple[str, ...] = ()
    looks: bool = False

    @property
    def is_training(self) -> bool:
        """Whether there is nothing to ask yet."""
        return self.rung.state != "done"


class Status(NamedTuple):
    """How far a training is."""

    rung: str
    text: str


class Done(NamedTuple):
    """A job is over; `failed` says what broke that no rung is to blame for."""

    failed: str = ""


class _Messenger(Reporter):
    """A reporter whose lines another process shows."""

    def __init__(self, send: Any) -> None:
        super().__init__()
        self._send = send
        self.rung = ""

    def note(self, text: str) -> None:
        """Say nothing: the ladder tells what matters."""

    def _open(self, task: Task) -> None: ...

    def _redraw(self, task: Task, now_s: float) -> float:
        task._mark(now_s)
        self._send(Status(self.rung, f"{task.title} " + " · ".join(task.describe())))
        return _STATUS_S

    def _close(self, task: Task, has_failed: bool) -> None: ...


class _Worker:
    """Jobs in, news out."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._interview: Interview | None = None

    @cached_property
    def _asked(self) -> Questions:
        return self._brief.questions(SILENT)

    def news(self, job: Job, messenger: _Messenger) -> Iterator[News]:
        """Do a job, and tell of every piece of it."""
        messenger.rung = job.rung.name
        if job.is_training:
            yield from training(self._brief, job.rung, messenger)
            return
        if self._interview is None or self._interview.rung.name != job.rung.name:
            self._interview = Interview(
                job.rung, Path(job.rung.path), self._asked.uses, self._brief.plan.device
            )
        yield from asking(self._brief, self._interview, self._asked, job.wanted, looks=job.looks)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Do job after job until `requests` ends; the first thing in it is the brief."""
    jobs: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_receive, args=(requests, jobs), daemon=True).start()

    def send(message: Any) -> None:
        pickle.dump(message, answers)
        answers.flush()

    worker, messenger = _Worker(jobs.get()), _Messenger(send)
    while (job := jobs.get()) is not None:
        try:
            for news in worker.news(job, messenger):
                send(news)
        except SememeError as error:
            send(Done(str(error)))
        else:
            send(Done())


def _receive(requests: IO[bytes], jobs: queue.Queue[Any]) -> None:
    """Take requests; when the ladder has gone, stop what is being done as Ctrl-C would."""
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            jobs.put(pickle.load(requests))
    jobs.put(None)
    _thread.interrupt_main()
    threading.Event().wait(ENDING_S)
    os._exit(1)


def main() -> None:
    """Serve the ladder that has started this process."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not break the news
    code = 1
    try:
        serve(sys.stdin.buffer, answers)
        code = 0
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    except Exception:
        traceback.print_exc()
    # Python would wait for the thread that reads, and then abort.
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    # What is pickled must be of the module that the ladder knows, not of __main__.
    from sememe.ladder import helping

    helping.main()

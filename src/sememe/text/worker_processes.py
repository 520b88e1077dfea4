"""Worker processes for libraries that hold the GIL: requests in, answers out.

A worker is `python -m MODULE`, whose main block calls `serve`: frames come in over its standard
input and answers go out; it ends when the pipe closes, so it cannot outlive its parent. Processes
of `multiprocessing` would import the user's script again and break one without a main guard.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Any

from sememe.errors import SememeError


class _FailedAnswer(str):
    """What went wrong in a worker."""


def answer_requests(
    start: Callable[[Any], Callable[[Any], Any]], requests: IO[bytes], answers: IO[bytes]
) -> None:
    """Answer until `requests` ends: the first content goes to `start`, the rest to its result."""
    work: Callable[[Any], Any] | None = None
    with suppress(EOFError, pickle.UnpicklingError):  # the parent is done, or killed as it wrote
        while True:
            content = pickle.load(requests)
            answer: Any = None
            try:
                if work is None:
                    work = start(content)
                else:
                    answer = work(content)
            except Exception as error:
                answer = _FailedAnswer(f"{type(error).__name__}: {error}")
            pickle.dump(answer, answers)
            answers.flush()


def serve(start: Callable[[Any], Callable[[Any], Any]]) -> None:
    """Run as a worker over standard input and output."""
    # Ctrl-C reaches every process of the terminal; the parent decides when we stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        answer_requests(start, sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:  # the parent was killed; nobody waits for the answer
        os._exit(1)


class WorkerProcess:
    """The parent's end of one process; `purpose` completes "A process that …" in messages."""

    def __init__(self, module: str, purpose: str, first: Any) -> None:
        self._purpose = purpose
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        # -P: a file of the user's working folder must not shadow a module.
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            )
        except OSError as error:
            raise SememeError(
                f"A process that {purpose} cannot be started ({error.strerror}); run again with "
                "one worker."
            ) from error
        self.ask(first)

    def ask(self, content: Any) -> Any:
        """The worker's answer to `content`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            pickle.dump(content, self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            code = self._process.wait()
            raise SememeError(
                f"A process that {self._purpose} ended with code {code}, perhaps out of memory; "
                "run again with fewer workers."
            ) from None
        if isinstance(answer, _FailedAnswer):
            raise SememeError(f"A process that {self._purpose} failed: {answer}.")
        return answer

    def close(self) -> None:
        """Let the worker end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


class WorkerProcesses(AbstractContextManager["WorkerProcesses"]):
    """Processes started when threads need them, at most one for each thread."""

    def __init__(self, module: str, purpose: str, first: Any) -> None:
        self._start = module, purpose, first
        self._idle: queue.LifoQueue[WorkerProcess] = queue.LifoQueue()
        self._started: list[WorkerProcess] = []

    def ask(self, content: Any) -> Any:
        """The answer of an idle worker, or of a new one."""
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = WorkerProcess(*self._start)
            self._started.append(worker)
        answer = worker.ask(content)
        self._idle.put(worker)
        return answer

    def __exit__(self, *_: Any) -> None:
        for worker in self._started:
            worker.close()

"""Worker processes of a ladder where there is a GPU: they train and ask while others do.

While one worker trains the networks on the GPU, another trains the models of the CPU's threads: the
two share next to nothing, so that each has the time it would have alone. Then all rungs are
evaluated in parallel, which is not timed. `main` is one worker: a brief and jobs come in over its
standard input, news go out. It ends when the pipe closes, so that it cannot outlive the ladder.

Why no `concurrent.futures`: its processes import the user's script again, which fails without a
guard; they outlive a ladder that is killed; and one that is killed takes the jobs of all with it.
"""

from __future__ import annotations

import _thread
import os
import pickle
import queue
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from sememe.errors import SememeError
from sememe.ladder.plan import cpu_workers
from sememe.ladder.reading import RungModel
from sememe.ladder.results import Cell, Rung
from sememe.ladder.rung_steps import Brief, evaluating, training
from sememe.ladder.rungs import SPECS
from sememe.machine import available_cores
from sememe.progress import SILENT, ProgressTask, Reporter

if TYPE_CHECKING:
    from sememe.ladder.running import _LadderRun
    from sememe.ladder.tasks import LadderQuestions

# As -m it would pickle classes of __main__, which the ladder does not know.
_PROGRAM = "from sememe.ladder.worker_pool import main; main()"
_STATUS_S = 1.0
ENDING_S = 20.0  # after which a helper that does not stop is ended


class Job(NamedTuple):
    """What a helper is given: a rung to train, or one that is done to ask some questions."""

    rung: Rung
    wanted: tuple[str, ...] = ()
    looks: bool = False


class Status(NamedTuple):
    """How far a training is."""

    rung: str
    text: str


class Done(NamedTuple):
    """A job is over; `failed` says what broke that no rung is to blame for."""

    failed: str = ""


class _Messenger(Reporter):
    """A reporter whose lines another process shows; notes are left to the ladder."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        super().__init__(quiet=True)
        self._send, self.rung = send, ""

    def _redraw(self, task: ProgressTask, now_s: float) -> float:
        task.mark(now_s)
        self._send(Status(self.rung, f"{task.label} " + " · ".join(task.describe())))
        return _STATUS_S


def messenger(send: Callable[[Any], None], rung: str) -> Reporter:
    """A reporter that sends how far the training of a rung is."""
    made = _Messenger(send)
    made.rung = rung
    return made


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Do job after job until `requests` ends; the first thing in it is the brief."""
    jobs: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_receive, args=(requests, jobs), daemon=True).start()

    def send(message: Any) -> None:
        pickle.dump(message, answers)
        answers.flush()

    brief, messenger = jobs.get(), _Messenger(send)
    asked: LadderQuestions | None = None
    rung_model: RungModel | None = None
    while (job := jobs.get()) is not None:
        messenger.rung = job.rung.name
        try:
            if job.rung.state != "done":
                news = training(brief, job.rung, messenger)
            else:
                asked = asked or brief.questions(SILENT)
                if rung_model is None or rung_model.rung.name != job.rung.name:
                    path = Path(job.rung.path)
                    rung_model = RungModel(job.rung, path, asked.uses, brief.plan.device)
                news = evaluating(brief, rung_model, asked, job.wanted, looks=job.looks)
            for one in news:
                send(one)
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


ENDED = "The process that did this ended"  # such a cell is evaluated again by a continued run


class Helper:
    """One process beside the ladder."""

    def __init__(self, brief: Brief, news: queue.Queue[Any], num_threads: int = 0) -> None:
        self.given = brief, news, num_threads
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        if num_threads:
            environment["OMP_NUM_THREADS"] = str(num_threads)
        self.job: Job | None = None
        # -P: a file of the user's working folder must not shadow a module. In a session of its own
        # it hears of Ctrl-C once, by the closed pipe: a second time would stop it without saving.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True,
        )  # fmt: skip
        self._send(brief)
        threading.Thread(target=self._listen, args=(news,), daemon=True).start()

    def _send(self, message: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended: its answers show that
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def _listen(self, news: queue.Queue[Any]) -> None:
        assert self._process.stdout is not None
        # Until the end of the pipe, or something in it that is not news.
        with self._process.stdout as answers, suppress(Exception):
            while True:
                news.put((self, pickle.load(answers)))
        news.put((self, None))

    def next_of(self, jobs: deque[Job]) -> None:
        """Let it do the next job, if there is one."""
        self.job = jobs.popleft() if jobs else None
        if self.job:
            self._send(self.job)

    @property
    def ending(self) -> str:
        """How a process that tells nothing more has ended, in words."""
        self.close()
        return f"{ENDED} with code {self._process.returncode}, perhaps out of memory."

    def close(self) -> None:
        """Close the pipe, and wait until the process has ended."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(ENDING_S + 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run_in_workers(run: _LadderRun, brief: Brief, asked: LadderQuestions) -> None:
    """Train what is not trained yet in two lanes, then ask what was not asked yet side by side."""
    brief = replace(brief, text=replace(brief.text))  # without what it has opened
    waiting = [rung for rung in run.results.rungs if rung.state != "done"]
    for rung in waiting:  # with all cores, before any clock runs
        if kind := SPECS[rung.name].subwords:
            run.view.note(f"Making the sub-words of {rung.title}.")
            brief.text.subwords(kind, brief.plan.vocab_size, run.view)
    # Where a run continues after its networks are done, the others get no more than those before.
    has_networks = any(SPECS[name].is_network for name in brief.chosen.names)
    fewer = replace(brief.plan, workers=cpu_workers(brief.config, has_networks=has_networks))
    news: queue.Queue[Any] = queue.Queue()
    lanes = {}
    for own, is_network in ((brief, True), (replace(brief, plan=fewer), False)):
        jobs = deque(Job(rung) for rung in waiting if SPECS[rung.name].is_network == is_network)
        if jobs:
            lanes[Helper(own, news)] = jobs
    _follow(run, lanes, news)
    jobs = deque(questions_left(run, asked))
    num = min(brief.plan.num_helpers, len(jobs))
    threads = max(1, available_cores() // max(1, num))
    news = queue.Queue()
    _follow(run, {Helper(brief, news, threads): jobs for _ in range(num)}, news)
    for rung in run.results.rungs:  # a run before may have left nothing to do with some
        run.view.end(rung.name)


def questions_left(run: _LadderRun, asked: LadderQuestions) -> Iterator[Job]:
    """What is left to ask, the longest first: what is learned, one question at a time."""
    long = [own.task.name for own in asked.questions if own.task.group == "sentences"]
    rungs = sorted(
        (rung for rung in run.results.rungs if rung.state == "done"),
        key=lambda rung: rung.family != "contextual",
    )
    for rung in rungs:
        wanted, _ = run.left_to_evaluate(rung.name)
        yield from (Job(rung, (name,)) for name in wanted if name in long)
    for rung in rungs:
        wanted, looks = run.left_to_evaluate(rung.name)
        short = tuple(name for name in wanted if name not in long)
        if short or looks:
            yield Job(rung, short, looks)


def _follow(run: _LadderRun, lanes: dict[Helper, deque[Job]], news: queue.Queue[Any]) -> None:
    """Hand out jobs and take the news until all is done."""
    helpers = list(lanes)
    try:
        for helper in helpers:
            helper.next_of(lanes[helper])
        while any(helper.job for helper in lanes):
            helper, message = news.get()
            if isinstance(message, Status):
                run.view.progress(*message)
            elif message is not None and not isinstance(message, Done):
                run.take(message)
            elif (job := helper.job) is not None:
                jobs = lanes[helper]
                if message is None:
                    give_up(run, job, helper.ending)
                    del lanes[helper]
                    if jobs:
                        helper = Helper(*helper.given)
                        helpers.append(helper)
                        lanes[helper] = jobs
                elif message.failed:
                    give_up(run, job, message.failed)
                helper.next_of(jobs)
                left = [
                    *(own.job for own in lanes),
                    *(one for own in lanes.values() for one in own),
                ]
                if all(one is None or one.rung.name != job.rung.name for one in left):
                    run.view.end(job.rung.name)
    finally:
        for helper in helpers:
            helper.close()


def give_up(run: _LadderRun, job: Job, why: str) -> None:
    """Record for what a helper could not do why there is nothing."""
    if job.rung.state != "done":
        run.take(replace(run.results.rung(job.rung.name), state="failed", why=why))
    for name in job.wanted:
        if run.results.cell(job.rung.name, name) is None:
            run.take(Cell(rung=job.rung.name, task=name, why=why))

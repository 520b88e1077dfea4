"""A ladder beside itself where there is a GPU: helpers train and ask while others do.

While one helper trains the networks on the GPU, another trains the models of the CPU's threads: the
two share next to nothing, so that each has the time it would have alone. Then all rungs are asked
side by side, which no clock measures. What a helper is stands in helping.py.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sememe.cores import available_cores
from sememe.ladder.climbing import Brief
from sememe.ladder.helping import ENDING_S, Done, Job, Status
from sememe.ladder.plan import cpu_workers
from sememe.ladder.results import Cell, Rung
from sememe.ladder.rungs import SPECS

if TYPE_CHECKING:
    from sememe.ladder.running import _Run
    from sememe.ladder.tasks import Questions

ENDED = "The process that did this ended"  # such a cell is asked again by a continued run


class Helper:
    """One process beside the ladder."""

    def __init__(self, brief: Brief, news: queue.Queue[Any], num_threads: int = 0) -> None:
        self._given = brief, news, num_threads
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        if num_threads:
            environment["OMP_NUM_THREADS"] = str(num_threads)
        self.job: Job | None = None
        # -P: a file of the user's working folder must not shadow a module. In a session of its own
        # it hears of Ctrl-C once, by the closed pipe: a second time would stop it without saving.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sememe.ladder.helping"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True,
        )  # fmt: skip
        self._send(brief)
        threading.Thread(target=self._listen, args=(news,), daemon=True).start()

    def _send(self, message: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended: that is told by its answers
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def _listen(self, news: queue.Queue[Any]) -> None:
        assert self._process.stdout is not None
        with suppress(Exception):  # the end of the pipe, or something in it that is no news
            while True:
                news.put((self, pickle.load(self._process.stdout)))
        news.put((self, None))

    def again(self) -> Helper:
        """Another process in the place of one that has ended."""
        return Helper(*self._given)

    def give(self, job: Job) -> None:
        """Let it do a job."""
        self.job = job
        self._send(job)

    @property
    def ending(self) -> str:
        """How a process that tells nothing more has ended, in words."""
        self.close()
        return f"{ENDED} with code {self._process.returncode}, perhaps for want of memory."

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


def climb_beside(run: _Run, brief: Brief, asked: Questions) -> None:
    """Train what is not trained yet in two lanes, then ask what was not asked yet side by side."""
    brief = replace(brief, text=replace(brief.text))  # without what it has opened
    _prepare(run, brief)
    news: queue.Queue[Any] = queue.Queue()
    lanes = {Helper(own.brief, news): deque(map(Job, own.rungs)) for own in _lanes(run, brief)}
    _follow(run, lanes, news)
    jobs = deque(_questions(run, asked))
    num = min(brief.plan.num_helpers, len(jobs))
    threads = max(1, available_cores() // max(1, num))
    news = queue.Queue()
    _follow(run, {Helper(brief, news, threads): jobs for _ in range(num)}, news)
    for rung in run.results.rungs:  # a run before may have left nothing to do with some
        run.view.end(rung.name)


class _Lane(NamedTuple):
    brief: Brief
    rungs: list[Rung]


def _lanes(run: _Run, brief: Brief) -> list[_Lane]:
    """The rungs to train: the networks one after the other, and beside them all others."""
    waiting = [rung for rung in run.results.rungs if rung.state != "done"]
    networks = [rung for rung in waiting if SPECS[rung.name].is_network]
    others = [rung for rung in waiting if not SPECS[rung.name].is_network]
    # Where a run goes on after its networks are done, the others get no more than those before.
    has_networks = any(SPECS[name].is_network for name in brief.chosen.names)
    fewer = replace(brief.plan, workers=cpu_workers(brief.config, has_networks=has_networks))
    found = [_Lane(brief, networks), _Lane(replace(brief, plan=fewer), others)]
    return [lane for lane in found if lane.rungs]


def _prepare(run: _Run, brief: Brief) -> None:
    """Make the sub-words with all cores before any clock runs."""
    for rung in run.results.rungs:
        kind = SPECS[rung.name].subwords if rung.name in SPECS else ""
        if kind and rung.state != "done":
            run.view.note(f"Making the sub-words of {rung.title}.")
            size = brief.plan.vocab_size
            tokenizer = brief.text.tokenizer(kind, size, run.view)  # type: ignore[arg-type]
            brief.text.subwords(tokenizer, size, run.view)


def _questions(run: _Run, asked: Questions) -> Iterable[Job]:
    """What is left to ask, the longest first: what is learned, one question at a time."""
    long = [own.task.name for own in asked.questions if own.task.group == "sentences"]
    rungs = sorted(
        (rung for rung in run.results.rungs if rung.state == "done"),
        key=lambda rung: rung.family != "contextual",
    )
    for rung in rungs:
        wanted, _ = run.left_to_ask(rung.name)
        yield from (Job(rung, (name,)) for name in wanted if name in long)
    for rung in rungs:
        wanted, looks = run.left_to_ask(rung.name)
        short = tuple(name for name in wanted if name not in long)
        if short or looks:
            yield Job(rung, short, looks)


def _follow(run: _Run, lanes: dict[Helper, deque[Job]], news: queue.Queue[Any]) -> None:
    """Hand out jobs and take the news until all is done."""
    helpers = list(lanes)
    try:
        for helper in helpers:
            _hand_out(helper, lanes[helper])
        while any(helper.job for helper in lanes):
            helper, message = news.get()
            if isinstance(message, Status):
                run.view.progress(*message)
            elif message is not None and not isinstance(message, Done):
                run.take(message)
            elif (job := helper.job) is not None:
                jobs = lanes[helper]
                if message is None:
                    _give_up(run, job, helper.ending)
                    del lanes[helper]
                    if jobs:
                        helper = helper.again()
                        helpers.append(helper)
                        lanes[helper] = jobs
                elif message.failed:
                    _give_up(run, job, message.failed)
                _hand_out(helper, jobs)
                if job.rung.name not in _names(lanes):
                    run.view.end(job.rung.name)
    finally:
        for helper in helpers:
            helper.close()


def _hand_out(helper: Helper, jobs: deque[Job]) -> None:
    helper.job = None
    if jobs:
        helper.give(jobs.popleft())


def _names(lanes: dict[Helper, deque[Job]]) -> set[str]:
    """The rungs that something is still to be done with."""
    waiting = {job.rung.name for jobs in lanes.values() for job in jobs}
    return waiting | {helper.job.rung.name for helper in lanes if helper.job is not None}


def _give_up(run: _Run, job: Job, why: str) -> None:
    """Write down for what a helper could not do why there is nothing."""
    if job.is_training:
        run.take(replace(run.results.rung(job.rung.name), state="failed", why=why))
    for name in job.wanted:
        if run.results.cell(job.rung.name, name) is None:
            run.take(Cell(rung=job.rung.name, task=name, why=why))

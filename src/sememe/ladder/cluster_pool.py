"""The rungs of a ladder as tasks of a cluster: each trains where there is what it needs.

A network has a GPU if the cluster has any, other rungs have as many cores as its smallest node.
What a rung tells comes back while it trains. A rung that is lost with its node continues on
another one from its last checkpoint; a finished rung is evaluated at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.cluster.tasks import Ended, RayTasks, Streams
from sememe.ladder.plan import this_machine
from sememe.ladder.reading import RungModel
from sememe.ladder.results import Machine, Rung
from sememe.ladder.rung_steps import Brief, evaluating, training
from sememe.ladder.rungs import SPECS
from sememe.ladder.worker_pool import ENDED, Job, Status, give_up, messenger, questions_left
from sememe.progress import SILENT

if TYPE_CHECKING:
    from sememe.ladder.running import _LadderRun
    from sememe.ladder.tasks import LadderQuestions

_MOST_TRIES = 5
_EVALUATIONS_A_GPU = 4
_ASKED: dict[Path, LadderQuestions] = {}  # of a worker: the questions of its ladder


def machine_of(executor: RayTasks, device: str) -> Machine:
    """The machine on which a rung is trained: the cores of the smallest node, a GPU if any."""
    gpus = 1 if executor.num_gpus and device in ("auto", "cuda") else 0
    found: Machine = executor.call(this_machine, device, gpus=gpus)
    return replace(found, cores=executor.node_cores)


@dataclass(frozen=True)
class _RungWork:
    """Does a job of a ladder, and yields what it tells."""

    brief: Brief

    def __call__(self, job: Job) -> Iterator[Any]:
        """Train or evaluate a rung; progress is told between its steps."""
        news: queue.Queue[Any] = queue.Queue()
        thread = threading.Thread(target=self._do, args=(job, news), daemon=True)
        thread.start()
        while (message := news.get()) is not None:
            if isinstance(message, BaseException):
                raise message
            yield message

    def _do(self, job: Job, news: queue.Queue[Any]) -> None:
        try:
            for one in self._steps(job, news):
                news.put(one)
            news.put(None)
        except BaseException as error:
            news.put(error)

    def _steps(self, job: Job, news: queue.Queue[Any]) -> Iterator[Any]:
        brief = self.brief
        if job.rung.state != "done":
            yield from training(brief, job.rung, messenger(news.put, job.rung.name))
            return
        if brief.models not in _ASKED:
            _ASKED.clear()
            _ASKED[brief.models] = brief.questions(SILENT)
        asked = _ASKED[brief.models]
        rung_model = RungModel(job.rung, Path(job.rung.path), asked.uses, brief.plan.device)
        yield from evaluating(brief, rung_model, asked, job.wanted, looks=job.looks)


def run_on_cluster(
    run: _LadderRun, brief: Brief, asked: LadderQuestions, executor: RayTasks
) -> None:
    """Train what is not trained yet, and evaluate each rung when it is done."""
    brief = replace(brief, text=replace(brief.text))  # without what it has opened
    for rung in run.results.rungs:
        if rung.state != "done" and (kind := SPECS[rung.name].subwords):
            run.view.note(f"Making the sub-words of {rung.title}.")
            brief.text.subwords(kind, brief.plan.vocab_size, run.view)
    streams = Streams(executor.ray, _RungWork(brief))
    tries: dict[tuple[str, tuple[str, ...]], int] = {}

    def start(job: Job) -> None:
        cores, gpus = _needs(job.rung, brief, executor)
        streams.start(job, cores=cores, gpus=gpus)

    # Networks first: they take longest to evaluate.
    for rung in sorted(run.results.rungs, key=lambda own: own.family != "contextual"):
        if rung.state != "done":
            start(Job(rung))
    for job in questions_left(run, asked):
        start(job)
    for job, message in streams.news():
        name = job.rung.name
        # Its last message may come before its worker is lost.
        has_trained = job.rung.state != "done" and run.results.rung(name).state == "done"
        if isinstance(message, Status):
            run.view.progress(*message)
        elif not isinstance(message, Ended):
            run.take(message)
        elif message.is_lost and not has_trained and tries.get((name, job.wanted), 1) < _MOST_TRIES:
            tries[name, job.wanted] = tries.get((name, job.wanted), 1) + 1
            run.view.note(f"{job.rung.title}: its worker was lost; it continues on another one.")
            start(_rest_of(run, job))
        else:
            if message.why and not has_trained:
                give_up(run, job, f"{ENDED}: {message.why}.")
            if has_trained:
                for own in questions_left(run, asked):
                    if own.rung.name == name:
                        start(own)
    for rung in run.results.rungs:
        run.view.end(rung.name)


def _needs(rung: Rung, brief: Brief, executor: RayTasks) -> tuple[float, float]:
    """The cores and GPUs of a job."""
    is_network = rung.family == "contextual" or (rung.name in SPECS and SPECS[rung.name].is_network)
    has_gpu = brief.plan.has_gpu and is_network and executor.num_gpus > 0
    if rung.state == "done":
        return 1, 1 / _EVALUATIONS_A_GPU if has_gpu else 0
    return (1, 1) if has_gpu else (executor.node_cores, 0)


def _rest_of(run: _LadderRun, job: Job) -> Job:
    """What is left of a job whose worker was lost."""
    rung = run.results.rung(job.rung.name)
    if job.rung.state != "done":
        return Job(rung)
    left, looks = run.left_to_evaluate(rung.name)
    return Job(rung, tuple(name for name in job.wanted if name in left), job.looks and looks)

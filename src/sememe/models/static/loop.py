"""The training loop of the static models: steps, threads, progress, checkpoints, callbacks.

A model describes its training as a `StaticRun`: a number of steps, each a function of its number
and of the shared matrices. With one worker the steps run in order, so a run that stops between two
steps resumes exactly; with more, threads take the next free step and update the matrices without
locks (Recht et al. 2011), so that the last digits depend on timing. A callback has `every_words`
and is called with the model (its vectors are the current ones) and the words done; it returns True
to stop the training. Metrics that it leaves in `record` go to the model's history.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sememe.errors import ArtifactError, DivergedError, OptionError
from sememe.machine import clock
from sememe.models.fitting import Plan, Request
from sememe.progress import History, Reporter
from sememe.storage.checkpoints import HISTORY, STATE, Checkpoints, read_state
from sememe.storage.folder import write_json
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.vectors import WordVectors

if TYPE_CHECKING:
    from sememe.models.static.model import StaticModel


class Callback(Protocol):
    """The shape of a callback."""

    every_words: int

    def __call__(self, model: StaticModel, record: dict[str, Any]) -> bool | None:
        """Inspect the model during training; return True to stop."""


class Evaluate:
    """Score the current vectors every N words; stop when the score no longer improves.

    With `patience` the model ends with the vectors of the best score, as networks do.
    """

    def __init__(
        self,
        score: Callable[[WordVectors], float],
        *,
        every_words: int,
        patience: int = 0,
        name: str = "score",
    ) -> None:
        """`patience` scores in a row that do not beat the best one stop the training; 0: never."""
        if every_words < 1 or patience < 0:
            raise OptionError("every_words must be at least 1 and patience at least 0.")
        self.every_words, self.patience, self.name = every_words, patience, name
        self._score = score
        self.best = float("-inf")
        self.num_worse = 0

    def __call__(self, model: StaticModel, record: dict[str, Any]) -> bool:
        """Score, record the metric, and return whether to stop."""
        record[self.name] = value = float(self._score(model.vectors))
        return self._weigh(value)

    def restore(self, history: History) -> None:
        """Restore the scores from before a run was stopped."""
        self.best, self.num_worse = float("-inf"), 0
        for record in history:
            if self.name in record:
                value = record[self.name]
                self._weigh(math.nan if value is None else value)  # as NaN is saved

    def _weigh(self, value: float) -> bool:
        if value > self.best:
            self.best, self.num_worse = value, 0
        else:
            self.num_worse += 1
        return bool(self.patience) and self.num_worse >= self.patience


class BestTensors:
    """The model's tensors at the best score of an `Evaluate` with patience: what training returns.

    A score that is not better, or not a number, changes nothing.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self.evaluate, self.words = evaluate, 0
        self.tensors: dict[str, np.ndarray] = {}

    @classmethod
    def of(cls, callbacks: Sequence[Callback]) -> BestTensors | None:
        """For the first evaluation that has patience, or None."""
        found = (one for one in callbacks if isinstance(one, Evaluate) and one.patience)
        return next(map(cls, found), None)

    def look(self, model: StaticModel, words: int) -> None:
        """Keep the tensors that the model was just given if they had the best score."""
        if not self.evaluate.num_worse:
            self.words, self.tensors = words, model.tensors

    def give_back(self, model: StaticModel, words: int, note: Callable[[str], None]) -> None:
        """Let the model end with the best tensors, unless they are its last or there are none."""
        if not self.tensors:
            return
        name, best = self.evaluate.name, self.evaluate.best
        model.history.append({"words": words, "best_words": self.words, f"best_{name}": best})
        if self.words != words:
            note(
                f"The vectors after {self.words:,} of {words:,} words are kept: their {name} of "
                f"{best:.4f} was not exceeded."
            )
            model.adopt(model.vocabulary, **self.tensors)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the tensors into a checkpoint folder; returns what goes into its state."""
        if self.tensors:
            write_tensors(folder / BEST, self.tensors)
        return {"best_words": self.words}

    def read(self, folder: Path, state: dict[str, Any], note: Callable[[str], None]) -> None:
        """Read what `write` wrote; a run without early stopping saved no best vectors."""
        if (folder / BEST).exists():
            found = read_tensors(folder / BEST)  # mapped: the checkpoint will be replaced
            self.tensors = {name: np.array(tensor) for name, tensor in found.items()}
            self.words = int(state["best_words"])
        elif self.evaluate.best > float("-inf"):
            self.evaluate.restore(History())
            note("The checkpoint has no best vectors: only scores from here on are compared.")


TENSORS, BEST = "model.safetensors", "best.safetensors"
_RECORDS = 200  # approximate number of records per run
_TICK_S = 0.1


class StaticRun(ABC):
    """What a model tells the loop about its training."""

    num_steps: int
    num_workers: int
    tokens_per_epoch: int
    start_rate: float
    matrices: dict[str, np.ndarray]  # everything that a checkpoint must save, by name

    def new_space(self) -> Any:
        """Allocate one thread's own buffers."""
        return None

    @abstractmethod
    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Do one step; add [loss, examples in it, all examples] to stats."""

    def after(self, step: int) -> int:
        """The step after those that a call of `step` does."""
        return step + 1

    @abstractmethod
    def words_at(self, step: int) -> int:
        """Words of text before `step`, over all epochs."""

    @abstractmethod
    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""

    @abstractmethod
    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the matrices to the model; copies while training still changes them."""

    @abstractmethod
    def start_message(self) -> str:
        """One line that describes the training about to start."""

    def finish(self, stats: np.ndarray) -> None:  # noqa: B027  # only some are behind
        """Add to stats what steps that were begun have counted since."""

    def metrics(self) -> dict[str, float]:
        """What the history gets besides the loss and the words per second of the whole loop."""
        return {}

    def collect(self) -> None:  # noqa: B027  # only some are elsewhere
        """Bring `matrices` up to date before they are saved."""

    def close(self) -> None:  # noqa: B027  # only some hold any
        """Close files."""


class Crew:
    """Threads that share one step counter."""

    def __init__(
        self, run: StaticRun, step: int, end: int, every: int = 1 << 62, stride: int = 0
    ) -> None:
        """stride: do every stride-th step; 0: the steps that follow one another in the run."""
        self._run, self.next_step, self._end, self._every = run, step, end, every
        self._stride, self._marked = stride, (step - 1) // every
        self.marks: list[tuple[int, np.ndarray]] = []
        self.is_stopping = False
        self._lock = threading.Lock()
        self._all_stats: list[np.ndarray] = []

    def stats(self) -> np.ndarray:
        """[loss, examples in it, all examples] of every thread together."""
        return sum(self._all_stats, np.zeros(3))

    def advance(self, on_tick: Callable[[Crew], bool]) -> int:
        """Run the steps up to the end and return the step reached.

        Every `every`-th step, the metrics are saved in `marks`. `on_tick` is called ten times a
        second and at the end; if it returns False, or an exception such as KeyboardInterrupt is
        raised, the threads finish their current steps.
        """
        threads = ThreadPoolExecutor(self._run.num_workers)
        work: list[Future[None]] = []
        try:
            for _ in range(self._run.num_workers):
                work.append(threads.submit(self._work))
            while wait(work, _TICK_S).not_done and on_tick(self):
                pass
        finally:
            self._stop(threads, work)
        for future in work:
            future.result()
        on_tick(self)
        return self.next_step

    def _take(self) -> int:
        with self._lock:
            if self.is_stopping or self.next_step >= self._end:
                return -1
            step = self.next_step
            if step // self._every > self._marked:
                self.marks.append((step, self.stats()))
                self._marked = step // self._every
            self.next_step = step + self._stride if self._stride else self._run.after(step)
            return step

    def _work(self) -> None:
        stats = np.zeros(3)
        space = self._run.new_space()
        with self._lock:
            self._all_stats.append(stats)
        try:
            while (step := self._take()) >= 0:
                self._run.step(step, space, stats)
            self._run.finish(stats)
        finally:
            self.is_stopping = True

    def _stop(self, threads: ThreadPoolExecutor, work: list[Future[None]]) -> None:
        """Let every thread finish its step, a round on a cluster, and take no other.

        Ctrl-C may come again meanwhile: the matrices must not be read before the end.
        """
        while True:
            try:
                self.is_stopping = True
                # Not `shutdown` alone: an interrupted join takes a running thread for ended.
                wait(work)
                threads.shutdown(wait=True)
                return
            except KeyboardInterrupt:
                continue


class Driver:
    """Runs a training to its end: progress, history, callbacks, checkpoints, Ctrl-C."""

    def __init__(
        self,
        model: StaticModel,
        run: StaticRun,
        reporter: Reporter,
        *,
        callbacks: Sequence[Callback] = (),
        keeper: Checkpoints | None = None,
        plan: Plan | None = None,
    ) -> None:
        """`plan` identifies the run in its checkpoints."""
        self.model, self.run, self.reporter = model, run, reporter
        self.callbacks, self.keeper, self.plan = callbacks, keeper, plan
        self.best = BestTensors.of(callbacks)
        self._before_s, self._begun_s = 0.0, clock()
        self._recorded = np.zeros(3)
        self._base = np.zeros(3)
        self._stats = np.zeros(3)
        self._every = max(1, run.num_steps // _RECORDS)
        self._crew: Crew | None = None

    @property
    def seconds(self) -> float:
        """Seconds of training, including those before the last checkpoint; none of compiling."""
        return self._before_s + clock() - self._begun_s

    def drive(self, step: int = 0, checkpoint_s: float = math.inf) -> None:
        """Run every step from `step` on, then hand the matrices to the model."""
        run, first, self._begun_s = self.run, step, clock()
        total = run.words_at(run.num_steps)
        saved_s = time.monotonic()
        self.reporter.note(run.start_message())
        with self.reporter.task("training", total, "words", start=run.words_at(step)) as task:

            def on_tick(crew: Crew) -> bool:
                self._watch(crew, first, task)
                return time.monotonic() - saved_s < checkpoint_s

            try:
                while step < run.num_steps:
                    due = [self._due(own, step) for own in self.callbacks]
                    self._crew = Crew(run, step, min([run.num_steps, *due]), self._every)
                    step = self._crew.advance(on_tick)
                    self._base = self._stats
                    if self._call(step, due):
                        break
                    if time.monotonic() - saved_s >= checkpoint_s and step < run.num_steps:
                        self._checkpoint(step)
                        saved_s = time.monotonic()
            except KeyboardInterrupt:
                self._checkpoint(step if self._crew is None else self._crew.next_step)
                raise
        self._record(step, self._stats, first)
        if alone := run.metrics().get("kernel_words_per_s"):
            whole = (run.words_at(step) - run.words_at(first)) / (clock() - self._begun_s)
            self.reporter.note(
                f"The updates alone took {alone:,.0f} words/s, the whole training {whole:,.0f}."
            )
        run.hand_over(self.model, is_final=True)
        if self.best is not None:
            self.best.give_back(self.model, run.words_at(step), self.reporter.note)

    def _due(self, callback: Callback, step: int) -> int:
        """The step after `step` at which a callback is due."""
        target = (self.run.words_at(step) // callback.every_words + 1) * callback.every_words
        found = bisect_left(range(self.run.num_steps), target, key=self.run.words_at)
        return max(step + 1, found)

    def _call(self, step: int, due_steps: list[int]) -> bool:
        """Call the callbacks that are due at a step; True stops the run."""
        due = [
            callback
            for callback, due_step in zip(self.callbacks, due_steps, strict=True)
            if step >= min(due_step, self.run.num_steps)
        ]
        if not due:
            return False
        self.run.hand_over(self.model, is_final=False)
        record = {"words": self.run.words_at(step)}
        answers = [callback(self.model, record) for callback in due]
        self.model.history.append(record)
        if self.best is not None and self.best.evaluate in due:
            self.best.look(self.model, record["words"])
        return any(answers)

    def _watch(self, crew: Crew, first: int, task: Any) -> None:
        while crew.marks:
            step, stats = crew.marks.pop(0)
            self._record(step, self._base + stats, first)
        self._stats = self._base + crew.stats()
        if not np.isfinite(self._stats[0]):
            raise DivergedError(
                "Training diverged: the loss became NaN. Lower learning_rate "
                f"({self.run.start_rate})."
            )
        metrics = {"learning_rate": self.run.rate_at(crew.next_step)}
        if self.model.history:
            metrics["loss"] = float(self.model.history.smooth("loss")[-1])
        task.update(self.run.words_at(crew.next_step), **metrics)

    def _record(self, step: int, stats: np.ndarray, first: int) -> None:
        """Record the metrics since the last record, if there are any."""
        since = stats - self._recorded
        if not since[1]:
            return
        self._recorded = stats.copy()
        words = self.run.words_at(step)
        elapsed_s = max(clock() - self._begun_s, 1e-9)
        self.model.history.append(
            {
                "words": words,
                "epoch": words / self.run.tokens_per_epoch,
                "loss": float(since[0] / since[1]),
                "learning_rate": self.run.rate_at(step),
                "seconds": round(self.seconds, 3),
                "words_per_s": (words - self.run.words_at(first)) / elapsed_s,
                **self.run.metrics(),
            }
        )

    def _checkpoint(self, step: int) -> None:
        if self.keeper is None:
            return
        self.run.collect()
        with self.keeper.write(step) as folder:
            write_tensors(Path(folder) / TENSORS, self.run.matrices)
            best = {} if self.best is None else self.best.write(Path(folder))
            words = self.run.words_at(step)
            state = {
                "step": step, "words": words, "plan": self.plan, "seconds": self.seconds, **best,
            }  # fmt: skip
            write_json(folder / STATE, state)
            self.model.history.save(folder / HISTORY)

    def restore(self, found: Path, plan: Plan) -> int:
        """Continue from a checkpoint, after checking that it belongs to this run; its step."""
        state = read_state(found, plan)
        tensors = read_tensors(found / TENSORS)
        for name, rows in self.run.matrices.items():
            if name not in tensors or tensors[name].shape != rows.shape:
                raise ArtifactError(
                    f"The checkpoint {found} does not hold the matrices of this run."
                )
            rows[:] = tensors[name]
        try:
            self.model.history = History.load(found / HISTORY)
            for callback in self.callbacks:
                if isinstance(callback, Evaluate):
                    callback.restore(self.model.history)
            if self.best is not None:
                self.best.read(found, state, self.reporter.note)
            self._before_s = float(state["seconds"])
            return self._step_of(int(state["step"]), state.get("words"))
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{found / STATE} is damaged ({error}).") from error

    def _step_of(self, step: int, words: int | None) -> int:
        """The step of a checkpoint; several workers have shorter steps than one."""
        if words is None or words == self.run.words_at(step):
            return step
        return bisect_left(range(self.run.num_steps), words, key=self.run.words_at)


# Options that may change when a run is resumed.
_PASSING = ("workers", "vectors", "memory", "device", "deterministic", "baselines")


def lasting(config: Any) -> dict[str, Any]:
    """The options that a resumed run must share with the original run."""
    return {name: value for name, value in config.to_dict().items() if name not in _PASSING}


def run_steps(
    model: StaticModel,
    plan: Plan,
    request: Request,
    make: Callable[[], StaticRun],
    begin: Callable[[Any], None],
) -> None:
    """Run the steps, from the last checkpoint if the run is resumed.

    `make` creates the run with its matrices; `begin` initializes them for a new run.
    """
    keeper, reporter = request.checkpoints(), request.reporter
    found = keeper.latest() if keeper is not None and request.resume else None
    model.history = History()
    run = make()
    try:
        driver = Driver(model, run, reporter, callbacks=request.callbacks, keeper=keeper, plan=plan)
        step = 0
        if found is not None:
            step = driver.restore(found, plan)
            reporter.note(f"Resuming at step {step:,} from {found}.")
        else:
            if keeper is not None and keeper.has_one:
                reporter.note(
                    f"Starting from scratch: the checkpoint in {keeper.folder} is removed."
                )
                keeper.clear()
            begin(run)
        driver.drive(step, request.checkpoint_minutes * 60 or math.inf)
    finally:
        run.close()

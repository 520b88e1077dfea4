"""The one loop of the static models: numbered steps, threads, progress, checkpoints, Ctrl-C.

A model describes its training as a `Run`: so many steps, each a function of its number and of the
shared matrices. With one worker the steps run in order, so a run that stops between two steps
continues exactly; with more, threads take the next step as they come free and update the matrices
without locks (Recht et al. 2011), so that the last digits depend on timing.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import DivergedError
from sememe.static.callbacks import Callback
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import write_json
from sememe.storage.tensors import write_tensors

if TYPE_CHECKING:
    from sememe.progress import Reporter
    from sememe.static.model import StaticModel

STATE, TENSORS, HISTORY = "state.json", "model.safetensors", "history.json"
_RECORDS = 200  # about as many records a run leaves in its history
_TICK_S = 0.1


class Run:
    """What a model tells the loop about its training."""

    num_steps: int
    num_workers: int
    tokens_per_epoch: int
    start_rate: float
    matrices: dict[str, np.ndarray]  # all that a checkpoint must keep, by name

    def new_space(self) -> Any:
        """Make what one thread needs for itself."""
        return None

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Do one step; add [loss, examples in it, all examples] to stats."""
        raise NotImplementedError

    def words_at(self, step: int) -> int:
        """Words of text, all epochs together, that lie before `step`."""
        raise NotImplementedError

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        raise NotImplementedError

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the matrices to the model; copies while they still change."""
        raise NotImplementedError

    def greeting(self) -> str:
        """One line that says what is about to be trained."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of files."""

    def step_of(self, words: int) -> int:
        """The first step before which at least `words` words lie."""
        low, high = 0, self.num_steps
        while low < high:
            middle = (low + high) // 2
            if self.words_at(middle) < words:
                low = middle + 1
            else:
                high = middle
        return low


class Crew:
    """Threads that share one counter of steps."""

    def __init__(self, run: Run, step: int, end: int, every: int) -> None:
        self._run, self.next_step, self._end, self._every = run, step, end, every
        self.marks: list[tuple[int, np.ndarray]] = []
        self.is_stopping = False
        self._lock = threading.Condition()
        self._num_working = 0
        self._all_stats: list[np.ndarray] = []

    def stats(self) -> np.ndarray:
        """[loss, examples in it, all examples] of every thread together."""
        return sum(self._all_stats, np.zeros(3))

    def advance(self, on_tick: Callable[[Crew], bool]) -> int:
        """Run the steps up to the end and return the step reached.

        The figures of every `every`-th step are kept in `marks`. `on_tick` is called ten times a
        second and at the end; where it returns False, or an exception such as KeyboardInterrupt
        comes up, the threads finish the steps they are at.
        """
        threads = ThreadPoolExecutor(self._run.num_workers)
        work: list[Future[None]] = []
        try:
            for _ in range(self._run.num_workers):
                work.append(threads.submit(self._work))
            while wait(work, _TICK_S).not_done and on_tick(self):
                pass
        finally:
            self._stop()
            threads.shutdown(wait=False)
        for future in work:
            future.result()
        on_tick(self)
        return self.next_step

    def _take(self) -> int:
        with self._lock:
            if self.is_stopping or self.next_step >= self._end:
                return -1
            if self.next_step % self._every == 0:
                self.marks.append((self.next_step, self.stats()))
            self.next_step += 1
            return self.next_step - 1

    def _work(self) -> None:
        stats = np.zeros(3)
        space = self._run.new_space()
        with self._lock:
            self._all_stats.append(stats)
            self._num_working += 1
        try:
            while (step := self._take()) >= 0:
                self._run.step(step, space, stats)
        finally:
            with self._lock:
                self.is_stopping = True
                self._num_working -= 1
                self._lock.notify_all()

    def _stop(self) -> None:
        """Let every thread finish its step, a matter of milliseconds, and take no other.

        Ctrl-C may come again meanwhile: the matrices must not be looked at before the end.
        """
        while True:
            try:
                self.is_stopping = True
                with self._lock:
                    self._lock.wait_for(lambda: self._num_working == 0)
                return
            except KeyboardInterrupt:
                continue


class Driver:
    """Drives a run to its end: progress, history, callbacks, checkpoints, Ctrl-C."""

    def __init__(
        self,
        model: StaticModel,
        run: Run,
        reporter: Reporter,
        *,
        callbacks: Sequence[Callback] = (),
        keeper: Checkpoints | None = None,
        plan: dict[str, Any] | None = None,
        seconds: float = 0.0,
    ) -> None:
        """`plan` identifies the run in its checkpoints; `seconds` of training lie behind it."""
        self.model, self.run, self.reporter = model, run, reporter
        self.callbacks, self.keeper, self.plan = callbacks, keeper, plan
        self._before_s, self._begun_s = seconds, time.monotonic()
        self._recorded = np.zeros(3)
        self._base = np.zeros(3)
        self._stats = np.zeros(3)
        self._every = max(1, run.num_steps // _RECORDS)
        self._crew: Crew | None = None

    @property
    def seconds(self) -> float:
        """Seconds of training, those before the last checkpoint included."""
        return self._before_s + time.monotonic() - self._begun_s

    def drive(self, step: int = 0, checkpoint_s: float = math.inf) -> None:
        """Run every step from `step` on, then hand the matrices over."""
        run, first = self.run, step
        total = run.words_at(run.num_steps)
        saved_s = time.monotonic()
        self.reporter.note(run.greeting())
        with self.reporter.task("training", total, "words", start=run.words_at(step)) as task:

            def on_tick(crew: Crew) -> bool:
                self._watch(crew, first, task)
                return time.monotonic() - saved_s < checkpoint_s

            try:
                while step < run.num_steps:
                    end = min([run.num_steps, *(self._due(c, step) for c in self.callbacks)])
                    self._crew = Crew(run, step, end, self._every)
                    step = self._crew.advance(on_tick)
                    self._base = self._stats
                    if step == end and self._call(step):
                        break
                    if time.monotonic() - saved_s >= checkpoint_s and step < run.num_steps:
                        self._checkpoint(step)
                        saved_s = time.monotonic()
            except KeyboardInterrupt:
                self._checkpoint(step if self._crew is None else self._crew.next_step)
                raise
        self._record(step, self._stats, first)
        run.hand_over(self.model, is_final=True)

    def _due(self, callback: Callback, step: int) -> int:
        """The step after `step` at which a callback is to be asked."""
        words = self.run.words_at(step)
        target = (words // callback.every_words + 1) * callback.every_words
        return max(step + 1, self.run.step_of(target))

    def _call(self, step: int) -> bool:
        """Ask the callbacks that are due; True ends the run."""
        due = [
            callback
            for callback in self.callbacks
            if step == self.run.num_steps
            or self.run.words_at(step) // callback.every_words
            > self.run.words_at(step - 1) // callback.every_words
        ]
        if not due:
            return False
        self.run.hand_over(self.model, is_final=False)
        record = {"words": self.run.words_at(step)}
        answers = [callback(self.model, record) for callback in due]
        self.model.history.append(record)
        return any(answers)

    def _watch(self, crew: Crew, first: int, task: Any) -> None:
        while crew.marks:
            step, stats = crew.marks.pop(0)
            self._record(step, self._base + stats, first)
        self._stats = self._base + crew.stats()
        if not np.isfinite(self._stats[0]):
            raise DivergedError(
                "Training diverged: the loss is not a number any more. Lower learning_rate "
                f"({self.run.start_rate})."
            )
        figures = {"learning_rate": self.run.rate_at(crew.next_step)}
        if self.model.history:
            figures["loss"] = float(self.model.history.smooth("loss")[-1])
        task.update(self.run.words_at(crew.next_step), **figures)

    def _record(self, step: int, stats: np.ndarray, first: int) -> None:
        """Keep the figures since the last record, if there are any."""
        since = stats - self._recorded
        if not since[1]:
            return
        self._recorded = stats.copy()
        words = self.run.words_at(step)
        elapsed_s = max(time.monotonic() - self._begun_s, 1e-9)
        self.model.history.append(
            {
                "words": words,
                "epoch": words / self.run.tokens_per_epoch,
                "loss": float(since[0] / since[1]),
                "learning_rate": self.run.rate_at(step),
                "seconds": round(self.seconds, 3),
                "words_per_s": (words - self.run.words_at(first)) / elapsed_s,
            }
        )

    def _checkpoint(self, step: int) -> None:
        if self.keeper is None:
            return
        with self.keeper.write(step) as folder:
            write_tensors(Path(folder) / TENSORS, self.run.matrices)
            state = {"step": step, "plan": self.plan, "seconds": self.seconds}
            write_json(folder / STATE, state)
            self.model.history.save(folder / HISTORY)

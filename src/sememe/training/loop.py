"""The training loop: numbered steps of an objective, progress, history, checkpoints, resume.

All randomness of a step (its batch, dropout) and its learning rate are functions of the step's
number, so a killed run resumes bit-identically from its last checkpoint. Ctrl-C finishes the step
before the state is saved.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from sememe.errors import ArtifactError, DivergedError
from sememe.machine import is_busy
from sememe.progress import History
from sememe.storage.checkpoints import HISTORY, read_state
from sememe.training.averaging import averaged, begins_averaging, end_averaged
from sememe.training.device import BatchPart, explained_memory, fed, own_parts, reproducible
from sememe.training.distributed import check_division
from sememe.training.duration import Beginning, Extent, correct_extent, fixed_extent, kept_beginning
from sememe.training.memory import LIMITED, parts_that_fit
from sememe.training.objective import Totals
from sememe.training.optimizers import rate_at
from sememe.training.run import Recorder, Stepper, TrainingRun, events_in
from sememe.training.sharding import local
from sememe.training.weights import read_weights, write_divided, write_state, write_weights

# A cluster that reclaims a machine sends SIGTERM first.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Notes a request to stop, by the user or the machine; a second one stops at once."""

    def __init__(self) -> None:
        self._is_asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        """Install the signal handlers; only a program's main thread can."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
        return self

    def __exit__(self, *_: Any) -> None:
        """Restore the previous signal handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._is_asked:
            raise KeyboardInterrupt
        self._is_asked = True

    @property
    def is_asked(self) -> bool:
        """Whether to stop after this step."""
        stops = STOPS.get()
        return self._is_asked or (stops is not None and stops())


_TRIED = 2  # steps with each number of threads, on a busy machine
# Batches are prepared before their step: what they depend on is known this many steps before.
_AHEAD = 32
_PHASES = 10  # of a schedule, which a measurement of the speed goes through
_RECORDS = 200  # approximate number of records per run
# Minimum number of steps between two records, by kind of device: a record waits for a GPU, which
# then waits for the next step.
LEAST_PERIOD = {"cuda": 5}

# What to do with a training that is ready, instead of training: `rate_search` stops it there.
INSTEAD: ContextVar[Callable[[Loop], None] | None] = ContextVar("instead", default=None)
# Says whether to stop where no signal arrives: in the worker of a cluster.
STOPS: ContextVar[Callable[[], bool] | None] = ContextVar("stops", default=None)


class Loop:
    """Trains one objective as a run specifies."""

    def __init__(self, objective: Any, run: TrainingRun) -> None:
        config = run.config
        self.run, self.config = run, config
        self.extent, self.step = Extent(0, 0, 0), 0
        self.recorder = Recorder(
            objective.counted_by, run.processes, watches_rises=run.watches_rises, shown=run.shown
        )
        self.begun: Beginning | None = None  # what the run to resume has fixed
        if run.keeper is not None and run.resume:
            self.begun = kept_beginning(run.keeper, run.plan)
        begun_in = self.begun.precision if self.begun is not None else ""
        self.stepper = Stepper(objective, run, self.recorder, begun_in)
        self.device = self.stepper.device
        # The parts of a step on this process: those of the options, or as many as memory needs.
        self.num_parts = config.accumulate
        if self.begun is not None and self.begun.accumulate:
            self.num_parts = self.begun.accumulate
        self.interruption = Interruption()
        self.guide_source()

    def guide_source(self) -> None:
        """Let batches that change over a run know how much is done, and the parts of a step."""
        follow = getattr(self.run.source, "follow", None)
        if follow is not None:
            follow(self._done, self.num_parts * self.run.processes.size)

    def _done(self, step: int) -> float:
        """The fraction of the run that is done before a step, as far as batches need it."""
        if not self.extent.planned:  # the speed is being measured: all phases in turn
            return (step % _PHASES + 0.5) / _PHASES
        return self.extent.place(step, _AHEAD) / self.extent.planned

    @property
    def objective(self) -> Any:
        """What is trained: the given objective, or with sharding its divided copy."""
        return self.stepper.objective

    @property
    def num_threads(self) -> int:
        """The threads of this process: `workers`, or its part of the cores."""
        return self.config.workers or self.run.processes.cores

    @property
    def num_steps(self) -> int:
        """Steps of the entire run."""
        return self.extent.num_steps

    @property
    def history(self) -> History:
        """The records so far."""
        return self.recorder.history

    @property
    def precision(self) -> str:
        """The precision of matrix products: from the options, or chosen by auto."""
        return self.stepper.precision

    def train(self) -> History:
        """Do all remaining steps, and return the metrics of the entire run."""
        run = self.run
        check_division(self.config, run.processes.size)
        with (
            reproducible(self.device, self.precision, self.num_threads),
            explained_memory(self.config),
            self.interruption,
            events_in(self.config.tensorboard if run.processes.is_main else "") as writer,
        ):
            self.recorder.writer = writer
            self.stepper.start()
            if (instead := INSTEAD.get()) is not None:
                instead(self)
            if self.begun is None and self.device.type in LIMITED and run.processes.size == 1:
                # Several processes would wait for the one that failed.
                parts_that_fit(self, _PHASES)
            self._compare_threads()
            found = run.keeper.latest() if run.keeper is not None and run.resume else None
            self.extent = fixed_extent(self)
            self.recorder.begin()
            self.stepper.renew(self.extent.planned)
            if found is not None:
                self._restore(found)
            self._guarded()
            end_averaged(self.stepper.optimizer)
            if run.best is not None:
                run.best.restore(self.objective)
            self.stepper.finish()
        return self.history

    def _compare_threads(self) -> None:
        """On a busy machine, try one thread, and say so if it is faster than several."""
        num_threads = self.num_threads
        is_alone = self.device.type == "cpu" and self.run.processes.size == 1
        if not is_alone or num_threads == 1 or not is_busy():
            return
        lowest, speeds = rate_at(0, 1 << 40, self.config), {}
        with self.rehearsed() as step:
            for number in (num_threads, 1):
                torch.set_num_threads(number)
                step(0, lowest)  # the first also allocates
                begun_s = time.monotonic()
                for index in range(_TRIED):
                    step(index, lowest)
                speeds[number] = _TRIED / (time.monotonic() - begun_s)
        torch.set_num_threads(num_threads)
        if speeds[1] > speeds[num_threads]:
            self.run.reporter.note(
                f"Other programs use the cores: {speeds[num_threads]:.2f} steps/s with "
                f"{num_threads} threads, {speeds[1]:.2f} with one; --workers 1 is faster."
            )

    @contextmanager
    def rehearsed(self) -> Iterator[Callable[[int, float | None], None]]:
        """Yield a function that does a step at a given rate, or without one only a forward pass.

        At the end of the block the weights are restored.
        """
        kept = [local(own).to("cpu", copy=True) for own in self.objective.state_dict().values()]
        self.stepper.renew(self.num_steps)
        try:
            with self._batches() as batches:

                def step(index: int, rate: float | None) -> None:
                    parts = next(batches)
                    counts, is_asked, _ = self._agreed(parts, self.interruption.is_asked, False)
                    if is_asked:
                        raise KeyboardInterrupt
                    if rate is None:
                        self.stepper.gather(index, parts, counts, learns=False)
                    else:
                        self.stepper.do(index, parts, counts, rate)

                yield step
        finally:
            with torch.no_grad():
                for own, before in zip(self.objective.state_dict().values(), kept, strict=True):
                    local(own).copy_(before)

    def _guarded(self) -> None:
        """Run the steps; add the step and advice to a divergence error."""
        try:
            self._drive()
        except DivergedError as error:
            kept = self.run.keeper.latest() if self.run.keeper is not None else None
            where = f" The last good weights are in {kept}." if kept is not None else ""
            raise DivergedError(
                f"Training diverged at step {self.step:,}: {error}. Start again with a lower "
                f"learning_rate ({self.config.learning_rate:g}) or a longer warmup.{where}"
            ) from None

    def _drive(self) -> None:
        saved_s, period_s = time.monotonic(), 60 * self.config.checkpoint_minutes or math.inf
        task = self.run.reporter.task("training", self.num_steps, "steps", start=self.step)
        with task, self._batches() as batches:
            while self.step < self.num_steps and not self._is_stalled():
                parts = next(batches)
                is_due = time.monotonic() - saved_s >= period_s
                counts, is_asked, is_due = self._agreed(parts, self.interruption.is_asked, is_due)
                if is_asked:
                    self._stop()
                if is_due:
                    self._checkpoint()
                    saved_s = time.monotonic()
                self.stepper.do(self.step, parts, counts, self._rate(self.step))
                self.step += 1
                self._look()
                correct_extent(self)
                task.total = self.num_steps
                task.update(self.step, **self.recorder.shown)

    @contextmanager
    def _batches(self) -> Iterator[Iterator[list[BatchPart]]]:
        """The parts of every step from the current one on."""
        source, processes, num_parts = self.run.source, self.run.processes, self.num_parts

        def make(step: int) -> list[BatchPart]:
            return own_parts(source, self.objective, step, num_parts, processes)

        with fed(make, range(self.step, 1 << 62), self.device) as batches:
            yield batches

    def _agreed(
        self, parts: list[BatchPart], is_asked: bool, is_due: bool
    ) -> tuple[dict[str, float], bool, bool]:
        """The counts of a step over all processes, and whether one must stop or save."""
        names = list(Totals(self.objective.counted_by).counts)
        own = [float(sum(part.counts.get(name, 0) for part in parts)) for name in names]
        processes = self.run.processes
        *counts, asked, due = processes.sum([*own, is_asked, is_due and processes.is_main])
        return dict(zip(names, counts, strict=True)), bool(asked), bool(due)

    def _rate(self, step: int) -> float:
        return rate_at(self.extent.place(step), self.extent.planned, self.config)

    def _look(self) -> None:
        """Record, check and validate if it is time to."""
        step, is_end = self.step, self.step == self.num_steps
        period = max(LEAST_PERIOD.get(self.device.type, 1), self.extent.planned // _RECORDS)
        if is_end or step % period == 0:
            more = {
                "epoch": step / max(1, self.run.source.batches_per_epoch),
                "learning_rate": self._rate(step - 1),
            }
            if self.stepper.norm is not None:
                more["gradient_norm"] = float(self.stepper.norm)
            self.recorder.record(step, **more)
        elif self.device.type == "cpu":  # a GPU would have to wait
            self.recorder.check()
        if self.run.validation is not None and (is_end or step % self.extent.period == 0):
            with averaged(self.stepper.optimizer):
                metrics = self.validate()
                named = {f"validation_{name}": value for name, value in metrics.items()}
                self.recorder.keep(step, named)
                if self.run.best is not None:
                    self.run.best.look(metrics, step, self.objective)
            self.recorder.pause()
        done = self.extent.place(step) / self.extent.planned
        if begins_averaging(
            self.stepper.optimizer, self.config, self.history, done=done,
            has_validation=self.run.validation is not None,
        ):  # fmt: skip
            self.run.reporter.note(f"Averaging the weights from step {step:,} on.")

    def _is_stalled(self) -> bool:
        """Whether enough validations in a row have brought no improvement."""
        best = self.run.best
        if best is None or not best.is_stalled:
            return False
        self.run.reporter.note(
            f"Stopped after step {self.step:,}: {best.num_since} validations in a row were not "
            f"better than that of step {best.step:,}."
        )
        return True

    def validate(self) -> dict[str, float]:
        """The validation metrics, or none without validation data."""
        run = self.run
        if run.validation is None:
            return {}
        metrics = run.validation(self.objective, self.device, run.processes)
        return run.on_validation(metrics)

    def _stop(self) -> None:
        self._checkpoint()
        if self.run.keeper is not None:
            self.run.reporter.note(f"Saved step {self.step:,} in {self.run.keeper.folder}.")
        raise KeyboardInterrupt

    def _checkpoint(self) -> None:
        """Write the state, unless its weights are not finite."""
        self.recorder.check()
        state = {
            "step": self.step, "plan": self.run.plan, "records": self.recorder.to_dict(),
            "scaler": self.stepper.scaler.state_dict(),
        }  # fmt: skip
        keeper, processes, stepper = self.run.keeper, self.run.processes, self.stepper
        if keeper is not None and processes.is_main:
            with keeper.write(self.step) as folder:
                write = write_weights
                if stepper.is_divided:
                    write = write_divided
                    processes.decided(folder)
                write(folder, self.objective, stepper.optimizer)
                if self.run.best is not None:
                    state["best"] = self.run.best.write(folder)
                write_state(folder, state, self.history)
        elif keeper is not None and stepper.is_divided:
            write_divided(processes.decided(None), self.objective, stepper.optimizer)
        self.recorder.pause()

    def _restore(self, found: Path) -> None:
        state = read_state(found, self.run.plan)
        read_weights(found, self.objective, self.stepper.optimizer)
        try:
            self.step = int(state["step"])
            self.recorder.restore(state["records"], History.load(found / HISTORY), self.device)
            if state["scaler"]:
                self.stepper.scaler.load_state_dict(state["scaler"])
            if self.run.best is not None:
                self.run.best.read(found, state["best"])
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{found} is damaged ({error}): start without resume.") from error
        self.run.reporter.note(f"Resuming at step {self.step:,} from {found}.")

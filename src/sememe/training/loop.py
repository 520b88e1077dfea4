"""The loop: numbered steps of an objective, with progress, history, checkpoints and resume.

Everything that is random in a step (its batch, dropout) and its learning rate are functions of the
step's number, so a run that was killed goes on to the bit from its last checkpoint.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.optim import Optimizer

from sememe.errors import ArtifactError, DivergedError, OptionError
from sememe.progress import History
from sememe.training.averaged_sgd import averaged, begins_averaging, end_averaged
from sememe.training.budget import Extent
from sememe.training.checkpointing import (
    HISTORY,
    Beginning,
    kept_beginning,
    read_state,
    read_weights,
    write_state,
)
from sememe.training.feeding import Part, fed, own_parts
from sememe.training.interruption import Interruption
from sememe.training.length import correct_extent, fixed_extent
from sememe.training.memory import explained_memory
from sememe.training.objective import Totals
from sememe.training.precision import reproducible
from sememe.training.rate_search import search_instead
from sememe.training.records import Recorder
from sememe.training.run import Run
from sememe.training.schedules import rate_at
from sememe.training.stepping import Stepper
from sememe.training.tensorboard import events_in

_RECORDS = 200  # about as many records a run leaves in its history
# Steps between two records at least, by the kind of the device: a record waits for a GPU, which
# then waits for the next step.
LEAST_PERIOD = {"cuda": 5}


class Loop:
    """Trains one objective as a run says."""

    def __init__(self, objective: Any, run: Run) -> None:
        config = run.config
        self.run, self.config, self.objective = run, config, objective
        self.extent, self.step = Extent(0, 0, 0), 0
        self.recorder = Recorder(
            objective.counted_by, run.processes, watches_rises=run.watches_rises, shown=run.shown
        )
        self.begun: Beginning | None = None  # what the run to be resumed has fixed
        if run.keeper is not None and run.resume:
            self.begun = kept_beginning(run.keeper, run.plan)
        begun_in = self.begun.precision if self.begun is not None else ""
        self.stepper = Stepper(objective, run, self.recorder, begun_in)
        self.device = self.stepper.device
        self.interruption = Interruption()

    @property
    def num_steps(self) -> int:
        """Steps of the whole run."""
        return self.extent.num_steps

    @property
    def history(self) -> History:
        """The records so far."""
        return self.recorder.history

    @property
    def optimizer(self) -> Optimizer:
        """What moves the weights, once the length of the run is known."""
        return self.stepper.optimizer

    @property
    def precision(self) -> str:
        """The precision of the matrix products: that of the options, or what auto has taken."""
        return self.stepper.precision

    def train(self) -> History:
        """Do every step that is left, and give the figures of the whole run."""
        run = self.run
        if self.config.batch_size < self.config.accumulate * run.processes.size:
            raise OptionError(
                f"batch_size ({self.config.batch_size}) is smaller than the parts of a step: "
                f"accumulate ({self.config.accumulate}) × processes ({run.processes.size})."
            )
        with (
            reproducible(self.device, self.precision, self.config.num_workers),
            explained_memory(self.config),
            self.interruption,
            events_in(self.config.tensorboard if run.processes.is_main else "") as writer,
        ):
            self.recorder.writer = writer
            self.stepper.start()
            search_instead(self)
            found = run.keeper.latest() if run.keeper is not None and run.resume else None
            self.extent = fixed_extent(self)
            self.recorder.begin()
            self.stepper.renew(self.extent.planned)
            if found is not None:
                self._restore(found)
            self._guarded()
            end_averaged(self.optimizer)
            if run.best is not None:
                run.best.restore(self.objective)
        return self.history

    @contextmanager
    def rehearsed(self) -> Iterator[Callable[[int, float | None], None]]:
        """Give a function that does a step at a rate, or at none looks at its figures alone.

        When the block ends the weights are as they were before.
        """
        kept = {
            name: tensor.to("cpu", copy=True)
            for name, tensor in self.objective.state_dict().items()
        }
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
            self.objective.load_state_dict(kept)

    def _guarded(self) -> None:
        """Drive, and say of a divergence where and what to do."""
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
            while self.step < self.num_steps and not self._is_hopeless():
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
    def _batches(self) -> Iterator[Iterator[list[Part]]]:
        """The parts of every step from the present one on."""
        source, processes, accumulate = self.run.source, self.run.processes, self.config.accumulate

        def make(step: int) -> list[Part]:
            return own_parts(source, self.objective, step, accumulate, processes)

        with fed(make, range(self.step, 1 << 62), self.device) as batches:
            yield batches

    def _agreed(
        self, parts: list[Part], is_asked: bool, is_due: bool
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
        """Record, check and validate where it is time to."""
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
            with averaged(self.optimizer):
                figures = self.validate()
                named = {f"validation_{name}": value for name, value in figures.items()}
                self.recorder.keep(step, named)
                if self.run.best is not None:
                    self.run.best.look(figures, step, self.objective)
            self.recorder.pause()
        # Without validations nobody can tell how far it has come.
        is_late = self.run.validation is None and 2 * self.extent.place(step) >= self.extent.planned
        if begins_averaging(self.optimizer, self.history, self.config.average_after, is_late):
            self.run.reporter.note(f"Averaging the weights from step {step:,} on.")

    def _is_hopeless(self) -> bool:
        """Whether enough validations in a row have brought nothing."""
        best = self.run.best
        if best is None or not best.is_hopeless:
            return False
        self.run.reporter.note(
            f"Stopped after step {self.step:,}: {best.num_since} validations in a row were not "
            f"better than that of step {best.step:,}."
        )
        return True

    def validate(self) -> dict[str, float]:
        """The figures of the validation, or none where there is none."""
        run = self.run
        if run.validation is None:
            return {}
        figures = run.validation(self.objective, self.device, run.processes)
        return run.on_validation(figures)

    def _stop(self) -> None:
        self._checkpoint()
        if self.run.keeper is not None:
            self.run.reporter.note(f"Saved step {self.step:,} in {self.run.keeper.folder}.")
        raise KeyboardInterrupt

    def _checkpoint(self) -> None:
        """Write the state, unless its numbers are broken."""
        self.recorder.check()
        state = {
            "step": self.step, "plan": self.run.plan, "records": self.recorder.to_dict(),
            "scaler": self.stepper.scaler.state_dict(),
        }  # fmt: skip
        if self.run.keeper is not None and self.run.processes.is_main:
            with self.run.keeper.write(self.step) as folder:
                if self.run.best is not None:
                    state["best"] = self.run.best.write(folder)
                write_state(folder, self.objective, self.optimizer, state, self.history)
        self.recorder.pause()

    def _restore(self, found: Path) -> None:
        state = read_state(found, self.run.plan)
        read_weights(found, self.objective, self.optimizer)
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

"""The inputs of a training besides its network, one training step, and the recorded metrics.

A step computes the metrics and gradients of its parts, then updates the weights once. Mean metrics
go to the history, and to TensorBoard's event files if a folder is given.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from sememe.errors import DivergedError, MissingExtraError
from sememe.machine import clock
from sememe.progress import SILENT, History, Reporter, format_rate
from sememe.randomness import stream_key
from sememe.storage.checkpoints import Checkpoints
from sememe.training.config import TrainingConfig
from sememe.training.device import (
    TYPES,
    BatchPart,
    choose_device,
    choose_precision,
    resumed_precision,
    seed_device,
    to_device,
)
from sememe.training.distributed import Processes
from sememe.training.objective import TOKENS, Totals, TrainingSource
from sememe.training.optimizers import RateGroup, make_optimizer, rest, set_rates
from sememe.training.sharding import divided, take_back, whole
from sememe.training.weights import Best


class Recorder:
    """Collects the metrics of the steps and adds records to the history."""

    def __init__(
        self,
        counted_by: Mapping[str, str],
        processes: Processes,
        *,
        watches_rises: bool = True,
        shown: Sequence[str] = ("validation_loss",),
    ) -> None:
        self.history = History()
        self.tokens = 0
        self.writer: Any = None  # TensorBoard's
        self._counted_by, self._processes = counted_by, processes
        self._totals = Totals(counted_by)
        self._watches_rises, self._names = watches_rises, tuple(shown)
        self._lowest = math.inf
        self._before_s, self._begun_s = 0.0, clock()
        self._mark = (self._begun_s, 0)
        self.shown: dict[str, float | str] = {}  # beside the bar

    @property
    def seconds(self) -> float:
        """Seconds of training, including those before the last checkpoint; none of compiling."""
        return self._before_s + clock() - self._begun_s

    def begin(self) -> None:
        """Reset the measurements; the time counts from now."""
        self._totals, self.tokens = Totals(self._counted_by), 0
        self._begun_s = clock()
        self._mark = (self._begun_s, 0)

    def add(self, metrics: Mapping[str, torch.Tensor]) -> None:
        """Add the metric sums of a part of a step."""
        self._totals.add(metrics)

    def add_counts(self, counts: Mapping[str, float]) -> None:
        """Add the counts of a step, over all processes."""
        self._totals.add_counts(counts)
        self.tokens += int(counts[TOKENS])

    def wait(self) -> None:
        """Wait until the device has finished."""
        if self._totals.sums is not None:
            self._totals.sums.tolist()

    def taken(self) -> dict[str, float]:
        """The means since the last record; resets them."""
        means = self._totals.means(self._processes)
        self._totals = Totals(self._counted_by)
        return means

    def record(self, step: int, **more: float) -> None:
        """Record the means since the last record, after checking the loss."""
        metrics = self._totals.means(self._processes)
        self._watch(metrics["loss"])
        (before_s, before), now_s = self._mark, clock()
        self._mark = (now_s, self.tokens)
        speed = (self.tokens - before) / max(now_s - before_s, 1e-9)
        own = {"seconds": round(self.seconds, 3), "tokens_per_s": speed}
        self.keep(step, {**metrics, **more, **own})
        self._totals = Totals(self._counted_by)

    def keep(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append a record to the history."""
        self.history.append({"step": step, "tokens": self.tokens, **metrics})
        if self.writer is not None:
            for name, value in metrics.items():
                self.writer.add_scalar(name, value, step)
        self.shown = self._show()

    def pause(self) -> None:
        """Exclude the time of a validation or a checkpoint from the speed."""
        self._mark = (clock(), self.tokens)

    def _show(self) -> dict[str, float | str]:
        last = self.history.last()
        validated = {name: last[name] for name in self._names if last.get(name) is not None}
        if "loss" not in last:  # a device that is not waited for is validated before it is recorded
            return validated
        loss = float(self.history.smooth("loss", 3)[-1])
        speed = format_rate(last["tokens_per_s"] or 0.0, "tokens")
        return {"loss": loss, **validated, "speed": speed}

    def check(self) -> None:
        """Raise DivergedError for losses that are NaN or infinite."""
        sums = self._totals.sums
        if sums is not None and not bool(torch.isfinite(sums).all()):
            raise DivergedError("the loss became NaN")

    def _watch(self, loss: float) -> None:
        self.check()
        if not math.isfinite(loss):  # another process has seen it
            raise DivergedError("the loss became NaN")
        # A record of a short run is one step of a few rows: three of them distinguish a rise from
        # chance.
        before = [record["loss"] for record in self.history[-8:] if "loss" in record][-2:]
        loss = sum([*before, loss]) / (len(before) + 1)
        if self._watches_rises and loss > 1.5 * self._lowest + 1:
            raise DivergedError(f"the loss rose to {loss:.2f} after it had been {self._lowest:.2f}")
        self._lowest = min(self._lowest, loss)

    def to_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, besides the history."""
        lowest = self._lowest if math.isfinite(self._lowest) else None
        totals = self._totals.to_dict(self._processes)
        return {
            "tokens": self.tokens, "seconds": self.seconds, "lowest": lowest, "totals": totals,
        }  # fmt: skip

    def restore(self, kept: Mapping[str, Any], history: History, device: torch.device) -> None:
        """Restore the state of a checkpoint."""
        self.history, self.tokens = history, int(kept["tokens"])
        self._before_s = float(kept["seconds"])
        self._lowest = math.inf if kept["lowest"] is None else float(kept["lowest"])
        self._totals.restore(kept["totals"], device, self._processes)
        self._mark = (clock(), self.tokens)


def check_tensorboard(folder: str) -> None:
    """Raise an error for an event folder if TensorBoard is not installed."""
    if folder:
        try:
            import torch.utils.tensorboard  # noqa: F401
        except ImportError:
            message = "TensorBoard is not installed: pip install tensorboard."
            raise MissingExtraError(message) from None


@contextmanager
def events_in(folder: str) -> Iterator[Any]:
    """A writer of event files that is closed at the end; None without a folder."""
    if not folder:
        yield None
        return
    check_tensorboard(folder)
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)
    try:
        yield writer
    finally:
        writer.close()


@dataclass(kw_only=True)
class TrainingRun:
    """What a training needs besides the network: batches, options, output paths."""

    source: TrainingSource
    config: TrainingConfig
    # Computes the metrics of held-out data from the objective, its device and the processes.
    validation: Callable[[Any, Any, Processes], dict[str, float]] | None = None
    # Adds derived metrics to those of a validation, such as perplexity.
    on_validation: Callable[[dict[str, float]], dict[str, float]] = lambda metrics: metrics
    num_validations: int = 10  # over the run, if the options do not set an interval
    # With it, the run ends with the weights of the best validation, not of the last step.
    best: Best | None = None
    # Gives parts of the objective their own learning rates, once the number of steps is known.
    rate_groups: Callable[[int], list[RateGroup]] | None = None
    # Whether a rising loss means divergence; only if it is a mean over many rows.
    watches_rises: bool = True
    shown: tuple[str, ...] = ("validation_loss",)  # beside the bar
    reporter: Reporter = SILENT
    keeper: Checkpoints | None = None
    resume: bool = False
    plan: dict[str, Any] = field(default_factory=dict)  # identifies the run in its checkpoints
    processes: Processes = Processes()


_DROPOUT = 0x44  # the purpose of a random stream


class Stepper:
    """Updates the weights of an objective on its device, and passes metrics to a recorder."""

    def __init__(
        self, objective: Any, run: TrainingRun, recorder: Recorder, begun_in: str = ""
    ) -> None:
        """`begun_in` is the precision of a resumed run; a new one follows its options."""
        # With sharding, `objective` is a divided copy from `start` on, `whole` the given one.
        self.objective = self.whole = objective
        self.run, self.recorder = run, recorder
        self.config, self.processes = run.config, run.processes
        self.is_divided = self.config.sharding == "full"
        self.device = choose_device(self.config.device, self.processes.local_rank)
        self._usual = self.precision = choose_precision(
            self.config.precision, self.device, self.config.fast_cpu_precision
        )
        if begun_in:
            self.precision = resumed_precision(begun_in, self.device)
        self.norm: torch.Tensor | None = None  # of the last gradient, if it is measured
        self._has_graphs = False  # whether gradients are in the memory of a CUDA graph

    def start(self) -> None:
        """Move the objective to its device, or its parts to those of all processes."""
        if self.is_divided:
            self.objective = divided(self.whole, self.device, self.processes)
        else:
            self.objective.to(self.device)
        self.objective.precision = TYPES[self.precision]
        self.objective.train()
        is_gpu = self.device.type == "cuda"
        if self.precision != self._usual:
            self.run.reporter.note(
                f"Matrix products stay in {self.precision}, with which this run began; "
                f"a new one would take {self._usual} here."
            )
        elif self.config.precision == "auto" and self.precision == "bf16" and not is_gpu:
            self.run.reporter.note("Matrix products are in bf16, which this CPU has (precision).")
        if self.config.compile == "yes" or (self.config.compile == "auto" and is_gpu):
            self.run.reporter.note("Compiling the network.")
            self.objective.compile()
        if self.config.compile == "step":  # which the options of a few models have
            self.run.reporter.note("Compiling the whole step.")
            self._has_graphs = is_gpu
            # On a GPU it is recorded as a CUDA graph, which is launched as one.
            how = {"mode": "reduce-overhead"} if is_gpu else {}
            self.objective.compile_step(self.config.length, **how)
        self.module: Any = self.objective
        if not self.is_divided:
            self.module = self.processes.wrap(self.objective, self.device)

    def finish(self) -> None:
        """Give the given objective the weights, if a divided copy has been trained."""
        if self.is_divided:
            take_back(self.whole, self.objective)

    def renew(self, num_steps: int) -> None:
        """Create a fresh optimizer."""
        groups = self.run.rate_groups(num_steps) if self.run.rate_groups else None
        self.optimizer = make_optimizer(self.objective, self.config, groups)
        # Collecting them in every step would take as long as a layer of a small network.
        self._trained = [own for own in self.objective.parameters() if own.requires_grad]
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")

    def do(self, step: int, parts: list[BatchPart], counts: dict[str, float], rate: float) -> None:
        """One step: the gradients of all parts, then one update of the weights."""
        set_rates(self.optimizer, step, rate)
        self.gather(step, parts, counts, learns=True)
        self._move(step)

    def gather(
        self, step: int, parts: list[BatchPart], counts: dict[str, float], *, learns: bool
    ) -> None:
        """The metrics of all parts, and their gradients if training."""
        processes, shares = self.processes, self._on_device(counts)
        for index, part in enumerate(parts):
            number = index * processes.size + processes.rank
            seed_device(self.device, stream_key(self.config.seed, _DROPOUT, step, number) >> 1)
            # Gradients are exchanged between processes once per step. With sharding they are
            # exchanged after every part, so that no process holds all of them.
            is_last = index == len(parts) - 1
            is_alone = processes.size == 1 or self.is_divided or is_last
            waits: Any = nullcontext() if is_alone else self.module.no_sync()
            with torch.set_grad_enabled(learns), waits:
                loss, metrics = self.module(to_device(part.prepared, self.device), shares)
                if learns:
                    # Gradients are averaged over the processes, while the loss is already divided
                    # by all counts.
                    own = loss if processes.size == 1 else loss * processes.size
                    self.scaler.scale(own).backward()
            self.recorder.add(metrics)
            if self._has_graphs and learns and index == 0 and not is_last:
                # The next part runs the same graph, which writes its gradients to the same memory.
                for weight in self._trained:
                    weight.grad = None if weight.grad is None else weight.grad.clone()
        self.recorder.add_counts(counts)

    def _move(self, step: int) -> None:
        rest(self.optimizer, step)
        if self.config.clip:
            self.scaler.unscale_(self.optimizer)
            self.norm = whole(torch.nn.utils.clip_grad_norm_(self._trained, self.config.clip))
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def _on_device(self, counts: dict[str, float]) -> dict[str, torch.Tensor]:
        row = torch.tensor([max(1.0, count) for count in counts.values()])
        if self.device.type == "cuda":
            row = row.pin_memory()
        return dict(zip(counts, to_device(row, self.device).unbind(), strict=True))

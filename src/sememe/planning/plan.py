"""The plan of a training: an untrained model and its text in; what each size needs and reaches out.

sememe.plan(sememe.BERT("mini", budget="20m"), "my-texts/") gives a `Plan`: for every size the
steps, time, peak memory and validation loss to expect, from a few real steps of each
on this machine (`calibration`), a sample of the text (`sample`) and measured losses (`losses`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sememe.errors import OptionError
from sememe.machine import gpu, imported, memory_size
from sememe.planning.calibration import measured, measured_network, this_machine
from sememe.planning.losses import Expected, Setting, loss_model
from sememe.planning.sample import Sample, sample_of
from sememe.progress import Reporter, as_reporter
from sememe.text.settings import TextSettings

# With fewer steps the learning rate has barely risen before it falls again.
_FEW_STEPS = 20
# Bytes of a weight in training: itself, its gradient, and the two means of Adam.
_BYTES_A_WEIGHT = 16
_BYTES_A_TOKEN = 2  # of the tokenized text, which is mapped into memory
# What does not change the seconds or the memory of a step.
_PASSING = (
    "budget", "steps", "epochs", "evaluate_every", "checkpoint_minutes", "keep", "tensorboard",
    "seed",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PlannedSize:
    """What the training of one size needs and reaches; None where that is not known."""

    preset: str
    weights: int = 0
    flops_per_step: float | None = None
    rows: int = 0  # per step
    length: int = 0
    steps: int | None = None
    epochs: float | None = None
    tokens: float | None = None
    step_s: float | None = None
    seconds: float | None = None  # of the training, with its validations
    prepared_s: float | None = None  # before it: reading, tokenizing
    memory_bytes: int | None = None
    loss: Expected | None = None
    loss_per_byte: float | None = None  # comparable between vocabularies
    measured: str = ""  # when
    is_scaled: bool = False  # from steps with fewer rows
    was_busy: bool = False  # whether other programs used the cores meanwhile
    obstacle: str = ""  # why it cannot be trained like this

    @property
    def fits(self) -> bool:
        """Whether it can be trained like this."""
        return not self.obstacle

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        loss = None if self.loss is None else self.loss.to_dict()
        return {**asdict(self), "loss": loss, "fits": self.fits}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The sizes of a training, what was read to plan them, and the machine."""

    kind: str
    sizes: tuple[PlannedSize, ...]
    text: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    budget_s: float = 0.0
    memory_bytes: int = 0  # that a training may take
    device: str = ""
    model: Any = None  # that was planned

    def model_of(self, size: PlannedSize) -> Any:
        """The model in one of the sizes."""
        is_own = size.preset == getattr(self.model, "preset", "")
        return self.model if is_own else sibling(self.model, size.preset)

    @property
    def ranked(self) -> list[PlannedSize]:
        """The sizes that fit, the lowest expected loss first; without losses the largest first."""
        fitting = [own for own in self.sizes if own.fits]
        if all(own.loss_per_byte is not None for own in fitting):
            return sorted(fitting, key=lambda own: own.loss_per_byte or 0.0)
        return sorted(fitting, key=lambda own: -own.weights)

    @property
    def best(self) -> PlannedSize:
        """The size with the lowest expected loss that fits."""
        ranked = self.ranked
        if not ranked:
            reasons = " ".join(f"{own.preset}: {own.obstacle}" for own in self.sizes)
            raise OptionError(f"No size fits. {reasons}")
        return ranked[0]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        best = self.ranked[:1]
        return {
            "kind": self.kind, "best": best[0].preset if best else None,
            "budget_s": self.budget_s or None, "memory_limit_bytes": self.memory_bytes,
            "text": self.text, "machine": self.machine, "device": self.device,
            "sizes": [own.to_dict() for own in self.sizes],
        }  # fmt: skip


def plan(
    model: Any,
    *data: Any,
    presets: Sequence[str] = (),
    memory: int = 0,
    text: TextSettings | None = None,
    tokenizer: str | Path | None = None,
    recalibrate: bool = False,
    progress: Reporter | bool | None = None,
    **options: Any,
) -> Plan:
    """Plan the training that model.fit(*data, text=text, …) would do; the model stays untrained.

    `presets` are the sizes to compare; without them, that of the model. `memory` is the number of
    bytes that the training may take; 0: what this machine has, or its GPU if that trains.
    Measurements are kept for the next plan unless `recalibrate` is true.
    """
    planner = _Planner(model, data, text, tokenizer, options, as_reporter(progress), recalibrate)
    return planner.plan(list(presets) or [getattr(model, "preset", "")], memory)


class _Planner:
    """Plans one training."""

    def __init__(
        self, model: Any, data: tuple[Any, ...], text: TextSettings | None, tokenizer: Any,
        options: dict[str, Any], reporter: Reporter, is_new: bool,
    ) -> None:  # fmt: skip
        self.model, self.kind, self.reporter, self.is_new = model, model.kind, reporter, is_new
        self.fit_options = _as_json(options)
        if tokenizer is not None:
            self.fit_options["tokenizer"] = str(Path(tokenizer).absolute())
        self.text = text or model.text
        self.is_pairs = len(data) > 1
        self.sample: Sample | None = None
        if self.is_pairs:
            self.data: list[Any] = _as_json(list(data))
        else:
            self.sample = sample_of(data[0] if data else None, self.text)
            self.data = [self.sample.corpus]
        self.scale = 1.0 if self.sample is None else self.sample.scale
        self._known: dict[int, dict[str, Any]] = {}  # facts of the text, by vocabulary size
        self.is_network = hasattr(type(model), "training_class")
        self.device = _device_of(model, self.is_network)
        # Its name and bytes, if it trains: another GPU is another measurement.
        self.gpu = gpu() if self.device == "cuda" else ("", 0)
        self._flops_per_s = 0.0  # of the last size that was measured

    def plan(self, presets: list[str], memory_bytes: int) -> Plan:
        """The plan of these sizes, which are measured from the smallest on."""
        memory_bytes = memory_bytes or self.gpu[1] or memory_size()
        budget_s = self.model.training.budget_s if self.is_network else 0.0
        sizes = []
        if self.is_network:
            for own in sorted(map(self._sized, presets), key=lambda own: own[1].weights):
                sizes.append(self._planned(*own, budget_s, memory_bytes))
        else:
            sizes.append(self._static(memory_bytes))
        return Plan(
            kind=self.kind, sizes=tuple(sizes), text=self._described(),
            machine=this_machine() | {"gpu": self.gpu[0]}, budget_s=budget_s,
            memory_bytes=memory_bytes, device=self.device, model=self.model,
        )  # fmt: skip

    def _described(self) -> dict[str, Any]:
        """What was read of the text."""
        facts = next(iter(self._known.values()), {})
        found = {name: round(own * self.scale) for name, own in facts.get("data", {}).items()
                 if name in ("documents", "sentences", "tokens", "pairs")}  # fmt: skip
        if self.sample is not None:
            found |= {
                "bytes": self.sample.num_bytes, "is_whole": self.sample.is_whole,
                "language": self.text.language,
            }  # fmt: skip
            found["bytes_read"] = round(self.sample.num_bytes / self.scale)
        return found

    # ---- networks -------------------------------------------------------------------------------

    def _sized(self, preset: str) -> tuple[Any, PlannedSize]:
        """The model in another size, with its number of weights; or why there is none."""
        try:
            model = self.model if preset == self.model.preset else sibling(self.model, preset)
            weights = model.num_weights()
        except OptionError as error:
            return None, PlannedSize(preset=preset, obstacle=str(error))
        training = model.training
        return model, PlannedSize(
            preset=preset, weights=weights, rows=training.batch_size, length=training.length
        )

    def _planned(
        self, model: Any, size: PlannedSize, budget_s: float, memory_bytes: int
    ) -> PlannedSize:
        if size.obstacle:
            return size
        training = model.training
        flops = model.flops_per_step()
        expected_s = flops / self._flops_per_s if self._flops_per_s else 0.0
        if _is_above(_BYTES_A_WEIGHT * size.weights, memory_bytes):
            needed = _gigabytes(_BYTES_A_WEIGHT * size.weights)
            return replace(
                size, obstacle=f"Its weights and optimizer alone need {needed} of memory."
            )
        if budget_s and expected_s * _FEW_STEPS > 2 * budget_s:
            return replace(size, obstacle=_too_slow(budget_s / expected_s, expected_s))
        task = self._task(model)
        try:
            facts = self._facts(task, model)
            found = measured_network(
                task, expected_s=expected_s, batch_size=training.batch_size,
                accumulate=training.accumulate, reporter=self.reporter, is_new=self.is_new,
            )  # fmt: skip
        except OptionError as error:
            return replace(size, obstacle=str(error))
        self._flops_per_s = found["flops"] / found["step_s"]
        size = replace(size, weights=found["weights"], flops_per_step=found["flops"])
        return self._of(model, size, facts | found, memory_bytes)

    def _facts(self, task: dict[str, Any], model: Any) -> dict[str, Any]:
        """The facts of the tokenized text: made once per vocabulary, outside of measurements."""
        key = getattr(model.config, "vocab_size", 0) or model.training.max_words
        if key not in self._known:
            self.reporter.note("Reading and tokenizing the text.")
            self._known[key] = measured(task | {"timed_s": 0}, is_new=self.is_new)
        return self._known[key]

    def _of(
        self, model: Any, size: PlannedSize, found: dict[str, Any], memory_bytes: int
    ) -> PlannedSize:
        """What a training of this size needs and reaches, from its measurements."""
        from sememe.training.duration import StepSpeed, extent_of

        training, speed = model.training, StepSpeed(found["step_s"], found["evaluation_s"])
        rows_per_epoch = found["rows_per_epoch"] * self.scale
        if training.budget_s:
            extent = speed.extent_within(training.budget_s, training.evaluate_every)
        else:
            wanted = training.epochs * rows_per_epoch / training.batch_size
            extent = extent_of(
                training.steps or max(1, math.ceil(wanted)), training.evaluate_every,
                found["num_validations"],
            )  # fmt: skip
        steps = extent.num_steps
        num_validated = -(-steps // extent.period) if found["num_validated"] else 0
        tokens = steps * found["tokens_per_step"]
        loss = None if model.options().get("pretrained") else self._loss(model, size, found, steps)
        seconds = steps * found["step_s"] + num_validated * found["evaluation_s"]
        memory = self._memory(found, tokens)
        size = replace(
            size, steps=steps, epochs=steps * training.batch_size / max(1.0, rows_per_epoch),
            tokens=tokens, step_s=found["step_s"], seconds=seconds, memory_bytes=memory,
            prepared_s=self._known_s() * self.scale, loss=loss,
            loss_per_byte=self._per_byte(loss, found), measured=found["measured"],
            is_scaled=found["is_scaled"], was_busy=found["is_busy"],
        )  # fmt: skip
        if _is_above(memory, memory_bytes):
            return replace(size, obstacle=f"It needs {_gigabytes(memory or 0)} of memory.")
        if training.budget_s and steps < _FEW_STEPS:
            return replace(size, obstacle=_too_slow(steps, found["step_s"]))
        return size

    def _known_s(self) -> float:
        return max((own["prepared_s"] for own in self._known.values()), default=0.0)

    def _memory(self, found: dict[str, Any], tokens: float) -> int | None:
        """The measured peak, and the bytes of the tokenized corpus that the sample did not have.

        None if this system does not tell the peak. A GPU maps no files.
        """
        if not found["memory_bytes"] or self.gpu[0]:
            return found["memory_bytes"] or None
        sampled = found["data"].get("tokens", 0)
        mapped = _BYTES_A_TOKEN * max(0.0, min(tokens, sampled * self.scale) - sampled)
        return int(found["memory_bytes"] + mapped)

    def _loss(
        self, model: Any, size: PlannedSize, found: dict[str, Any], steps: int
    ) -> Expected | None:
        by_frequency = model.frequency_loss(found["metrics"])
        if by_frequency is None:
            return None
        language = "mixed" if isinstance(self.data[0], Mapping) else self.text.language
        return loss_model().expected(
            Setting(
                kind=self.kind, steps=steps, tokens_per_step=found["tokens_per_step"],
                weights=found["weights"], by_frequency=by_frequency, language=language,
                has_next="next_loss" in found["metrics"],
            )
        )  # fmt: skip

    def _per_byte(self, loss: Expected | None, found: dict[str, Any]) -> float | None:
        if loss is None or self.sample is None:
            return None
        return loss.loss * found["data"]["tokens"] / max(1, self.sample.num_bytes / self.scale)

    def _task(self, model: Any) -> dict[str, Any]:
        """The trial of a size, as JSON values."""
        given = {name: own for name, own in model.options().items() if name not in _PASSING}
        if "pretrained" in given and not isinstance(given["pretrained"], (str, Path, type(None))):
            raise OptionError("A plan needs the folder of the pretrained model, not the model.")
        return {
            "kind": self.kind, "options": _as_json(given) | {"steps": 1_000}, "data": self.data,
            "fit": self.fit_options,
            "text": None if self.sample is None else self.sample.text,
            "key": "" if self.sample is None else self.sample.key,
            "workers": model.training.num_workers, "gpu": self.gpu[0],
        }  # fmt: skip

    # ---- word vectors ---------------------------------------------------------------------------

    def _static(self, memory_bytes: int) -> PlannedSize:
        """The plan of a model without steps: its seconds and memory, from some of its training.

        Its vocabulary grows slower than its text, so the memory of a sampled corpus is a bound.
        """
        task = {
            "kind": self.kind, "options": _as_json(self.model.options()), "data": self.data,
            "fit": self.fit_options, "text": self.sample.text if self.sample else None,
            "key": self.sample.key if self.sample else "", "gpu": self.gpu[0],
        }  # fmt: skip
        found = measured(task, reporter=self.reporter, is_new=self.is_new)
        self._known[0] = found
        memory = self._memory(found, math.inf)
        is_large = _is_above(memory, memory_bytes)
        return PlannedSize(
            preset="", seconds=found["total"] * self.scale * found["unit_s"],
            prepared_s=found["before_s"] * self.scale, memory_bytes=memory,
            epochs=getattr(self.model.config, "epochs", None), measured=found["measured"],
            was_busy=found["is_busy"],
            obstacle=f"It needs {_gigabytes(memory or 0)} of memory." if is_large else "",
        )  # fmt: skip


def sibling(model: Any, preset: str) -> Any:
    """A new model with the options of another, in another size."""
    return type(model)(**{**model.options(), "preset": preset})


def _as_json(value: Any) -> Any:
    """The same value with paths as text."""
    if isinstance(value, Mapping):
        return {name: _as_json(own) for name, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(own) for own in value]
    return str(value) if isinstance(value, Path) else value


def _device_of(model: Any, is_network: bool) -> str:
    """The device that trains the model: cpu, cuda or mps."""
    name = model.training.device if is_network else getattr(model.config, "device", "cpu")
    if name == "cpu" or (name == "auto" and not is_network):
        return "cpu"
    # Word vectors on a CPU need no PyTorch.
    return str(imported("sememe.training.device", "choose_device")(name).type)


def _is_above(num_bytes: int | None, limit: int) -> bool:
    """Whether this is more memory than there is, as far as both are known."""
    return bool(num_bytes and limit) and (num_bytes or 0) > limit


def _gigabytes(num_bytes: float) -> str:
    return f"{num_bytes / (1 << 30):.1f} GB"


def _too_slow(steps: float, step_s: float) -> str:
    return f"Only about {steps:.0f} steps of {step_s:.1f} s fit into the budget: too few."

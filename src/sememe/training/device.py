"""Where a network computes: its device and precision, and the batches moved there.

Weights stay float32 everywhere. Threads prepare training batches in advance; validation batches are
the same each time. If memory runs out, an error names the settings to lower.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import torch

from sememe.errors import ArtifactError, OptionError
from sememe.machine import in_order
from sememe.training.config import TrainingConfig
from sememe.training.distributed import Processes
from sememe.training.objective import Objective, Totals, TrainingSource

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """The device with that name; auto takes a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise OptionError("device is cuda, but PyTorch finds no GPU here; take cpu or auto.")
    if name == "mps" and not torch.backends.mps.is_available():
        raise OptionError("device is mps, but PyTorch finds no Apple GPU here; take cpu or auto.")
    if name.partition(":")[0] not in ("cpu", "cuda", "mps"):
        raise OptionError(f"device must be one of auto, cpu, cuda, mps, not {name!r}.")
    return torch.device(name, local_rank) if name == "cuda" else torch.device(name)


def multiplies_bf16() -> bool:
    """Whether this CPU has bfloat16 multiplication, not only storage."""
    # Older versions of PyTorch cannot say.
    has: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(has.get("avx512_bf16") or has.get("amx_bf16"))


def choose_precision(name: str, device: torch.device, fast_cpu: str = "fp32") -> str:
    """The precision with that name; auto takes bf16 on a GPU that has it, fp32 on a CPU.

    fast_cpu: what auto takes on a CPU with bfloat16 multiplication.
    """
    if name != "auto":
        if name == "fp16" and device.type == "cpu":
            raise OptionError("fp16 needs a GPU; on a CPU take fp32 or bf16.")
        return name
    if device.type == "cpu" and multiplies_bf16():
        return fast_cpu
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"


def resumed_precision(kept: str, device: torch.device) -> str:
    """The precision that a run started with, whatever auto would choose where it resumes."""
    if kept not in TYPES:
        raise ArtifactError(f"The run to be resumed names a precision of {kept!r}, unknown here.")
    if kept == "fp16" and device.type == "cpu":
        raise OptionError(
            "The run to be resumed began in fp16, which needs a GPU: resume it where there is one, "
            "or start again without resume."
        )
    return kept


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the random generators of the CPU and of a device.

    `torch.manual_seed` does this for every kind of device and, for missing ones, records the
    caller, which takes longer than a layer of a small network.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[index].manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


@contextmanager
def reproducible(device: torch.device, precision: str, num_threads: int) -> Iterator[None]:
    """Compute with this many threads and, on a CPU, bit-reproducibly.

    PyTorch's own settings and random state are restored afterwards.
    """
    deterministic: Any = torch.utils.deterministic
    threads, is_strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    fills = deterministic.fill_uninitialized_memory
    devices = [device] if device.type == "cuda" else []
    # oneDNN creates and caches a program for every shape, and batches differ in their numbers of
    # tokens: in fp32 that took hundreds of megabytes and a little time. bf16 has no other kernels.
    onednn: Any = torch.backends.mkldnn
    had_onednn = onednn.enabled
    with torch.random.fork_rng(devices=devices):
        try:
            torch.set_num_threads(num_threads)
            onednn.set_flags(had_onednn and (device.type != "cpu" or precision != "fp32"))
            if device.type == "cpu":
                # Otherwise sums over repeated indices would depend on which thread is first.
                torch.use_deterministic_algorithms(True, warn_only=True)
                deterministic.fill_uninitialized_memory = False  # a debugging aid that costs time
            yield
        finally:
            torch.set_num_threads(threads)
            onednn.set_flags(had_onednn)
            torch.use_deterministic_algorithms(is_strict, warn_only=warns)
            deterministic.fill_uninitialized_memory = fills


# PyTorch has no error class of its own for CPU memory; the second is the message on Windows.
_CPU_WORDS = ("can't allocate memory", "not enough memory")


@contextmanager
def explained_memory(config: TrainingConfig) -> Iterator[None]:
    """Turn PyTorch's out-of-memory error into a sentence that names the settings to lower."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OptionError(_sentence(config, "the GPU")) from error
    except (MemoryError, RuntimeError) as error:
        is_other = not any(words in str(error) for words in _CPU_WORDS)
        if is_other and not isinstance(error, MemoryError):
            raise
        raise OptionError(_sentence(config, "this machine")) from error


def _sentence(config: TrainingConfig, place: str) -> str:
    rows = config.batch_size // config.accumulate
    can_recompute = getattr(config, "recompute", True) is False
    return (
        f"The memory of {place} is too small for {rows:,} rows of {config.length:,} tokens at "
        f"once: raise accumulate (it is {config.accumulate}; {2 * config.accumulate} halves the "
        f"rows and gives the same result), {'switch recompute on, ' if can_recompute else ''}or "
        "lower batch_size, length or the preset."
    )


# Sources cache what they planned last, so only one thread at a time calls them.
_SOURCES = threading.Lock()


class BatchPart(NamedTuple):
    """Some of a step's rows: the network's input, and its counts."""

    prepared: Any
    counts: dict[str, int]


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same value with every tensor in it mapped; walks dataclasses, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return replace(value, **{name: mapped(part, change) for name, part in parts.items()})
    if isinstance(value, list):
        return [mapped(part, change) for part in value]
    if isinstance(value, tuple):
        parts_of = [mapped(part, change) for part in value]
        return type(value)(*parts_of) if hasattr(value, "_fields") else tuple(parts_of)
    if isinstance(value, dict):
        return {name: mapped(part, change) for name, part in value.items()}
    return value


def to_device(value: Any, device: torch.device) -> Any:
    """The same value with its tensors on the device."""
    if device.type == "cpu":
        return value
    return mapped(value, lambda tensor: tensor.to(device, non_blocking=True))


def own_parts(
    source: TrainingSource, objective: Objective, step: int, accumulate: int, processes: Processes
) -> list[BatchPart]:
    """This process's parts of the batch of a step."""
    with _SOURCES:
        batch = source.batch(step)
    size = processes.size
    if accumulate * size == 1:
        own = [batch]
    else:
        own = [
            batch.part(index * size + processes.rank, accumulate * size)
            for index in range(accumulate)
        ]
    return [BatchPart(objective.prepare(part), objective.counts(part)) for part in own]


@contextmanager
def fed(
    make: Callable[[int], list[BatchPart]], steps: Iterable[int], device: torch.device
) -> Iterator[Iterator[list[BatchPart]]]:
    """Yield the parts of those steps in order, a few of them prepared in advance."""
    is_cuda = device.type == "cuda"

    def work(step: int) -> list[BatchPart]:
        # A GPU can read pinned memory while the program continues.
        parts = make(step)
        return mapped(parts, torch.Tensor.pin_memory) if is_cuda else parts

    # On a CPU the network's own threads need the cores.
    pool = ThreadPoolExecutor(4 if is_cuda else 1)
    batches = in_order(pool, work, steps, 8 if is_cuda else 2)
    try:
        yield batches
    finally:
        batches.close()  # type: ignore[attr-defined]
        pool.shutdown(wait=True, cancel_futures=True)


class Validation:
    """The first batches of a held-out source, the same each time, split among processes."""

    def __init__(self, source: TrainingSource, num_batches: int) -> None:
        self.source = source
        self.num_batches = min(num_batches, max(1, source.batches_per_epoch))
        self._made: dict[int, BatchPart] = {}

    def __call__(
        self, objective: Any, device: torch.device, processes: Processes
    ) -> dict[str, float]:
        """The means of the metrics, without dropout."""
        return self.totals(objective, device, processes).means(processes)

    def totals(self, objective: Any, device: torch.device, processes: Processes) -> Totals:
        """The sums of the metrics of this process, and the counts of all."""
        totals, was_training = Totals(objective.counted_by), objective.training
        objective.eval()
        try:
            with torch.no_grad():
                # Every process computes as many, because divided weights are gathered by all.
                for first in range(0, self.num_batches, processes.size):
                    number = first + processes.rank
                    prepared, counts = self._part(objective, min(number, self.num_batches - 1))
                    shares = {
                        name: torch.tensor(max(1.0, count), device=device)
                        for name, count in counts.items()
                    }
                    metrics = objective(to_device(prepared, device), shares)[1]
                    if number < self.num_batches:
                        totals.add(metrics)
                        totals.add_counts(counts)
        finally:
            objective.train(was_training)
        summed = processes.sum(list(totals.counts.values()))
        totals.counts = dict(zip(totals.counts, summed, strict=True))
        return totals

    def _part(self, objective: Any, number: int) -> BatchPart:
        if number not in self._made:
            batch = self.source.batch(number)
            self._made[number] = BatchPart(objective.prepare(batch), objective.counts(batch))
        return self._made[number]


class Validations:
    """Validations by name: the metrics over all, and those of each prefixed with its name."""

    def __init__(self, parts: Mapping[str, Validation]) -> None:
        self.parts = dict(parts)

    @property
    def num_batches(self) -> int:
        """The batches of all of them together."""
        return sum(part.num_batches for part in self.parts.values())

    def __call__(
        self, objective: Any, device: torch.device, processes: Processes
    ) -> dict[str, float]:
        """The means of the metrics, without dropout."""
        joined = Totals(objective.counted_by)
        named: dict[str, float] = {}
        for name, part in self.parts.items():
            own = part.totals(objective, device, processes)
            joined.add_totals(own)
            named |= {f"{name}_{key}": value for key, value in own.means(processes).items()}
        return joined.means(processes) | named

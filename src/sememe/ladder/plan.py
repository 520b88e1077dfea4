"""The machine, and the plan of each rung: sizes that fit both it and the budget."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sememe.ladder.config import PRESETS, LadderConfig
from sememe.ladder.results import Budget, Machine, Rung
from sememe.machine import available_cores, gpu, installed_versions, memory_size, processor

# Core-seconds that a network of each size needs to learn something useful; a GPU does the work of
# about as many cores as below.
_CORE_SECONDS = {"mini": 4_000.0, "small": 60_000.0, "medium": 300_000.0}
_GPU_CORES = 1_000
_FED_CORES = 2  # left for a training on a GPU: one for its own steps, one for its batches
# Evaluation processes: one for this many cores, this much memory and this much GPU memory.
_HELPER_CORES, _HELPER_MEMORY, _HELPER_GPU_MEMORY = 4 / 3, 8 << 30, 6 << 30
# Tokens to train on, if the budget is in tokens.
_TOKENS = {"mini": 50_000_000, "small": 500_000_000, "medium": 2_000_000_000}
# Words per second and core of the slowest threaded model, fastText.
_SLOWEST_WORDS = 60_000
_ROWS = (60, 600, 3_000)  # of a task: minimum, with half a minute per rung, maximum
_CHARACTERS_A_GB = 250_000
_VOCABULARIES = {"tiny": 4_096, "mini": 8_192, "small": 16_384, "medium": 16_384}
_WORDS_PREDICTED = {"tiny": 10_000, "mini": 20_000, "small": 20_000, "medium": 50_000}
_SMALL_TEXT = 1_000_000
_CHINESE_SUBWORDS = 8_192  # at least: each character is one
# Seconds of two cores to evaluate one rung on everything: per row of a task, and fixed.
_ASKING_S = {"static": 5.0, "contextual": 12.0}
# Fine-tuning: epochs and batch size, seconds of a step on a core and on a GPU that several
# processes share, of all other tasks of one rung, and of starting those processes.
EPOCHS, _STEP_ROWS = 3.0, 32
_STEP_S = {"static": 0.2, "contextual": 0.4}
_GPU_STEP_S = {"static": 0.03, "contextual": 0.05}
_OTHER_S, _STARTING_S = 30.0, 40.0
# Words per second that all cores, and one core, can read, tokenize and count.
_READ_WORDS, _CUT_WORDS = 1_000_000, 100_000


@dataclass(frozen=True, kw_only=True)
class LadderPlan:
    """The sizes of a ladder."""

    budget_s: float
    tokens: int
    preset: str
    dim: int
    min_count: int
    vocab_size: int  # sub-words
    predicted_words: int  # of the language models
    num_rows: int  # training rows of a task
    max_words: int  # of the text; 0: no limit
    max_characters: int  # of the rows of a task: each word is a vector of a network's layers
    device: str
    seed: int
    workers: int
    has_gpu: bool = False  # that networks are trained on
    num_helpers: int = 0  # worker processes; 0 without a GPU

    @property
    def budget(self) -> Budget:
        """The budget of each rung, for the report."""
        return Budget(seconds=self.budget_s or None, tokens=self.tokens or None)

    @property
    def is_timed(self) -> bool:
        """Whether the budget is in seconds, not tokens."""
        return not self.tokens

    def for_text(self, num_words: int) -> LadderPlan:
        """The plan once the text's length is known: rare words of a short text are kept."""
        if self.min_count:
            return self
        return replace(self, min_count=5 if num_words >= _SMALL_TEXT else 3)


def make_plan(config: LadderConfig, machine: Machine, *, is_chinese: bool = False) -> LadderPlan:
    """Choose sizes for a budget and a machine; Chinese has thousands of characters."""
    budget_s, cores = config.budget_s, config.num_workers
    power = budget_s * (cores + (_GPU_CORES if machine.gpu else 0))
    limits, given = (_TOKENS, config.tokens) if config.tokens else (_CORE_SECONDS, power)
    fitting = [name for name in PRESETS[1:] if given >= limits[name]]
    preset = (fitting or ["tiny"])[-1] if config.preset == "auto" else config.preset
    low, usual, high = _ROWS
    scale = budget_s / 30 if budget_s else config.tokens / 2_000_000
    num_rows = config.rows or int(min(high, max(low, usual * scale)))
    readable = int(budget_s * cores * _SLOWEST_WORDS) if budget_s else config.tokens
    max_words = min(readable, config.max_words or readable)
    fewest = _CHINESE_SUBWORDS if is_chinese else 0
    return LadderPlan(
        budget_s=budget_s, tokens=config.tokens, preset=preset, dim=config.dim,
        min_count=config.min_count, vocab_size=max(_VOCABULARIES[preset], fewest),
        predicted_words=_WORDS_PREDICTED[preset], num_rows=num_rows, max_words=max_words,
        max_characters=_characters(config, machine),
        device=config.device, seed=config.seed, workers=config.workers,
        has_gpu=bool(machine.gpu), num_helpers=_helpers(config, machine),
    )  # fmt: skip


def _helpers(config: LadderConfig, machine: Machine) -> int:
    """The number of processes that may evaluate in parallel on a GPU."""
    if not machine.gpu:
        return 0
    return max(
        1,
        min(
            int(config.num_workers / _HELPER_CORES),
            machine.memory // _HELPER_MEMORY,
            machine.gpu_memory // _HELPER_GPU_MEMORY,
        ),
    )


def cpu_workers(config: LadderConfig, *, has_networks: bool) -> int:
    """The threads of a model trained on the CPU, with or without networks on a GPU."""
    return max(1, config.num_workers - _FED_CORES) if has_networks else config.num_workers


def _characters(config: LadderConfig, machine: Machine) -> int:
    """The amount of text of a task whose vectors fit into memory."""
    if config.finetune:  # no vectors are kept
        return 10**12
    return max(_CHARACTERS_A_GB, _CHARACTERS_A_GB * (machine.memory >> 30) // 2)


class Load(NamedTuple):
    """What there is to do."""

    rungs: Sequence[Rung]
    num_networks: int
    num_words: int  # of the corpus; 0: not known
    num_tasks: int  # about sentences


def estimated_s(plan: LadderPlan, load: Load, config: LadderConfig) -> float:
    """Estimate how long a ladder will take, including reading and evaluation."""
    cores = config.num_workers
    num_words = min(plan.max_words, load.num_words or plan.max_words)
    reading_s = 30 + num_words / _READ_WORDS + num_words / _CUT_WORDS / cores
    # Counting needs no significant time; everything else is given its budget.
    num_others = sum(rung.family == "static" and rung.state != "done" for rung in load.rungs)
    lanes = load.num_networks, num_others
    num_turns = max(lanes) if plan.num_helpers else sum(lanes)
    return reading_s + num_turns * plan.budget_s * 1.1 + _evaluation_s(plan, load, config)


def _evaluation_s(plan: LadderPlan, load: Load, config: LadderConfig) -> float:
    families = ["contextual" if rung.family == "contextual" else "static" for rung in load.rungs]
    if not config.finetune:
        scale = 0.3 + 0.7 * plan.num_rows * config.seeds / 3 / _ROWS[1]
        return sum(_ASKING_S[family] * scale * 2 / config.num_workers for family in families)
    num_steps = load.num_tasks * plan.num_rows * config.seeds * EPOCHS / _STEP_ROWS
    step_s = _GPU_STEP_S if plan.has_gpu else _STEP_S
    evaluation_s = sum(_OTHER_S + num_steps * step_s[family] for family in families)
    return evaluation_s / max(1, plan.num_helpers) + _STARTING_S * bool(plan.num_helpers)


# ---- the machine --------------------------------------------------------------------------------

_PACKAGES = ("sememe", "numpy", "numba", "scipy", "torch", "tokenizers")


def this_machine(device: str = "auto") -> Machine:
    """Describe the machine; a GPU counts if networks may use it."""
    name, gpu_memory = gpu() if device in ("auto", "cuda") else ("", 0)
    return Machine(
        cores=available_cores(),
        memory=memory_size(),
        processor=processor(),
        gpu=name,
        gpu_memory=gpu_memory,
        system=f"{platform.system()} {platform.release().split('-')[0]}".strip(),
    )


def versions() -> dict[str, str]:
    """The package versions that a score depends on."""
    return {"python": platform.python_version(), **installed_versions(_PACKAGES)}

"""Train a rung: compile kernels, measure its speed; a plan and a text in, a model out."""

import math
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sememe.ladder.plan import LadderPlan
from sememe.ladder.results import Point, Rung
from sememe.ladder.rungs import SPECS, Spec, folder_size
from sememe.ladder.text import LadderText
from sememe.machine import is_first_use
from sememe.progress import ProgressTask, Reporter
from sememe.storage.folder import MANIFEST
from sememe.text.settings import TextSettings

# ---- before the clock runs ----------------------------------------------------------------------

# numba creates few cycles, but many objects, which the collector would traverse.
_COMPILING = """
import gc, sys
from sememe.ladder.training import compile_kernels
gc.disable()
compile_kernels(sys.argv[1:])
"""
_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@contextmanager
def warmed_up(names: Iterable[str], reporter: Reporter) -> Iterator[None]:
    """Compile the kernels of some rungs in the background during the block.

    Done once per version, on a text of a few words, by separate processes, while the ladder reads
    the corpus; if they are cached already, this takes a quarter of a second.
    """
    own = [name for name in names if SPECS[name].warming]
    others: list[subprocess.Popen[bytes]] = []
    if own and is_first_use():
        reporter.note("Compiling the kernels: once for this version, about half a minute.")
        # Static models share kernels with each other, and language models theirs, and PyTorch.
        words = [name for name in own if SPECS[name].family in ("counts", "static")]
        models = [name for name in own if name not in words]
        others = [_compiling(part) for part in (words, models) if part]
    try:
        yield
        for process in others:
            process.wait()
    finally:
        for process in others:
            process.terminate()
    # Nothing is left of that, unless a process died; networks would take seconds for a look.
    compile_kernels(name for name in own if not SPECS[name].is_network)


def compile_kernels(names: Iterable[str]) -> None:
    """Compile the kernels of these rungs that this version has not compiled yet."""
    sentences = [_WORDS[start:] + _WORDS[:start] for start in range(len(_WORDS))] * 20
    for spec in (SPECS[name] for name in names):
        for options in spec.warming:
            if spec.subwords:
                model = spec.model_class("tiny", workers=1, **options)
                model.fit([" ".join(words) for words in sentences])
            else:
                spec.model_class(min_count=1, workers=1, **options).fit(sentences)


def _compiling(names: list[str]) -> subprocess.Popen[bytes]:
    # -P: a file of the user's working folder must not shadow a module.
    command = [sys.executable, "-P", "-c", _COMPILING, *names]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)


# ---- how fast -----------------------------------------------------------------------------------

_PILOT_S = (0.2, 5.0)  # minimum and maximum; a tenth of the budget in between
_MOST_EPOCHS = 10_000


class Speed(NamedTuple):
    """Seconds of one epoch, and of what comes before the first."""

    pass_s: float
    before_s: float

    def epochs_within(self, budget_s: float) -> int:
        """The number of epochs closest to a budget, at least one."""
        return min(_MOST_EPOCHS, max(1, round((budget_s - self.before_s) / self.pass_s)))


def measured(
    spec: Spec, plan: LadderPlan, options: dict[str, Any], text: LadderText, reporter: Reporter
) -> Speed:
    """The speed of a pilot run, whose time is not part of the budget."""
    reporter.note(f"{spec.title}: measuring the speed.")
    pilot = Pilot(max(_PILOT_S[0], min(_PILOT_S[1], plan.budget_s / 10)))
    model = spec.model_class(**{**options, "epochs": _MOST_EPOCHS})
    begun_s = time.monotonic()
    with suppress(EnoughError):
        model.fit(text.words, text=text.settings, progress=pilot)
    before_s = pilot.begun_s - begun_s if spec.counts_first else 0.0
    return Speed(text.words.num_tokens / max(pilot.rate, 1e-9), before_s)


class EnoughError(Exception):
    """Ends a pilot run that has measured its speed."""


class Pilot(Reporter):
    """A reporter that watches a training for some seconds, and then stops it.

    A callback could do so too, but each one synchronizes the threads and copies the vectors: on
    many cores that takes longer than the steps between two of them.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(quiet=True)
        self._seconds = seconds
        self.begun_s = 0.0
        self._is_warm = False
        self._num_looks = 0  # at which there was something new
        self._first = self._last = (0.0, 0)  # when, and how many words were done

    @property
    def rate(self) -> float:
        """Words per second, without the first ones, which are slow while kernels load."""
        (first_s, first), (last_s, last) = self._first, self._last
        return (last - first) / max(last_s - first_s, 1e-9)

    def _open(self, task: ProgressTask) -> None:
        if task.title == "training":
            self.begun_s = time.monotonic()
            self._first = self._last = (self.begun_s, 0)

    def _redraw(self, task: ProgressTask, now_s: float) -> float:
        if task.title == "training":
            self._num_looks += task.done > self._last[1]
            self._last = (now_s, task.done)
            if not self._is_warm:
                if self._num_looks > 1 and now_s - self.begun_s >= self._seconds / 4:
                    self._is_warm, self._first = True, self._last
            elif now_s - self._first[0] >= self._seconds and self.rate > 0:
                raise EnoughError
        return 0.0


# ---- training -----------------------------------------------------------------------------------

_MOST_POINTS = 120
_CHECKPOINT_S = (2.0, 300.0)
_START = 0.25  # of a budget, for the initial skip-gram of a network (see notes_of)
# Options of a run that do not affect the model.
_PASSING = (
    "workers", "device", "evaluate_batches", "checkpoint_minutes", "budget", "compile",
)  # fmt: skip


def planned(spec: Spec, rung: Rung, plan: LadderPlan, text: LadderText, reporter: Reporter) -> Rung:
    """Fix the options of a rung: epochs by a pilot run, or steps by tokens."""
    options = spec.options(plan)
    if not spec.is_trained:
        options |= {"steps": 1, "learning_rate": 1e-12}
    elif spec.is_network:
        if options.get("start_epochs"):
            options["start_epochs"], plan = _with_start(plan, options, text, reporter)
        options |= _network_extent(spec, plan, text, reporter)
    elif spec.has_epochs:
        options["epochs"] = _epochs(spec, plan, options, text, reporter)
    return replace(rung, options=options, state="training")


def trained(
    spec: Spec, rung: Rung, plan: LadderPlan, text: LadderText, out: Path, reporter: Reporter
) -> Rung:
    """Train a rung with its options, from its last checkpoint if there is one."""
    model = spec.model_class(*([spec.preset(plan)] if spec.preset else []), **rung.options)
    more: dict[str, Any] = {}
    if not spec.is_network:
        more["checkpoint_minutes"] = _checkpoint_minutes(plan)
    corpus: Any = text.words
    if spec.subwords:
        more["tokenizer"], corpus = text.subwords(spec.subwords, plan.vocab_size, reporter)
    was_whole, begun_s = (out / MANIFEST).exists(), time.monotonic()
    model.fit(corpus, text=text.settings, out=out, resume=True, progress=reporter, **more)
    elapsed_s = time.monotonic() - begun_s
    about = model.describe()
    # The history does not include an initial skip-gram, or counting.
    counted_s = float(model.history.last().get("seconds", 0.0)) + about.get("start_s", 0.0)
    if was_whole and not counted_s:
        # A ladder was killed before it wrote this down, and the model keeps no time: again.
        forget(out)
        return trained(spec, rung, plan, text, out, reporter)
    train_s = counted_s or elapsed_s
    tokens = _tokens(model, spec, text, rung)
    return replace(
        rung,
        state="done",
        path=str(out),
        command=_command(spec, model, rung, plan, text, out),
        train_s=round(train_s, 3),
        tokens=tokens,
        tokens_per_s=round(tokens / train_s, 1) if train_s else 0.0,
        parameters=about["parameters"],
        megabytes=round(folder_size(out) / 1e6, 2),
        history=_points(model.history),
    )


# ---- how long -----------------------------------------------------------------------------------


def _checkpoint_minutes(plan: LadderPlan) -> float:
    return min(_CHECKPOINT_S[1], max(_CHECKPOINT_S[0], plan.budget_s / 6)) / 60


def _network_extent(
    spec: Spec, plan: LadderPlan, text: LadderText, reporter: Reporter
) -> dict[str, Any]:
    """A time, or the number of epochs for the tokens of the budget, in words or sub-words."""
    more: dict[str, Any] = {"checkpoint_minutes": _checkpoint_minutes(plan)}
    if plan.is_timed:
        return {**more, "budget": f"{plan.budget_s:.12g}s"}
    read: Any = text.words
    if spec.subwords:
        _, read = text.subwords(spec.subwords, plan.vocab_size, reporter)
    return {**more, "epochs": max(1e-4, round(plan.tokens / read.num_tokens, 4))}


def _with_start(
    plan: LadderPlan, options: dict[str, Any], text: LadderText, reporter: Reporter
) -> tuple[int, LadderPlan]:
    """The skip-gram epochs that fit into its part of the budget, and the remaining budget."""
    spec = SPECS["skipgram"]
    start, rest = (
        replace(plan, budget_s=share * plan.budget_s, tokens=round(share * plan.tokens))
        for share in (_START, 1 - _START)
    )
    own = {**spec.options(plan), "dim": options["width"]}
    if not plan.is_timed:
        return _epochs(spec, start, own, text, reporter), rest
    speed = measured(spec, start, own, text, reporter)
    epochs = speed.epochs_within(start.budget_s)
    # One epoch over a large text may exceed that part; the network must be trained too.
    left_s = max(plan.budget_s / 2, plan.budget_s - epochs * speed.pass_s)
    return epochs, replace(rest, budget_s=round(left_s, 3))


def _epochs(
    spec: Spec, plan: LadderPlan, options: dict[str, Any], text: LadderText, reporter: Reporter
) -> int:
    """The number of epochs that fit into the budget, at least one."""
    if not plan.is_timed:
        return max(1, round(plan.tokens / text.words.num_tokens))
    return measured(spec, plan, options, text, reporter).epochs_within(plan.budget_s)


# ---- what came of it ----------------------------------------------------------------------------


def _points(history: Any) -> list[Point]:
    """The training curve, in few points."""
    records = [one for one in history if "loss" in one and "seconds" in one]
    every = max(1, math.ceil(len(records) / _MOST_POINTS))
    kept = records[::every]
    if records and kept[-1] is not records[-1]:
        kept.append(records[-1])
    return [
        Point(float(one["seconds"]), int(one.get("tokens", one.get("words", 0))), one["loss"])
        for one in kept
    ]


def _tokens(model: Any, spec: Spec, text: LadderText, rung: Rung) -> int:
    """The number of training tokens, over all epochs."""
    if spec.is_network:
        before = text.words.num_tokens * int(rung.options.get("start_epochs", 0))
        return before + int(model.history.last().get("tokens", 0))
    return text.words.num_tokens * int(rung.options.get("epochs", 1))


def forget(out: Path) -> None:
    """Remove a model, its checkpoints and its other files."""
    for path in (out, *out.parent.glob(f"{out.name}.*")):  # .checkpoints and the like
        shutil.rmtree(path, ignore_errors=True)


def _command(
    spec: Spec, model: Any, rung: Rung, plan: LadderPlan, text: LadderText, out: Path
) -> str:
    """The command that repeats the training.

    A timed run that corrected its length had a slightly different learning-rate schedule.
    """
    parts = ["sememe", "train", spec.kind, str(text.train), "--out", str(out)]
    options = {name: x for name, x in rung.options.items() if name not in _PASSING}
    if spec.preset is not None:
        parts += ["--preset", spec.preset(plan)]
        options.pop("epochs", None)
        options["steps"] = max((one.get("step", 0) for one in model.history), default=0)
        options["precision"] = model.describe()["precision"] or "auto"
    if spec.subwords:
        parts += ["--tokenizer", str(text.tokenizer_place(spec.subwords, plan.vocab_size))]
        options.pop("vocab_size", None)
    parts += _text_options(text.settings, spec.model_class().text)
    for name, value in options.items():
        option = name.replace("_", "-")
        parts.append(f"--no-{option}" if value is False else f"--{option}")
        parts += [] if isinstance(value, bool) else [f"{value}"]
    return shlex.join(parts)


def _text_options(settings: TextSettings, usual: TextSettings) -> list[str]:
    """The text options that differ from the command's defaults."""
    case = ["--lowercase" if settings.lowercase else "--keep-case"]
    return [
        *(["--language", settings.language] if settings.language != "en" else []),
        *(["--dictionary", settings.dictionary] if settings.dictionary else []),
        *([] if settings.sentences else ["--no-sentences"]),
        *(case if settings.lowercase != usual.lowercase else []),
    ]

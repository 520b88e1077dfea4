"""Progress of long work, and the history of its metrics.

A live bar on a terminal and in a notebook, plain lines in a log, nothing when quiet:

    reporter = Reporter()
    with reporter.task("training", total=num_words, unit="words") as task:
        task.update(done, loss=0.21)

A `History` has one record (a dict of metrics) for each time that a run reports.
"""

from __future__ import annotations

import math
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from sememe.errors import ArtifactError, OptionError
from sememe.localization import SCALES, Language, current, say, translate
from sememe.machine import COMPILATION, clock
from sememe.notebook import NotebookBars, html_table, in_notebook
from sememe.storage.folder import read_json, write_json

if TYPE_CHECKING:
    import numpy as np
    from rich.progress import Progress

Item = TypeVar("Item")
_NUM_SHOWN = 20  # records of a history in a notebook
_SHORT_NAMES = {"learning_rate": "lr"}
# Control and bidirectional characters, and lone surrogates; line ends and tabs stay.
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """A user's text with terminal control characters escaped.

    Words, labels and file names may hold any character; one could clear the screen. The escapes are
    those of JSON, so that JSON stays valid.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# Scores of fewer questions than this are marked: their intervals are too wide to compare models.
FEW = 30


def few_remark(num: int) -> str:
    """A warning if a score comes from fewer than 30 rows, otherwise ""."""
    return f"The score is from only {num:,} rows, so it is noisy." if num < FEW else ""


def baseline_remark(accuracy: float, majority: float | None, only: str) -> str:
    """A warning where a model does no better than one label for all rows, or gives `only` one."""
    if majority is None or (not only and accuracy > majority):
        return ""
    told = f"Every row got the same label, “{only}”" if only else "No better than one label for all"
    return f"{told}: accuracy {accuracy:.4f}, the most frequent label alone {majority:.4f}."


def format_score(value: float) -> str:
    """Write a score with four decimals; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.4f}"


def format_interval(
    interval: Sequence[float] | None, *, scale: float = 1.0, digits: int = 4
) -> str:
    """An interval as tables show it; a dash if it is not defined."""
    if interval is None or not all(map(math.isfinite, interval)):
        return "–"
    low, high = (f"{scale * value:.{digits}f}" for value in interval)
    return f"{low} – {high}"


def format_count(number: float, unit: str = "", language: Language = "en") -> str:
    """Format a count with three digits and its unit: `1.21 M words`, `34.0 MB`, `121 万词`."""
    scales = SCALES["en" if unit == "B" else language]
    scale, mark = next(((s, m) for s, m in scales if abs(number) >= s), (1.0, ""))
    value = number / scale
    if mark == "" and float(number).is_integer():
        digits = f"{int(number)}"
    else:
        # 999.9 k would round to "1000 k" at no decimals; three digits are enough to see it move.
        digits = f"{value:.{max(0, 2 - int(math.log10(max(abs(value), 1))))}f}"
    if unit == "B":
        return f"{digits} {mark}B"
    if language == "zh":
        return " ".join(part for part in (digits, mark + say(unit)) if part)
    return " ".join(part for part in (digits, mark, unit) if part)


def format_rate(rate: float, unit: str) -> str:
    """Format units per second in the language of the user."""
    return say("{num}/s", num=format_count(rate, unit, current()))


def format_duration(seconds: float) -> str:
    """Format seconds like a clock: `0:07`, `12:30`, `3:05:00`, `2 d 4:00:00`."""
    if not math.isfinite(seconds) or seconds < 0:
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_metric(name: str, value: float | str) -> str:
    """Format a named metric with four digits: `loss 0.2134`, `lr 0.0182`."""
    own = name.removeprefix("validation_")
    shown = say(_SHORT_NAMES.get(own, own.replace("_", " ")))
    if own != name:
        shown = say("validation {metric}", metric=shown)
    return f"{shown} {value}" if isinstance(value, str) else f"{shown} {value:.4g}"


_REDRAW_S = 0.1
_LINE_S = 10.0
_RATE_WINDOW_S = 15.0


class ProgressTask:
    """One task in progress; `done`, `rate` and `remaining_s` can be read at any time."""

    def __init__(self, reporter: Reporter, title: str, total: int | None, unit: str, start: int):
        self.title, self.total, self.unit, self.done = title, total, unit, start
        self.metrics: Mapping[str, float | str] = {}
        self._reporter, self._start = reporter, start
        self._bar: Any = None
        self._begin()

    def _begin(self) -> None:
        # Rates and times are by a clock that stands still while kernels are compiled.
        self._begun_s = self._next_s = time.monotonic()
        self._compiled_s, self._started_s = COMPILATION.seconds, clock()
        self._marks: deque[tuple[float, int]] = deque([(self._started_s, self.done)])

    def update(self, done: int, **metrics: float | str) -> None:
        """Set how much is done in total, and the metrics to show."""
        self.done = done
        if metrics:
            self.metrics = metrics
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + self._reporter._redraw(self, now_s)

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        """Pass on items, and count each as done when the next one is requested."""
        for item in items:
            yield item
            self.update(self.done + 1)

    def mark(self, now_s: float) -> None:
        """Note how much is done at a time, for the rate."""
        now_s -= COMPILATION.seconds
        self._marks.append((now_s, self.done))
        while len(self._marks) > 2 and now_s - self._marks[1][0] > _RATE_WINDOW_S:
            self._marks.popleft()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the task began, without those in which kernels were compiled."""
        return clock() - self._started_s

    @property
    def rate(self) -> float:
        """Units per second over the last seconds."""
        (from_s, from_done), (to_s, to_done) = self._marks[0], self._marks[-1]
        return (to_done - from_done) / (to_s - from_s) if to_s > from_s else 0.0

    @property
    def remaining_s(self) -> float:
        """Seconds left at the current rate; NaN while unknown."""
        if self.total is None or self.rate <= 0:
            return float("nan")
        return max(0, self.total - self.done) / self.rate

    def describe(self) -> list[str]:
        """The parts of a status line, most important first."""
        parts = []
        if self.total:
            parts.append(f"{min(1.0, self.done / self.total):.1%}")
        elif self.total is None:
            parts.append(format_count(self.done, self.unit, current()))
        if COMPILATION.is_on:
            return [*parts, say("compiling kernels")]
        if self.rate > 0:
            parts.append(format_rate(self.rate, self.unit))
        parts += [format_metric(name, value) for name, value in self.metrics.items()]
        if self.total and self.rate > 0:
            parts.append(say("{time} left", time=format_duration(self.remaining_s)))
        return parts

    @property
    def label(self) -> str:
        """The title in the language of the user."""
        return translate(self.title)

    def summarize(self) -> str:
        """The line that remains when the task has ended."""
        elapsed_s, done = self.elapsed_s, self.done - self._start
        took = say(
            "{done} in {time}",
            done=format_count(done, self.unit, current()), time=format_duration(elapsed_s),
        )  # fmt: skip
        rate = [format_rate(done / elapsed_s, self.unit)] if elapsed_s > 0.5 and done else []
        metrics = (format_metric(name, value) for name, value in self.metrics.items())
        compiled_s = COMPILATION.seconds - self._compiled_s
        before = (
            [say("after {time} of compiling", time=format_duration(compiled_s))]
            if compiled_s > 0.5
            else []
        )
        return say(", ").join([took, *rate, *metrics, *before])

    def __enter__(self) -> ProgressTask:
        """Show the task."""
        self._begin()
        self._reporter._open(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        """Remove the bar and print a summary."""
        self.mark(time.monotonic())
        self._reporter._close(self, has_failed=kind is not None)


class Reporter:
    """Shows the progress of long work; one reporter serves any number of tasks, nested or not."""

    def __init__(
        self, *, quiet: bool = False, stream: TextIO | None = None, line_s: float = _LINE_S
    ) -> None:
        self.quiet, self._given_stream, self._line_s = quiet, stream, line_s
        self._live: Any = None  # a Progress of rich, or NotebookBars
        self._open_tasks: list[ProgressTask] = []  # those with a bar
        self._lock = threading.RLock()  # kernels are compiled in other threads
        self._compiling_bar: Any = None
        self._pulse = threading.Event()
        self._told_s = 0.0
        if not quiet:
            COMPILATION.watch(self._on_compilation)

    @property
    def _has_notebook(self) -> bool:
        return self._given_stream is None and in_notebook()

    @property
    def stream(self) -> TextIO:
        """Where progress goes: standard error, unless another stream was given.

        In a notebook it is standard output, because notebooks print errors on a red ground.
        """
        if self._given_stream is not None:
            return self._given_stream
        return sys.stdout if self._has_notebook else sys.stderr

    @property
    def is_live(self) -> bool:
        """Whether a bar can be drawn: on a terminal, or in a notebook."""
        is_terminal = bool(getattr(self.stream, "isatty", lambda: False)())
        return not self.quiet and (self._has_notebook or is_terminal)

    def task(
        self, title: str, total: int | None = None, unit: str = "", *, start: int = 0
    ) -> ProgressTask:
        """Begin a task of `total` units, `start` of which were done by an earlier run."""
        return ProgressTask(self, title, total, unit, start)

    def note(self, text: str) -> None:
        """Print one line that remains, in the language of the user."""
        text = translate(text)
        if self._live is not None and not self._has_notebook:
            self._live.console.print(shown(text), markup=False, highlight=False, soft_wrap=True)
        elif not self.quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        try:
            print(shown(text), file=self.stream, flush=True)
        except (BrokenPipeError, ValueError):  # the reader has gone; the work continues
            self.quiet = True

    def _open(self, task: ProgressTask) -> None:
        if not self.is_live:
            return
        with self._lock:
            self._open_tasks.append(task)
            task._bar = self._display().add_task(
                task.label, total=task.total, completed=task.done, status=""
            )

    def _display(self) -> Any:
        """The bars that are shown."""
        if self._live is None:
            self._live = NotebookBars() if self._has_notebook else _live_display(self.stream)
            self._live.start()
        return self._live

    def _close_display(self) -> None:
        if self._live is not None and not self._open_tasks and self._compiling_bar is None:
            self._live.stop()
            self._live = None

    # ---- kernels that numba compiles at their first use ---------------------------------------

    def _on_compilation(self) -> None:
        """Tell that kernels are being compiled, once per process, and for how long."""
        with self._lock:
            if COMPILATION.is_on and not COMPILATION.num_kernels and not self._told_s:
                self._told_s = time.monotonic()
                told = (
                    f"Compiling kernels: once for this version, about {COMPILATION.usual_s:.0f} "
                    "seconds."
                )
                new = "Compiling kernels that this version has not used yet."
                self.note(told if COMPILATION.is_first else new)
            if self.is_live:
                self._show_compilation()
            elif not COMPILATION.is_on and time.monotonic() - self._told_s > self._line_s:
                self._told_s = time.monotonic()
                how = _compilation_status()
                self._print(say("{task}: {how}", task=say("compiling kernels"), how=how))

    def _show_compilation(self) -> None:
        """A line that moves while a kernel is compiled; it goes when the work continues."""
        if COMPILATION.is_on and self._compiling_bar is None:
            label = say("compiling kernels")
            self._compiling_bar = self._display().add_task(label, total=None, status="")
            self._pulse = threading.Event()
            threading.Thread(target=self._animate, args=(self._pulse,), daemon=True).start()
        elif not COMPILATION.is_on and not self._open_tasks:
            self._hide_compilation()
        self._draw_compilation()

    def _animate(self, pulse: threading.Event) -> None:
        # The thread that waits for the kernel draws nothing meanwhile.
        while not pulse.wait(0.25):
            with self._lock:
                self._draw_compilation()

    def _draw_compilation(self) -> None:
        if self._compiling_bar is not None:
            for task in self._open_tasks:
                self._live.update(task._bar, status=_status(task))
            self._live.update(self._compiling_bar, status=_compilation_status())
            self._live.refresh()

    def _hide_compilation(self) -> None:
        if self._compiling_bar is not None:
            self._pulse.set()
            self._live.remove_task(self._compiling_bar)
            self._compiling_bar = None
            self._close_display()

    def _redraw(self, task: ProgressTask, now_s: float) -> float:
        """Redraw the task; return the seconds to wait until the next time."""
        task.mark(now_s)
        if self._live is not None and task._bar is not None:
            with self._lock:
                if not COMPILATION.is_on:
                    self._hide_compilation()
                self._live.update(
                    task._bar, total=task.total, completed=task.done, status=_status(task)
                )
                self._live.refresh()
            return _REDRAW_S
        if not self.quiet and now_s - task._begun_s >= min(self._line_s, 1.0):
            status = say(", ").join(task.describe())
            self._print(say("{task}: {how}", task=task.label, how=status))
            return self._line_s
        return min(self._line_s, 1.0)

    def _close(self, task: ProgressTask, has_failed: bool) -> None:
        if self._live is not None and task._bar is not None:
            with self._lock:
                self._hide_compilation()
                self._live.remove_task(task._bar)
                self._open_tasks.remove(task)
        ended = "{task} stopped: {how}" if has_failed else "{task}: {how}"
        self.note(say(ended, task=task.label, how=task.summarize()))
        with self._lock:
            self._close_display()


def _status(task: ProgressTask) -> str:
    """What is written after a bar, which itself shows the share of known work."""
    return " · ".join(task.describe()[1:] if task.total else task.describe())


def _compilation_status() -> str:
    """How many kernels are compiled, and how long it has taken and will take."""
    done = say("{num} done", num=COMPILATION.num_kernels)
    took, expected = map(format_duration, (COMPILATION.seconds, COMPILATION.expected_s))
    if COMPILATION.is_first and COMPILATION.seconds < COMPILATION.expected_s:
        took = say("{time} of about {expected}", time=took, expected=expected)
    return say(", ").join([done, took])


def _live_display(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns: list[Any] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28, complete_style="cyan", finished_style="cyan"),
        TaskProgressColumn(),
        TextColumn("{task.fields[status]}", style="dim", markup=False),
    ]
    # Drawn only by `update`: a refreshing thread would compete with the kernels for the GIL.
    # In a notebook rich would ignore the stream, and need widgets.
    console = Console(file=stream, force_jupyter=False)
    return Progress(*columns, console=console, auto_refresh=False, transient=True)


SILENT = Reporter(quiet=True)


def as_reporter(progress: Reporter | bool | None) -> Reporter:
    """The reporter given, or a new one for True, or a silent one."""
    if isinstance(progress, bool) or progress is None:
        return Reporter() if progress else SILENT
    return progress


class History(list[dict[str, Any]]):
    """Records in chronological order: `history.append({"words": 10_000, "loss": 0.3})`."""

    def column(self, name: str) -> np.ndarray:
        """One metric over all records as float64; NaN where a record lacks it."""
        import numpy as np

        values = [record.get(name) for record in self]
        return np.array([math.nan if value is None else value for value in values], np.float64)

    def smooth(self, name: str, half_life: float = 5.0) -> np.ndarray:
        """The exponential moving average of a metric; a weight halves every `half_life` records.

        The weights are normalised, so that the first values are not pulled towards zero.
        """
        import numpy as np

        if not half_life > 0:
            raise OptionError(f"half_life must be positive, not {half_life}.")
        keep = 0.5 ** (1.0 / half_life)
        total = weight = 0.0
        smoothed = np.full(len(self), np.nan)
        for index, value in enumerate(self.column(name)):
            total, weight = total * keep, weight * keep
            if math.isfinite(value):
                total, weight = total + value, weight + 1.0
            smoothed[index] = total / weight if weight else math.nan
        return smoothed

    def last(self) -> dict[str, Any]:
        """The newest value of every metric, fit for JSON; evaluations add their own records."""
        return jsonable({name: value for record in self for name, value in record.items()})

    def save(self, path: str | Path) -> None:
        """Write the records as JSON; NaN and infinity, which JSON lacks, become null."""
        write_json(Path(path), [jsonable(record) for record in self])

    @classmethod
    def load(cls, path: str | Path) -> History:
        """Read what `save` wrote."""
        content = read_json(Path(path))
        if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
            raise ArtifactError(f"{path} is not a history: a list of records was expected.")
        return cls(content)

    def _repr_html_(self) -> str:
        """The newest records as a table, for notebooks."""
        names = list(dict.fromkeys(name for record in self for name in record))
        rows = [[record.get(name) for name in names] for record in self[-_NUM_SHOWN:]]
        is_cut = len(rows) < len(self)
        caption = f"the last {len(rows):,} of {len(self):,} records" if is_cut else ""
        return html_table([name.replace("_", " ") for name in names], rows, caption)


def jsonable(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with plain Python numbers; null if one is not finite."""
    plain = {name: getattr(value, "item", lambda v=value: v)() for name, value in record.items()}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in plain.items()
    }

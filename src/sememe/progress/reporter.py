"""Progress of long work: a live bar on a terminal, plain lines in a log, nothing when quiet.

    reporter = Reporter()
    with reporter.task("training", total=num_words, unit="words") as task:
        task.update(done, loss=0.21, learning_rate=0.02)

`update` costs well under a microsecond between two redraws, so a loop may call it at every step.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from sememe.progress.figures import format_count, format_duration, format_figure

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_REDRAW_S = 0.1
_LINE_S = 10.0
_RATE_WINDOW_S = 15.0


class Task:
    """One piece of work under way; `done`, `rate` and `remaining_s` can be read at any time."""

    def __init__(self, reporter: Reporter, title: str, total: int | None, unit: str, start: int):
        self.title, self.total, self.unit, self.done = title, total, unit, start
        self.figures: Mapping[str, float | str] = {}
        self._reporter, self._start = reporter, start
        self._begun_s = self._next_s = time.monotonic()
        self._marks: deque[tuple[float, int]] = deque([(self._begun_s, start)])
        self._bar: TaskID | None = None

    def update(self, done: int, **figures: float | str) -> None:
        """Tell how much is done in all, with the figures to show beside it."""
        self.done = done
        if figures:
            self.figures = figures
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + self._reporter._redraw(self, now_s)

    def _mark(self, now_s: float) -> None:
        self._marks.append((now_s, self.done))
        while len(self._marks) > 2 and now_s - self._marks[1][0] > _RATE_WINDOW_S:
            self._marks.popleft()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the task began."""
        return time.monotonic() - self._begun_s

    @property
    def rate(self) -> float:
        """Units per second over the last seconds."""
        (from_s, from_done), (to_s, to_done) = self._marks[0], self._marks[-1]
        return (to_done - from_done) / (to_s - from_s) if to_s > from_s else 0.0

    @property
    def remaining_s(self) -> float:
        """Seconds left at the present rate; NaN while that is unknown."""
        if self.total is None or self.rate <= 0:
            return float("nan")
        return max(0, self.total - self.done) / self.rate

    def describe(self) -> list[str]:
        """The parts of a status line, most important first."""
        parts = []
        if self.total:
            parts.append(f"{min(1.0, self.done / self.total):.1%}")
        elif self.total is None:
            parts.append(format_count(self.done, self.unit))
        if self.rate > 0:
            parts.append(format_count(self.rate, self.unit) + "/s")
        parts += [format_figure(name, value) for name, value in self.figures.items()]
        if self.total and self.rate > 0:
            parts.append(f"{format_duration(self.remaining_s)} left")
        return parts

    def summarize(self) -> str:
        """The line that stays when the task has ended."""
        elapsed_s, done = self.elapsed_s, self.done - self._start
        took = f"{format_count(done, self.unit)} in {format_duration(elapsed_s)}"
        if elapsed_s > 0.5 and done:
            took += f", {format_count(done / elapsed_s, self.unit)}/s"
        return ", ".join(
            [took, *(format_figure(name, value) for name, value in self.figures.items())]
        )

    def __enter__(self) -> Task:
        """Show the task."""
        self._begun_s = self._next_s = time.monotonic()
        self._marks = deque([(self._begun_s, self.done)])
        self._reporter._open(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        """Take the bar away and leave a summary."""
        self._mark(time.monotonic())
        self._reporter._close(self, has_failed=kind is not None)


class Reporter:
    """Where long work shows itself; one reporter serves any number of tasks, also nested ones."""

    def __init__(
        self, *, quiet: bool = False, stream: TextIO | None = None, line_s: float = _LINE_S
    ) -> None:
        self.quiet, self._given_stream, self._line_s = quiet, stream, line_s
        self._live: Progress | None = None
        self._num_open = 0

    @property
    def stream(self) -> TextIO:
        """Where progress goes: standard error, unless another stream was given."""
        return self._given_stream if self._given_stream is not None else sys.stderr

    @property
    def is_live(self) -> bool:
        """Whether the stream is a terminal that a bar can be drawn on."""
        return not self.quiet and bool(getattr(self.stream, "isatty", lambda: False)())

    def task(self, title: str, total: int | None = None, unit: str = "", *, start: int = 0) -> Task:
        """Begin a piece of work of `total` units; `start` of them were done by an earlier run."""
        return Task(self, title, total, unit, start)

    def note(self, text: str) -> None:
        """Show one line that stays."""
        if self.quiet:
            return
        if self._console is not None:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._print(text)

    @property
    def _console(self) -> Console | None:
        """The terminal while something is drawn on it."""
        return None if self._live is None else self._live.console

    def _print(self, text: str) -> None:
        try:
            print(text, file=self.stream, flush=True)
        except (BrokenPipeError, ValueError):  # the reader has gone; the work itself goes on
            self.quiet = True

    def _open(self, task: Task) -> None:
        if not self.is_live:
            return
        if self._live is None:
            self._live = _live_display(self.stream)
            self._live.start()
        self._num_open += 1
        task._bar = self._live.add_task(
            task.title, total=task.total, completed=task.done, status="", style=""
        )

    def _redraw(self, task: Task, now_s: float) -> float:
        """Show the task as it stands; the answer is the number of seconds to wait until next."""
        task._mark(now_s)
        if self._live is not None and task._bar is not None:
            status = " · ".join(task.describe()[1:] if task.total else task.describe())
            self._live.update(task._bar, total=task.total, completed=task.done, status=status)
            self._live.refresh()
            return _REDRAW_S
        if not self.quiet and now_s - task._begun_s >= min(self._line_s, 1.0):
            self._print(f"{task.title}: " + ", ".join(task.describe()))
            return self._line_s
        return min(self._line_s, 1.0)

    def _close(self, task: Task, has_failed: bool) -> None:
        if self._live is not None and task._bar is not None:
            self._live.remove_task(task._bar)
            self._num_open -= 1
        if not self.quiet:
            mark = " stopped:" if has_failed else ":"
            self.note(f"{task.title}{mark} {task.summarize()}")
        if self._live is not None and not self._num_open:
            self._live.stop()
            self._live = None


def _live_display(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns: list[Any] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28, complete_style="cyan", finished_style="cyan"),
        TaskProgressColumn(),
        TextColumn("{task.fields[status]}", style="dim", markup=False),
    ]
    # Drawn from `update` alone: a refreshing thread would fight the kernels for the GIL.
    return Progress(*columns, console=Console(file=stream), auto_refresh=False, transient=True)


SILENT = Reporter(quiet=True)


def as_reporter(progress: Reporter | bool | None) -> Reporter:
    """The reporter given, or a new one for True, or a silent one."""
    if isinstance(progress, bool) or progress is None:
        return Reporter() if progress else SILENT
    return progress

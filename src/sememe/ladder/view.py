"""The ladder on a terminal: a live table of rungs, plain lines in a log, nothing when quiet."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from sememe.ladder.results import Results, Rung, Task
from sememe.progress import Reporter
from sememe.progress.figures import format_count, format_duration
from sememe.progress.reporter import Task as Work

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

_REDRAW_S = 0.2
_MARKS = {"waiting": "·", "training": "▸", "done": "✓", "failed": "✗", "left out": "–"}


class View(Reporter):
    """A reporter that shows all rungs at once; the bars of their trainings become one line each."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        super().__init__(quiet=quiet, stream=stream)
        self._results: Results | None = None
        self._table: Live | None = None
        self._now: dict[str, str] = {}  # what is being done with rungs, the newest last
        self._line_times_s: dict[str, float] = {}
        self._told: set[str] = set()
        self._said: set[str] = set()

    @classmethod
    def of(cls, progress: Reporter | bool | None) -> View:
        """The view given, a new one for True, a silent one for nothing."""
        if isinstance(progress, View):
            return progress
        if isinstance(progress, Reporter):
            return cls(quiet=progress.quiet, stream=progress.stream)
        return cls(quiet=not progress)

    def __enter__(self) -> View:
        if self.is_live:
            from rich.console import Console
            from rich.live import Live

            self._table = Live(
                console=Console(file=self.stream), auto_refresh=False, transient=True
            )
            self._table.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._table is not None:
            self._table.stop()
            self._table = None

    # ---- what the ladder tells ------------------------------------------------------------

    def begin(self, name: str, doing: str) -> None:
        """A rung begins with something."""
        self._now.pop(name, None)
        self._now[name] = doing
        self._draw()

    def progress(self, name: str, status: str) -> None:
        """How far a rung is with it; without a name, what comes before the rungs."""
        if name:
            self._now[name] = status
        now_s = time.monotonic()
        if self.is_live:
            self._draw()
        elif now_s - self._line_times_s.setdefault(name, now_s) >= self._line_s:
            self._line_times_s[name] = now_s
            self._tell(f"{name}: {status}" if name else status)

    def end(self, name: str) -> None:
        """Nothing more is done with a rung for now."""
        self._now.pop(name, None)
        line = scores_line(self._results, name) if self._results is not None else ""
        if line and name not in self._said and not self.is_live:
            self._said.add(name)
            self._tell(f"{name}: {line}")
        self._draw()

    def show(self, results: Results) -> None:
        """New results."""
        self._results = results
        for rung in results.rungs:
            is_over = rung.state in ("done", "failed", "left out")
            if is_over and rung.name not in self._told and not self.is_live:
                self._told.add(rung.name)
                self._tell(f"{rung.name}: {cost_line(rung)}")
        self._draw()

    def _tell(self, line: str) -> None:
        if not self.quiet:
            self._print(line)

    # ---- what trainings tell --------------------------------------------------------------

    def note(self, text: str) -> None:
        """Show one line that stays; what trainings say of themselves is left to the table."""
        if not self._now:
            super().note(text)

    @property
    def _console(self) -> Console | None:
        return None if self._table is None else self._table.console

    def _open(self, task: Work) -> None:
        self._redraw(task, time.monotonic())

    def _redraw(self, task: Work, now_s: float) -> float:
        task._mark(now_s)
        status = f"{task.title} " + " · ".join(task.describe())
        self.progress(next(reversed(self._now), ""), status)
        return _REDRAW_S if self._table is not None else 1.0

    def _close(self, task: Work, has_failed: bool) -> None:
        self._draw()

    def _draw(self) -> None:
        if self._table is None or self._results is None:
            return
        self._table.update(self._made(), refresh=True)

    def _made(self) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        assert self._results is not None
        table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
        table.add_column("")
        table.add_column("rung", no_wrap=True)
        table.add_column("training", no_wrap=True)
        table.add_column("scores so far", overflow="ellipsis", no_wrap=True)
        for rung in self._results.rungs:
            doing = self._now.get(rung.name)
            state = "training" if doing and rung.state == "waiting" else rung.state
            style = {"done": "green", "failed": "red", "training": "bold cyan"}.get(state, "dim")
            cost = cost_line(rung) if rung.state == "done" else rung.why
            scores = scores_line(self._results, rung.name)
            if doing:
                cost, scores = (cost, doing) if rung.state == "done" else (doing, scores)
            table.add_row(
                Text(_MARKS[state], style=style), Text(rung.title, style=style), Text(cost),
                Text(scores, style="dim"),
            )  # fmt: skip
        return table


def cost_line(rung: Rung) -> str:
    """What a rung has cost, or why it is not there."""
    if rung.state != "done":
        return rung.why or rung.state
    if not rung.tokens:
        return f"{rung.megabytes:,.1f} MB"
    took = format_duration(rung.train_s) if rung.train_s >= 1 else f"{rung.train_s:.2f} s"
    return f"{format_count(rung.tokens, 'tokens')} in {took}, {rung.megabytes:,.1f} MB"


def scores_line(results: Results, name: str) -> str:
    """The scores of a rung so far, in one line."""
    parts = []
    for task in results.tasks:
        cell = results.cell(name, task.name)
        if cell is not None and cell.mean is not None:
            parts.append(f"{task.title} {cell.mean:.1f}")
    return ", ".join(parts)


_MOST_TITLE = 30
_BETWEEN = 3  # characters from one column to the next


def score_tables(results: Results, width: int = 0) -> list[Any]:
    """The table as rich prints it, in as many parts as the width of the terminal asks for.

    rich narrows columns until a table fits, and would leave a letter or two of each.
    """
    from rich.cells import cell_len

    titles = [rung.title for rung in results.rungs]
    # The name of a baseline is broken between its words.
    titles += [word for task in results.tasks for name in task.baselines for word in name.split()]
    first = min(max(map(cell_len, titles)), _MOST_TITLE)
    took = max(len("time"), *(len(_took(rung)) for rung in results.rungs))
    parts: list[list[tuple[Task, int]]] = [[]]
    used = 2 + first + _BETWEEN + took  # times stand in the first part
    for task in results.tasks:
        figures = [_shown(results, rung.name, task)[0] for rung in results.rungs]
        figures += [f"{value:,.1f}" for value in task.baselines.values()]
        # A title is broken between its words.
        need = max(map(cell_len, [*task.title.split(), *figures]))
        if width and parts[-1] and used + _BETWEEN + need > width:
            parts.append([])
            used = 2 + first
        parts[-1].append((task, need))
        used += _BETWEEN + need
    return [_score_table(results, part, first, has_times=part is parts[0]) for part in parts]


def _score_table(
    results: Results, columns: list[tuple[Task, int]], first: int, *, has_times: bool
) -> Table:
    """One part of the table: some columns, and the baselines that they have."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rung", width=first, overflow="fold")
    if has_times:
        table.add_column("time", justify="right", vertical="bottom", no_wrap=True)
    for task, need in columns:
        table.add_column(Text(task.title), justify="right", vertical="bottom", width=need)
    tasks = [task for task, _ in columns]
    for rung in results.rungs:
        cells = [Text(*_shown(results, rung.name, task)) for task in tasks]
        table.add_row(Text(rung.title), *[_took(rung)] * has_times, *cells)
    for name in dict.fromkeys(name for task in tasks for name in task.baselines):
        values = [task.baselines.get(name) for task in tasks]
        shown = ["" if value is None else f"{value:,.1f}" for value in values]
        row = [Text(one, style="dim") for one in (name, *[""] * has_times, *shown)]
        table.add_row(*row)
    return table


def _took(rung: Rung) -> str:
    return f"{rung.train_s:.1f} s" if rung.tokens else rung.state * (rung.state != "done")


def _shown(results: Results, rung: str, task: Task) -> tuple[str, str]:
    cell = results.cell(rung, task.name)
    if cell is None or cell.mean is None:
        return "–", "dim"
    text = f"{cell.mean:,.1f}" + (f" ± {cell.sd:.1f}" if cell.sd is not None else "")
    return text, "bold cyan" if rung in results.best(task.name) else ""

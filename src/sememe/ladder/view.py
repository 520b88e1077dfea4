"""The ladder on a terminal: a live table of rungs, plain lines in a log, nothing when quiet."""

from __future__ import annotations

import time
from typing import Any, TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sememe.evaluation.results import FEW_MARK
from sememe.ladder.report.language import in_language
from sememe.ladder.results import Column, Results, Rung
from sememe.localization import current, say, translate
from sememe.notebook import in_notebook
from sememe.progress import FEW, ProgressTask, Reporter, format_count, format_duration, shown

_REDRAW_S = 0.2
_STYLES = {"done": "green", "failed": "red", "training": "bold cyan"}
_MARKS = {"waiting": "·", "training": "▸", "done": "✓", "failed": "✗", "left out": "–"}


class View(Reporter):
    """A reporter that shows all rungs at once; the progress of each training is one line."""

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
        """The given view, a new one for True, a silent one for None."""
        if isinstance(progress, View):
            return progress
        if isinstance(progress, Reporter):
            return cls(quiet=progress.quiet, stream=progress.stream)
        return cls(quiet=not progress)

    @property
    def is_live(self) -> bool:
        """Whether the table can be drawn in place: only on a terminal."""
        return super().is_live and not in_notebook()

    def _on_compilation(self) -> None:
        """Nothing: a ladder compiles before its clock runs, and says so itself."""

    def __enter__(self) -> View:
        if self.is_live:
            self._table = Live(
                console=Console(file=self.stream), auto_refresh=False, transient=True
            )
            self._table.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._table is not None:
            self._table.stop()
            self._table = None

    # ---- what the ladder tells ------------------------------------------------------------

    def begin(self, name: str, doing: str) -> None:
        """Show that a rung starts an activity."""
        self._now.pop(name, None)
        self._now[name] = translate(doing)
        self._draw()

    def progress(self, name: str, status: str) -> None:
        """Show a rung's progress; without a name, that of the work before the rungs."""
        if name:
            self._now[name] = status
        now_s = time.monotonic()
        if self.is_live:
            self._draw()
        elif now_s - self._line_times_s.setdefault(name, now_s) >= self._line_s:
            self._line_times_s[name] = now_s
            self._tell(say("{task}: {how}", task=name, how=status) if name else status)

    def end(self, name: str) -> None:
        """Show that a rung is idle."""
        self._now.pop(name, None)
        line = scores_line(self._results, name) if self._results is not None else ""
        if line and name not in self._said and not self.is_live:
            self._said.add(name)
            self._tell(say("{task}: {how}", task=name, how=line))
        self._draw()

    def show(self, results: Results) -> None:
        """New results."""
        self._results = results = in_language(results)
        for rung in results.rungs:
            is_over = rung.state in ("done", "failed", "left out")
            if is_over and rung.name not in self._told and not self.is_live:
                self._told.add(rung.name)
                self._tell(say("{task}: {how}", task=rung.name, how=cost_line(rung)))
        self._draw()

    def _tell(self, line: str) -> None:
        if not self.quiet:
            self._print(line)

    # ---- what trainings tell --------------------------------------------------------------

    def note(self, text: str) -> None:
        """Print one line that remains; notes of trainings are left to the table."""
        if not self._now:
            super().note(text)

    def _open(self, task: ProgressTask) -> None:
        self._redraw(task, time.monotonic())

    def _redraw(self, task: ProgressTask, now_s: float) -> float:
        task.mark(now_s)
        status = f"{task.label} " + " · ".join(task.describe())
        self.progress(next(reversed(self._now), ""), status)
        return _REDRAW_S if self._table is not None else 1.0

    def _close(self, task: ProgressTask, has_failed: bool) -> None:
        self._draw()

    def _draw(self) -> None:
        if self._table is None or self._results is None:
            return
        table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
        for name in ("", "rung", "training", "scores so far"):
            table.add_column(say(name), overflow="ellipsis", no_wrap=True)
        for rung in self._results.rungs:
            doing = self._now.get(rung.name)
            state = "training" if doing and rung.state == "waiting" else rung.state
            style = _STYLES.get(state, "dim")
            cost = cost_line(rung) if rung.state == "done" else rung.why
            scores = scores_line(self._results, rung.name)
            if doing:
                cost, scores = (cost, doing) if rung.state == "done" else (doing, scores)
            table.add_row(
                Text(_MARKS[state], style=style), Text(shown(rung.title), style=style),
                Text(shown(cost)), Text(shown(scores), style="dim"),
            )  # fmt: skip
        self._table.update(table, refresh=True)


def cost_line(rung: Rung) -> str:
    """The cost of a rung, or why it is missing."""
    if rung.state != "done":
        return rung.why or say(rung.state)
    if not rung.tokens:
        return f"{rung.megabytes:,.1f} MB"
    short = say("{num} s", num=f"{rung.train_s:.2f}")
    took = format_duration(rung.train_s) if rung.train_s >= 1 else short
    return say(
        "{tokens} in {time}, {size:,.1f} MB",
        tokens=format_count(rung.tokens, "tokens", current()), time=took, size=rung.megabytes,
    )  # fmt: skip


def scores_line(results: Results, name: str) -> str:
    """The scores of a rung so far, in one line."""
    cells = [(task, results.cell(name, task.name)) for task in results.tasks]
    return say(", ").join(
        f"{task.title} {cell.mean:.1f}{FEW_MARK * cell.few_questions}"
        for task, cell in cells
        if cell is not None and cell.mean is not None
    )


_MOST_TITLE = 30
_BETWEEN = 3  # characters from one column to the next


def score_tables(results: Results, width: int = 0) -> list[Any]:
    """The table for rich, in as many parts as the terminal's width needs.

    rich would narrow columns to a letter or two to make a table fit.
    """
    titles = [rung.title for rung in results.rungs]
    # The name of a baseline is broken between its words.
    titles += [word for task in results.tasks for name in task.baselines for word in name.split()]
    first = min(max(map(cell_len, titles)), _MOST_TITLE)
    took = max(cell_len(text) for text in (say("time"), *map(_took, results.rungs)))
    parts: list[list[tuple[Column, int]]] = [[]]
    used = 2 + first + _BETWEEN + took  # times are in the first part
    for task in results.tasks:
        shown = [_shown(results, rung.name, task)[0] for rung in results.rungs]
        shown += [f"{value:,.1f}" for value in task.baselines.values()]
        # A title is broken between its words.
        need = max(map(cell_len, [*task.title.split(), *shown]))
        if width and parts[-1] and used + _BETWEEN + need > width:
            parts.append([])
            used = 2 + first
        parts[-1].append((task, need))
        used += _BETWEEN + need
    return [_score_table(results, part, first, has_times=part is parts[0]) for part in parts]


def _score_table(
    results: Results, columns: list[tuple[Column, int]], first: int, *, has_times: bool
) -> Table:
    """One part of the table: some columns, and the baselines that they have."""
    names = {task.name for task, _ in columns}
    has_few = any(cell.few_questions for cell in results.cells if cell.task in names)
    caption = "\n".join(
        [say("{mark} from fewer than {num} questions", mark=FEW_MARK, num=FEW)] * has_few
        + [translate(results.caveat)]
    )
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, caption=Text(shown(caption)), caption_justify="left"
    )
    table.add_column(say("rung"), width=first, overflow="fold")
    if has_times:
        table.add_column(say("time"), justify="right", vertical="bottom", no_wrap=True)
    for task, need in columns:
        table.add_column(Text(shown(task.title)), justify="right", vertical="bottom", width=need)
    tasks = [task for task, _ in columns]
    for rung in results.rungs:
        cells = [Text(*_shown(results, rung.name, task)) for task in tasks]
        table.add_row(Text(shown(rung.title)), *[_took(rung)] * has_times, *cells)
    for name in dict.fromkeys(name for task in tasks for name in task.baselines):
        values = [task.baselines.get(name) for task in tasks]
        figures = ["" if value is None else f"{value:,.1f}" for value in values]
        table.add_row(*(Text(one, style="dim") for one in (name, *[""] * has_times, *figures)))
    return table


def _took(rung: Rung) -> str:
    if rung.tokens:
        return say("{num} s", num=f"{rung.train_s:.1f}")
    return say(rung.state) if rung.state != "done" else ""


def _shown(results: Results, rung: str, task: Column) -> tuple[str, str]:
    cell = results.cell(rung, task.name)
    if cell is None or cell.mean is None:
        return "–", "dim"
    text = f"{cell.mean:,.1f}" + (f" ± {cell.sd:.1f}" if cell.sd is not None else "")
    text += FEW_MARK * cell.few_questions
    return text, "bold cyan" if rung in results.best(task.name) else ""

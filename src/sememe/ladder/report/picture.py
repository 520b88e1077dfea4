"""Charts as SVG files of their own, and the picture of a whole ladder for a README or a slide."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sememe.errors import OptionError
from sememe.ladder.report.columns import in_parts
from sememe.ladder.report.costs import known_costs
from sememe.ladder.report.figures import (
    cell_text,
    fitted,
    has_number,
    headline,
    score,
    shortened,
    text_width,
    unit,
)
from sememe.ladder.report.maps import is_one_point, style_entries, use_panels, word_panels
from sememe.ladder.report.markup import Markup, escaped, tag
from sememe.ladder.report.panels import Panel, legend_row, line, mark, text
from sememe.ladder.report.quality import rank_panel
from sememe.ladder.report.standing import (
    best_baseline,
    best_rungs,
    is_above_baseline,
    numbers,
    state_text,
)
from sememe.ladder.report.theme import Theme, colors, family_look, template
from sememe.ladder.results import ContextsLook, Results, Rung, Task
from sememe.storage.folder import write_file

_GAP, _MARGIN = 36.0, 28.0


def standalone(panel: Panel, theme: Theme = "auto") -> str:
    """A panel as an SVG file: colors, style and paper are inside it."""
    width, height = panel.width + 2 * _MARGIN, panel.height + 2 * _MARGIN
    style = f"{colors(theme)}\n{template('chart.css')}"
    ground = tag("rect", width="100%", height="100%", style="fill:var(--paper)")
    inside = panel.svg(x=_MARGIN, y=_MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{escaped(panel.title)}">'
        f"<title>{escaped(panel.title)}</title><style>{style}</style>{ground}{inside}</svg>\n"
    )


def arranged(
    title: str,
    panels: Sequence[Panel],
    columns: int = 3,
    legend: Sequence[tuple[str, str, str]] = (),
    width: float = 0.0,
) -> Panel:
    """Several panels in rows, as one, spread over a width; above them what their marks mean."""
    wide, high = max(panel.width for panel in panels), max(panel.height for panel in panels)
    gap = max(_GAP, (width - columns * wide) / max(1, columns - 1))
    columns = min(columns, len(panels))
    num_rows = math.ceil(len(panels) / columns)
    top = 32.0 if legend else 0.0
    height = top + num_rows * (high + _GAP) - _GAP
    whole = Panel(title, columns * (wide + gap) - gap, height)
    legend_row(whole, legend, 0, 11)
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        whole.add(panel.svg(x=column * (wide + gap), y=top + row * (high + _GAP)))
    return whole


def stacked(title: str, blocks: Sequence[Panel]) -> Panel:
    """Pictures below each other, as one."""
    whole = Panel(title, max(block.width for block in blocks), 0.0)
    for block in blocks:
        whole.height += _GAP if whole.height else 0.0
        whole.add(block.svg(x=0.0, y=whole.height))
        whole.height += block.height
    return whole


def write_picture(results: Results, path: str | Path, *, theme: Theme = "light") -> Path:
    """Draw the table, ranks, words and an ambiguous word into one SVG file.

    `theme` is "light", "dark" or "auto".
    """
    path = Path(path)
    # A column with one figure has nothing to compare, and a picture little room.
    tasks = [task for task in results.tasks if len(numbers(results, task)) > 1]
    results = replace(results, tasks=tasks)
    if path.suffix.lower() != ".svg":
        raise OptionError(f"The picture of a ladder is an .svg file, not “{path.name}”.")
    if theme not in ("light", "dark", "auto"):
        raise OptionError(f"A picture is light, dark or auto, not “{theme}”.")
    with write_file(path) as scratch:
        scratch.write_text(standalone(_whole(results), theme), encoding="utf-8")
    return path


def _whole(results: Results) -> Panel:
    title, looks = results.title, results.looks
    blocks = [_table_panel(part, has_title=not index)
              for index, part in enumerate(in_parts(results))]  # fmt: skip
    words = word_panels(results, looks.pca) if looks.pca else []
    drawn = [
        rank_panel(results, "time", width=340, height=300),
        rank_panel(results, "size", width=340, height=300),
        _chosen(words, ("skipgram", "fasttext", "cbow"), "static"),
    ]
    charts = [panel for panel in drawn if panel is not None]
    if charts:
        blocks.append(arranged(title, charts, width=blocks[0].width))
    if looks.contexts and (uses := _uses(results, looks.contexts)):
        word, senses = looks.contexts.word, [use.sense for use in looks.contexts.sentences]
        entries = [(shape, color, f"“{word}”: {shortened(sense, 24)}")
                   for shape, color, sense in style_entries(senses)]  # fmt: skip
        blocks.append(arranged(title, uses, legend=entries[:4], width=blocks[0].width))
    return stacked(title, blocks)


def _uses(results: Results, look: ContextsLook) -> list[Panel]:
    """The uses of a word in every model that has a vector for each."""
    drawn = use_panels(results, look)
    return [panel for rung, panel in drawn if not is_one_point(look, rung)]


def _chosen(drawn: Sequence[tuple[Rung, Panel]], names: Sequence[str], family: str) -> Panel | None:
    by_name = {rung.name: panel for rung, panel in drawn}
    named = [by_name[name] for name in names if name in by_name]
    of_family = [panel for rung, panel in drawn if rung.family == family]
    return next(iter([*named, *of_family]), None)


_ROW, _COLUMN, _FIRST, _COST = 25.0, 88.0, 160.0, 78.0


def _table_panel(results: Results, *, has_title: bool) -> Panel:
    """The table, or a part of it, as text and thin bars."""
    tasks = results.tasks
    charts_width = 3 * 340 + 2 * _GAP
    column = max(_COLUMN, (charts_width - _FIRST - 2 * _COST) / max(len(tasks), 1))
    width = _FIRST + column * len(tasks) + 2 * _COST
    heads = [_wrapped(headline(task), column - 8, 13.5) for task in tasks]
    # Where the last line of the headings stands.
    head_end = 30.0 * has_title + 14 * max(map(len, heads), default=1)
    has_baselines = any(best_baseline(task) for task in tasks)
    rows_end = head_end + 42 + _ROW * len(results.rungs)
    panel = Panel(results.title, width, rows_end + (10 if has_baselines else -14))
    if has_title:
        panel.add(text(0, 16, fitted(results.title, width, 18), kind="title"))
    for index, (task, head) in enumerate(zip(tasks, heads, strict=True)):
        _column_head(panel, task, head, _FIRST + column * (index + 1), head_end, column)
    for index, name in enumerate(("Training", "MB")):
        x = width - _COST * (1 - index)
        panel.add(text(x, head_end, name, kind="cell strong", anchor="end"))
    panel.add(line(0, head_end + 22, width, head_end + 22, "rule"))
    for index, rung in enumerate(results.rungs):
        _table_row(panel, results, rung, head_end + 42 + _ROW * index, column)
    if has_baselines:
        panel.add(line(0, rows_end - 14, width, rows_end - 14, "rule"))
        panel.add(text(19, rows_end + 5, "best baseline", kind="cell soft"))
        for index, task in enumerate(tasks):
            hardest = best_baseline(task)
            x = _FIRST + column * (index + 1)
            if hardest:
                panel.add(text(x, rows_end + 5, score(hardest[1]), kind="cell soft", anchor="end"))
    return panel


def _column_head(
    panel: Panel, task: Task, head: list[str], x: float, y: float, column: float
) -> None:
    for index, words in enumerate(head[::-1]):
        panel.add(text(x, y - 14 * index, words, kind="cell strong", anchor="end"))
    metric = fitted(unit(task), column - 4, 10.5) if task.higher_is_better else "lower is better"
    panel.add(text(x, y + 14, metric, kind="tick", anchor="end"))


def _wrapped(title: str, width: float, size: float) -> list[str]:
    """A title on as many lines as it needs, broken between words and behind hyphens."""
    lines = [""]
    for part in re.findall(r"[^\s-]*-|[^\s-]+|\s+", title):
        if lines[-1] and text_width(lines[-1] + part, size) > width:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return [fitted(words.strip(), width, size) for words in lines if words.strip()]


def _table_row(panel: Panel, results: Results, rung: Rung, y: float, column: float) -> None:
    title, shape, color = family_look(rung.family)
    panel.add(mark(shape, 6, y - 4, color, title))
    panel.add(text(19, y, fitted(rung.title, _FIRST - 22, 12.5), kind="cell"))
    if rung.state != "done":
        panel.add(
            text(
                _FIRST + 24,
                y,
                fitted(state_text(rung), panel.width - _FIRST - 24, 12.5),
                kind="cell soft",
            )
        )
        return
    for index, task in enumerate(results.tasks):
        x = _FIRST + column * (index + 1)
        cell = results.cell(rung.name, task.name)
        is_best = rung.name in best_rungs(results, task)
        weak = cell is None or not has_number(cell) or is_above_baseline(cell, task) is False
        kind = "cell strong" if is_best else "cell soft" if weak else "cell"
        panel.add(text(x, y, cell_text(cell), kind=kind, anchor="end"))
        if task.unit == "%" and cell is not None and cell.mean is not None and has_number(cell):
            _bar(panel, x, y + 4, column - 18, cell.mean, "faint" if weak else "blue", is_best)
    time, *_, size = known_costs(rung)
    for index, words in enumerate((time, size)):
        x = panel.width - _COST * (1 - index)
        panel.add(text(x, y, words, kind="cell soft", anchor="end"))


def _bar(
    panel: Panel, right: float, y: float, width: float, value: float, color: str, is_best: bool
) -> None:
    left, part = right - width, min(max(value, 0.0), 100.0) / 100
    shapes: list[Markup] = [
        tag("rect", x=left, y=y, width=width, height=2.5, rx=1, class_="track"),
        tag("rect", x=left, y=y, width=width * part, height=2.5, rx=1,
            class_=f"{color} bar" + (" full" if is_best else "")),
    ]  # fmt: skip
    panel.add(*shapes)

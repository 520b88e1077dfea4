"""The picture of a whole ladder, for a README or a slide: table, ranks and words in one SVG.

python benchmarks/ladder_picture.py FOLDER ladder.svg     of a ladder's folder or its results.json
"""

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path

from sememe.errors import OptionError, SememeError
from sememe.ladder.report.charts import Panel, Theme, family_style, line, mark, tag, text
from sememe.ladder.report.formatting import (
    DASH,
    fitted,
    headline,
    score,
    shortened,
    text_width,
    unit,
)
from sememe.ladder.report.panels import (
    COSTS,
    is_one_point,
    rank_panel,
    style_entries,
    use_panels,
    word_panels,
)
from sememe.ladder.report.picture import GAP, arranged, stacked, standalone
from sememe.ladder.report.tables import (
    Footnotes,
    ScoreTable,
    ShownRow,
    best_baseline,
    numbers,
    score_tables,
)
from sememe.ladder.results import Results
from sememe.storage.folder import write_text


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
    write_text(path, standalone(_whole(results), theme))
    return path


_STATIC = ("skipgram", "fasttext", "cbow")  # whose words are drawn, the first that is there


def _whole(results: Results) -> Panel:
    title, looks = results.title, results.looks
    tables = score_tables(results, Footnotes([]))
    blocks = [_table_panel(table, title * (table is tables[0]), results.title) for table in tables]
    drawn = word_panels(results, looks.pca) if looks.pca else []
    static = {rung.name: panel for rung, panel in drawn if rung.family == "static"}
    words = [static[name] for name in (*_STATIC, *static) if name in static]
    ranks = [rank_panel(results, cost, width=340, height=300) for cost in COSTS]
    charts = [panel for panel in (*ranks, *words[:1]) if panel is not None]
    if charts:
        blocks.append(arranged(title, charts, width=blocks[0].width))
    if look := looks.contexts:
        drawn = use_panels(results, look)
        uses = [panel for rung, panel in drawn if not is_one_point(look, rung)]
        entries = [
            (shape, color, f"“{look.word}”: {shortened(sense, 24)}")
            for shape, color, sense in style_entries([use.sense for use in look.sentences])
        ]
        if uses:
            blocks.append(arranged(title, uses, legend=entries[:4], width=blocks[0].width))
    return stacked(title, blocks)


_ROW, _COLUMN, _FIRST, _COST = 25.0, 88.0, 160.0, 78.0


def _table_panel(table: ScoreTable, heading: str, title: str) -> Panel:
    """The table, or a part of it, as text and thin bars."""
    rows = [row for _, own in table.families for row in own]
    charts_width = 3 * 340 + 2 * GAP
    column = max(_COLUMN, (charts_width - _FIRST - 2 * _COST) / max(len(table.tasks), 1))
    ends = [_FIRST + column * (index + 1) for index in range(len(table.tasks))]
    width = _FIRST + column * len(table.tasks) + 2 * _COST
    heads = [_wrapped(headline(task), column - 8, 13.5) for task in table.tasks]
    # Where the last line of the headings stands.
    head_end = 30.0 * bool(heading) + 14 * max(map(len, heads), default=1)
    hardest = [best_baseline(task) for task in table.tasks]
    rows_end = head_end + 42 + _ROW * len(rows)
    panel = Panel(title, width, rows_end + (10 if any(hardest) else -14))
    if heading:
        panel.add(text(0, 16, fitted(heading, width, 18), kind="title"))
    for task, head, x in zip(table.tasks, heads, ends, strict=True):
        for index, words in enumerate(head[::-1]):
            panel.add(text(x, head_end - 14 * index, words, kind="cell strong", anchor="end"))
        below = fitted(unit(task), column - 4, 10.5) if task.higher_is_better else "lower is better"
        panel.add(text(x, head_end + 14, below, kind="tick", anchor="end"))
    for words, x in (("Training", width - _COST), ("MB", width)):
        panel.add(text(x, head_end, words, kind="cell strong", anchor="end"))
    panel.add(line(0, head_end + 22, width, head_end + 22, "rule"))
    for index, row in enumerate(rows):
        _table_row(panel, row, ends, head_end + 42 + _ROW * index, column)
    if any(hardest):
        panel.add(line(0, rows_end - 14, width, rows_end - 14, "rule"))
        panel.add(text(19, rows_end + 5, "best baseline", kind="cell soft"))
        for best, x in zip(hardest, ends, strict=True):
            if best:
                panel.add(text(x, rows_end + 5, score(best[1]), kind="cell soft", anchor="end"))
    return panel


def _wrapped(title: str, width: float, size: float) -> list[str]:
    """A title on as many lines as it needs, broken between words and behind hyphens."""
    lines = [""]
    for part in re.findall(r"[^\s-]*-|[^\s-]+|\s+", title):
        if lines[-1] and text_width(lines[-1] + part, size) > width:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return [fitted(words.strip(), width, size) for words in lines if words.strip()]


def _table_row(panel: Panel, row: ShownRow, ends: list[float], y: float, column: float) -> None:
    shape, color = row.mark
    panel.add(
        mark(shape, 6, y - 4, color, family_style(row.rung.family)[0]),
        text(19, y, fitted(row.rung.title, _FIRST - 22, 12.5), kind="cell"),
    )
    if row.gone:
        gone = fitted(row.gone, panel.width - _FIRST - 24, 12.5)
        panel.add(text(_FIRST + 24, y, gone, kind="cell soft"))
        return
    for cell, x in zip(row.cells, ends, strict=True):
        is_weak = bool(cell.footnote) or cell.is_below
        kind = "cell strong" if cell.is_best else "cell soft" if is_weak else "cell"
        panel.add(text(x, y, cell.text or DASH, kind=kind, anchor="end"))
        if cell.share is not None:
            bar = {"x": x - column + 18, "y": y + 4, "height": 2.5, "rx": 1}
            color = ("faint" if is_weak else "blue") + " bar" + " full" * cell.is_best
            panel.add(
                tag("rect", **bar, width=column - 18, class_="track"),
                tag("rect", **bar, width=(column - 18) * cell.share / 100, class_=color),
            )
    for words, x in ((row.time, panel.width - _COST), (row.size, panel.width)):
        panel.add(text(x, y, words, kind="cell soft", anchor="end"))


def main() -> int:
    """Draw the picture of the ladder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of a ladder, or its results.json")
    parser.add_argument("picture", type=Path, help="the .svg file to write")
    parser.add_argument("--theme", default="light", choices=("light", "dark", "auto"))
    given = parser.parse_args()
    try:
        print(write_picture(Results.load(given.folder), given.picture, theme=given.theme))
    except SememeError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Charts as separate SVG files, each group as one picture."""

import math
from collections.abc import Sequence

from sememe.ladder.report.attention import attention_panel
from sememe.ladder.report.charts import (
    HEIGHT,
    WIDTH,
    Panel,
    Theme,
    colors,
    escaped,
    legend_row,
    tag,
    template,
)
from sememe.ladder.report.formatting import joined
from sememe.ladder.report.panels import (
    COSTS,
    is_one_point,
    loss_panels,
    rank_panel,
    rung_entries,
    style_entries,
    task_panel,
    use_panels,
    word_panels,
)
from sememe.ladder.results import ContextsVisual, Results
from sememe.localization import say

GAP, _MARGIN = 36.0, 28.0


def standalone(panel: Panel, theme: Theme = "auto") -> str:
    """A panel as an SVG file with its own colors, style and background."""
    width, height = panel.width + 2 * _MARGIN, panel.height + 2 * _MARGIN
    style = f"{colors(theme)}\n{template('chart.css')}"
    ground = tag("rect", width="100%", height="100%", style="fill:var(--paper)")
    inside = panel.svg(x=_MARGIN, y=_MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{escaped(panel.title)}">'
        f"<title>{escaped(panel.title)}</title><desc>{escaped(panel.note)}</desc>"
        f"<style>{style}</style>{ground}{inside}</svg>\n"
    )


def arranged(
    title: str,
    panels: Sequence[Panel],
    columns: int = 3,
    legend: Sequence[tuple[str, str, str]] = (),
    width: float = 0.0,
) -> Panel:
    """Several panels arranged in rows as one, with a legend above."""
    wide, high = max(panel.width for panel in panels), max(panel.height for panel in panels)
    gap = max(GAP, (width - columns * wide) / max(1, columns - 1))
    columns = min(columns, len(panels))
    num_rows = math.ceil(len(panels) / columns)
    top = 32.0 if legend else 0.0
    height = top + num_rows * (high + GAP) - GAP
    note = joined([f"{panel.title}: {panel.note}" for panel in panels], "{one} {other}")
    whole = Panel(title, columns * (wide + gap) - gap, height, note=note)
    legend_row(whole, legend, 0, 11)
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        whole.add(panel.svg(x=column * (wide + gap), y=top + row * (high + GAP)))
    return whole


def stacked(title: str, blocks: Sequence[Panel]) -> Panel:
    """Pictures stacked vertically, as one."""
    note = joined([block.note for block in blocks if block.note], "{one} {other}")
    whole = Panel(title, max(block.width for block in blocks), -GAP, note=note)
    for block in blocks:
        whole.add(block.svg(x=0.0, y=whole.height + GAP))
        whole.height += GAP + block.height
    return whole


def chart_groups(results: Results) -> dict[str, Panel | None]:
    """The charts of the page, each group as one picture for the Markdown."""
    looks = results.looks
    quality = [rank_panel(results, cost, width=WIDTH, height=HEIGHT) for cost in COSTS]
    quality += [task_panel(results, task, cost) for task in results.tasks for cost in COSTS]
    words = word_panels(results, looks.pca) if looks.pca else []
    entries = style_entries(list(looks.pca.groups)) if looks.pca else []
    attention = attention_panel(results, looks.attention) if looks.attention else None
    return {
        "quality": _one(say("Quality and cost"), quality, 2, rung_entries(results)),
        "losses": _one(say("Loss curves"), [panel for _, panel in loss_panels(results)], 3),
        "words": _one(
            say("The same words in every model"), [panel for _, panel in words], 3, entries
        ),
        "contexts": _use_group(results, looks.contexts) if looks.contexts else None,
        "attention": _one(say("Attention"), [attention], 1),
    }


def _use_group(results: Results, look: ContextsVisual) -> Panel | None:
    """Contextual models first, then, small, those with one vector per word."""
    title, drawn = say("Uses of “{word}”", word=look.word), use_panels(results, look)
    many = [panel for rung, panel in drawn if not is_one_point(look, rung)]
    single = [panel for rung, panel in drawn if is_one_point(look, rung)]
    entries = style_entries([use.sense for use in look.sentences])
    blocks = [_one(title, many, 3, entries), _one(title, single, 5)]
    known = [block for block in blocks if block is not None]
    return stacked(title, known) if known else None


def _one(
    title: str,
    panels: Sequence[Panel | None],
    columns: int,
    entries: Sequence[tuple[str, str, str]] = (),
) -> Panel | None:
    known = [panel for panel in panels if panel is not None]
    return arranged(title, known, columns, entries) if known else None

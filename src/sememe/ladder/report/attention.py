"""The attention of one head as a table of shades. T tokens."""

from __future__ import annotations

from sememe.ladder.report.figures import plural, shortened, text_width
from sememe.ladder.report.markup import tag
from sememe.ladder.report.panels import Panel, text
from sememe.ladder.results import AttentionLook, Results

_CELL = 25.0
_MOST_TOKENS = 48


def attention_panel(results: Results, look: AttentionLook) -> Panel | None:
    """Draw where each token (a row) looks; the fuller a cell, the more its column gets."""
    tokens = [shortened(token, 16) for token in look.tokens[:_MOST_TOKENS]]
    rows = [row[: len(tokens)] for row in look.weights[: len(tokens)]]
    if not tokens or any(len(row) != len(tokens) for row in rows) or len(rows) != len(tokens):
        return None
    side = max(text_width(token, 12) for token in tokens)
    left, top = side + 12, side + 14
    panel = Panel(
        f"Attention of {name_of(results, look)}",
        left + _CELL * len(tokens) + 4,
        top + _CELL * len(tokens) + 30,
        note=f"{plural(len(tokens), 'token')}: {' '.join(tokens)}. {strongest(look)}",
    )
    # Attention that is spread evenly shall look pale, not like a strong one everywhere.
    largest = max(max(max(row) for row in rows), min(1.0, 4 / len(tokens)))
    for index, token in enumerate(tokens):
        middle = _CELL * (index + 0.5)
        panel.add(text(left - 8, top + middle + 4, token, kind="token", anchor="end"))
        panel.add(text(left + middle + 4, top - 8, token, kind="token", turn=-90))
    for row, weights in enumerate(rows):
        for column, weight in enumerate(weights):
            panel.add(
                tag(
                    "rect",
                    tag("title", f"{tokens[row]} → {tokens[column]}: {weight:.2f}"),
                    x=left + _CELL * column + 0.5,
                    y=top + _CELL * row + 0.5,
                    width=_CELL - 1,
                    height=_CELL - 1,
                    class_="shade",
                    fill_opacity=round(min(max(weight / largest, 0.0), 1.0), 2),
                )
            )
    panel.add(
        tag("rect", x=left, y=top, width=_CELL * len(tokens), height=_CELL * len(tokens),
            class_="frame")
    )  # fmt: skip
    _shades(panel, left, top + _CELL * len(tokens) + 12, largest)
    return panel


def _shades(panel: Panel, x: float, y: float, largest: float) -> None:
    """Draw what the shades mean."""
    panel.add(text(x, y + 11, "0", kind="tick"))
    for step in range(6):
        panel.add(
            tag("rect", x=x + 12 + 14 * step, y=y, width=13, height=13, class_="shade",
                fill_opacity=step / 5)
        )  # fmt: skip
    panel.add(text(x + 100, y + 11, f"{largest:.2f}", kind="tick"))


def name_of(results: Results, look: AttentionLook) -> str:
    """Which head of which model."""
    titles = {rung.name: rung.title for rung in results.rungs}
    return f"{titles.get(look.rung, look.rung)}, layer {look.layer}, head {look.head}"


def strongest(look: AttentionLook, most: int = 5) -> str:
    """The largest weights in words."""
    pairs = sorted(
        (
            (-weight, row, column)
            for row, weights in enumerate(look.weights)
            for column, weight in enumerate(weights)
        )
    )
    named = [
        f"{look.tokens[row]} → {look.tokens[column]} {-weight:.2f}"
        for weight, row, column in pairs[:most]
        if row < len(look.tokens) and column < len(look.tokens)
    ]
    return f"Largest weights: {', '.join(named)}." if named else ""

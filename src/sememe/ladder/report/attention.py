"""The attention map of a ladder: the weights of one head, and why it was chosen."""

from sememe.ladder.report.charts import Panel, tag, text
from sememe.ladder.report.formatting import joined, plural, shortened, text_width
from sememe.ladder.results import AttentionVisual, Results
from sememe.localization import say

_CELL = 25.0
_MOST_TOKENS = 48
_NUM_SHADES = 6


def attention_panel(results: Results, look: AttentionVisual) -> Panel | None:
    """Draw the attention weights of each token (a row); the darker a cell, the more weight."""
    tokens = [shortened(token, 16) for token in look.tokens[:_MOST_TOKENS]]
    rows = [row[: len(tokens)] for row in look.weights[: len(tokens)]]
    if not tokens or [len(row) for row in rows] != [len(tokens)] * len(tokens):
        return None
    extent, side = _CELL * len(tokens), max(text_width(token, 12) for token in tokens)
    left, top = side + 12, side + 14
    panel = Panel(
        say("Attention of {head}", head=name_of(results, look)),
        left + extent + 4,
        top + extent + 48,
        note=say(
            "{tokens}: {text}. {weights}",
            tokens=plural(len(tokens), "token"),
            text=" ".join(tokens),
            weights=strongest(look),
        ),
        headings=(say("from token"), *tokens),
        rows=[
            (token, *(f"{weight:.2f}" for weight in own))
            for token, own in zip(tokens, rows, strict=True)
        ],
    )
    # Uniform attention should look pale, not strong everywhere.
    largest = max(max(map(max, rows)), min(1.0, 4 / len(tokens)))
    for index, (token, weights) in enumerate(zip(tokens, rows, strict=True)):
        middle = _CELL * (index + 0.5)
        panel.add(text(left - 8, top + middle + 4, token, kind="token", anchor="end"))
        if text_width(token, 12) < _CELL:  # a Chinese character is read upright
            panel.add(text(left + middle, top - 8, token, kind="token", anchor="middle"))
        else:
            panel.add(text(left + middle + 4, top - 8, token, kind="token", turn=-90))
        for column, (other, weight) in enumerate(zip(tokens, weights, strict=True)):
            x, y = left + _CELL * column + 0.5, top + _CELL * index + 0.5
            told = f"{token} → {other}: {weight:.2f}"
            _shade(panel, x, y, _CELL - 1, weight / largest, told)
    panel.add(tag("rect", x=left, y=top, width=extent, height=extent, class_="frame"))
    _scale(panel, left, top + extent + 12, largest)
    return panel


def _shade(
    panel: Panel, x: float, y: float, size: float, share: float, title: str = "", width: float = 0
) -> None:
    opacity = round(min(max(share, 0.0), 1.0), 2)
    told = [tag("title", title)] if title else []
    panel.add(
        tag("rect", *told, x=x, y=y, width=width or size, height=size, class_="shade",
            fill_opacity=opacity)
    )  # fmt: skip


def _scale(panel: Panel, left: float, top: float, largest: float) -> None:
    """The color scale below the map: what the shades mean."""
    wide = 26.0
    for step in range(_NUM_SHADES):
        share = step / (_NUM_SHADES - 1)
        x = left + (wide + 1) * step
        _shade(panel, x, top, 13, share, width=wide)
        label = f"{share * largest:.2f}" if step else "0"
        panel.add(text(x + wide / 2, top + 25, label, kind="tick", anchor="middle"))
    x = left + (wide + 1) * _NUM_SHADES + 6
    panel.add(text(x, top + 11, say("attention weight"), kind="tick"))


def name_of(results: Results, look: AttentionVisual) -> str:
    """Which head of which model."""
    titles = {rung.name: rung.title for rung in results.rungs}
    return say(
        "{model}, layer {layer}, head {head}",
        model=titles.get(look.rung, look.rung), layer=look.layer, head=look.head,
    )  # fmt: skip


def reason(look: AttentionVisual) -> str:
    """Why this head is shown; empty if an older file does not say."""
    if not look.num_heads:
        return ""
    return say(
        "Of its {num} heads this one looks at other words most clearly: the largest weight of a "
        "token on another one, special tokens aside, is {share:.0%} on average.",
        num=look.num_heads, share=look.share,
    )  # fmt: skip


def strongest(look: AttentionVisual, most: int = 5) -> str:
    """The largest weights in words."""
    pairs = sorted(
        (-weight, row, column)
        for row, weights in enumerate(look.weights)
        for column, weight in enumerate(weights)
    )
    named = [
        f"{look.tokens[row]} → {look.tokens[column]} {-weight:.2f}"
        for weight, row, column in pairs[:most]
        if row < len(look.tokens) and column < len(look.tokens)
    ]
    return say("Largest weights: {weights}.", weights=joined(named)) if named else ""

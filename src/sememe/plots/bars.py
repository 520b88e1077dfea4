"""Figures as bars: names and numbers in, a picture out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sememe.errors import InputError
from sememe.plots.style import (
    BLUE,
    FAINT,
    INK,
    PAPER,
    RED,
    Paths,
    check_paths,
    new_figure,
    save,
    styled,
)


def bars(
    names: Sequence[str],
    values: Sequence[float],
    path: Paths,
    *,
    errors: Sequence[float] | None = None,
    reference: tuple[str, float] | None = None,
    title: str = "",
) -> Any:
    """Draw one bar a name, the first on top, with its figure in it, perhaps ± an error.

    `reference` is a name and a value that all are held against, drawn as a line. The axis begins
    a little below the least figure, not at zero, where the differences would vanish; the figures
    in the bars say how large they are.
    """
    paths = check_paths(path)
    known = [value for value in values if math.isfinite(value)]
    if not known or len(names) != len(values):
        raise InputError("Bars need a name for each figure, and a figure.")
    ends = [*known, *([reference[1]] if reference else [])]
    span = max(max(ends) - min(ends), 1e-9 + abs(max(ends)) * 0.02)
    low, high = min(ends) - 0.45 * span, max(ends) + 0.1 * span
    with styled([title, *names, *([reference[0]] if reference else [])]):
        figure = new_figure(8, 1.3 + 0.42 * len(names))
        height = figure.get_figheight()
        axes = figure.add_axes((0.26, 0.55 / height, 0.70, 1 - (1.15 if title else 0.8) / height))
        places = range(len(names))
        axes.barh(places, [max(v, low) - low for v in values], left=low, color=BLUE, height=0.62)
        for place, value in zip(places, values, strict=True):
            if not math.isfinite(value):
                continue
            error = errors[place] if errors is not None else math.nan
            if math.isfinite(error):
                axes.errorbar(value, place, xerr=error, color=INK, lw=1.0, capsize=2.5)
            text = f"{value:.1f}" + (f" ± {error:.1f}" if math.isfinite(error) else "")
            axes.text(
                low + 0.012 * (high - low), place, text, va="center", fontsize=8.5, color=PAPER
            )
        if reference:
            axes.axvline(reference[1], color=RED, lw=1.2, ls=(0, (4, 3)), zorder=0)
            axes.text(
                reference[1], -0.75, f"{reference[0]} {reference[1]:.1f}", color=RED, fontsize=8.5,
                ha="center", va="bottom",
            )  # fmt: skip
        axes.set_yticks(list(places), list(names))
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(low, high)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, pad=5)
        axes.tick_params(axis="y", labelcolor=INK)
        axes.tick_params(axis="x", labelcolor=FAINT)
        if title:
            figure.text(0.02, 1 - 0.32 / height, title, fontsize=12, color=INK)
        save(figure, paths)
    return figure

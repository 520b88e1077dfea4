"""Figures over a rate or a length that was varied: panels side by side, lines, levels in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sememe.plots.style import BLUE, FAINT, INK, RED, Paths, check_paths, new_figure, save, styled


@dataclass(frozen=True)
class Panel:
    """What one panel shows: a figure of every rate by line, and levels to measure it against."""

    title: str
    lines: Mapping[str, Sequence[float]]
    levels: Mapping[str, float] = field(default_factory=dict)
    is_share: bool = False  # written in per cent


def draw_rates(
    rates: Sequence[float],
    panels: Sequence[Panel],
    path: Paths,
    *,
    name: str = "tokens hidden",
    is_share: bool = True,
) -> Any:
    """Draw the panels over the rates, which are shares unless `is_share` is off."""
    paths = check_paths(path)
    texts = [name, *(text for panel in panels for text in (panel.title, *panel.lines))]
    with styled(texts):
        from matplotlib.ticker import FixedLocator, MaxNLocator, PercentFormatter

        figure = new_figure(4.1 * len(panels) + (0 if is_share else 1.5), 3.9)
        every: Any = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(every, panels, strict=True):
            for (label, values), color in zip(panel.lines.items(), (BLUE, RED, INK), strict=False):
                axes.plot(rates, values, "o-", color=color, lw=1.9, ms=5, label=label, zorder=3)
            for dash, (label, level) in enumerate(panel.levels.items(), start=1):
                style = (0, (4, 2)) if dash == 1 else (0, (1, 2))
                axes.axhline(level, color=FAINT, lw=1.2, ls=style, label=label, zorder=2)
            if is_share:
                axes.xaxis.set_major_locator(FixedLocator(list(rates)))
                axes.xaxis.set_major_formatter(PercentFormatter(1.0, 0))
            else:
                axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
            axes.yaxis.set_major_locator(MaxNLocator(5))
            if panel.is_share:
                axes.yaxis.set_major_formatter(PercentFormatter(1.0, None))
                axes.set_ylim(bottom=0)
            axes.grid(axis="y", color="#ebebee", lw=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.tick_params(length=0, pad=5)
            axes.set_xlabel(name, loc="left", color=FAINT)
            axes.set_title(panel.title, fontsize=10, pad=10)
            if len([*panel.lines, *panel.levels]) > 1:
                axes.legend(
                    frameon=False, fontsize=8.5, labelcolor=INK, loc="upper center", ncols=2,
                    bbox_to_anchor=(0.5, -0.16), columnspacing=1.2,
                )  # fmt: skip
        figure.tight_layout(w_pad=2.5)
        save(figure, paths)
    return figure

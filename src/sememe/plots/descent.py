"""The loss over growing learning rates: arrays in, a picture with the suggested rates out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.plots.style import BLUE, FAINT, INK, RED, Paths, check_paths, new_figure, save, styled

# What a divergence adds in height would flatten what came before it.
_ROOM = 0.6


def descent(
    rates: Sequence[float],
    losses: Sequence[float],
    smoothed: Sequence[float],
    path: Paths,
    *,
    marks: Mapping[str, float] | None = None,
    title: str = "",
) -> Any:
    """Draw the loss at each rate faint, the smoothed line full, and the named rates as marks."""
    paths = check_paths(path)
    if len(rates) < 2:
        raise InputError("A curve needs the losses of two rates at least.")
    line = np.asarray(smoothed, np.float64)
    with styled([title, *(marks or {})]):
        from matplotlib.ticker import FuncFormatter

        figure = new_figure(8, 4.4)
        axes = figure.add_axes((0.085, 0.135, 0.88, 0.765 if title else 0.82))
        axes.set_xscale("log")
        axes.plot(rates, losses, color=BLUE, alpha=0.28, lw=1.0, solid_joinstyle="round")
        axes.plot(rates, line, color=BLUE, lw=1.9, zorder=3)
        for (label, rate), color in zip((marks or {}).items(), (RED, INK, FAINT), strict=False):
            height = float(np.interp(np.log(rate), np.log(rates), line))
            axes.axvline(rate, color=color, lw=1.0, ls=(0, (4, 2)), zorder=2)
            axes.plot(
                [rate], [height], "o", color=color, ms=6, zorder=4, label=f"{label}: {rate:.1e}"
            )
        fallen = max(line[0] - line.min(), 0.02 * abs(line[0]))
        top = min(line[0] + _ROOM * fallen, line.max() + 0.15 * fallen)
        axes.set_ylim(line.min() - 0.15 * fallen, top)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.grid(axis="y", color="#ebebee", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, pad=5)
        axes.minorticks_off()
        axes.set_xlabel("learning rate", loc="left", color=FAINT)
        axes.set_ylabel("loss", loc="top", color=FAINT)
        if marks:
            axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower left")
        if title:
            axes.set_title(title, pad=12)
        save(figure, paths)
    return figure

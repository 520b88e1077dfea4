"""Curves of training: a history in, a picture out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.plots.style import BLUE, FAINT, Paths, check_paths, new_figure, save, styled
from sememe.progress import History


def history(
    records: Sequence[dict[str, Any]],
    path: Paths,
    *,
    figure_name: str = "loss",
    title: str = "",
    half_life: float = 5.0,
) -> Any:
    """Draw one figure of a history over the words seen: each record faint, the smoothed line full.

    Without a figure `words` or `step` in the records, their number is the horizontal axis.
    """
    paths = check_paths(path)
    kept = History(records)
    values = kept.column(figure_name)
    if not np.isfinite(values).any():
        raise InputError(f"The history holds no figure “{figure_name}” to draw.")
    x_name = next((name for name in ("words", "step") if name in kept[0]), "record")
    x = np.arange(1, len(kept) + 1) if x_name == "record" else kept.column(x_name)
    with styled([title, figure_name]):
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        figure = new_figure(8, 4.4)
        axes = figure.add_axes((0.085, 0.125, 0.88, 0.775 if title else 0.83))
        axes.plot(x, values, color=BLUE, alpha=0.28, lw=1.0, solid_joinstyle="round")
        axes.plot(x, _smooth_both_ways(kept, figure_name, half_life), color=BLUE, lw=1.9, zorder=3)
        for edge in _epoch_edges(kept, x):
            axes.axvline(edge, color="#d8d8dc", lw=0.8, ls=(0, (2, 3)), zorder=0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.grid(axis="y", color="#ebebee", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, pad=5)
        axes.margins(x=0.01)
        axes.set_xlabel(x_name if x_name != "record" else "reports", loc="left", color=FAINT)
        axes.set_ylabel(figure_name.replace("_", " "), loc="top", color=FAINT)
        if title:
            axes.set_title(title, pad=12)
        save(figure, paths)
    return figure


def _epoch_edges(kept: History, x: np.ndarray) -> list[float]:
    """Where one epoch ends and the next begins, if the records tell."""
    epochs = np.floor(kept.column("epoch"))
    changes = np.flatnonzero(np.diff(epochs) > 0)
    return [float((x[index] + x[index + 1]) / 2) for index in changes]


def _smooth_both_ways(kept: History, name: str, half_life: float) -> np.ndarray:
    """Smooth from both ends, so that the line does not lag behind a falling loss."""
    backward = History(reversed(kept)).smooth(name, half_life)[::-1]
    return (kept.smooth(name, half_life) + backward) / 2


def _short(value: float) -> str:
    for scale, mark in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= scale:
            return f"{value / scale:g}{mark}"
    return f"{value:g}"

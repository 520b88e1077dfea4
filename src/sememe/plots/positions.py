"""Vectors of positions: a row for each place in a text, a column for each dimension. T × D."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sememe.errors import OptionError
from sememe.plots.style import BLUE, FAINT, RED, Paths, check_paths, new_figure, save, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def positions(table_TD: np.ndarray, path: Paths, *, title: str = "") -> Figure:
    """Draw the vectors of positions, blue below zero and red above, the first position on top."""
    paths = check_paths(path)
    table_TD = np.asarray(table_TD, np.float64)
    if table_TD.ndim != 2 or not table_TD.size:
        raise OptionError(f"Positions are a table of rows, not of shape {table_TD.shape}.")
    limit = max(float(np.abs(table_TD).max()), 1e-9)
    with styled([title]):
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.ticker import MaxNLocator

        figure = new_figure(8, 4.6)
        axes = figure.add_axes((0.08, 0.12, 0.8, 0.78 if title else 0.85))
        colors = LinearSegmentedColormap.from_list("blue-white-red", [BLUE, "#ffffff", RED])
        mesh = axes.pcolormesh(table_TD, cmap=colors, vmin=-limit, vmax=limit, rasterized=True)
        axes.invert_yaxis()
        axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.tick_params(length=0, pad=5)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("dimension", loc="left", color=FAINT)
        axes.set_ylabel("position", loc="top", color=FAINT)
        if title:
            axes.set_title(title, pad=12)
        bar = figure.colorbar(mesh, cax=figure.add_axes((0.91, 0.12, 0.015, 0.3)))
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, pad=3)
        save(figure, paths)
    return figure

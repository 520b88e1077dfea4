"""Attention: where each token of a text looks, as a table of shades. T rows, S columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sememe.errors import OptionError
from sememe.plots.style import BLUE, FAINT, INK, Paths, check_paths, new_figure, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL, _MARGIN = 0.3, 0.35  # inches


def attention(
    tokens: Sequence[str],
    weights_TS: np.ndarray,
    path: Paths,
    *,
    segments: Sequence[int] | None = None,
    title: str = "",
) -> Figure:
    """Draw where each token (a row) looks: the darker a cell, the more attention its column gets.

    A thin line parts the texts of a pair, which `segments` tells apart.
    """
    paths = check_paths(path)
    weights_TS = np.asarray(weights_TS, np.float64)
    if not tokens or weights_TS.shape != (len(tokens), len(tokens)):
        raise OptionError(
            f"An attention picture needs a weight for each pair of its {len(tokens)} tokens, "
            f"not weights of shape {weights_TS.shape}."
        )
    with styled([*tokens, title]):
        figure, axes = _table(tokens, title)
        _shade(axes, weights_TS)
        changes = np.flatnonzero(np.diff(segments or [0]))
        for edge in (changes + 1).tolist():
            axes.axhline(edge, color=FAINT, lw=0.7)
            axes.axvline(edge, color=FAINT, lw=0.7)
        save(figure, paths)
    return figure


def _table(tokens: Sequence[str], title: str) -> tuple[Figure, Axes]:
    label = 0.15 + 0.1 * max(len(token) for token in tokens)
    body = _CELL * len(tokens)
    top = label + (0.45 if title else 0.1)
    width, height = label + body + _MARGIN, top + body + _MARGIN
    figure = new_figure(max(width, 3.5), height)
    width = max(width, 3.5)
    axes = figure.add_axes((label / width, _MARGIN / height, body / width, body / height))
    places = np.arange(len(tokens)) + 0.5
    axes.set_yticks(places, tokens, color=INK, fontsize=9.5)
    axes.set_xticks(places, tokens, color=INK, fontsize=9.5, rotation=90)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=4)
    axes.spines[:].set_visible(False)
    if title:
        figure.text(0.15 / width, 1 - 0.28 / height, title, fontsize=12, color=INK)
    return figure, axes


def _shade(axes: Axes, weights_TS: np.ndarray) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("white-blue", ["#ffffff", BLUE])
    axes.pcolormesh(
        weights_TS, cmap=shades, vmin=0, vmax=max(float(weights_TS.max()), 1e-9),
        edgecolors="#efefec", linewidth=0.6, antialiased=True,
    )  # fmt: skip
    axes.invert_yaxis()

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
    columns: Sequence[str] | None = None,
    segments: Sequence[int] | None = None,
    title: str = "",
) -> Figure:
    """Draw where each token (a row) looks: the darker a cell, the more attention its column gets.

    `columns` are the tokens that are looked at where they are others: those of a source. A thin
    line parts the texts of a pair, which `segments` tells apart.
    """
    paths = check_paths(path)
    weights_TS = np.asarray(weights_TS, np.float64)
    columns = tokens if columns is None else columns
    if not tokens or weights_TS.shape != (len(tokens), len(columns)):
        raise OptionError(
            f"An attention picture needs a weight for each pair of its {len(tokens)} tokens "
            f"and {len(columns)} columns, not weights of shape {weights_TS.shape}."
        )
    with styled([*tokens, *columns, title]):
        figure, axes = _table(tokens, columns, title)
        _shade(axes, weights_TS)
        changes = np.flatnonzero(np.diff(segments or [0]))
        for edge in (changes + 1).tolist():
            axes.axhline(edge, color=FAINT, lw=0.7)
            axes.axvline(edge, color=FAINT, lw=0.7)
        save(figure, paths)
    return figure


def _table(tokens: Sequence[str], columns: Sequence[str], title: str) -> tuple[Figure, Axes]:
    left, above = (0.15 + 0.1 * max(map(len, names)) for names in (tokens, columns))
    wide, high = _CELL * len(columns), _CELL * len(tokens)
    top = above + (0.45 if title else 0.1)
    width, height = max(left + wide + _MARGIN, 3.5), top + high + _MARGIN
    figure = new_figure(width, height)
    axes = figure.add_axes((left / width, _MARGIN / height, wide / width, high / height))
    axes.set_yticks(np.arange(len(tokens)) + 0.5, tokens, color=INK, fontsize=9.5)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, color=INK, fontsize=9.5)
    axes.xaxis.tick_top()
    for label, text in zip(axes.get_xticklabels(), columns, strict=True):
        label.set_rotation(90 if len(text) > 1 else 0)  # a Chinese character lies badly
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

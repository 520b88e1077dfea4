"""Heat-maps of word vectors, attention and position vectors. N or T rows, S or D columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sememe.errors import OptionError
from sememe.plots.style import BLUE, FAINT, INK, RED, Paths, check_paths, picture
from sememe.vectors.search import parse_sum

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from sememe.vectors import WordVectors


def combine(vectors: WordVectors, text: str) -> np.ndarray:
    """Evaluate an expression of word vectors."""
    terms = parse_sum(text)
    signs = np.array([sign for sign, _ in terms], np.float32)
    return signs @ vectors.query_vectors([word for _, word in terms])


def heatmap(
    vectors: WordVectors,
    expressions: Sequence[str],
    path: Paths,
    *,
    limit: float = 2.0,
    title: str = "",
) -> Figure:
    """Draw each word's or sum's vector as a strip: blue at −`limit`, white at 0, red at `limit`."""
    paths = check_paths(path)
    if not expressions:
        raise OptionError("A heat-map needs a word or a sum such as king - man + woman.")
    if not 0 < limit < float("inf"):
        raise OptionError(f"limit must be positive, not {limit}.")
    rows_ND = np.stack([combine(vectors, text) for text in expressions])
    num_rows, dim = rows_ND.shape
    strip, top, bottom, width = 0.36, 0.55 if title else 0.2, 0.62, 11.0
    height = top + bottom + strip * num_rows
    left = min(0.35, (0.35 + 0.085 * max(len(text) for text in expressions)) / width)
    with picture(paths, [*expressions, title], width, height) as figure:
        axes = figure.add_axes((left, bottom / height, 0.98 - left, strip * num_rows / height))
        mesh = axes.pcolormesh(
            rows_ND, cmap=_shades(BLUE, "#ffffff", RED), vmin=-limit, vmax=limit,
            edgecolors="#f1f1ee", linewidth=min(0.6, 30 / dim), antialiased=True,
        )  # fmt: skip
        axes.hlines(range(num_rows + 1), 0, dim, color=axes.get_facecolor(), lw=5)
        axes.invert_yaxis()
        labels = [text.replace(" - ", " − ") for text in expressions]
        axes.set_yticks(np.arange(num_rows) + 0.5, labels, color=INK, fontsize=10)
        axes.set_xticks([])
        axes.tick_params(length=0, pad=6)
        axes.spines[:].set_visible(False)
        axes.set_title(title, pad=10)
        scale = figure.add_axes((left, 0.34 / height, 0.2, 0.09 / height))
        bar = figure.colorbar(mesh, cax=scale, orientation="horizontal", ticks=[-limit, 0, limit])
        bar.ax.set_xticklabels([f"−{limit:g}", "0", f"{limit:g}"])
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, pad=3)
    return figure


def _shades(*colors: str) -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("-".join(colors), colors)


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
    """Draw the attention weights of each token (a row): the darker a cell, the more weight.

    `columns` are the key tokens if they differ from the rows: those of a source. A thin line
    separates the texts of a pair, which `segments` distinguishes.
    """
    paths = check_paths(path)
    weights_TS = np.asarray(weights_TS, np.float64)
    columns = tokens if columns is None else columns
    if not tokens or weights_TS.shape != (len(tokens), len(columns)):
        raise OptionError(
            f"An attention picture needs a weight for each pair of its {len(tokens)} tokens "
            f"and {len(columns)} columns, not weights of shape {weights_TS.shape}."
        )
    left, above = (0.15 + 0.1 * max(map(len, names)) for names in (tokens, columns))
    wide, high = _CELL * len(columns), _CELL * len(tokens)
    width = max(left + wide + _MARGIN, 3.5)
    height = above + (0.45 if title else 0.1) + high + _MARGIN
    with picture(paths, [*tokens, *columns, title], width, height) as figure:
        axes = figure.add_axes((left / width, _MARGIN / height, wide / width, high / height))
        axes.set_yticks(np.arange(len(tokens)) + 0.5, tokens, color=INK, fontsize=9.5)
        axes.set_xticks(np.arange(len(columns)) + 0.5, columns, color=INK, fontsize=9.5)
        axes.xaxis.tick_top()
        for label, text in zip(axes.get_xticklabels(), columns, strict=True):
            label.set_rotation(90 if len(text) > 1 else 0)  # a Chinese character lies badly
        axes.tick_params(length=0, pad=4)
        axes.spines[:].set_visible(False)
        figure.text(0.15 / width, 1 - 0.28 / height, title, fontsize=12, color=INK)
        axes.pcolormesh(
            weights_TS, cmap=_shades("#ffffff", BLUE), vmin=0,
            vmax=max(float(weights_TS.max()), 1e-9), edgecolors="#efefec", linewidth=0.6,
            antialiased=True,
        )  # fmt: skip
        axes.invert_yaxis()
        for edge in (np.flatnonzero(np.diff(segments or [0])) + 1).tolist():
            axes.axhline(edge, color=FAINT, lw=0.7)
            axes.axvline(edge, color=FAINT, lw=0.7)
    return figure


def positions(table_TD: np.ndarray, path: Paths, *, title: str = "") -> Figure:
    """Draw the position vectors, blue below zero and red above, the first position on top."""
    paths = check_paths(path)
    table_TD = np.asarray(table_TD, np.float64)
    if table_TD.ndim != 2 or not table_TD.size:
        raise OptionError(f"Positions are a table of rows, not of shape {table_TD.shape}.")
    limit = max(float(np.abs(table_TD).max()), 1e-9)
    with picture(paths, [title], 8, 4.6) as figure:
        from matplotlib.ticker import MaxNLocator

        axes = figure.add_axes((0.08, 0.12, 0.8, 0.78 if title else 0.85))
        colors = _shades(BLUE, "#ffffff", RED)
        mesh = axes.pcolormesh(table_TD, cmap=colors, vmin=-limit, vmax=limit, rasterized=True)
        axes.invert_yaxis()
        axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.tick_params(length=0, pad=5)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("dimension", loc="left", color=FAINT)
        axes.set_ylabel("position", loc="top", color=FAINT)
        axes.set_title(title, pad=12)
        bar = figure.colorbar(mesh, cax=figure.add_axes((0.91, 0.12, 0.015, 0.3)))
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, pad=3)
    return figure

"""Heat-maps of word vectors, attention and position vectors. N or T rows, S or D columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.notebook import cell_width
from sememe.plots.style import BLUE, FAINT, INK, RED, Paths, check_paths, picture, spoken
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


_MOST_STRIPS = 2_000
_STRIP = (0.1, 0.36)  # height, from many strips to few
_WIDTH = (3.2, 18.0)  # of the strips, from few dimensions to many
_DIMENSION = 0.11  # width of one dimension if there is room
_OUTLIER = 2.0  # times the 99th percentile


class ColorRange(NamedTuple):
    """The colors run from −`limit` to `limit`; `largest` is the largest absolute value."""

    limit: float
    largest: float

    def __str__(self) -> str:
        text = f"Colors run from −{self.limit:g} (blue) to {self.limit:g} (red)"
        if self.largest <= self.limit:
            return f"{text}."
        return f"{text}; the largest absolute value is {self.largest:.3g}."


def color_range(rows_ND: np.ndarray, limit: float | None = None) -> ColorRange:
    """The range of colors for some values: the largest one, rounded up, without rare outliers."""
    if limit is not None and not 0 < limit < float("inf"):
        raise OptionError(f"limit must be positive, not {limit}.")
    sizes = np.abs(rows_ND[np.isfinite(rows_ND)])
    largest = float(sizes.max()) if sizes.size else 0.0
    if limit is not None:
        return ColorRange(limit, largest)
    usual = float(np.percentile(sizes, 99)) if sizes.size else 0.0
    wanted = largest if largest <= _OUTLIER * usual else usual
    if not wanted:
        return ColorRange(1.0, largest)
    step = 10.0 ** (math.floor(math.log10(wanted)) - 1)  # two digits
    return ColorRange(float(f"{math.ceil(wanted / step - 1e-9) * step:.2g}"), largest)


def heatmap(
    vectors: WordVectors,
    expressions: Sequence[str],
    path: Paths,
    *,
    limit: float | None = None,
    title: str = "",
    on_note: Callable[[str], None] = lambda text: None,
) -> Figure:
    """Draw each word's or sum's vector as a strip: blue at −`limit`, white at 0, red at `limit`.

    Without a limit the colors follow from the values; the size of the picture follows from the
    number of strips and dimensions. `on_note` gets a sentence about the colors.
    """
    paths = check_paths(path)
    if not expressions:
        raise OptionError("A heat-map needs a word or a sum such as king - man + woman.")
    if len(expressions) > _MOST_STRIPS:
        raise OptionError(
            f"A heat-map has at most {_MOST_STRIPS:,} strips, not {len(expressions):,}."
        )
    rows_ND = np.stack([combine(vectors, text) for text in expressions])
    shades = color_range(rows_ND, limit)
    num_rows, dim = rows_ND.shape
    strip = min(_STRIP[1], max(_STRIP[0], 24 / num_rows))
    top, bottom = 0.55 if title else 0.2, 0.88
    size = min(10.0, 28 * strip)  # of the labels, in points
    left = 0.25 + 0.0085 * size * max(map(cell_width, expressions))
    wide = min(_WIDTH[1], max(_WIDTH[0], _DIMENSION * dim, 0.085 * cell_width(title)))
    width, height = left + wide + 0.25, top + bottom + strip * num_rows
    told = f"Vectors of {', '.join(expressions[:20])} as strips of {dim:,} dimensions. {shades}"
    with picture(paths, [*expressions, title], width, height, told=told) as figure:
        from matplotlib.ticker import MaxNLocator

        axes = figure.add_axes(
            (left / width, bottom / height, wide / width, strip * num_rows / height)
        )
        # Thin lines between dimensions, where these are wide enough to see them.
        line = 0.6 if wide / dim > 0.05 else 0.0
        mesh = axes.pcolormesh(
            rows_ND, cmap=_shades(BLUE, "#ffffff", RED), vmin=-shades.limit, vmax=shades.limit,
            edgecolors="#f1f1ee" if line else "none", linewidth=line, antialiased=True,
            rasterized=rows_ND.size > 20_000,
        )  # fmt: skip
        axes.hlines(range(num_rows + 1), 0, dim, color=axes.get_facecolor(), lw=14 * strip)
        axes.invert_yaxis()
        labels = [text.replace(" - ", " − ") for text in expressions]
        axes.set_yticks(np.arange(num_rows) + 0.5, labels, color=INK, fontsize=size)
        ticks = MaxNLocator(min(10, max(1, dim - 1)), integer=True, steps=[1, 2, 5, 10])
        axes.xaxis.set_major_locator(ticks)
        axes.tick_params(length=0, pad=4)
        axes.spines[:].set_visible(False)
        axes.set_xlabel(spoken("dimension"), loc="right", color=FAINT)
        axes.set_title(title, pad=10)
        scale = figure.add_axes((left / width, 0.3 / height, 2.2 / width, 0.09 / height))
        ends = "both" if shades.largest > shades.limit else "neither"
        bar = figure.colorbar(
            mesh, cax=scale, orientation="horizontal", extend=ends,
            ticks=[-shades.limit, 0, shades.limit],
        )  # fmt: skip
        bar.ax.set_xticklabels([f"−{shades.limit:g}", "0", f"{shades.limit:g}"])
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, pad=3)
    on_note(str(shades))
    return figure


def _shades(*colors: str) -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("-".join(colors), colors)


_CELL, _MARGIN = 0.3, 0.55  # inches


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
    left, above = (0.15 + 0.1 * max(map(cell_width, names)) for names in (tokens, columns))
    wide, high = _CELL * len(columns), _CELL * len(tokens)
    width = max(left + wide + _MARGIN, 3.5)
    height = above + (0.45 if title else 0.1) + high + _MARGIN
    told = f"Attention of {' '.join(tokens)} (rows) to {' '.join(columns)} (columns)."
    with picture(paths, [*tokens, *columns, title], width, height, told=told) as figure:
        axes = figure.add_axes((left / width, _MARGIN / height, wide / width, high / height))
        axes.set_yticks(np.arange(len(tokens)) + 0.5, tokens, color=INK, fontsize=9.5)
        axes.set_xticks(np.arange(len(columns)) + 0.5, columns, color=INK, fontsize=9.5)
        axes.xaxis.tick_top()
        for label, text in zip(axes.get_xticklabels(), columns, strict=True):
            label.set_rotation(90 if len(text) > 1 else 0)  # a Chinese character lies badly
        axes.tick_params(length=0, pad=4)
        axes.spines[:].set_visible(False)
        figure.text(0.15 / width, 1 - 0.28 / height, title, fontsize=12, color=INK)
        # Uniform attention should look pale, not strong everywhere.
        largest = max(float(weights_TS.max()), min(1.0, 4 / len(columns)))
        mesh = axes.pcolormesh(
            weights_TS, cmap=_shades("#ffffff", BLUE), vmin=0, vmax=largest,
            edgecolors="#efefec", linewidth=0.6, antialiased=True,
        )  # fmt: skip
        axes.invert_yaxis()
        scale = figure.add_axes((left / width, 0.3 / height, 1.2 / width, 0.09 / height))
        bar = figure.colorbar(mesh, cax=scale, orientation="horizontal", ticks=[0, largest])
        bar.ax.set_xticklabels(["0", f"{largest:.2g}"])
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, pad=3)
        figure.text(
            (left + 1.3) / width, 0.3 / height, spoken("attention weight"),
            fontsize=8.5, color=FAINT,
        )  # fmt: skip
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
    told = f"{len(table_TD):,} position vectors of {table_TD.shape[1]:,} dimensions."
    with picture(paths, [title], 8, 4.6, told=told) as figure:
        from matplotlib.ticker import MaxNLocator

        axes = figure.add_axes((0.08, 0.12, 0.8, 0.78 if title else 0.85))
        colors = _shades(BLUE, "#ffffff", RED)
        mesh = axes.pcolormesh(table_TD, cmap=colors, vmin=-limit, vmax=limit, rasterized=True)
        axes.invert_yaxis()
        axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.tick_params(length=0, pad=5)
        axes.spines[:].set_visible(False)
        axes.set_xlabel(spoken("dimension"), loc="left", color=FAINT)
        axes.set_ylabel(spoken("position"), loc="top", color=FAINT)
        axes.set_title(title, pad=12)
        bar = figure.colorbar(mesh, cax=figure.add_axes((0.91, 0.12, 0.015, 0.3)))
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, pad=3)
    return figure

"""Heat-map: vectors side by side, one strip of cells a word or sum of words. N rows, D width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sememe.errors import OptionError
from sememe.plots.style import BLUE, INK, RED, Paths, check_paths, new_figure, save, styled
from sememe.vectors.sums import parse_sum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sememe.vectors import WordVectors


def combine(vectors: WordVectors, text: str) -> np.ndarray:
    """Add the vectors up as an expression says."""
    terms = parse_sum(text)
    signs = np.array([sign for sign, _ in terms], np.float32)
    return signs @ np.asarray(vectors[[word for _, word in terms]])


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
    with styled([*expressions, title]):
        figure = _draw(rows_ND, [text.replace(" - ", " − ") for text in expressions], limit, title)
        save(figure, paths)
    return figure


def _draw(rows_ND: np.ndarray, labels: Sequence[str], limit: float, title: str) -> Figure:
    from matplotlib.colors import LinearSegmentedColormap

    num_rows, dim = rows_ND.shape
    strip, top, bottom, width = 0.36, 0.55 if title else 0.2, 0.62, 11.0
    height = top + bottom + strip * num_rows
    left = min(0.35, (0.35 + 0.085 * max(len(label) for label in labels)) / width)
    figure = new_figure(width, height)
    axes = figure.add_axes((left, bottom / height, 0.98 - left, strip * num_rows / height))
    colors = LinearSegmentedColormap.from_list("blue-white-red", [BLUE, "#ffffff", RED])
    mesh = axes.pcolormesh(
        rows_ND, cmap=colors, vmin=-limit, vmax=limit, edgecolors="#f1f1ee",
        linewidth=min(0.6, 30 / dim), antialiased=True,
    )  # fmt: skip
    axes.hlines(range(num_rows + 1), 0, dim, color=axes.get_facecolor(), lw=5)
    axes.invert_yaxis()
    axes.set_yticks(np.arange(num_rows) + 0.5, labels, color=INK, fontsize=10)
    axes.set_xticks([])
    axes.tick_params(length=0, pad=6)
    axes.spines[:].set_visible(False)
    if title:
        axes.set_title(title, pad=10)
    scale = figure.add_axes((left, 0.34 / height, 0.2, 0.09 / height))
    bar = figure.colorbar(mesh, cax=scale, orientation="horizontal", ticks=[-limit, 0, limit])
    bar.ax.set_xticklabels([f"−{limit:g}", "0", f"{limit:g}"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, pad=3)
    return figure

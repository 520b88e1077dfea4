"""PCA: the two directions in which some words differ most, as a map. N words, D width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sememe.errors import OptionError
from sememe.plots.labels import place_labels
from sememe.plots.style import BLUE, FAINT, INK, RED, Paths, check_paths, new_figure, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sememe.vectors import WordVectors


def project(rows_ND: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project centred rows on their first two principal axes: (N, 2) and the shares of variance.

    The sign of an axis is free; the largest of its weights is made positive.
    """
    centred_ND = np.asarray(rows_ND, np.float64) - np.mean(rows_ND, axis=0, dtype=np.float64)
    _, scales, axes = np.linalg.svd(centred_ND, full_matrices=False)
    axes_2D = np.zeros((2, centred_ND.shape[1]))
    axes_2D[: min(2, len(axes))] = axes[:2]
    largest = np.abs(axes_2D).argmax(axis=1)
    axes_2D *= np.where(axes_2D[np.arange(2), largest] < 0, -1, 1)[:, None]
    total = float((scales**2).sum())
    shares = np.zeros(2)
    shares[: min(2, len(scales))] = scales[:2] ** 2 / total if total else 0
    return centred_ND @ axes_2D.T, shares


def pca(
    vectors: WordVectors,
    items: Sequence[str | tuple[str, str]],
    path: Paths,
    *,
    title: str = "",
    unit: bool = True,
) -> Figure:
    """Draw words on the plane of their largest variance; a pair is joined by a dashed line.

    `items` are words, pairs such as `("France", "Paris")`, or both; `path` ends in .png or .svg,
    and may be several. Vectors are brought to length one first (`unit`): lengths tell mostly how
    frequent a word is, and would fill the first component.
    """
    paths = check_paths(path)
    pairs = [(item[0], item[1]) for item in items if not isinstance(item, str)]
    singles = [item for item in items if isinstance(item, str)]
    words = list(dict.fromkeys([word for pair in pairs for word in pair] + singles))
    if len(words) < 3:
        raise OptionError(f"A PCA picture needs three words or more, not {len(words)}.")
    rows_ND = np.asarray(vectors[words], np.float64)
    if unit:
        rows_ND = rows_ND / np.maximum(np.linalg.norm(rows_ND, axis=1, keepdims=True), 1e-30)
    points_N2, shares = project(rows_ND)
    place = dict(zip(words, points_N2, strict=True))
    firsts = {first for first, _ in pairs}
    colors = [(BLUE if word in firsts else RED) if pairs else BLUE for word in words]
    for word in singles:
        if pairs and not any(word in pair for pair in pairs):
            colors[words.index(word)] = FAINT
    with styled([*words, title]):
        figure = new_figure(9, 6.8)
        axes = figure.add_axes((0.055, 0.065, 0.92, 0.865 if title else 0.91))
        lines = [(place[first], place[second]) for first, second in pairs]
        for start, end in lines:
            axes.plot(
                *zip(start, end, strict=True), color="#b9b9c2", lw=0.9, ls=(0, (4, 3)), zorder=1
            )
        axes.scatter(points_N2[:, 0], points_N2[:, 1], s=22, c=colors, linewidths=0, zorder=3)
        _frame(axes, shares, title)
        _label(figure, axes, words, points_N2, colors, lines)
        save(figure, paths)
    return figure


def _frame(axes: Axes, shares: np.ndarray, title: str) -> None:
    axes.margins(0.1, 0.08)
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(f"first component, {shares[0]:.0%} of the variance", loc="left", labelpad=7)
    axes.set_ylabel(f"second component, {shares[1]:.0%}", loc="bottom", labelpad=7)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title, pad=12)


def _label(
    figure: Figure,
    axes: Axes,
    words: Sequence[str],
    points_N2: np.ndarray,
    colors: Sequence[str],
    lines: Sequence[tuple[np.ndarray, np.ndarray]],
) -> None:
    size_pt = 10.0 if len(words) <= 40 else 8.0 if len(words) <= 90 else 6.5
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    probes = [figure.text(0, 0, word, fontsize=size_pt) for word in words]
    extents = [probe.get_window_extent(renderer) for probe in probes]
    sizes_N2 = np.array([(extent.width, extent.height) for extent in extents])
    for probe in probes:
        probe.remove()
    # matplotlib settles the limits when it draws; the labels need them now and for good.
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    to_pixels = axes.transData.transform
    pixels_N2 = to_pixels(points_N2)
    along = np.linspace(0.08, 0.92, 24)[:, None]
    dots = [start * (1 - along) + end * along for start, end in lines]
    centres_N2 = place_labels(
        pixels_N2,
        sizes_N2,
        axes.get_window_extent().extents,
        obstacles_M2=to_pixels(np.concatenate(dots)) if dots else None,
    )
    leader = {"arrowstyle": "-", "color": "#c9c9d0", "lw": 0.6, "shrinkA": 0, "shrinkB": 2}
    offsets_N2 = centres_N2 - pixels_N2
    # A label that had to move away shows with a thin line where it belongs.
    is_far = (np.abs(offsets_N2) > sizes_N2 / 2 + 9).any(axis=1)
    for word, point, color, offset, far in zip(
        words, points_N2, colors, offsets_N2, is_far, strict=True
    ):
        # Offsets in points, not pixels, so that a file of another resolution keeps the places.
        axes.annotate(
            word, tuple(point), tuple(offset * 72 / figure.dpi), textcoords="offset points",
            ha="center", va="center", fontsize=size_pt, color=FAINT if color == FAINT else INK,
            zorder=4, arrowprops=leader if far else None,
        )  # fmt: skip

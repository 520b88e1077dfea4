"""PCA: the two directions in which words differ most, as a map with labels. N words, D width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.notebook import cell_width
from sememe.plots.style import BLUE, FAINT, INK, RED, Paths, check_paths, picture, spoken

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sememe.vectors import WordVectors

_ANGLES = np.radians([0, 180, 90, 270, 45, 135, 225, 315, 22, 158, 202, 338])
_GAPS = (4.0, 11.0, 20.0, 32.0, 46.0)
_NUM_SWEEPS = 4


def _overlap(centre_C2: np.ndarray, size: np.ndarray, boxes_N4: np.ndarray) -> np.ndarray:
    """Area that boxes of one size at C places share with N boxes (left, bottom, right, top)."""
    low, high = (centre_C2 - size / 2)[:, None], (centre_C2 + size / 2)[:, None]
    sides_CN2 = np.minimum(high, boxes_N4[:, 2:]) - np.maximum(low, boxes_N4[:, :2])
    return np.maximum(sides_CN2, 0).prod(axis=2)


def _candidates(point: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres around a point, nearest first, each with a small cost for its distance and order."""
    directions = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
    centres = [point + directions * (size / 2 + gap) for gap in _GAPS]
    costs = [gap * 2.0 + np.arange(len(_ANGLES)) * 0.5 for gap in _GAPS]
    return np.concatenate(centres), np.concatenate(costs)


def place_labels(
    points_N2: np.ndarray,
    sizes_N2: np.ndarray,
    frame: tuple[float, float, float, float],
    *,
    obstacles_M2: np.ndarray | None = None,
) -> np.ndarray:
    """Choose the centre of each label next to its point, inside `frame` (left, bottom, right, top).

    Labels move one after another to the cheapest position around their point, several times;
    `obstacles_M2` are further points to keep free, such as the lines between pairs.
    """
    dot = 4.0
    spots = points_N2 if obstacles_M2 is None else np.concatenate([points_N2, obstacles_M2])
    spot_boxes = np.concatenate([spots - dot, spots + dot], axis=1)
    centres = points_N2 + np.array([1.0, 0.0]) * (sizes_N2 / 2 + _GAPS[0])
    low, high = np.array(frame[:2]), np.array(frame[2:])
    for _ in range(_NUM_SWEEPS):
        before = centres.copy()
        for index, (point, size) in enumerate(zip(points_N2, sizes_N2, strict=True)):
            places, cost = _candidates(point, size)
            others = np.arange(len(centres)) != index
            boxes = np.concatenate([centres - sizes_N2 / 2, centres + sizes_N2 / 2], axis=1)[others]
            cost = cost + 3.0 * _overlap(places, size + 2, boxes).sum(axis=1)
            cost += 3.0 * _overlap(places, size, spot_boxes).sum(axis=1)
            outside = np.maximum(low - (places - size / 2), 0) + np.maximum(
                places + size / 2 - high, 0
            )
            cost += 1e3 * outside.sum(axis=1)
            centres[index] = places[np.argmin(cost)]
        if np.array_equal(before, centres):
            break
    return centres


def project(rows_ND: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project centred rows on their first two principal axes: (N, 2) and the explained variances.

    The sign of an axis is arbitrary; its largest weight is made positive.
    """
    centred_ND = np.asarray(rows_ND, np.float64) - np.mean(rows_ND, axis=0, dtype=np.float64)
    if len(centred_ND) > 4 * centred_ND.shape[1]:
        # The same axes from the (D, D) products, many times faster for 100,000 rows.
        squares, columns = np.linalg.eigh(centred_ND.T @ centred_ND)
        scales, axes = np.sqrt(np.maximum(squares[::-1], 0)), columns.T[::-1]
    else:
        _, scales, axes = np.linalg.svd(centred_ND, full_matrices=False)
    axes_2D = np.zeros((2, centred_ND.shape[1]))
    axes_2D[: min(2, len(axes))] = axes[:2]
    largest = np.abs(axes_2D).argmax(axis=1)
    axes_2D *= np.where(axes_2D[np.arange(2), largest] < 0, -1, 1)[:, None]
    total = float((scales**2).sum())
    shares = np.zeros(2)
    shares[: min(2, len(scales))] = scales[:2] ** 2 / total if total else 0
    return centred_ND @ axes_2D.T, shares


class Layout(NamedTuple):
    """A picture in pixels, y downwards: its size, its points, and labels with their centres."""

    width: float
    height: float
    points_N2: np.ndarray
    labels: list[str]  # long ones shortened
    centres_N2: np.ndarray


_LONGEST_LABEL = 24  # columns of a terminal
_LETTER, _LINE = 8.2, 16.0  # pixels of a letter and of a line at a size of 13
_MARGIN = np.array([56.0, 26.0])


def _shortened(text: str) -> str:
    while cell_width(text) > _LONGEST_LABEL:
        text = text[:-2] + "…"
    return text


def lay_out(
    points_N2: np.ndarray,
    labels: Sequence[str],
    lines: Sequence[tuple[int, int]] = (),
    *,
    width: float = 640.0,
    heights: tuple[float, float] = (280.0, 480.0),
) -> Layout:
    """Scale points alike in both directions into a picture, and place labels free of `lines`."""
    low_2, high_2 = points_N2.min(axis=0), points_N2.max(axis=0)
    span_2 = np.maximum(high_2 - low_2, 1e-12)
    room_2 = np.array([width, heights[1]]) - 2 * _MARGIN
    scale = float((room_2 / span_2).min()) if (high_2 > low_2).any() else 1.0
    height = float(np.clip(span_2[1] * scale + 2 * _MARGIN[1], *heights))
    middle_2 = np.array([width, height]) / 2
    pixels_N2 = middle_2 + (points_N2 - (low_2 + high_2) / 2) * scale * np.array([1.0, -1.0])
    short = [_shortened(label[:200]) for label in labels]
    sizes_N2 = np.array([(_LETTER * max(1, cell_width(label)), _LINE) for label in short])
    along = np.linspace(0.08, 0.92, 16)[:, None]
    dots = [pixels_N2[start] * (1 - along) + pixels_N2[end] * along for start, end in lines]
    centres_N2 = place_labels(
        pixels_N2, sizes_N2, (2.0, 2.0, width - 2, height - 2),
        obstacles_M2=np.concatenate(dots) if dots else None,
    )  # fmt: skip
    return Layout(width, height, pixels_N2, short, centres_N2)


# The mark of each color, for readers who cannot tell the colors by themselves.
_SHAPES = {BLUE: "o", RED: "D", FAINT: "s"}


def pca(
    vectors: WordVectors,
    items: Sequence[str | tuple[str, str]],
    path: Paths,
    *,
    title: str = "",
    unit: bool = True,
) -> Figure:
    """Draw words on their first two principal components; pairs are joined by dashed lines.

    `items` are words, pairs such as `("France", "Paris")`, or both; `path` ends in .png or .svg,
    and may be several. Vectors are normalized first (`unit`): their norms mostly reflect word
    frequency, and would dominate the first component.
    """
    paths = check_paths(path)
    pairs = [(item[0], item[1]) for item in items if not isinstance(item, str)]
    singles = [item for item in items if isinstance(item, str)]
    words = list(dict.fromkeys([word for pair in pairs for word in pair] + singles))
    if len(words) < 3:
        raise OptionError(f"A PCA picture needs three words or more, not {len(words)}.")
    rows_ND = np.asarray(vectors.query_vectors(words), np.float64)
    if unit:
        rows_ND = rows_ND / np.maximum(np.linalg.norm(rows_ND, axis=1, keepdims=True), 1e-30)
    points_N2, shares = project(rows_ND)
    place = dict(zip(words, points_N2, strict=True))
    # By the place in a pair, perhaps both: the first counts.
    firsts, seconds = ({pair[side] for pair in pairs} for side in (0, 1))
    colors = [BLUE if word in firsts or not pairs else RED if word in seconds else FAINT
              for word in words]  # fmt: skip
    named = ", ".join([*(f"{first} – {second}" for first, second in pairs), *singles])
    told = f"{len(words):,} words on their first two principal components. {named}"
    with picture(paths, [*words, title], 9, 6.8, told=told) as figure:
        axes = figure.add_axes((0.055, 0.065, 0.92, 0.865 if title else 0.91))
        lines = [(place[first], place[second]) for first, second in pairs]
        for start, end in lines:
            axes.plot(
                *zip(start, end, strict=True), color="#b9b9c2", lw=0.9, ls=(0, (4, 3)), zorder=1
            )
        for color, shape in _SHAPES.items():
            own_N2 = points_N2[[one == color for one in colors]]
            axes.scatter(
                own_N2[:, 0], own_N2[:, 1], s=24, c=color, marker=shape, linewidths=0, zorder=3
            )
        axes.margins(0.1, 0.08)
        axes.set(xticks=[], yticks=[])
        first, second = (f"{share:.0%}" for share in shares[:2])
        across = spoken(f"first component, {first} of the variance")
        axes.set_xlabel(across, loc="left", labelpad=7)
        axes.set_ylabel(spoken(f"second component, {second}"), loc="bottom", labelpad=7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(title, pad=12)
        label_points(figure, axes, words, points_N2, colors, lines)
    return figure


def label_points(
    figure: Figure,
    axes: Axes,
    words: Sequence[str],
    points_N2: np.ndarray,
    colors: Sequence[str],
    lines: Sequence[tuple[np.ndarray, np.ndarray]],
) -> None:
    """Write the labels of points beside them, free of each other and of lines."""
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


_MOST_LABELS = 30


def draw_topics(
    rows_ND: np.ndarray, topics_N: np.ndarray, labels: Mapping[int, str], path: Paths
) -> Figure:
    """Draw rows on the plane in which the middles of their topics differ most.

    Each row is a dot in the color of its topic, gray without one (0); labels, of the first thirty
    topics, are near the middle of each.
    """
    import matplotlib

    paths = check_paths(path)
    rows_ND = np.asarray(rows_ND, np.float64)
    numbers = [number for number in labels if (topics_N == number).any()]
    middles_KD = np.stack([rows_ND[topics_N == number].mean(axis=0) for number in numbers])
    center_D = middles_KD.mean(axis=0)
    _, _, axes_KD = np.linalg.svd(middles_KD - center_D, full_matrices=False)
    axes_2D = np.zeros((2, rows_ND.shape[1]))
    axes_2D[: min(2, len(axes_KD))] = axes_KD[:2]
    largest = np.abs(axes_2D).argmax(axis=1)
    axes_2D *= np.where(axes_2D[np.arange(2), largest] < 0, -1, 1)[:, None]
    points_N2 = (rows_ND - center_D) @ axes_2D.T
    colors = matplotlib.colormaps["tab20"]
    told = f"{len(rows_ND):,} rows in {len(numbers):,} topics. " + "; ".join(labels.values())
    with picture(paths, labels.values(), 9, 6.8, told=told) as figure:
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
        for number in (0, *numbers):
            own_N2 = points_N2[topics_N == number]
            color = FAINT if not number else colors((number - 1) % 20)
            axes.scatter(own_N2[:, 0], own_N2[:, 1], s=5, color=color, alpha=0.6, linewidths=0)
        axes.set(xticks=[], yticks=[])
        axes.margins(0.08)
        axes.spines[:].set_visible(False)
        named = numbers[:_MOST_LABELS]
        middles_K2 = (middles_KD[: len(named)] - center_D) @ axes_2D.T
        label_points(figure, axes, [labels[n] for n in named], middles_K2, [INK] * len(named), [])
    return figure

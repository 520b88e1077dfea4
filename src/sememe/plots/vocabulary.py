"""The map of a vocabulary: its most frequent words as points. N words, D dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.plots.projection import label_points
from sememe.plots.style import BLUE, INK, Paths, check_paths, picture
from sememe.vectors.search import unit_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 100_000
_MOST_LABELS = 60
_LONGEST_LABEL, _LONGEST_NAME = 24, 60  # letters in a picture
_NUM_NAMES = 3  # points that name a cluster


class Points(NamedTuple):
    """What is laid out: unit vectors with their labels, the most frequent first."""

    units_ND: np.ndarray
    labels: list[str]
    counts: list[int]  # empty if nobody has counted


def word_points(vectors: Any, num: int) -> Points:
    """The `num` most frequent words of a vocabulary, and their unit vectors."""
    if vectors.is_one_hot:
        raise OptionError("One-hot vectors have no map: all words are equally far from each other.")
    counts = np.asarray(vectors.vocabulary.counts)
    order = np.argsort(-counts, kind="stable") if counts.any() else np.arange(len(counts))
    ids = order[:num]
    labels = [vectors.vocabulary[word_id] for word_id in ids.tolist()]
    if len(ids) < 3:
        raise OptionError(f"The model has {len(ids)} words: too few for a map.")
    units_ND = unit_rows(vectors.vectors[ids]).astype(np.float32)
    return Points(units_ND, labels, counts[ids].tolist() if counts.any() else [])


def cluster_points(
    units_ND: np.ndarray, labels: list[str], num: int, seed: int = 1
) -> tuple[np.ndarray, list[list[str]]]:
    """The cluster of each point by k-means, the largest first, and the points nearest its mean."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    num = min(num, len(units_ND))
    # Sums of several threads would differ in their last digits from run to run.
    with threadpool_limits(1, user_api="openmp"):
        engine = MiniBatchKMeans(num, random_state=seed, n_init=3, batch_size=4_096).fit(units_ND)
    order = np.argsort(-np.bincount(engine.labels_, minlength=num), kind="stable")
    numbers = np.argsort(order)[engine.labels_]
    names = []
    for number, cluster in enumerate(order):
        members = np.flatnonzero(numbers == number)
        # Vectors have length 1: the largest product is the nearest.
        near = np.argsort(-(units_ND[members] @ engine.cluster_centers_[cluster]), kind="stable")
        names.append([labels[index] for index in members[near[:_NUM_NAMES]]])
    return numbers, names


def draw_vocabulary(
    labels: Sequence[str],
    points_N2: np.ndarray,
    path: Paths,
    *,
    title: str = "",
    groups_N: np.ndarray | None = None,
    names: Sequence[str] = (),
    what: str = "words",
) -> Figure:
    """Draw points at their places as dots; the first sixty have their labels.

    `groups_N` are numbers of groups, each in a color of its own, with `names` as legend.
    """
    paths = check_paths(path)
    points_N2 = np.asarray(points_N2, np.float64)
    named = [_short(label) for label in labels[:_MOST_LABELS]]
    told = f"A map of {len(labels):,} {what}. {', '.join(named)}"
    shown = [_short(name, _LONGEST_NAME) for name in names]
    with picture(paths, [*named, *shown, title], 9, 6.8, told=told) as figure:
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.91 if title else 0.96))
        for group, color in _grouped(groups_N):
            places = points_N2 if groups_N is None else points_N2[groups_N == group]
            axes.scatter(
                places[:, 0], places[:, 1], s=4 if groups_N is None else 8, color=color,
                alpha=0.35 if groups_N is None else 0.6, linewidths=0,
                label=shown[group] if shown else None,
            )  # fmt: skip
        axes.set(xticks=[], yticks=[])
        axes.margins(0.05)
        axes.spines[:].set_visible(False)
        axes.set_title(title, pad=12)
        if shown:
            axes.legend(loc="best", fontsize=8, markerscale=3, framealpha=0.9)
        label_points(figure, axes, named, points_N2[: len(named)], [INK] * len(named), [])
    return figure


def _grouped(groups_N: np.ndarray | None) -> list[tuple[int, Any]]:
    """The groups with their colors."""
    if groups_N is None:
        return [(0, BLUE)]
    from matplotlib import colormaps

    colors = colormaps["tab20" if groups_N.max() > 9 else "tab10"]
    return [(group, colors(group)) for group in range(int(groups_N.max()) + 1)]


def _short(label: str, longest: int = _LONGEST_LABEL) -> str:
    return label if len(label) <= longest else label[: longest - 1] + "…"

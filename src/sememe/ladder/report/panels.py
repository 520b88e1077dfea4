"""One small chart: a frame with axes, marks and labels, as SVG that takes its colors from CSS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sememe.ladder.report.figures import fitted, text_width
from sememe.ladder.report.markup import Markup, tag
from sememe.ladder.report.scales import Scale
from sememe.plots.labels import place_labels

WIDTH, HEIGHT = 340.0, 264.0
LABEL_SIZE = 10.5


@dataclass
class Panel:
    """A picture under way: its title, its size and the shapes drawn so far."""

    title: str
    width: float = WIDTH
    height: float = HEIGHT
    note: str = ""
    parts: list[Markup] = field(default_factory=list)

    def add(self, *parts: Markup) -> None:
        """Draw shapes above those already there."""
        self.parts.extend(parts)

    def svg(self, *, language: str = "", **place: float) -> Markup:
        """The picture as an element of a page, or inside another picture at x and y."""
        return tag(
            "svg",
            *([] if place else [tag("title", self.title)]),
            *self.parts,
            class_="chart",
            viewbox=f"0 0 {self.width:g} {self.height:g}",
            width=self.width,
            height=self.height,
            role=None if place else "img",
            aria_label=None if place else f"{self.title}. {self.note}".strip(),
            lang=language or None,
            **place,
        )


@dataclass(frozen=True)
class Spot:
    """A mark with a label: where, which shape and color, and what a pointer reads."""

    x: float
    y: float
    label: str
    mark: str
    color: str
    title: str = ""


def mark(shape: str, x: float, y: float, color: str, title: str = "", size: float = 4.4) -> Markup:
    """One of six shapes that are told apart without color."""
    hover = tag("title", title) if title else None
    drawn = f"mark {color}"
    if shape == "circle":
        return tag("circle", hover, cx=x, cy=y, r=size, class_=drawn)
    if shape == "ring":
        return tag("circle", hover, cx=x, cy=y, r=size - 0.6, class_=f"{drawn} hollow")
    if shape == "square":
        side = size * 0.9
        return tag(
            "rect", hover, x=x - side, y=y - side, width=2 * side, height=2 * side, class_=drawn
        )
    arms = {
        "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
        "triangle": ((0, -1.25), (1.15, 0.85), (-1.15, 0.85)),
        "cross": ((-1, -1), (1, 1), (0, 0), (1, -1), (-1, 1), (0, 0)),
    }[shape]
    points = " ".join(f"{x + size * across:.1f},{y + size * down:.1f}" for across, down in arms)
    kind = f"{drawn} stroked" if shape == "cross" else drawn
    return tag("polygon", hover, points=points, class_=kind)


def text(
    x: float, y: float, content: str, *, kind: str, anchor: str = "start", turn: float = 0
) -> Markup:
    """A line of text; `kind` is a class of chart.css."""
    return tag(
        "text",
        content,
        x=x,
        y=y,
        class_=kind,
        text_anchor=None if anchor == "start" else anchor,
        transform=f"rotate({turn:g} {x:.1f} {y:.1f})" if turn else None,
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def heading(panel: Panel, content: str, below: str = "") -> None:
    """Write the panel's own heading at its top left, perhaps with a softer line below."""
    panel.add(text(0, 13, fitted(content, panel.width, 14.5), kind="head"))
    if below:
        panel.add(text(0, 28, fitted(below, panel.width, 11), kind="axis"))


def axes(panel: Panel, across: Scale, up: Scale, *, right: float, x_name: str = "") -> None:
    """Draw faint rules at the ticks of the height up to `right`, ticks below, and a name there."""
    left, bottom = across.start, up.start
    for value, label in up.ticks:
        place = up(value)
        panel.add(line(left, place, right, place, "level"))
        panel.add(text(left - 6, place + 3.5, label, kind="tick", anchor="end"))
    panel.add(line(left, bottom, right, bottom, "rule"))
    for value, label in across.ticks:
        place = across(value)
        panel.add(line(place, bottom, place, bottom + 4, "rule"))
        panel.add(text(place, bottom + 15, label, kind="tick", anchor="middle"))
    if x_name:
        panel.add(text(right, bottom + 29, x_name, kind="axis", anchor="end"))


def place_spots(
    panel: Panel,
    spots: Sequence[Spot],
    frame: tuple[float, float, float, float],
    *,
    size: float = LABEL_SIZE,
    obstacles: Sequence[tuple[float, float]] = (),
) -> None:
    """Draw marks with their labels beside them, none over another as far as there is room.

    `frame` is (left, top, right, bottom); `obstacles` are further places to keep free.
    """
    if not spots:
        return
    under = len(panel.parts)  # leaders lie under all marks
    for spot in spots:
        panel.add(mark(spot.mark, spot.x, spot.y, spot.color, spot.title))
    spots = _merged(spots)
    points_N2 = np.array([(spot.x, spot.y) for spot in spots])
    labels = [fitted(spot.label, 0.6 * panel.width, size) for spot in spots]
    wide_N = np.array([text_width(label, size) for label in labels])
    # Some air, because marks have an extent that place_labels does not know.
    sizes_N2 = np.stack([wide_N + 7, np.full(len(spots), size * 1.1 + 2)], axis=1)
    others_M2 = np.array(obstacles) if len(obstacles) else None
    centres_N2 = place_labels(points_N2, sizes_N2, frame, obstacles_M2=others_M2)
    offsets_N2 = np.abs(centres_N2 - points_N2) - sizes_N2 / 2
    leaders = [
        line(spot.x, spot.y, float(x), float(y), "leader")
        for spot, (x, y), offset in zip(spots, centres_N2, offsets_N2, strict=True)
        if offset.max() > 7
    ]
    panel.parts[under:under] = leaders
    for label, (x, y), wide, spot in zip(labels, centres_N2, wide_N, spots, strict=True):
        panel.add(_label(label, float(x), float(y), float(wide), spot, size))


def _merged(spots: Sequence[Spot]) -> list[Spot]:
    """Give marks that hide each other one label with all their names."""
    kept: list[Spot] = []
    for spot in spots:
        close = [
            index
            for index, other in enumerate(kept)
            if abs(other.x - spot.x) < 3 and abs(other.y - spot.y) < 3
        ]
        if not close:
            kept.append(spot)
            continue
        first = kept[close[0]]
        kept[close[0]] = replace(
            first, label=f"{first.label}, {spot.label}", title=f"{first.title}; {spot.title}"
        )
    return kept


def _label(label: str, x: float, y: float, wide: float, spot: Spot, size: float) -> Markup:
    # Anchored on the side of its mark, a label that is wider than guessed grows away from it.
    side = 0 if abs(x - spot.x) < wide / 4 else 1 if x > spot.x else -1
    return tag(
        "text",
        label,
        tag("title", spot.title) if spot.title else None,
        x=x - side * wide / 2,
        y=y + size * 0.35,
        class_="label small" if size < LABEL_SIZE else "label",
        text_anchor={0: "middle", 1: None, -1: "end"}[side],
    )


def legend(entries: Sequence[tuple[str, str, str]]) -> Markup:
    """A line of marks with what they mean: (mark, color, words)."""
    items = [
        tag(
            "li",
            tag(
                "svg",
                mark(shape, 6, 6, color),
                class_="chart key",
                viewbox="0 0 12 12",
                width=12,
                height=12,
                aria_hidden="true",
            ),
            words,
        )
        for shape, color, words in entries
    ]
    return tag("ul", *items, class_="legend")


def legend_row(panel: Panel, entries: Sequence[tuple[str, str, str]], x: float, y: float) -> None:
    """The same inside a picture."""
    for shape, color, words in entries:
        panel.add(mark(shape, x + 5, y - 4, color), text(x + 14, y, words, kind="axis"))
        x += 14 + text_width(words, 11) + 16

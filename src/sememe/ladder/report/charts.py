"""One small chart as SVG: elements, colors, scales, axes, marks and labels.

Text from a corpus is always escaped. Scales have ticks at round values.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from typing import Literal

import numpy as np
from markupsafe import Markup, escape

from sememe.ladder.report.formatting import clean, duration, fitted, megabytes, text_width
from sememe.localization import say
from sememe.plots.projection import place_labels
from sememe.plots.style import FAINT, INK, PAPER


def tag(name: str, /, *children: str | None, **attributes: str | int | float | None) -> Markup:
    """Build one SVG element; `class_` is class, `font_size` font-size, None is omitted.

    A child that is markup is unchanged; text is cleaned and escaped.
    """
    words = [name]
    for key, value in attributes.items():
        if value is not None:
            attribute = key.rstrip("_").replace("_", "-")
            attribute = attribute if attribute != "viewbox" else "viewBox"
            text = _number(value) if isinstance(value, float) else clean(str(value))
            words.append(f'{attribute}="{escape(text)}"')
    inner = "".join(escaped(child) for child in children if child is not None)
    return Markup(f"<{' '.join(words)}>{inner}</{name}>")


def escaped(text: str) -> Markup:
    """Markup as it is, or text cleaned and escaped."""
    return text if isinstance(text, Markup) else escape(clean(text))


def _number(value: float) -> str:
    """A coordinate; two decimals are finer than any screen."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value == value else "0"


Theme = Literal["auto", "light", "dark"]

# `soft` is for small text: plots.style.FAINT has too little contrast on paper.
LIGHT = {
    "paper": PAPER, "card": "#ffffff", "ink": INK, "soft": "#61616c", "faint": FAINT,
    "line": "#e3e3e0", "shade": "#f3f3ef",
    "blue": "#0770ca", "red": "#9a3528", "ochre": "#8f6a0a", "green": "#2f7d57",
    "violet": "#7c5096",
    "slate": "#5c6370", "teal": "#0b7a85", "pink": "#b8387f", "brown": "#7a4f2c",
    "lime": "#5b7d12",
}  # fmt: skip
DARK = {
    "paper": "#16171b", "card": "#1c1d22", "ink": "#e6e6e3", "soft": "#a3a4ae", "faint": "#7d7e89",
    "line": "#33343b", "shade": "#24252b",
    "blue": "#70b5f8", "red": "#e98872", "ochre": "#d8b152", "green": "#82d1a5",
    "violet": "#a37bbf", "slate": "#abb0bd", "teal": "#56c6cf", "pink": "#f08fc5",
    "brown": "#ad8a72", "lime": "#abcb57",
}  # fmt: skip

FAMILIES = {
    "counts": ("Counts", "square", "slate"),
    "static": ("Static vectors", "circle", "blue"),
    "language model": ("Language models", "triangle", "ochre"),
    "contextual": ("Contextual models", "diamond", "red"),
}

# Models, groups of words and senses cycle through these. The first six differ for every kind of
# color blindness; the others have the mark of a color that they cannot be taken for.
SERIES = ("blue", "red", "green", "ochre", "violet", "slate", "brown", "teal", "lime", "pink")
NUM_SAFE = 6
MARKS = ("circle", "diamond", "square", "triangle", "cross", "ring")


def family_style(family: str) -> tuple[str, str, str]:
    """The title of a family, its mark and its color; unknown families have defaults."""
    title, mark, color = FAMILIES.get(family, (family.capitalize(), "ring", "violet"))
    return say(title), mark, color


OPEN = "open "  # before the name of a mark: its outline alone


def model_styles(rungs: Sequence[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The mark and color of each model, given as (name, family): the family decides the shape.

    Within a family colors differ, and every second mark is open.
    """
    found: dict[str, tuple[str, str]] = {}
    counts: dict[str, int] = {}
    for name, family in rungs:
        _, shape, first = family_style(family)
        index = counts[family] = counts.get(family, -1) + 1
        color = SERIES[(SERIES.index(first) + index) % NUM_SAFE]
        found[name] = OPEN * (index % 2) + shape, color
    return found


def colors(theme: Theme) -> str:
    """The colors as CSS variables; "auto" follows the reader's screen preference."""
    if theme != "auto":
        return _variables(LIGHT if theme == "light" else DARK, theme)
    dark = _variables(DARK, "dark")
    # Paper is light whatever the screen is.
    return (
        f"{_variables(LIGHT, 'light')}\n@media screen and (prefers-color-scheme: dark) {{{dark}}}"
    )


def _variables(values: dict[str, str], scheme: str) -> str:
    lines = "".join(f"--{name}:{value};" for name, value in values.items())
    return f":root{{color-scheme:{scheme};{lines}}}"


def template(name: str) -> str:
    """Read a template file next to this module."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


_TIMES = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 108000, 360000)
_FINE_TIMES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 1200, 1800, 3600,
               7200, 18000, 36000, 72000, 180000)  # fmt: skip
_TICK_ROOM = 38.0  # from one text below an axis to the next


@dataclass(frozen=True)
class Scale:
    """A range of values mapped to a range of coordinates; `ticks` are values with labels."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[tuple[float, str]]
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of a value; values outside are at the edge."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def linear(
    values: Sequence[float],
    start: float,
    end: float,
    *,
    label: Callable[[float], str] | None = None,
    num_ticks: int = 4,
    pad: float = 0.08,
) -> Scale:
    """A linear scale from the smallest to the largest value and a little beyond."""
    low, high = min(values), max(values)
    span = high - low or max(abs(high) * 0.1, 1.0)
    low, high = low - pad * span, high + pad * span
    step = _step((high - low) / num_ticks)
    first, last = math.ceil(low / step), math.floor(high / step)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    show = label or (lambda value: f"{value:.{digits}f}".replace("-", "−"))
    ticks = [(index * step, show(index * step + 0.0)) for index in range(first, last + 1)]
    return Scale(low, high, start, end, ticks)


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(size * power for size in (1, 2, 5, 10) if size * power >= rough * 0.999)


def logarithmic(
    values: Sequence[float],
    start: float,
    end: float,
    *,
    floor: float,
    candidates: Sequence[Sequence[float]],
    label: Callable[[float], str],
    pad: float = 0.08,
) -> Scale:
    """A logarithmic scale; values below `floor` are drawn at it.

    Its ticks are of the first `candidates` of which three or more fit.
    """
    kept = [max(value, floor) for value in values]
    low, high = min(kept), max(kept)
    # A narrow range would exaggerate small differences.
    while high / low < 4:
        low, high = low / 1.1, high * 1.1
    ratio = (high / low) ** pad
    low, high = low / ratio, high * ratio
    scale = Scale(low, high, start, end, [], is_log=True)
    choices = [_spaced(scale, [tick for tick in one if low <= tick <= high]) for one in candidates]
    chosen = next((one for one in choices if len(one) > 2), max(choices, key=len))
    ticks = [(tick, label(tick)) for tick in chosen]
    if any(value < floor for value in values):
        ticks = [(floor, "≤ " + label(floor)), *(tick for tick in ticks if tick[0] > floor * 1.5)]
    return replace(scale, ticks=ticks)


def _spaced(scale: Scale, ticks: Sequence[float]) -> list[float]:
    """The ticks that do not overlap."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or abs(scale(tick) - scale(kept[-1])) >= _TICK_ROOM:
            kept.append(tick)
    return kept


def _decades(steps: Sequence[int]) -> list[float]:
    return [step * 10.0**power for power in range(-2, 10) for step in steps]


# Seconds, minutes and hours; megabytes; perplexities: all by ratio.
time_scale = partial(logarithmic, floor=0.1, candidates=(_TIMES, _FINE_TIMES), label=duration)
size_scale = partial(
    logarithmic,
    floor=0.1,
    candidates=(_decades((1,)), _decades((1, 3)), _decades((1, 2, 5))),
    label=lambda value: megabytes(value).removesuffix(".0"),
)
ratio_scale = partial(
    logarithmic,
    floor=1.0,
    candidates=(_decades((1,)), _decades((1, 2, 5))),
    label=lambda value: f"{value:,.0f}",
)


def elapsed_scale(high: float, start: float, end: float) -> Scale:
    """Time from zero, evenly."""
    high = max(high, 1e-3)
    units = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 36000)
    fine = [0.001 * power for power in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    coarse = [86400.0 * power for power in (0.5, 1, 2, 5, 10, 20, 50)]
    every = [*fine, *units, *coarse]
    step = next((unit for unit in every if high / unit <= 4.2), high)
    ticks = [(index * step, _short(index * step)) for index in range(int(high / step) + 1)]
    return Scale(0.0, high, start, end, ticks)


def _short(seconds: float) -> str:
    if seconds == 0:
        return "0"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.1 else duration(seconds)


WIDTH, HEIGHT = 340.0, 264.0
LABEL_SIZE = 10.5


@dataclass
class Panel:
    """A picture in progress: its title, its size and the shapes drawn so far."""

    title: str
    width: float = WIDTH
    height: float = HEIGHT
    note: str = ""
    parts: list[Markup] = field(default_factory=list)
    # The same as a table, for readers who cannot see the picture.
    headings: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list)

    def add(self, *parts: Markup) -> None:
        """Draw shapes above those already there."""
        self.parts.extend(parts)

    def svg(self, *, language: str = "", **place: float) -> Markup:
        """The picture as an element of a page, or inside another picture at x and y."""
        return tag(
            "svg",
            *([] if place else [tag("title", self.title)]),
            *([tag("desc", self.note)] if self.note and not place else []),
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
    """A mark with a label: position, shape, color, and tooltip."""

    x: float
    y: float
    label: str
    mark: str
    color: str
    title: str = ""


def mark(shape: str, x: float, y: float, color: str, title: str = "", size: float = 4.4) -> Markup:
    """One of six shapes that can be distinguished without color; "open circle" is an outline."""
    hover = tag("title", title) if title else None
    drawn = f"mark {color}" + " hollow" * shape.startswith(OPEN)
    shape = shape.removeprefix(OPEN)
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
    """Write the panel's heading at its top left, with an optional softer line below."""
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
    """Draw marks with their labels next to them, without overlap as far as there is room.

    `frame` is (left, top, right, bottom); `obstacles` are further areas to keep free.
    """
    if not spots:
        return
    under = len(panel.parts)  # leaders are under all marks
    panel.add(*(mark(spot.mark, spot.x, spot.y, spot.color, spot.title) for spot in spots))
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
        for index, other in enumerate(kept):
            if abs(other.x - spot.x) < 3 and abs(other.y - spot.y) < 3:
                label = say("{one}, {other}", one=other.label, other=spot.label)
                title = say("{one}; {other}", one=other.title, other=spot.title)
                kept[index] = replace(other, label=label, title=title)
                break
        else:
            kept.append(spot)
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


def legend_row(panel: Panel, entries: Sequence[tuple[str, str, str]], x: float, y: float) -> None:
    """A legend inside a picture: (mark, color, words)."""
    for shape, color, words in entries:
        panel.add(mark(shape, x + 5, y - 4, color), text(x + 14, y, words, kind="axis"))
        x += 14 + text_width(words, 11) + 16

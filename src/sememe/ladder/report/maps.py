"""Words, and one word's uses, on the plane: a panel a rung; coordinates in, panels out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sememe.ladder.report.figures import plural, shortened
from sememe.ladder.report.markup import tag
from sememe.ladder.report.panels import Panel, Spot, heading, mark, place_spots, text
from sememe.ladder.report.theme import MARKS, SERIES, family_look
from sememe.ladder.results import ContextsLook, Results, Rung, Use, UsePoint, WordsLook

_WIDTH, _HEIGHT = 340.0, 300.0
_FRAME = (6.0, 40.0, _WIDTH - 6, _HEIGHT - 6)  # left, top, right, bottom
_ONE = (190.0, 130.0)
# Vectors have length one before they are laid on the plane: less apart than this is rounding.
_ONE_POINT = 1e-5

Style = Mapping[str, tuple[str, str]]


def styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Give each group its mark and color, always both."""
    return {
        name: (MARKS[index % len(MARKS)], SERIES[index % len(SERIES)])
        for index, name in enumerate(dict.fromkeys(names))
    }


def style_entries(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """The marks and colors of groups for a legend."""
    return [(*look, name) for name, look in styles(names).items()]


def word_panels(results: Results, look: WordsLook) -> list[tuple[Rung, Panel]]:
    """Draw the same words in every rung that has them."""
    style = styles(list(look.groups))
    drawn = []
    for rung in results.rungs:
        known = [p for p in look.points.get(rung.name, []) if _is_finite(p.x, p.y)]
        if len(known) < 2:
            continue
        places = _fit([(p.x, p.y) for p in known], inner=(26, 12))
        spots = [
            Spot(x, y, p.word, *style.get(p.group, (MARKS[-1], SERIES[-1])), f"{p.word}: {p.group}")
            for p, (x, y) in zip(known, places, strict=True)
        ]
        panel = Panel(
            f"{plural(len(known), 'word')} in {rung.title}", _WIDTH, _HEIGHT, note=_told(look)
        )
        heading(panel, rung.title, family_look(rung.family)[0].lower())
        _ground(panel)
        place_spots(panel, spots, _FRAME, size=9.5)
        drawn.append((rung, panel))
    return drawn


def _told(look: WordsLook) -> str:
    return "; ".join(f"{name}: {', '.join(words)}" for name, words in look.groups.items())


def use_panels(results: Results, look: ContextsLook) -> list[tuple[Rung, Panel]]:
    """Draw every use of the ambiguous word, by sense; a static model has them in one point."""
    style = styles([use.sense for use in look.sentences])
    drawn = []
    for rung in results.rungs:
        known = [p for p in look.points.get(rung.name, []) if _is_finite(p.x, p.y)]
        if known:
            drawn.append((rung, _uses(rung, look, known, style)))
    return drawn


def is_one_point(look: ContextsLook, rung: Rung) -> bool:
    """Whether a rung has one and the same vector for every use."""
    known = [p for p in look.points.get(rung.name, []) if _is_finite(p.x, p.y)]
    return bool(known) and _extent(known) < _ONE_POINT


def _uses(rung: Rung, look: ContextsLook, known: list[UsePoint], style: Style) -> Panel:
    is_one = _extent(known) < _ONE_POINT
    told = (
        f"one vector for all {plural(len(known), 'use')}"
        if is_one
        else f"{plural(len(known), 'use')}, each with its own vector"
    )
    title = f"“{look.word}” in {rung.title}"
    panel = Panel(title, *(_ONE if is_one else (_WIDTH, _HEIGHT - 50)), note=told)
    heading(panel, rung.title, told)
    _ground(panel)
    if is_one:
        x, y = panel.width / 2, (26 + panel.height) / 2
        panel.add(
            tag("circle", tag("title", told), cx=x, cy=y, r=9, class_="mark slate hollow"),
            mark("circle", x, y, "slate", told, size=3),
            text(x, y + 25, look.word, kind="label", anchor="middle"),
        )
        return panel
    places = _fit([(p.x, p.y) for p in known], inner=(16, 16), height=panel.height)
    for point, (x, y) in zip(known, places, strict=True):
        shape, color = style.get(point.sense, (MARKS[-1], SERIES[-1]))
        panel.add(mark(shape, x, y, color, _use_title(look.sentences, point), size=5))
    return panel


def _use_title(sentences: Sequence[Use], point: UsePoint) -> str:
    known = 0 <= point.sentence < len(sentences)
    return f"{point.sense}: {excerpt(sentences[point.sentence])}" if known else point.sense


def excerpt(use: Use, room: int = 60) -> str:
    """The word with so many characters on either side."""
    before, word, after = excerpt_parts(use, room)
    return before + word + after


def excerpt_parts(use: Use, room: int = 60) -> tuple[str, str, str]:
    """What stands before the word, the word, and what stands behind it."""
    start = max(0, min(use.start, len(use.text)))
    end = max(start, min(use.end, len(use.text)))
    before, after = use.text[:start], use.text[end:]
    before = before if len(before) <= room else "…" + before[-room:].lstrip()
    return before, use.text[start:end], shortened(after, room)


def _ground(panel: Panel) -> None:
    panel.add(
        tag("rect", x=0.5, y=36.5, width=panel.width - 1, height=panel.height - 37, rx=6,
            class_="ground")
    )  # fmt: skip


def _is_finite(x: float, y: float) -> bool:
    return x is not None and y is not None and math.isfinite(x) and math.isfinite(y)


def _extent(points: Sequence[UsePoint]) -> float:
    xs, ys = [p.x for p in points], [p.y for p in points]
    return max(max(xs) - min(xs), max(ys) - min(ys))


def _fit(
    points: Sequence[tuple[float, float]],
    *,
    inner: tuple[float, float],
    height: float = _HEIGHT,
) -> list[tuple[float, float]]:
    """Bring points into the frame with one scale for both directions, so that distances hold."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    left, top, right, bottom = _FRAME
    bottom = height - 6
    room_x, room_y = right - left - 2 * inner[0], bottom - top - 2 * inner[1]
    scale = min(room_x / wide if wide else math.inf, room_y / high if high else math.inf)
    scale = scale if math.isfinite(scale) else 0.0
    mid_x, mid_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    return [
        ((left + right) / 2 + (x - mid_x) * scale, (top + bottom) / 2 - (y - mid_y) * scale)
        for x, y in points
    ]

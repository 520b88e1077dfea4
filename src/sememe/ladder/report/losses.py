"""Curves of the trainings: one panel a rung, because their losses are not of one kind."""

from __future__ import annotations

import math

from sememe.ladder.report.figures import count, duration
from sememe.ladder.report.markup import tag
from sememe.ladder.report.panels import Panel, axes, heading, line, text
from sememe.ladder.report.scales import elapsed_scale, linear
from sememe.ladder.report.theme import family_look
from sememe.ladder.results import Point, Results, Rung

_WIDTH, _HEIGHT = 250.0, 176.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, _WIDTH - 10, 40.0, _HEIGHT - 22
_MOST_POINTS = 200


def loss_panels(results: Results) -> list[tuple[Rung, Panel]]:
    """Draw the curve of every rung that kept one of two points or more."""
    drawn = []
    for rung in results.rungs:
        points = _finite(rung.history)
        if len(points) > 1:
            drawn.append((rung, _panel(rung, points)))
    return drawn


def _finite(history: list[Point]) -> list[Point]:
    known = [p for p in history if p.loss is not None and math.isfinite(p.loss)]
    return sorted((p for p in known if math.isfinite(p.seconds)), key=lambda p: p.seconds)


def thinned(points: list[Point], most: int = _MOST_POINTS) -> list[Point]:
    """At most so many points, the last among them."""
    every = max(1, math.ceil(len(points) / most))
    kept = points[::every]
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def _panel(rung: Rung, points: list[Point]) -> Panel:
    losses = [float(point.loss or 0.0) for point in points]
    first, last = losses[0], losses[-1]
    fell = f"from {first:.3g} to {last:.3g}"
    told = f"{fell} in {duration(points[-1].seconds)}"
    panel = Panel(f"Loss of {rung.title}", _WIDTH, _HEIGHT, note=told)
    # The axis says how long.
    heading(panel, rung.title, f"{fell}, {count(points[-1].tokens)} tokens")
    across = elapsed_scale(points[-1].seconds, _LEFT, _RIGHT)
    up = linear(losses, _BOTTOM, _TOP, num_ticks=3)
    axes(panel, across, up, right=_RIGHT)
    places = [(across(point.seconds), up(float(point.loss or 0.0))) for point in thinned(points)]
    color = family_look(rung.family)[2]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    panel.add(
        tag("polyline", tag("title", f"{rung.title}: {told}"), points=path, class_=f"curve {color}")
    )
    x, y = places[-1]
    panel.add(tag("circle", cx=x, cy=y, r=2.6, class_=f"mark {color}"))
    if last > first:
        panel.add(text(_RIGHT, _TOP - 4, "the loss rose", kind="tick", anchor="end"))
    if last == min(losses) == max(losses):
        panel.add(line(_LEFT, y, _RIGHT, y, "level"))
    return panel

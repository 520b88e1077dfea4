"""The charts of a ladder: score against cost, ranks, curves, words and uses, attention."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from sememe.ladder.report.charts import (
    HEIGHT,
    MARKS,
    SERIES,
    WIDTH,
    Panel,
    Scale,
    Spot,
    axes,
    elapsed_scale,
    family_style,
    heading,
    line,
    linear,
    mark,
    model_styles,
    place_spots,
    ratio_scale,
    size_scale,
    tag,
    text,
    time_scale,
)
from sememe.ladder.report.formatting import (
    cell_text,
    count,
    duration,
    has_spread,
    headline,
    joined,
    megabytes,
    plural,
    score,
    shortened,
    text_width,
    unit,
)
from sememe.ladder.report.tables import best_baseline, done_rungs, mean_ranks, numbers
from sememe.ladder.results import (
    Column,
    ContextsVisual,
    Results,
    Rung,
    Use,
    WordsVisual,
)
from sememe.localization import say

Cost = Literal["time", "size"]
COSTS: tuple[Cost, Cost] = ("time", "size")
Drawn = list[tuple[Rung, Panel]]
Place = tuple[float, float]

# ---- quality and cost ---------------------------------------------------------------------------

_LEFT, _RIGHT, _TOP, _BOTTOM = 38.0, WIDTH - 8, 48.0, HEIGHT - 34
# With one budget for all, many marks are at the right end: their labels need both sides.
_ROOM = 40.0
_LEAST_SPAN = 4.0  # of the scores of a panel, in percentage points


class _CostAxis(NamedTuple):
    name: str
    of: Callable[[Rung], float]
    show: Callable[[float], str]
    scale: Callable[[list[float], float, float], Scale]


_AXES: dict[Cost, _CostAxis] = {
    "time": _CostAxis("training time", lambda rung: rung.train_s, duration, time_scale),
    "size": _CostAxis(
        "megabytes", lambda rung: rung.megabytes, lambda mb: f"{megabytes(mb)} MB", size_scale
    ),
}


def rung_styles(results: Results) -> dict[str, tuple[str, str]]:
    """The mark and color of every rung, the same in all charts."""
    return model_styles([(rung.name, rung.family) for rung in results.rungs])


def rung_entries(results: Results) -> list[tuple[str, str, str]]:
    """The marks and colors of the trained rungs for a legend."""
    known = rung_styles(results)
    return [(*known[rung.name], rung.title) for rung in done_rungs(results)]


def with_cost(results: Results, cost: Cost) -> list[Rung]:
    """The trained rungs with a known cost; a user's own model may have none."""
    return [rung for rung in done_rungs(results) if _AXES[cost].of(rung) > 0]


def task_panel(results: Results, task: Column, cost: Cost) -> Panel | None:
    """Draw the scores of one task against the rungs' cost, with the strongest baseline."""
    axis, found = _AXES[cost], numbers(results, task)
    rungs = [rung for rung in with_cost(results, cost) if rung.name in found]
    if not rungs:
        return None
    hardest = best_baseline(task)
    ends = [hardest[1]] if hardest else []
    for cell in (found[rung.name] for rung in rungs):
        mean, sd = cell.mean or 0.0, (cell.sd or 0.0) if has_spread(cell) else 0.0
        ends += [mean - sd, mean + sd]
    across = axis.scale([axis.of(rung) for rung in rungs], _LEFT, _RIGHT - _ROOM)
    is_ratio = task.unit == "perplexity" and min(ends) >= 1
    if max(ends) - min(ends) < _LEAST_SPAN:  # which would make rounding errors look large
        middle = (max(ends) + min(ends)) / 2
        ends += [middle - _LEAST_SPAN / 2, middle + _LEAST_SPAN / 2]
    up = (ratio_scale if is_ratio else linear)(ends, _BOTTOM, _TOP)
    shown = [(cell_text(found[rung.name]), axis.show(axis.of(rung))) for rung in rungs]
    told = [_at(rung, *own) for rung, own in zip(rungs, shown, strict=True)]
    panel = Panel(
        say("{task} against {cost}", task=headline(task), cost=say(axis.name)),
        note=say("{state}: {why}", state=unit(task), why=joined(told, "{one}; {other}")),
        headings=(say("Model"), unit(task), say(axis.name)),
        rows=[(rung.title, *own) for rung, own in zip(rungs, shown, strict=True)],
    )
    if hardest:
        panel.rows.append((hardest[0], score(hardest[1]), ""))
    below = "{metric}" if task.higher_is_better else "{metric} (lower is better)"
    heading(panel, headline(task), say(below, metric=unit(task)))
    axes(panel, across, up, right=_RIGHT, x_name=say(axis.name))
    spots, style = [], rung_styles(results)
    for rung in rungs:
        cell = found[rung.name]
        x, value = across(axis.of(rung)), cell.mean or 0.0
        if has_spread(cell) and cell.sd:
            panel.add(line(x, up(value - cell.sd), x, up(value + cell.sd), "spread"))
        hover = say("{score}, {cost}", score=cell_text(cell), cost=axis.show(axis.of(rung)))
        spots.append(_spot(rung, x, up(value), hover, style))
    obstacles = _base_line(panel, hardest, up, spots) if hardest else []
    place_spots(panel, spots, (_LEFT, _TOP - 4, _RIGHT + 6, _BOTTOM - 2), obstacles=obstacles)
    return panel


def _base_line(
    panel: Panel, hardest: tuple[str, float], up: Scale, spots: list[Spot]
) -> list[Place]:
    """Draw the baseline with its name where fewer marks are; return the areas to keep free."""
    level, words = up(hardest[1]), f"{hardest[0]} {score(hardest[1])}"
    wide = text_width(words, 10.5)
    starts = (_LEFT + 3, _RIGHT - wide, (_LEFT + _RIGHT - wide) / 2)
    close = [spot.x for spot in spots if abs(spot.y - level + 6) < 16]
    start = min(starts, key=lambda left: sum(left - 12 < x < left + wide + 12 for x in close))
    panel.add(line(_LEFT, level, _RIGHT, level, "base"), text(start, level - 4, words, kind="tick"))
    return [(start + 4.0 * step, level - 7) for step in range(int(wide / 4) + 1)]


def _at(rung: Rung, value: str, cost: str) -> str:
    return say("{model} {score} at {cost}", model=rung.title, score=value, cost=cost)


def _spot(rung: Rung, x: float, y: float, told: str, style: dict[str, tuple[str, str]]) -> Spot:
    title = say("{state}: {why}", state=rung.title, why=told)
    return Spot(x, y, rung.name, *style[rung.name], title)


def rank_panel(
    results: Results, cost: Cost, *, width: float = 420.0, height: float = 290.0
) -> Panel | None:
    """Draw mean ranks against the rungs' cost; the best is on top."""
    ranks, axis = mean_ranks(results), _AXES[cost]
    rungs = [rung for rung in with_cost(results, cost) if ranks and rung.name in ranks.means]
    if ranks is None or not rungs:
        return None
    bottom, right = height - (HEIGHT - _BOTTOM), width - (WIDTH - _RIGHT)
    across = axis.scale([axis.of(rung) for rung in rungs], _LEFT, right - _ROOM)
    num_ranked = len(ranks.means)
    step = 1 if num_ranked <= 6 else 2 if num_ranked <= 12 else 5
    ticks = [(float(rank), str(rank)) for rank in range(1, num_ranked + 1, step)]
    up = linear([1.0, float(num_ranked)], _TOP, bottom, num_ticks=6, pad=0.05)
    shown = [(f"{ranks.means[rung.name]:.1f}", axis.show(axis.of(rung))) for rung in rungs]
    note = joined(
        [_at(*own) for own in zip(rungs, *zip(*shown, strict=True), strict=True)], "{one}; {other}"
    )
    title = say("{task} against {cost}", task=say("Mean rank"), cost=say(axis.name))
    panel = Panel(
        title, width, height, note=note,
        headings=(say("Model"), say("Mean rank"), say(axis.name)),
        rows=[(rung.title, *own) for rung, own in zip(rungs, shown, strict=True)],
    )  # fmt: skip
    heading(
        panel,
        say("Mean rank over {num} tasks", num=len(ranks.tasks)),
        say("1 is the best of {num} models", num=num_ranked),
    )
    for value, label in ticks:
        panel.add(
            line(_LEFT, up(value), right, up(value), "level"),
            text(_LEFT - 6, up(value) + 3.5, label, kind="tick", anchor="end"),
        )
    below = replace(up, start=bottom, end=_TOP, ticks=[])
    axes(panel, across, below, right=right, x_name=say(axis.name))
    style = rung_styles(results)
    spots = [
        _spot(rung, across(axis.of(rung)), up(ranks.means[rung.name]),
              say("mean rank {rank}, {cost}", rank=told[0], cost=told[1]), style)
        for rung, told in zip(rungs, shown, strict=True)
    ]  # fmt: skip
    place_spots(panel, spots, (_LEFT, _TOP - 4, right + 6, bottom - 2))
    return panel


# ---- curves -------------------------------------------------------------------------------------

_CURVE = (250.0, 176.0)
_CURVE_LEFT, _CURVE_RIGHT, _CURVE_TOP, _CURVE_BOTTOM = 34.0, _CURVE[0] - 10, 40.0, _CURVE[1] - 22
_MOST_POINTS, _MOST_ROWS = 200, 10


def loss_panels(results: Results) -> Drawn:
    """Draw the training curve of every rung with at least two points."""
    drawn, style = [], rung_styles(results)
    for rung in results.rungs:
        known = [
            (seconds, tokens, loss)
            for seconds, tokens, loss in rung.history
            if loss is not None and _is_finite(seconds, loss)
        ]
        if len(known) > 1:
            points = sorted(known, key=lambda point: point[0])
            drawn.append((rung, _curve(rung, points, style[rung.name][1])))
    return drawn


def _curve(rung: Rung, points: list[tuple[float, int, float]], color: str) -> Panel:
    losses = [loss for _, _, loss in points]
    first, last = losses[0], losses[-1]
    last_s, num_tokens, _ = points[-1]
    fell = say("from {first:.3g} to {last:.3g}", first=first, last=last)
    told = say("{done} in {time}", done=fell, time=duration(last_s))
    every = math.ceil(len(points) / _MOST_ROWS)
    panel = Panel(
        say("Loss of {model}", model=rung.title), *_CURVE, note=told,
        headings=(say("training time"), say("tokens"), say("loss")),
        rows=[(duration(seconds), count(tokens), f"{loss:.4g}")
              for seconds, tokens, loss in points[(len(points) - 1) % every :: every]],
    )  # fmt: skip
    # The axis says how long.
    heading(
        panel,
        rung.title,
        say("{score}, {cost}", score=fell, cost=say("{num} tokens", num=count(num_tokens))),
    )
    across = elapsed_scale(last_s, _CURVE_LEFT, _CURVE_RIGHT)
    up = linear(losses, _CURVE_BOTTOM, _CURVE_TOP, num_ticks=3)
    axes(panel, across, up, right=_CURVE_RIGHT)
    # At most this many points, the last among them.
    kept = points[:: math.ceil(len(points) / _MOST_POINTS)]
    kept += points[-1:] * (kept[-1] != points[-1])
    places = [(across(seconds), up(loss)) for seconds, _, loss in kept]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    panel.add(
        tag("polyline", tag("title", say("{state}: {why}", state=rung.title, why=told)),
            points=path, class_=f"curve {color}"),
        tag("circle", cx=x, cy=y, r=2.6, class_=f"mark {color}"),
    )  # fmt: skip
    if last > first:
        rose = say("the loss rose")
        panel.add(text(_CURVE_RIGHT, _CURVE_TOP - 4, rose, kind="tick", anchor="end"))
    if last == min(losses) == max(losses):
        panel.add(line(_CURVE_LEFT, y, _CURVE_RIGHT, y, "level"))
    return panel


# ---- words and uses on the plane ----------------------------------------------------------------

_PLANE = (340.0, 300.0)
_FRAME = (6.0, 40.0, _PLANE[0] - 6, _PLANE[1] - 6)  # left, top, right, bottom
_ONE = (190.0, 130.0)
# Vectors are normalized before the projection: smaller distances are rounding errors.
_ONE_POINT = 1e-5


def styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Give each group a color and a mark; when colors repeat, marks differ."""
    return {
        name: (MARKS[(index + index // len(SERIES)) % len(MARKS)], SERIES[index % len(SERIES)])
        for index, name in enumerate(dict.fromkeys(names))
    }


def style_entries(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """The marks and colors of groups for a legend."""
    return [(*look, name) for name, look in styles(names).items()]


def _known_points(look: Any, rung: Rung) -> list[Any]:
    return [point for point in look.points.get(rung.name, []) if _is_finite(point.x, point.y)]


def _is_finite(*values: float | None) -> bool:
    return all(value is not None and math.isfinite(value) for value in values)


def word_panels(results: Results, look: WordsVisual) -> Drawn:
    """Draw the same words for every rung that has them."""
    style, drawn = styles(list(look.groups)), []
    groups = [
        say("{state}: {why}", state=name, why=joined(words)) for name, words in look.groups.items()
    ]
    told = joined(groups, "{one}; {other}")
    for rung in results.rungs:
        known = _known_points(look, rung)
        if len(known) < 2:
            continue
        title = say("{words} in {model}", words=plural(len(known), "word"), model=rung.title)
        panel = Panel(
            title, *_PLANE, note=told, headings=(say("word"), say("group"), "x", "y"),
            rows=[(p.word, p.group, *_coordinates(p)) for p in known],
        )  # fmt: skip
        _ground(panel, rung.title, family_style(rung.family)[0].lower())
        spots = [
            Spot(x, y, p.word, *style.get(p.group, (MARKS[-1], SERIES[-1])), f"{p.word}: {p.group}")
            for p, (x, y) in zip(known, _fit(known, (26, 12), panel.height), strict=True)
        ]
        place_spots(panel, spots, _FRAME, size=9.5)
        drawn.append((rung, panel))
    return drawn


def use_panels(results: Results, look: ContextsVisual) -> Drawn:
    """Draw every use of the ambiguous word, by sense; a static model has one point for all."""
    return [(rung, _uses(rung, look)) for rung in results.rungs if _known_points(look, rung)]


def is_one_point(look: ContextsVisual, rung: Rung) -> bool:
    """Whether a rung has the same vector for every use."""
    known = _known_points(look, rung)
    sides = [p.x for p in known], [p.y for p in known]
    return bool(known) and all(max(side) - min(side) < _ONE_POINT for side in sides)


def _uses(rung: Rung, look: ContextsVisual) -> Panel:
    known, is_one = _known_points(look, rung), is_one_point(look, rung)
    num = plural(len(known), "use")
    told = "one vector for all {uses}" if is_one else "{uses}, each with its own vector"
    told = say(told, uses=num)
    size = _ONE if is_one else (_PLANE[0], _PLANE[1] - 50)
    title = say("“{word}” in {model}", word=look.word, model=rung.title)
    panel = Panel(title, *size, note=told)
    _ground(panel, rung.title, told)
    if not is_one:
        panel.headings = (say("sense"), say("sentence"), "x", "y")
        panel.rows = [(p.sense, _sentence(look, p), *_coordinates(p)) for p in known]
    if is_one:
        x, y = panel.width / 2, (26 + panel.height) / 2
        panel.add(
            tag("circle", tag("title", told), cx=x, cy=y, r=9, class_="mark slate hollow"),
            mark("circle", x, y, "slate", told, size=3),
            text(x, y + 25, look.word, kind="label", anchor="middle"),
        )
        return panel
    style = styles([use.sense for use in look.sentences])
    for point, (x, y) in zip(known, _fit(known, (16, 16), panel.height), strict=True):
        shape, color = style.get(point.sense, (MARKS[-1], SERIES[-1]))
        title, excerpt = point.sense, _sentence(look, point)
        if excerpt:
            title = say("{state}: {why}", state=title, why=excerpt)
        panel.add(mark(shape, x, y, color, title, size=5))
    return panel


def _sentence(look: ContextsVisual, point: Any) -> str:
    """The sentence of a use, if it is known."""
    is_known = 0 <= point.sentence < len(look.sentences)
    return "".join(excerpt_parts(look.sentences[point.sentence])) if is_known else ""


def _coordinates(point: Any) -> tuple[str, str]:
    return tuple(f"{own:.2f}".replace("-", "−") for own in (point.x, point.y))  # type: ignore[return-value]


def excerpt_parts(use: Use, room: int = 60) -> tuple[str, str, str]:
    """What is before the word, the word, and what is after it."""
    start = max(0, min(use.start, len(use.text)))
    end = max(start, min(use.end, len(use.text)))
    before = use.text[:start]
    before = before if len(before) <= room else "…" + before[-room:].lstrip()
    return before, use.text[start:end], shortened(use.text[end:], room)


def _ground(panel: Panel, title: str, below: str) -> None:
    heading(panel, title, below)
    panel.add(
        tag("rect", x=0.5, y=36.5, width=panel.width - 1, height=panel.height - 37, rx=6,
            class_="ground")
    )  # fmt: skip


def _fit(points: Sequence[Any], inner: Place, height: float) -> list[Place]:
    """Scale points into the frame, equally in both directions, so that distances are preserved."""
    xs, ys = [point.x for point in points], [point.y for point in points]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    left, top, right, _ = _FRAME
    bottom = height - 6
    room_x, room_y = right - left - 2 * inner[0], bottom - top - 2 * inner[1]
    scale = min([room / extent for room, extent in ((room_x, wide), (room_y, high)) if extent],
                default=0.0)  # fmt: skip
    mid_x, mid_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    return [
        ((left + right) / 2 + (x - mid_x) * scale, (top + bottom) / 2 - (y - mid_y) * scale)
        for x, y in zip(xs, ys, strict=True)
    ]

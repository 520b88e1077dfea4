"""Quality against cost: one panel a task, and one of mean ranks; results in, panels out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sememe.ladder.report.figures import (
    cell_text,
    duration,
    has_spread,
    headline,
    megabytes,
    score,
    text_width,
    unit,
)
from sememe.ladder.report.panels import HEIGHT, WIDTH, Panel, Spot, axes, heading, line, place_spots
from sememe.ladder.report.panels import text as write
from sememe.ladder.report.scales import Scale, linear, ratio_scale, size_scale, time_scale
from sememe.ladder.report.standing import best_baseline, done_rungs, mean_ranks, numbers
from sememe.ladder.report.theme import family_look
from sememe.ladder.results import Cell, Results, Rung, Task

Cost = Literal["time", "size"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 38.0, WIDTH - 8, 48.0, HEIGHT - 34
# With one budget for all, many marks stand at the right end: their labels need both sides.
_ROOM = 40.0


@dataclass(frozen=True)
class _CostAxis:
    name: str
    of: Callable[[Rung], float]
    show: Callable[[float], str]
    scale: Callable[[list[float], float, float], Scale]


_COSTS: dict[Cost, _CostAxis] = {
    "time": _CostAxis("training time", lambda rung: rung.train_s, duration, time_scale),
    "size": _CostAxis(
        "megabytes", lambda rung: rung.megabytes, lambda mb: f"{megabytes(mb)} MB", size_scale
    ),
}


def family_entries(results: Results) -> list[tuple[str, str, str]]:
    """The marks and colors of families for a legend."""
    known = dict.fromkeys(rung.family for rung in done_rungs(results))
    looks = [family_look(family) for family in known]
    return [(shape, color, title) for title, shape, color in looks]


def with_cost(results: Results, cost: Cost) -> list[Rung]:
    """The trained rungs whose cost is known; that of an own model may not be."""
    return [rung for rung in done_rungs(results) if _COSTS[cost].of(rung) > 0]


def task_panel(results: Results, task: Task, cost: Cost) -> Panel | None:
    """Draw the scores of one task against what the rungs cost, with the hardest baseline."""
    axis, found = _COSTS[cost], numbers(results, task)
    rungs = [rung for rung in with_cost(results, cost) if rung.name in found]
    if not rungs:
        return None
    hardest = best_baseline(task)
    values = [found[rung.name].mean or 0.0 for rung in rungs]
    ends = [end for rung in rungs for end in _reach(found[rung.name])]
    ends += [hardest[1]] if hardest else []
    across = axis.scale([axis.of(rung) for rung in rungs], _LEFT, _RIGHT - _ROOM)
    is_ratio = task.unit == "perplexity" and min(ends) >= 1
    up = (ratio_scale if is_ratio else linear)(ends, _BOTTOM, _TOP)
    told = "; ".join(
        f"{rung.title} {cell_text(found[rung.name])} at {axis.show(axis.of(rung))}"
        for rung in rungs
    )
    panel = Panel(f"{headline(task)} against {axis.name}", note=f"{unit(task)}: {told}")
    heading(
        panel,
        headline(task),
        unit(task) + ("" if task.higher_is_better else " (lower is better)"),
    )
    axes(panel, across, up, right=_RIGHT, x_name=axis.name)
    spots = []
    for rung, value in zip(rungs, values, strict=True):
        x, y, cell = across(axis.of(rung)), up(value), found[rung.name]
        if has_spread(cell) and cell.sd:
            panel.add(line(x, up(value - cell.sd), x, up(value + cell.sd), "spread"))
        title = f"{rung.title}: {cell_text(cell)}, {axis.show(axis.of(rung))}"
        spots.append(_spot(rung, x, y, title))
    obstacles = _base_line(panel, hardest, up, spots) if hardest else []
    place_spots(panel, spots, (_LEFT, _TOP - 4, _RIGHT + 6, _BOTTOM - 2), obstacles=obstacles)
    return panel


def _reach(cell: Cell) -> tuple[float, float]:
    """From where to where a mark and its deviation reach."""
    mean, sd = cell.mean or 0.0, cell.sd if has_spread(cell) else 0.0
    return mean - (sd or 0.0), mean + (sd or 0.0)


def _base_line(
    panel: Panel, hardest: tuple[str, float], up: Scale, spots: list[Spot]
) -> list[tuple[float, float]]:
    """Draw the baseline with its name where fewer marks are; gives the places to keep free."""
    level, words = up(hardest[1]), f"{hardest[0]} {score(hardest[1])}"
    wide = text_width(words, 10.5)
    starts = (_LEFT + 3, _RIGHT - wide, (_LEFT + _RIGHT - wide) / 2)
    close = [spot.x for spot in spots if abs(spot.y - level + 6) < 16]
    start = min(starts, key=lambda left: sum(left - 12 < x < left + wide + 12 for x in close))
    panel.add(
        line(_LEFT, level, _RIGHT, level, "base"), write(start, level - 4, words, kind="tick")
    )
    return [(start + 4.0 * step, level - 7) for step in range(int(wide / 4) + 1)]


def _spot(rung: Rung, x: float, y: float, title: str) -> Spot:
    _, shape, color = family_look(rung.family)
    return Spot(x, y, rung.name, shape, color, title)


def rank_panel(
    results: Results, cost: Cost, *, width: float = 420.0, height: float = 290.0
) -> Panel | None:
    """Draw mean ranks against what the rungs cost; the best stands on top."""
    ranks, axis = mean_ranks(results), _COSTS[cost]
    if ranks is None:
        return None
    rungs = [rung for rung in with_cost(results, cost) if rung.name in ranks.means]
    if not rungs:
        return None
    bottom, right = height - (HEIGHT - _BOTTOM), width - (WIDTH - _RIGHT)
    across = axis.scale([axis.of(rung) for rung in rungs], _LEFT, right - _ROOM)
    num_ranked = len(ranks.means)
    up = linear([1.0, float(num_ranked)], _TOP, bottom, num_ticks=6, pad=0.05)
    up = Scale(up.low, up.high, up.start, up.end, _whole_ticks(num_ranked))
    told = "; ".join(
        f"{rung.title} {ranks.means[rung.name]:.1f} at {axis.show(axis.of(rung))}" for rung in rungs
    )
    panel = Panel(f"Mean rank against {axis.name}", width, height, note=told)
    heading(
        panel,
        f"Mean rank over {len(ranks.tasks)} tasks",
        f"1 is the best of {num_ranked} models",
    )
    for value, label in up.ticks:
        panel.add(
            line(_LEFT, up(value), right, up(value), "level"),
            write(_LEFT - 6, up(value) + 3.5, label, kind="tick", anchor="end"),
        )
    below = Scale(up.low, up.high, bottom, _TOP, [])
    axes(panel, across, below, right=right, x_name=axis.name)
    spots = [
        _spot(
            rung,
            across(axis.of(rung)),
            up(ranks.means[rung.name]),
            f"{rung.title}: mean rank {ranks.means[rung.name]:.1f}, {axis.show(axis.of(rung))}",
        )
        for rung in rungs
    ]
    place_spots(panel, spots, (_LEFT, _TOP - 4, right + 6, bottom - 2))
    return panel


def _whole_ticks(num_rungs: int) -> list[tuple[float, str]]:
    step = 1 if num_rungs <= 6 else 2 if num_rungs <= 12 else 5
    return [(float(rank), str(rank)) for rank in range(1, num_rungs + 1, step)]

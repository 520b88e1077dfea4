"""How rungs stand to each other and to the baselines: results in, marks and ranks out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sememe.ladder.report.figures import has_number, has_spread, unbroken
from sememe.ladder.results import Cell, Results, Rung, Task


def done_rungs(results: Results) -> list[Rung]:
    """The rungs that were trained."""
    return [rung for rung in results.rungs if rung.state == "done"]


def learned_here(rung: Rung) -> bool:
    """Whether a rung learned from this text: an own model, and one left untrained, did not."""
    return rung.state == "done" and (rung.tokens > 0 or rung.family == "counts")


def numbers(results: Results, task: Task) -> dict[str, Cell]:
    """The cells of a column that hold a figure, by rung."""
    names = [rung.name for rung in results.rungs]
    found = {name: results.cell(name, task.name) for name in names}
    return {name: cell for name, cell in found.items() if cell is not None and has_number(cell)}


def best_baseline(task: Task) -> tuple[str, float] | None:
    """The baseline that is hardest to beat."""
    known = [(name, value) for name, value in task.baselines.items() if math.isfinite(value)]
    if not known:
        return None
    choose = max if task.higher_is_better else min
    return choose(known, key=lambda pair: pair[1])


def is_above_baseline(cell: Cell, task: Task) -> bool | None:
    """Whether the mean, as printed, beats every baseline; None where there is none."""
    hardest = best_baseline(task)
    if hardest is None or cell.mean is None:
        return None
    gain = round(cell.mean, 1) - round(hardest[1], 1)
    return gain > 0 if task.higher_is_better else gain < 0


def best_rungs(results: Results, task: Task) -> set[str]:
    """The rungs with the best mean as printed; nobody where all are equal, or one stands alone."""
    best = set(results.best(task.name))
    return best if len(best) < len(numbers(results, task)) else set()


def near_best(results: Results, task: Task) -> set[str]:
    """Rungs no further from the best than the deviations of both over seeds tell apart."""
    found = numbers(results, task)
    best = [found[name] for name in best_rungs(results, task) if name in found]
    return {
        name
        for name, cell in found.items()
        if cell not in best and any(_is_near(cell, other) for other in best)
    }


def _is_near(one: Cell, other: Cell) -> bool:
    if not (has_spread(one) and has_spread(other)):
        return False
    assert one.mean is not None and other.mean is not None
    assert one.sd is not None and other.sd is not None
    return abs(one.mean - other.mean) <= math.hypot(one.sd, other.sd)


def num_repetitions(results: Results) -> list[int]:
    """Of how many scores the figures with a deviation are made."""
    return sorted({len(cell.scores) for cell in results.cells if has_spread(cell)})


class Ranks(NamedTuple):
    """Mean rank of each rung over the columns in which all of them have a figure."""

    means: dict[str, float]
    tasks: list[Task]


def mean_ranks(results: Results) -> Ranks | None:
    """Rank the rungs in the largest part of the table that has no gap; 1 is the best.

    A mean over different columns would compare rungs that were asked different questions. None
    where less than two rungs share two columns.
    """
    columns = {task.name: numbers(results, task) for task in results.tasks}
    names = [rung.name for rung in done_rungs(results)]
    order = sorted(results.tasks, key=lambda task: -len(columns[task.name]))
    best: tuple[int, list[str], list[Task]] = (0, [], [])
    for size in range(2, len(order) + 1):
        chosen = order[:size]
        whole = [n for n in names if all(n in columns[task.name] for task in chosen)]
        if len(whole) >= 2 and len(whole) * size > best[0]:
            best = (len(whole) * size, whole, chosen)
    _, whole, chosen = best
    if not whole:
        return None
    ranks: dict[str, list[float]] = {name: [] for name in whole}
    for task in chosen:
        values = [_printed(columns[task.name][name], task) for name in whole]
        for name, rank in zip(whole, _ranked(values), strict=True):
            ranks[name].append(rank)
    kept = {task.name for task in chosen}
    means = {name: sum(own) / len(own) for name, own in ranks.items()}
    return Ranks(means, [task for task in results.tasks if task.name in kept])


def _printed(cell: Cell, task: Task) -> float:
    assert cell.mean is not None
    return round(cell.mean, 1) * (-1 if task.higher_is_better else 1)


def _ranked(values: Sequence[float]) -> list[float]:
    """Ranks from 1 for the least; equal values share the mean of theirs."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


@dataclass
class Footnotes:
    """Reasons, numbered in the order in which they are first asked for."""

    texts: list[str]

    def number(self, text: str) -> int:
        """The number of a reason."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


def reason(results: Results, rung: Rung, cell: Cell | None) -> str:
    """Why there is no number: the cell's word, or what became of the rung."""
    if cell is not None and cell.why:
        return sentence(cell.why)
    if rung.state == "done":
        return "Not measured."
    return state_text(rung)


def state_text(rung: Rung) -> str:
    """What became of a rung that has no figures."""
    words = {
        "failed": "Failed",
        "left out": "Left out",
        "waiting": "Not yet trained",
        "training": "Still in training",
    }
    head = words.get(rung.state, rung.state)
    return sentence(f"{head}: {rung.why}" if rung.why else head)


def sentence(text: str) -> str:
    """A text with a capital and a full stop; a figure and its % stay on one line."""
    text = unbroken(text.strip())
    if not text:
        return text
    text = text[0].upper() + text[1:]
    return text if text.rstrip(")）”")[-1:] in tuple(".!?。！？…") else text + "."

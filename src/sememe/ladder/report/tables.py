"""Rungs compared with each other and with the baselines: results in, ranks and table rows out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from sememe.evaluation.results import FEW_MARK
from sememe.ladder.report.charts import family_style, model_styles
from sememe.ladder.report.formatting import (
    DASH,
    count,
    duration,
    has_number,
    has_spread,
    joined,
    listed,
    megabytes,
    plural,
    score,
    unbroken,
)
from sememe.ladder.results import Cell, Column, Results, Rung
from sememe.localization import say


def done_rungs(results: Results) -> list[Rung]:
    """The rungs that were trained."""
    return [rung for rung in results.rungs if rung.state == "done"]


def learned_here(rung: Rung) -> bool:
    """Whether a rung was trained on this text; a user's own model and an untrained one were not."""
    return rung.state == "done" and (rung.tokens > 0 or rung.family == "counts")


def numbers(results: Results, task: Column) -> dict[str, Cell]:
    """The cells of a column that hold a score, by rung."""
    names = [rung.name for rung in results.rungs]
    found = {name: results.cell(name, task.name) for name in names}
    return {name: cell for name, cell in found.items() if cell is not None and has_number(cell)}


def best_baseline(task: Column) -> tuple[str, float] | None:
    """The strongest baseline."""
    known = [(name, value) for name, value in task.baselines.items() if math.isfinite(value)]
    if not known:
        return None
    choose = max if task.higher_is_better else min
    return choose(known, key=lambda pair: pair[1])


def is_above_baseline(cell: Cell, task: Column) -> bool | None:
    """Whether the mean, as printed, beats every baseline; None without one."""
    hardest = best_baseline(task)
    if hardest is None or cell.mean is None:
        return None
    gain = round(cell.mean, 1) - round(hardest[1], 1)
    return gain > 0 if task.higher_is_better else gain < 0


def best_rungs(results: Results, task: Column) -> set[str]:
    """The rungs with the best printed mean; empty if all are equal, or there is only one."""
    best = set(results.best(task.name))
    return best if len(best) < len(numbers(results, task)) else set()


def near_best(results: Results, task: Column) -> set[str]:
    """Rungs whose distance from the best is within both deviations over seeds."""
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
    distance = abs((one.mean or 0.0) - (other.mean or 0.0))
    return distance <= math.hypot(one.sd or 0.0, other.sd or 0.0)


def num_repetitions(results: Results) -> list[int]:
    """The number of scores in a standard deviation."""
    return sorted({len(cell.scores) for cell in results.cells if has_spread(cell)})


class Ranks(NamedTuple):
    """Mean rank of each rung over the columns in which all of them have a score."""

    means: dict[str, float]
    tasks: list[Column]


def mean_ranks(results: Results) -> Ranks | None:
    """Rank the rungs in the largest part of the table without gaps; 1 is the best.

    A mean over different columns would compare rungs on different tasks. None if fewer than two
    rungs share two columns.
    """
    columns = {task.name: numbers(results, task) for task in results.tasks}
    whole, chosen = _without_gaps(results, results.tasks, fewest=2)
    if not whole:
        return None
    # As printed; the smallest is best, and ties share the mean of their ranks.
    values = [
        [round(columns[task.name][name].mean or 0.0, 1) * (-1 if task.higher_is_better else 1)
         for name in whole]
        for task in chosen
    ]  # fmt: skip
    means = np.mean([rankdata(own) for own in values], axis=0).tolist()
    tasks = [task for task in results.tasks if task in chosen]
    return Ranks(dict(zip(whole, means, strict=True)), tasks)


def _without_gaps(
    results: Results, tasks: Sequence[Column], fewest: int
) -> tuple[list[str], list[Column]]:
    """The largest part of the table without gaps: rungs and tasks, `fewest` of each or none."""
    columns = {task.name: numbers(results, task) for task in tasks}
    names = [rung.name for rung in done_rungs(results)]
    order = sorted(tasks, key=lambda task: -len(columns[task.name]))
    best: tuple[int, list[str], list[Column]] = (0, [], [])
    for size in range(fewest, len(order) + 1):
        chosen = order[:size]
        whole = [n for n in names if all(n in columns[task.name] for task in chosen)]
        if len(whole) >= fewest and len(whole) * size > best[0]:
            best = (len(whole) * size, whole, chosen)
    return best[1], best[2]


def overview(results: Results) -> Results:
    """The same results with fewer columns: tasks of one group and unit become their mean.

    A mean is over the tasks in which most rungs have scores, so that all are compared on the same.
    """
    tasks, cells = [], []
    for (group, unit, _), own in groupby(
        results.tasks, key=lambda task: (task.group, task.unit, task.higher_is_better)
    ):
        members = list(own)
        _, chosen = _without_gaps(results, members, fewest=1)
        chosen = [task for task in members if task in chosen]
        if len(chosen) < 2:
            # One task stands for the group; another one with gaps is in the complete table.
            alone = chosen[0] if chosen else members[0]
            tasks.append(replace(alone, baselines=_hardest([alone])))
            cells += [cell for cell in results.cells if cell.task == alone.name]
            continue
        titles, title = listed([task.title for task in chosen]), say(group.capitalize())
        column = Column(
            name=f"mean of {group} {unit}", title=title, group=group, unit=unit,
            what=say("{group}: mean of {tasks}.", group=title, tasks=titles),
            metric=say("mean of {num} tasks", num=len(chosen)),
            higher_is_better=chosen[0].higher_is_better, baselines=_hardest(chosen),
        )  # fmt: skip
        tasks.append(column)
        cells += [_mean_cell(results, rung, chosen, column.name) for rung in results.rungs]
    return replace(results, tasks=tasks, cells=cells)


def _hardest(tasks: Sequence[Column]) -> dict[str, float]:
    """The mean of the best baselines of some tasks, if all have one."""
    found = [best_baseline(task) for task in tasks]
    known = [own[1] for own in found if own is not None]
    return {say("best baseline"): sum(known) / len(known)} if len(known) == len(tasks) else {}


def _mean_cell(results: Results, rung: Rung, tasks: Sequence[Column], name: str) -> Cell:
    """The mean score of a rung over some tasks; over several repetitions with its deviation."""
    found = [results.cell(rung.name, task.name) for task in tasks]
    known = [cell for cell in found if cell is not None and has_number(cell)]
    if len(known) < len(tasks):
        missing = next((cell for cell in found if cell not in known), None)
        return Cell(rung=rung.name, task=name, why=missing.why if missing else "")
    nums = {len(cell.scores) for cell in known}
    scores = [float(np.mean([cell.mean or 0.0 for cell in known]))]
    if nums.isdisjoint({0, 1}) and len(nums) == 1:
        scores = np.mean([cell.scores for cell in known], axis=0).tolist()
    return Cell(
        rung=rung.name, task=name, scores=scores, mean=float(np.mean(scores)),
        sd=float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
        num=sum(cell.num for cell in known),
        few_questions=any(cell.few_questions for cell in known),
    )  # fmt: skip


@dataclass
class Footnotes:
    """Reasons, numbered in order of first use."""

    texts: list[str]

    def number(self, text: str) -> int:
        """The number of a reason."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


def reason(rung: Rung, cell: Cell | None) -> str:
    """Why there is no score: the cell's reason, or the state of the rung."""
    if cell is not None and cell.why:
        return sentence(cell.why)
    return say("Not measured.") if rung.state == "done" else state_text(rung)


def state_text(rung: Rung) -> str:
    """The state of a rung without scores, in words."""
    words = {"waiting": "not trained yet", "left out": "skipped"}
    head = say(words.get(rung.state, rung.state))
    return sentence(say("{state}: {why}", state=head, why=rung.why) if rung.why else head)


def sentence(text: str) -> str:
    """A text with a capital and a full stop; numbers do not break from their %."""
    text = unbroken(text.strip())
    if not text:
        return text
    text = text[0].upper() + text[1:]
    return text if text.rstrip(")）”")[-1:] in tuple(".!?。！？…") else say("{text}.", text=text)


_MOST_COLUMNS = 11


def in_parts(results: Results) -> list[Results]:
    """The same results once for each part of the table, with the tasks of that part."""
    return [replace(results, tasks=part) for part in _parts(results.tasks)] or [results]


def _parts(tasks: Sequence[Column], most: int = _MOST_COLUMNS) -> list[list[Column]]:
    """Tasks in order, evenly split into parts; a group is split only if it is too long."""
    size = math.ceil(len(tasks) / max(1, math.ceil(len(tasks) / most)))
    parts: list[list[Column]] = []
    for _, group in groupby(tasks, key=lambda task: task.group):
        own = list(group)
        pieces = [own[first : first + size] for first in range(0, len(own), size)]
        if parts and len(parts[-1]) + len(pieces[0]) <= size:
            parts[-1] += pieces.pop(0)
        parts += pieces
    return parts


HEADINGS = ("Model", "Mean rank", "Training time", "Tokens seen", "Tokens/s", "Parameters", "MB")


def cost_rows(results: Results) -> list[list[str]]:
    """One row per trained rung, in the order of the headings."""
    ranks = mean_ranks(results)
    means = ranks.means if ranks else {}
    return [
        [
            rung.title,
            f"{means[rung.name]:.1f}" if rung.name in means else DASH,
            *known_costs(rung),
        ]
        for rung in done_rungs(results)
    ]


def known_costs(rung: Rung) -> list[str]:
    """Time, tokens, rate, parameters and megabytes; a dash if unknown."""
    costs = (
        (duration, rung.train_s),
        (count, rung.tokens),
        (count, rung.tokens_per_s),
        (count, rung.parameters),
        (megabytes, rung.megabytes),
    )
    return [show(value) if value else DASH for show, value in costs]


class ShownCell(NamedTuple):
    """A cell of the score table: a score with its marks, or the footnote with the reason."""

    why: str = ""
    footnote: int = 0
    mean: str = ""
    sd: str = ""
    interval: str = ""
    share: float | None = None  # of its bar, from 0 to 100; ratios have no such scale
    told: str = ""  # tooltip
    is_best: bool = False
    is_near: bool = False  # to the best, within both deviations
    is_below: bool = False  # the best baseline, or not better than it
    is_few: bool = False  # questions

    @property
    def text(self) -> str:
        """Mean ± standard deviation (interval), with the mark of few questions."""
        between = f" ({self.interval})" if self.interval else ""
        return self.mean + (f" ± {self.sd}" if self.sd else "") + FEW_MARK * self.is_few + between


class ShownRow(NamedTuple):
    """A rung with its cells and costs; `gone` gives the state of one without scores."""

    rung: Rung
    mark: tuple[str, str]  # and color, as in the charts
    cells: list[ShownCell]
    time: str
    size: str
    gone: str = ""


class ScoreTable(NamedTuple):
    """One part of the score table, as tables.html renders it."""

    tasks: list[Column]
    groups: list[tuple[str, int]]  # of columns: title and width
    families: list[tuple[str, list[ShownRow]]]
    baselines: dict[str, list[str]]


def score_tables(results: Results, notes: Footnotes, *, is_page: bool = True) -> list[ScoreTable]:
    """The complete table, a wide one in parts; reasons for gaps are added to `notes`.

    On a page, a rung without any score has one sentence instead of its cells.
    """
    return [_score_table(part, notes, is_page) for part in in_parts(results)]


def _score_table(results: Results, notes: Footnotes, is_page: bool) -> ScoreTable:
    best = {task.name: best_rungs(results, task) for task in results.tasks}
    near = {task.name: near_best(results, task) for task in results.tasks}
    style = model_styles([(rung.name, rung.family) for rung in results.rungs])

    def row(rung: Rung) -> ShownRow:
        own = [(task, results.cell(rung.name, task.name)) for task in results.tasks]
        time, *_, size = known_costs(rung)
        if is_page and rung.state != "done" and not any(has_number(cell) for _, cell in own):
            return ShownRow(rung, style[rung.name], [], time, size, gone=state_text(rung))
        cells = []
        for task, cell in own:
            if cell is not None and has_number(cell):
                is_best, is_near = (rung.name in names[task.name] for names in (best, near))
                cells.append(_shown_cell(cell, task, is_best, is_near))
            else:
                why = reason(rung, cell)
                cells.append(ShownCell(why=why, footnote=notes.number(why)))
        return ShownRow(rung, style[rung.name], cells, time, size)

    families = groupby(results.rungs, key=lambda rung: rung.family)
    groups = groupby(results.tasks, key=lambda task: task.group)
    names = dict.fromkeys(name for task in results.tasks for name in task.baselines)
    return ScoreTable(
        tasks=results.tasks,
        groups=[(say(group.capitalize()), len(list(tasks))) for group, tasks in groups],
        families=[(family_style(family)[0], [*map(row, rungs)]) for family, rungs in families],
        baselines={
            name: [score(task.baselines[name]) if name in task.baselines else ""
                   for task in results.tasks]
            for name in names
        },
    )  # fmt: skip


def _shown_cell(cell: Cell, task: Column, is_best: bool, is_near: bool) -> ShownCell:
    is_below = is_above_baseline(cell, task) is False
    values = ", ".join(map(score, cell.scores))
    told = [say("{state}: {why}", state=plural(len(cell.scores), "score"), why=values)]
    told += [say("over {questions}", questions=plural(cell.num, "question"))] * bool(cell.num)
    between = [score(bound) for bound in cell.interval or ()]
    if between:
        told.append(say("95 % interval: {low} to {high}", low=between[0], high=between[1]))
    told += [say("best of its column")] * is_best
    told += [say("within one standard deviation of the best")] * is_near
    told += [say("not above the best baseline")] * is_below
    return ShownCell(
        mean=score(cell.mean),
        sd=score(cell.sd) if has_spread(cell) else "",
        interval=" – ".join(between),
        share=min(max(cell.mean or 0.0, 0.0), 100.0) if task.unit == "%" else None,
        told=joined(told, "{one}; {other}"),
        is_best=is_best,
        is_near=is_near,
        is_below=is_below,
        is_few=cell.few_questions,
    )

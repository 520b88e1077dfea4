"""The table in the papers' layout, as HTML: rungs are rows, tasks columns, baselines below."""

from __future__ import annotations

from itertools import groupby

from sememe.ladder.report.columns import in_parts
from sememe.ladder.report.costs import known_costs
from sememe.ladder.report.figures import (
    DASH,
    has_number,
    has_spread,
    headline,
    listed,
    plural,
    score,
    unit,
)
from sememe.ladder.report.markup import Markup, join, tag
from sememe.ladder.report.standing import (
    Footnotes,
    best_baseline,
    best_rungs,
    is_above_baseline,
    near_best,
    num_repetitions,
    reason,
    sentence,
    state_text,
)
from sememe.ladder.report.summary import spread_words
from sememe.ladder.report.theme import family_look
from sememe.ladder.results import Cell, Results, Rung, Task

_COSTS = ("Training", "MB")
_GROUPS = {
    "words": "Words",
    "sentences": "Sentences",
    "senses": "Senses",
    "language model": "Language model",
}


def score_table(results: Results) -> Markup:
    """The whole table, a wide one in parts, with its footnotes and what its marks mean."""
    notes = Footnotes([])
    tables = [_part(part, notes) for part in in_parts(results)]
    return join(*tables, _key(results), _footnotes(notes))


def _part(results: Results, notes: Footnotes) -> Markup:
    marks = {task.name: (best_rungs(results, task), near_best(results, task))
             for task in results.tasks}  # fmt: skip
    bodies = []
    for family, rungs in groupby(results.rungs, key=lambda rung: rung.family):
        rows = [_row(results, rung, marks, notes) for rung in rungs]
        bodies.append(tag("tbody", _family_row(results, family), *rows))
    baselines = _baseline_rows(results)
    if baselines:
        bodies.append(tag("tbody", *baselines, class_="baselines"))
    groups = listed([_GROUPS.get(group, group).lower()
                     for group in dict.fromkeys(task.group for task in results.tasks)])  # fmt: skip
    table = tag(
        "table",
        tag("caption", f"Scores of every model: {groups}", class_="unseen"),
        tag("thead", *_headings(results)),
        *bodies,
        class_="scores",
        style=f"--columns:{len(results.tasks) + len(_COSTS)}",
    )
    return tag(
        "div", table, class_="scroll", tabindex=0, role="region",
        aria_label=f"Table of scores: {groups}",
    )  # fmt: skip


def _headings(results: Results) -> list[Markup]:
    groups = [
        tag("th", tag("span", _GROUPS.get(group, group)), colspan=len(list(tasks)),
            scope="colgroup")
        for group, tasks in groupby(results.tasks, key=lambda task: task.group)
    ]  # fmt: skip
    cost = tag("th", tag("span", "Cost"), colspan=len(_COSTS), scope="colgroup")
    first = tag("tr", tag("td"), *groups, cost, class_="groups")
    columns = [
        tag(
            "th",
            tag("span", headline(task), class_="task"),
            tag("span", unit(task), class_="metric"),
            None if task.higher_is_better else tag("span", "lower is better", class_="metric"),
            scope="col",
            title=sentence(task.what) or None,
        )
        for task in results.tasks
    ]
    costs = [tag("th", tag("span", name, class_="task"), scope="col") for name in _COSTS]
    return [first, tag("tr", tag("th", "Model", scope="col"), *columns, *costs)]


def _width(results: Results) -> int:
    return len(results.tasks) + len(_COSTS) + 1


def _family_row(results: Results, family: str) -> Markup:
    title = family_look(family)[0]
    heading = tag("th", tag("span", title), colspan=_width(results), scope="rowgroup")
    return tag("tr", heading, class_="family")


Marks = dict[str, tuple[set[str], set[str]]]


def _row(results: Results, rung: Rung, marks: Marks, notes: Footnotes) -> Markup:
    name = tag("th", rung.title, scope="row", title=rung.name)
    cells = [results.cell(rung.name, task.name) for task in results.tasks]
    if rung.state != "done" and not any(has_number(cell) for cell in cells):
        why = tag("td", tag("span", state_text(rung)), colspan=_width(results) - 1, class_="gone")
        return tag("tr", name, why)
    scores = [
        _cell(results, rung, task, cell, marks[task.name], notes)
        for task, cell in zip(results.tasks, cells, strict=True)
    ]
    time, *_, size = known_costs(rung)
    return tag("tr", name, *scores, *(tag("td", cost, class_="cost") for cost in (time, size)))


def _cell(
    results: Results,
    rung: Rung,
    task: Task,
    cell: Cell | None,
    marks: tuple[set[str], set[str]],
    notes: Footnotes,
) -> Markup:
    if cell is None or not has_number(cell):
        return _empty_cell(reason(results, rung, cell), notes)
    is_best, is_near = rung.name in marks[0], rung.name in marks[1]
    is_below = is_above_baseline(cell, task) is False
    mean = tag("strong" if is_best else "u" if is_near else "span", score(cell.mean))
    told = [plural(len(cell.scores), "score") + ": " + ", ".join(map(score, cell.scores))]
    told += ["best of its column"] * is_best + ["within the spread of the best"] * is_near
    told += ["not above the best baseline"] * is_below
    inner = join(
        mean,
        tag("span", f" ± {score(cell.sd)}", class_="sd") if has_spread(cell) else None,
        tag("span", " ▽", class_="below") if is_below else None,
        _bar(cell, task),
    )
    kind = " ".join(["best"] * is_best + ["low"] * is_below)
    return tag("td", inner, title="; ".join(told), class_=kind or None)


def _empty_cell(why: str, notes: Footnotes) -> Markup:
    number = notes.number(why)
    link = tag("a", number, href=f"#why-{number}", aria_label=f"Why there is no number: {why}")
    return tag("td", DASH, tag("sup", link), class_="none", title=why)


def _bar(cell: Cell, task: Task) -> Markup | None:
    """A thin bar from 0 to 100 with a tick at the hardest baseline; ratios have no such scale."""
    if task.unit != "%" or cell.mean is None:
        return None
    hardest = best_baseline(task)
    base = f";--base:{_share(hardest[1])}%" if hardest else ""
    return tag(
        "span",
        class_="bar" if hardest else "bar bare",
        style=f"--part:{_share(cell.mean)}%{base}",
        aria_hidden="true",
    )


def _share(value: float) -> str:
    return f"{min(max(value, 0.0), 100.0):.1f}"


def _baseline_rows(results: Results) -> list[Markup]:
    names = list(dict.fromkeys(name for task in results.tasks for name in task.baselines))
    if not names:
        return []
    rows = [tag("tr", tag("th", tag("span", "Baselines"), colspan=_width(results),
                          scope="rowgroup"), class_="family")]  # fmt: skip
    for name in names:
        values = [
            tag("td", score(task.baselines[name]) if name in task.baselines else None)
            for task in results.tasks
        ]
        blank = [tag("td") for _ in _COSTS]
        rows.append(tag("tr", tag("th", name, scope="row"), *values, *blank))
    return rows


def _key(results: Results) -> Markup:
    repeated = num_repetitions(results)
    several = (
        join(
            spread_words(results),
            " ",
            tag("strong", "Bold"),
            ": best of its column. ",
            tag("u", "Underlined"),
            ": no further from the best than the deviations of both, √(sd² + sd²). ",
        )
        if repeated
        else join(spread_words(results), " ", tag("strong", "Bold"), ": best of its column. ")
    )
    return tag(
        "p",
        several,
        "▽: not above the best baseline of its column. Bars run from 0 to 100 %, their tick is "
        "that baseline.",
        class_="key",
    )


def _footnotes(notes: Footnotes) -> Markup | None:
    if not notes.texts:
        return None
    items = [
        tag("li", text, id=f"why-{number}") for number, text in enumerate(notes.texts, start=1)
    ]
    return join(tag("p", "No number because:", class_="key"), tag("ol", *items, class_="why"))

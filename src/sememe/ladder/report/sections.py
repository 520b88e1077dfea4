"""The parts of the page below its table; each is empty where there is nothing to show."""

from __future__ import annotations

from collections.abc import Sequence

from sememe.ladder.report.attention import attention_panel, name_of, strongest
from sememe.ladder.report.costs import cost_table
from sememe.ladder.report.figures import headline, listed, plural
from sememe.ladder.report.losses import loss_panels
from sememe.ladder.report.maps import (
    excerpt_parts,
    is_one_point,
    style_entries,
    styles,
    use_panels,
    word_panels,
)
from sememe.ladder.report.markup import Markup, join, tag
from sememe.ladder.report.panels import Panel, legend
from sememe.ladder.report.quality import Cost, family_entries, rank_panel, task_panel, with_cost
from sememe.ladder.report.standing import done_rungs, mean_ranks, sentence
from sememe.ladder.report.summary import task_facts
from sememe.ladder.results import Results, Rung


def figure(panel: Panel, caption: str = "", *, language: str = "") -> Markup:
    """A panel with what stands below it."""
    below = tag("figcaption", caption) if caption else None
    return tag("figure", panel.svg(language=language), below)


def grid(panels: Sequence[Panel], kind: str = "", *, language: str = "") -> Markup:
    """Panels beside each other, as many in a line as there is room for."""
    if not panels:
        return Markup("")
    return tag("div", *(figure(panel, language=language) for panel in panels),
               class_=f"grid {kind}".strip())  # fmt: skip


def prose(text: str) -> Markup:
    """A paragraph of explanation."""
    return tag("p", text, class_="prose")


def tasks_section(results: Results) -> Markup | None:
    """What each column asks, of how many rows, and how."""
    if not results.tasks:
        return None
    items = []
    for task in results.tasks:
        facts = tag("span", sentence(task_facts(task)), class_="soft")
        about = tag("dd", sentence(task.what), " ", facts)
        items.append(tag("div", tag("dt", headline(task)), about))
    return tag("dl", *items, class_="tasks")


def quality_section(results: Results) -> Markup | None:
    """Quality against time and against megabytes, over all tasks and task by task."""
    if not done_rungs(results):
        return None
    overview = [rank_panel(results, cost) for cost in ("time", "size")]
    panels = {cost: _task_panels(results, cost) for cost in ("time", "size")}
    if not any(panels.values()):
        return None
    return join(
        legend(family_entries(results)),
        grid([panel for panel in overview if panel is not None], "pair"),
        prose(_about_ranks(results)),
        tag("h3", "Task by task"),
        prose(
            "Each task in its own unit; the dashed line is its best baseline, bars are ± one "
            "standard deviation. Both axes of cost go by ratios." + _about_costs(results)
        ),
        _switch(),
        tag("div", grid(panels["time"]), class_="choice by-time"),
        tag("div", grid(panels["size"]), class_="choice by-size"),
        tag("h3", "What each model cost"),
        cost_table(results),
    )


def _task_panels(results: Results, cost: str) -> list[Panel]:
    kind: Cost = "time" if cost == "time" else "size"
    drawn = [task_panel(results, task, kind) for task in results.tasks]
    return [panel for panel in drawn if panel is not None]


def _switch() -> Markup:
    """Two radio buttons that need no script; on paper both choices are printed."""
    buttons = [
        tag("label", tag("input", type="radio", name="cost", id=f"by-{name}", checked=first), words)
        for name, words, first in (
            ("time", "against training time", True),
            ("size", "against megabytes", False),
        )
    ]
    legend_text = tag("legend", "Quality of each task", class_="unseen")
    return tag("fieldset", legend_text, *buttons, class_="switch")


def _about_ranks(results: Results) -> str:
    ranks = mean_ranks(results)
    if ranks is None:
        return "There is no mean rank: no two models have figures in the same two columns."
    left = [rung.title for rung in done_rungs(results) if rung.name not in ranks.means]
    tail = f" Not ranked for want of a figure there: {listed(left)}." if left else ""
    titles = listed([task.title for task in ranks.tasks])
    return (
        f"Units differ from task to task, so their mean would mean nothing. Ranks are comparable, "
        f"but tell only the order and not by how much; that is in the panels below. Ranked over "
        f"the columns that all of these models have: {titles}.{tail}"
    )


def _about_costs(results: Results) -> str:
    parts = []
    costs: tuple[tuple[Cost, str], ...] = (("time", "no time of training"), ("size", "no size"))
    for cost, words in costs:
        known = {rung.name for rung in with_cost(results, cost)}
        rest = [rung.title for rung in done_rungs(results) if rung.name not in known]
        if rest:
            parts.append(f" There is {words} to draw of {listed(rest)}.")
    return "".join(parts)


def losses_section(results: Results) -> Markup | None:
    """The curves of the trainings."""
    drawn = loss_panels(results)
    if not drawn:
        return None
    without = _without(results, drawn)
    return join(
        prose(
            "Each model minimizes a loss of its own, so the heights of two panels cannot be "
            "compared; their shapes can. Across: time of training." + without
        ),
        grid([panel for _, panel in drawn], "small"),
    )


def _without(results: Results, drawn: Sequence[tuple[Rung, Panel]]) -> str:
    names = {rung.name for rung, _ in drawn}
    rest = [rung.title for rung in done_rungs(results) if rung.name not in names]
    return f" Not drawn: {listed(rest)}." if rest else ""


_ABOUT_GROUPS = (
    "Groups were chosen beforehand; where a model knows them, words of one mark lie together. "
)


def words_section(results: Results) -> Markup | None:
    """The same words in every model."""
    look = results.looks.pca
    drawn = word_panels(results, look) if look else []
    if look is None or not drawn:
        return None
    return join(
        prose(
            "The vectors of the same words, each model's own two directions of largest variance. "
            + _ABOUT_GROUPS * (len(look.groups) > 1)
            + "Distances can be compared within a panel only."
            + _without(results, drawn)
        ),
        legend(style_entries(list(look.groups))),
        grid([panel for _, panel in drawn], language=results.corpus.language),
    )


def contexts_section(results: Results) -> Markup | None:
    """One ambiguous word in its sentences, model by model."""
    look = results.looks.contexts
    drawn = use_panels(results, look) if look else []
    if look is None or not drawn:
        return None
    style = styles([use.sense for use in look.sentences])
    columns = []
    for sense, (shape, color) in style.items():
        uses = [use for use in look.sentences if use.sense == sense]
        items = []
        for use in uses:
            before, word, after = excerpt_parts(use, 90)
            items.append(tag("li", before, tag("b", word), after))
        head = legend([(shape, color, f"{sense} ({plural(len(uses), 'use')})")])
        columns.append(tag("div", head, tag("ul", *items, lang=results.corpus.language or None)))
    return join(
        prose(
            f"Every mark is one use of “{look.word}” in a sentence; its shape and color are the "
            "sense that was meant. A contextual model has a vector for each use: the further marks "
            "of different shape part, the better it tells the senses from each other. A static "
            "model has one vector for all of them. Point at a mark to read its sentence."
            + _without(results, drawn)
        ),
        legend(style_entries(list(style))),
        grid([panel for rung, panel in drawn if not is_one_point(look, rung)],
             language=results.corpus.language),
        grid([panel for rung, panel in drawn if is_one_point(look, rung)], "tiny",
             language=results.corpus.language),
        tag("details", tag("summary", f"The {plural(len(look.sentences), 'sentence')}"),
            tag("div", *columns, class_="uses")),
    )  # fmt: skip


def attention_section(results: Results) -> Markup | None:
    """Where one head looks."""
    look = results.looks.attention
    panel = attention_panel(results, look) if look else None
    if look is None or panel is None:
        return None
    return join(
        prose(
            f"{name_of(results, look)}. Each row is a token, and its cells show how it shares its "
            "attention among the columns; every row sums to one. Point at a cell to read its "
            "weight."
        ),
        tag("div", figure(panel, strongest(look), language=results.corpus.language),
            class_="scroll natural", tabindex=0, role="region", aria_label="Attention map"),
    )  # fmt: skip

"""What each rung cost: rows of text for the tables of both reports."""

from __future__ import annotations

from sememe.ladder.report.figures import DASH, count, duration, megabytes
from sememe.ladder.report.markup import Markup, tag
from sememe.ladder.report.standing import done_rungs, mean_ranks
from sememe.ladder.results import Results, Rung

HEADINGS = ("Model", "Mean rank", "Training", "Tokens seen", "Tokens/s", "Parameters", "MB")


def cost_rows(results: Results) -> list[list[str]]:
    """One row a trained rung, in the order of the headings."""
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
    """Time, tokens, rate, parameters and megabytes; a dash where there is none to tell."""
    costs = (
        (duration, rung.train_s),
        (count, rung.tokens),
        (count, rung.tokens_per_s),
        (count, rung.parameters),
        (megabytes, rung.megabytes),
    )
    return [show(value) if value else DASH for show, value in costs]


def cost_table(results: Results) -> Markup:
    """The same as a table of the page."""
    head = tag("tr", *(tag("th", name, scope="col") for name in HEADINGS))
    rows = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", value) for value in rest))
        for first, *rest in cost_rows(results)
    ]
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="costs")
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Costs")

"""The nearest words of each model, side by side."""

from __future__ import annotations

from sememe.ladder.report.markup import Markup, join, tag
from sememe.ladder.results import NearWord, Results


def neighbors_section(results: Results) -> Markup | None:
    """The nearest words of each model, side by side."""
    blocks = [
        _neighbor_table(results, word, {name: near for name, near in by_rung.items() if near})
        for word, by_rung in results.looks.neighbors.items()
    ]
    known = [block for block in blocks if block is not None]
    if not known:
        return None
    return join(
        tag(
            "p",
            "The words whose vectors point most nearly the same way, with their cosine. Cosines "
            "of two models are not on one scale; the order is what counts.",
            class_="prose",
        ),
        tag("div", *known, class_="neighbors"),
    )


def _neighbor_table(
    results: Results, word: str, by_rung: dict[str, list[NearWord]]
) -> Markup | None:
    rungs = [rung for rung in results.rungs if rung.name in by_rung]
    if not rungs:
        return None
    language = results.corpus.language or None
    rows = []
    for rung in rungs:
        near = [
            tag("li", tag("bdi", one.word, lang=language), " ",
                tag("span", _cosine(one.similarity), class_="soft"))
            for one in by_rung[rung.name]
        ]  # fmt: skip
        cell = tag("td", tag("ol", join(*near, by=" ")))
        rows.append(tag("tr", tag("th", rung.title, scope="row"), cell))
    head = tag("tr", tag("th", "Model", scope="col"), tag("th", "Nearest first", scope="col"))
    return tag(
        "section",
        tag("h3", tag("bdi", word, lang=language)),
        tag("table", tag("thead", head, class_="unseen"), tag("tbody", *rows)),
    )


def _cosine(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")

"""The report as one HTML page that needs nothing from anywhere."""

from __future__ import annotations

from string import Template

from sememe.ladder.report import sections
from sememe.ladder.report.figures import count, duration, plural
from sememe.ladder.report.markup import Markup, escaped, join, tag
from sememe.ladder.report.neighbors import neighbors_section
from sememe.ladder.report.provenance import run_section
from sememe.ladder.report.standing import done_rungs, sentence
from sememe.ladder.report.summary import budget_text, language_name, summary
from sememe.ladder.report.table import score_table
from sememe.ladder.report.theme import colors, template
from sememe.ladder.results import Results


def page(results: Results) -> str:
    """Build the page."""
    parts = [
        ("table", "The table", _table(results)),
        ("quality", "Quality and cost", sections.quality_section(results)),
        ("losses", "Training", sections.losses_section(results)),
        ("words", "The same words in every model", sections.words_section(results)),
        ("contexts", _contexts_title(results), sections.contexts_section(results)),
        ("attention", "Attention", sections.attention_section(results)),
        ("neighbors", "Nearest neighbors", neighbors_section(results)),
        ("run", "What was run", run_section(results)),
    ]
    shown = [(name, title, body) for name, title, body in parts if body]
    links = [tag("a", title, href=f"#{name}") for name, title, _ in shown]
    body = [
        tag("section", tag("h2", title, id=f"{name}-title"), content, id=name,
            aria_labelledby=f"{name}-title")
        for name, title, content in shown
    ]  # fmt: skip
    style = "\n".join([colors("auto"), template("chart.css"), template("page.css")])
    return Template(template("page.html")).substitute(
        title=escaped(results.title),
        style=style,
        summary=escaped(" ".join(summary(results))),
        facts=_facts(results),
        links=join(*links, by="\n"),
        body=join(*body, by="\n"),
        footer=escaped(_footer(results)),
    )


def _contexts_title(results: Results) -> str:
    look = results.looks.contexts
    return f"One word, several senses: {look.word}" if look else ""


def _table(results: Results) -> Markup:
    notes = [tag("li", sentence(note)) for note in results.notes]
    asked = sections.tasks_section(results)
    return join(
        score_table(results),
        join(tag("h3", "How to read it"), tag("ul", *notes, class_="notes")) if notes else None,
        join(tag("h3", "What each column asks"), asked) if asked else None,
    )


def _facts(results: Results) -> Markup:
    corpus = results.corpus
    cells = [
        (count(corpus.train_words), f"words of {language_name(corpus.language)}".strip()),
        (str(len(done_rungs(results))), "models"),
        (budget_text(results).removesuffix(" of training"), "for each of them"),
        (str(len(results.tasks)), "tasks"),
        (
            str(len(results.seeds)),
            "training of each" if len(results.seeds) == 1 else "trainings of each",
        ),
    ]
    if results.seconds:
        cells.append((duration(results.seconds), "in all"))
    return join(*(tag("div", tag("dt", name), tag("dd", value)) for value, name in cells), by="\n")


def _footer(results: Results) -> str:
    version = results.versions.get("sememe", "")
    made = f"Made by sememe {version}".strip()
    done = plural(len(done_rungs(results)), "model")
    return f"{made}: {done}, {results.started}. The same figures are in report.md and results.json."

"""What was run: text, machine, versions, seeds and commands, so that it can be run again."""

from __future__ import annotations

from sememe.ladder.report.figures import plural
from sememe.ladder.report.markup import Markup, join, tag
from sememe.ladder.report.summary import budget_text, corpus_text, machine_text
from sememe.ladder.results import Results, Rung


def facts(results: Results) -> list[tuple[str, str]]:
    """What a reader needs to know to judge the figures: names and values."""
    corpus = results.corpus
    sizes = [plural(corpus.vocabulary, "word")] * bool(corpus.vocabulary)
    sizes += [plural(corpus.subwords, "word piece")] * bool(corpus.subwords)
    known = [
        ("Started", results.started),
        ("Text", corpus_text(corpus)),
        ("Vocabulary", ", ".join(sizes)),
        ("Budget of each model", budget_text(results)),
        ("Machine", machine_text(results.machine)),
        ("Versions", ", ".join(f"{name} {one}" for name, one in results.versions.items())),
        ("Seeds", ", ".join(map(str, results.seeds))),
    ]
    return [(name, value) for name, value in known if value]


def run_section(results: Results) -> Markup:
    """The facts and the commands as a part of the page."""
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts(results)]
    if results.command:
        command = tag("dd", tag("code", results.command))
        rows.insert(0, tag("div", tag("dt", "Command"), command))
    commands = [
        tag("div", tag("dt", rung.title), tag("dd", tag("code", rung.command), _options(rung)))
        for rung in results.rungs
        if rung.command
    ]
    again = (
        tag("h3", "Each model alone"),
        tag("p", "These commands repeat the trainings one by one.", class_="prose"),
        tag("dl", *commands, class_="facts commands"),
    )
    return join(tag("dl", *rows, class_="facts"), *(again if commands else ()))


def _options(rung: Rung) -> Markup | None:
    """The options of a rung that say something, below its command."""
    told = [f"{name} {value}" for name, value in rung.options.items() if value not in (None, "")]
    return tag("div", ", ".join(told), class_="soft") if told else None

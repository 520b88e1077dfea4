"""The report as one self-contained HTML page, and the same in Markdown.

page.html, tables.html and report.md are the templates; a section without content is skipped.
"""

import re
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sememe.evaluation.results import FEW_MARK
from sememe.ladder.report.attention import attention_panel, name_of, reason, strongest
from sememe.ladder.report.charts import colors, mark, template
from sememe.ladder.report.formatting import (
    clean,
    count,
    duration,
    headline,
    joined,
    listed,
    plural,
    unit,
)
from sememe.ladder.report.panels import (
    COSTS,
    excerpt_parts,
    is_one_point,
    loss_panels,
    rank_panel,
    rung_entries,
    style_entries,
    task_panel,
    use_panels,
    with_cost,
    word_panels,
)
from sememe.ladder.report.summary import (
    budget_short,
    facts,
    language_name,
    spread_words,
    summary,
    task_facts,
)
from sememe.ladder.report.tables import (
    HEADINGS,
    Footnotes,
    best_baseline,
    cost_rows,
    done_rungs,
    mean_ranks,
    num_repetitions,
    overview,
    score_tables,
    sentence,
)
from sememe.ladder.results import Results
from sememe.localization import current, say, translate
from sememe.progress import FEW

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def _shown(value: Any) -> Any:
    """Text without forbidden characters; markup is unchanged. The template escapes the rest."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else clean(value)


def _plain(value: Any) -> Any:
    """Escape a text for Markdown, on one line."""
    if isinstance(value, Markup):
        return str(value)
    return _SPECIAL.sub(r"\\\1", " ".join(clean(str(value)).split()))


def _code(text: str) -> Markup:
    """A command as Markdown code; it may contain backticks."""
    text = " ".join(clean(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return Markup(f"{fence} {text} {fence}" if "`" in text else f"`{text}`")


def _environment(finalize: Any, **options: Any) -> Environment:
    made = Environment(
        loader=PackageLoader(__package__, ""), finalize=finalize, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, **options,
    )  # fmt: skip
    made.globals |= {"mark": mark, "say": say}
    made.filters |= {
        "as_is": Markup,
        "best_baseline": best_baseline,
        "code": _code,
        "cosine": lambda value: f"{value:.2f}".replace("-", "−"),
        "excerpt_parts": excerpt_parts,
        "headline": headline,
        "joined": joined,
        "listed": listed,
        "plural": plural,
        "sentence": sentence,
        "task_facts": task_facts,
        "translate": translate,
        "unit": unit,
    }
    return made


_PAGES = _environment(_shown, autoescape=True)
_TEXTS = _environment(_plain, keep_trailing_newline=True)


def page(results: Results) -> str:
    """Build the page."""
    filling = _filling(results, is_page=True) | _charts(results)
    filling["without"] = {
        name: _not_drawn(results, "Not drawn: {models}.", {rung.name for rung, _ in filling[name]})
        for name in ("losses", "words", "contexts")
    }
    word = results.looks.contexts.word if results.looks.contexts else ""
    titles = {
        "table": say("The table"),
        "quality": say("Quality and cost"),
        "losses": say("Training"),
        "words": say("The same words in every model"),
        "contexts": say("One word, several senses: {word}", word=word),
        "attention": say("Attention"),
        "neighbors": say("Nearest neighbors"),
        "run": say("What was run"),
    }
    language = results.corpus.language
    known = {cost: [rung.name for rung in with_cost(results, cost)] for cost in COSTS}
    return _PAGES.get_template("page.html").render(
        filling,
        parts={name: title for name, title in titles.items() if filling[name]},
        style=Markup("\n".join([colors("auto"), template("chart.css"), template("page.css")])),
        strip=_strip(results),
        language=language,
        lang=Markup(' lang="{}"').format(clean(language)) if language else "",
        about_ranks=_about_ranks(results),
        about_costs=[
            *_not_drawn(results, "No training time is known for {models}.", known["time"]),
            *_not_drawn(results, "No size is known for {models}.", known["size"]),
        ],
        num_done=plural(len(done_rungs(results)), "model"),
        page_language={"en": "en", "zh": "zh-CN"}[current()],
    )


def markdown(results: Results, pictures: Mapping[str, str]) -> str:
    """Build the report in Markdown; `pictures` are the paths of the charts by name."""
    losses = [
        (rung, [point.loss for point in rung.history if point.loss is not None])
        for rung in results.rungs
    ]
    ranks = mean_ranks(results)
    return _TEXTS.get_template("report.md").render(
        _filling(results, is_page=False),
        pictures=pictures,
        losses=[(rung, values) for rung, values in losses if len(values) > 1],
        ranked=joined([task.title for task in ranks.tasks]) if ranks else "",
    )


def _filling(results: Results, *, is_page: bool) -> dict[str, Any]:
    """The values for both templates."""
    looks, notes, sentences = results.looks, Footnotes([]), summary(results)
    short = overview(results)
    is_short = len(short.tasks) < len(results.tasks)
    known = {task.name for task in results.tasks}
    neighbors = {
        word: [(rung.title, near[rung.name]) for rung in results.rungs if near.get(rung.name)]
        for word, near in looks.neighbors.items()
    }
    return {
        "results": results,
        "takeaway": sentences[0],
        "summary": joined(sentences[1:], "{one} {other}"),
        "table": score_tables(short if is_short else results, notes, is_page=is_page),
        "all_tasks": score_tables(results, notes, is_page=is_page) if is_short else [],
        "means": [task.what for task in short.tasks if is_short and task.name not in known],
        "footnotes": notes.texts,
        "spread": spread_words(results),
        "few": FEW if any(cell.few_questions for cell in results.cells) else 0,
        "few_mark": FEW_MARK,
        "is_repeated": bool(num_repetitions(results)),
        "cost_headings": [*map(say, HEADINGS)],
        "costs": cost_rows(results),
        "looks": looks,
        "attention_name": name_of(results, looks.attention) if looks.attention else "",
        "attention_reason": reason(looks.attention) if looks.attention else "",
        "strongest": strongest(looks.attention) if looks.attention else "",
        "neighbors": {word: rows for word, rows in neighbors.items() if rows},
        "run": facts(results),
        "commands": [rung for rung in results.rungs if rung.command],
    }


def _charts(results: Results) -> dict[str, Any]:
    """Score against time and against megabytes, training curves, and the visuals of the rungs."""
    looks = results.looks
    panels = {
        cost: [panel for task in results.tasks if (panel := task_panel(results, task, cost))]
        for cost in COSTS
    }
    uses = use_panels(results, looks.contexts) if looks.contexts else []
    single = [bool(looks.contexts and is_one_point(looks.contexts, rung)) for rung, _ in uses]
    return {
        "quality": bool(done_rungs(results)) and any(panels.values()),
        "models": rung_entries(results),
        "overview": [panel for cost in COSTS if (panel := rank_panel(results, cost))],
        "panels": panels,
        "losses": loss_panels(results),
        "words": word_panels(results, looks.pca) if looks.pca else [],
        "word_styles": style_entries(list(looks.pca.groups)) if looks.pca else [],
        "contexts": uses,
        "uses": [
            [panel for (_, panel), own in zip(uses, single, strict=True) if own == wanted]
            for wanted in (False, True)
        ],
        "use_styles": style_entries([use.sense for use in looks.contexts.sentences])
        if looks.contexts
        else [],
        "attention": attention_panel(results, looks.attention) if looks.attention else None,
    }


def _about_ranks(results: Results) -> str:
    ranks = mean_ranks(results)
    if ranks is None:
        return say("There is no mean rank: no two models have scores in the same two columns.")
    told = say(
        "Tasks differ in unit and difficulty, so a mean over all scores would say little. Ranks "
        "show the order, not the size of the differences, which the panels below show. Ranked over "
        "the columns "
        "in which all of these models have scores: {tasks}.",
        tasks=listed([task.title for task in ranks.tasks]),
    )
    missing = _not_drawn(results, "Not ranked, because a score is missing: {models}.", ranks.means)
    return joined([told, *missing], "{one} {other}")


def _not_drawn(results: Results, template: str, known: Any) -> list[str]:
    """A sentence about the trained rungs that are not among the known names, if there are any."""
    rest = [rung.title for rung in done_rungs(results) if rung.name not in known]
    return [say(template, models=listed(rest))] if rest else []


def _strip(results: Results) -> list[tuple[str, str]]:
    """The key values below the summary, each with its label."""
    corpus, num_seeds = results.corpus, len(results.seeds)
    found = [
        (
            count(corpus.train_words),
            say("words of {language}", language=language_name(corpus.language)).strip(),
        ),
        (str(len(done_rungs(results))), say("models")),
        (budget_short(results), say("per model")),
        (str(len(results.tasks)), say("tasks")),
        (
            str(num_seeds),
            say("training run per model" if num_seeds == 1 else "training runs per model"),
        ),
    ]
    return [*found, *[(duration(results.seconds), say("in all"))] * bool(results.seconds)]

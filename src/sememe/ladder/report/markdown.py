"""The report in Markdown: the same figures as tables, the charts as pictures beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sememe.ladder.report.attention import name_of, strongest
from sememe.ladder.report.columns import in_parts
from sememe.ladder.report.costs import HEADINGS, cost_rows
from sememe.ladder.report.figures import (
    DASH,
    cell_text,
    has_number,
    score,
    unit,
)
from sememe.ladder.report.maps import excerpt_parts
from sememe.ladder.report.markup import clean
from sememe.ladder.report.provenance import facts
from sememe.ladder.report.standing import (
    Footnotes,
    best_rungs,
    is_above_baseline,
    mean_ranks,
    near_best,
    reason,
    sentence,
)
from sememe.ladder.report.summary import spread_words, summary, task_facts
from sememe.ladder.results import Results, Rung

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def plain(text: str) -> str:
    """A text that Markdown takes for nothing but text, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(clean(text).split()))


def code(text: str) -> str:
    """A command as code; it may hold backticks."""
    text = " ".join(clean(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"


def markdown(results: Results, pictures: Mapping[str, str]) -> str:
    """Build the report; `pictures` are the paths of the charts by name."""
    parts = [
        [f"# {plain(results.title)}", " ".join(map(plain, summary(results)))],
        ["## The table", *_scores(results), *_notes(results)],
        ["## Quality and cost", *_costs(results), *_shown(pictures, "quality")],
        ["## Training", *_losses(results), *_shown(pictures, "losses")],
        ["## The same words in every model", *_words(results), *_shown(pictures, "words")],
        ["## One word, several senses", *_contexts(results), *_shown(pictures, "contexts")],
        ["## Attention", *_attention(results), *_shown(pictures, "attention")],
        ["## Nearest neighbors", *_neighbors(results)],
        ["## What was run", *_run(results)],
    ]
    blocks = [block for part in parts if len(part) > 1 for block in part]
    return "\n\n".join(blocks) + "\n"


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(pictures: Mapping[str, str], name: str) -> list[str]:
    words = {"quality": "Quality against training time and megabytes", "losses": "Loss curves",
             "words": "Words on the plane", "contexts": "Uses of one word on the plane",
             "attention": "Attention map"}  # fmt: skip
    return [f"![{words[name]}]({pictures[name]})"] if name in pictures else []


def _scores(results: Results) -> list[str]:
    notes = Footnotes([])
    tables = [_table(_score_rows(part, notes)) for part in in_parts(results)]
    key = (
        f"{spread_words(results)} Bold: best of its column; ≈: no further from the best than the "
        "deviations of both, √(sd² + sd²); ▽: not above the best baseline of its column. "
        "Baselines are in italics."
    )
    why = [f"{number}. {plain(text)}" for number, text in enumerate(notes.texts, start=1)]
    below = ["No number because:", "\n".join(why)] if why else []
    return [*tables, key, *below]


def _score_rows(results: Results, notes: Footnotes) -> list[list[str]]:
    head = ["model", *(f"{plain(task.title)} ({plain(unit(task))}"
                       f"{'' if task.higher_is_better else ', lower is better'})"
                       for task in results.tasks)]  # fmt: skip
    best = {task.name: best_rungs(results, task) for task in results.tasks}
    near = {task.name: near_best(results, task) for task in results.tasks}
    rows = [head]
    for rung in results.rungs:
        cells = [plain(rung.title)]
        for task in results.tasks:
            cell = results.cell(rung.name, task.name)
            if cell is None or not has_number(cell):
                number = notes.number(reason(results, rung, cell))
                cells.append(f"{DASH} ({number})")
                continue
            text = cell_text(cell)
            text = f"**{text}**" if rung.name in best[task.name] else text
            text += " ≈" if rung.name in near[task.name] else ""
            cells.append(text + (" ▽" if is_above_baseline(cell, task) is False else ""))
        rows.append(cells)
    for name in dict.fromkeys(name for task in results.tasks for name in task.baselines):
        values = [score(task.baselines[name]) if name in task.baselines else ""
                  for task in results.tasks]  # fmt: skip
        rows.append([f"*{plain(name)}*", *values])
    return rows


def _notes(results: Results) -> list[str]:
    notes = [f"- {plain(sentence(note))}" for note in results.notes]
    tasks = []
    for task in results.tasks:
        asked = plain(f"{sentence(task.what)} {sentence(task_facts(task))}")
        tasks.append(f"- **{plain(task.title)}**: {asked}")
    blocks = [("### How to read it", notes), ("### What each column asks", tasks)]
    return [text for title, lines in blocks if lines for text in (title, "\n".join(lines))]


def _costs(results: Results) -> list[str]:
    rows = cost_rows(results)
    if not rows:
        return []
    ranks = mean_ranks(results)
    titles = ", ".join(plain(task.title) for task in ranks.tasks) if ranks else ""
    told = [f"Mean rank over the columns that all ranked models have: {titles}."] if ranks else []
    return [_table([HEADINGS, *([plain(text) for text in row] for row in rows)]), *told]


def _losses(results: Results) -> list[str]:
    rows = [["model", "first loss", "last loss", "points"]]
    for rung in results.rungs:
        losses = [point.loss for point in rung.history if point.loss is not None]
        if len(losses) > 1:
            rows.append([plain(rung.title), f"{losses[0]:.4g}", f"{losses[-1]:.4g}",
                         str(len(losses))])  # fmt: skip
    about = "Each model minimizes a loss of its own: compare within a row, not between rows."
    return [about, _table(rows)] if len(rows) > 1 else []


def _words(results: Results) -> list[str]:
    look = results.looks.pca
    if look is None or not any(look.points.values()):
        return []
    return ["\n".join(f"- {plain(name)}: {plain(', '.join(words))}"
                      for name, words in look.groups.items())]  # fmt: skip


def _contexts(results: Results) -> list[str]:
    look = results.looks.contexts
    if look is None or not look.sentences:
        return []
    lines = []
    for use in look.sentences:
        before, word, after = excerpt_parts(use, 90)
        lines.append(f"- {plain(use.sense)}: {_around(before, word, after)}")
    return [f"The word is **{plain(look.word)}**.", "\n".join(lines)]


def _around(before: str, word: str, after: str) -> str:
    left = " " if before[-1:].isspace() else ""
    right = " " if after[:1].isspace() else ""
    return f"{plain(before)}{left}**{plain(word)}**{right}{plain(after)}"


def _attention(results: Results) -> list[str]:
    look = results.looks.attention
    if look is None or not look.tokens:
        return []
    return [f"{plain(name_of(results, look))}. {plain(strongest(look))}".strip()]


def _neighbors(results: Results) -> list[str]:
    blocks = []
    for word, by_rung in results.looks.neighbors.items():
        rungs: list[Rung] = [rung for rung in results.rungs if by_rung.get(rung.name)]
        if not rungs:
            continue
        rows = [["model", f"nearest to {plain(word)}"]]
        for rung in rungs:
            near = [f"{plain(one.word)} {one.similarity:.2f}" for one in by_rung[rung.name]]
            rows.append([plain(rung.title), ", ".join(near)])
        blocks.append(_table(rows).replace("---:", "---"))
    return blocks


def _run(results: Results) -> list[str]:
    lines = [f"- {name.lower()}: {plain(value)}" for name, value in facts(results)]
    if results.command:
        lines.insert(0, f"- command: {code(results.command)}")
    commands = [
        f"- {plain(rung.title)}: {code(rung.command)}" for rung in results.rungs if rung.command
    ]
    again = ["### Each model alone", "\n".join(commands)] if commands else []
    return ["\n".join(lines), *again]

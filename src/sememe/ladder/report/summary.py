"""The paragraph at the top: sentences that say what was measured, and nothing else."""

from __future__ import annotations

from sememe.ladder.report.figures import (
    count,
    duration,
    gigabytes,
    headline,
    listed,
    plural,
    score,
    small_number,
    unbroken,
    unit,
    with_unit,
)
from sememe.ladder.report.standing import (
    best_baseline,
    best_rungs,
    done_rungs,
    is_above_baseline,
    learned_here,
    num_repetitions,
    numbers,
    sentence,
)
from sememe.ladder.results import Corpus, Machine, Results, Rung, Task

LANGUAGES = {"en": "English", "zh": "Chinese"}


def summary(results: Results) -> list[str]:
    """The sentences of the summary."""
    return [
        unbroken(line)
        for line in (
            _what_was_run(results),
            _who_leads(results),
            _against_baselines(results),
            *(_senses(results, task) for task in results.tasks if task.group == "senses"),
            _what_is_missing(results),
        )
        if line
    ]


def budget_text(results: Results) -> str:
    """What each rung was given."""
    if results.budget.seconds is not None:
        return f"{duration(results.budget.seconds)} of training"
    if results.budget.tokens is not None:
        return f"{count(results.budget.tokens)} tokens"
    return "no limit"


def machine_text(machine: Machine) -> str:
    """Where it ran, in a few words."""
    parts = [
        machine.gpu,
        plural(machine.cores, "core") + (f" of {machine.processor}" if machine.processor else ""),
        gigabytes(machine.memory) if machine.memory else "",
        machine.system,
    ]
    return ", ".join(part for part in parts if part)


def corpus_text(corpus: Corpus) -> str:
    """The text, and what of it was learned from and held out."""
    language = language_name(corpus.language)
    return (
        f"{corpus.name}{f', {language}' if language else ''}: "
        f"{plural(corpus.documents, 'document')}, {plural(corpus.words, 'word')}; learned from "
        f"{plural(corpus.train_documents, 'document')}, {plural(corpus.train_words, 'word')}; "
        f"held out {plural(corpus.heldout_documents, 'document')}, "
        f"{plural(corpus.heldout_words, 'word')}. {sentence(corpus.split)}"
    ).rstrip()


def spread_words(results: Results) -> str:
    """What ± stands for."""
    repeated = num_repetitions(results)
    if not repeated:
        return "Every figure was measured once, so no deviation is known."
    times = listed([str(number) for number in repeated], "or")
    return (
        f"Mean ± standard deviation over {times} repetitions; a figure without ± was measured once."
    )


def task_facts(task: Task) -> str:
    """The metric, how the task is done, and of how many rows."""
    rows = [f"{task.num_train:,} rows to learn from"] * bool(task.num_train)
    rows += [f"{task.num_test:,} to answer"] * bool(task.num_test)
    return "; ".join([unit(task), *([task.how] if task.how else []), *rows])


def language_name(code: str) -> str:
    """A language in words where we know them."""
    return LANGUAGES.get(code, code)


def _what_was_run(results: Results) -> str:
    done, corpus = [rung for rung in results.rungs if learned_here(rung)], results.corpus
    if not done:
        return f"No model has been trained yet on {corpus.name}."
    where = results.machine.gpu or plural(results.machine.cores, "core")
    language = language_name(corpus.language)
    return (
        f"{small_number(len(done)).capitalize()} model{'s' * (len(done) > 1)}"
        f"{_from_to(done)} learned from the same text, {corpus.name} "
        f"({count(corpus.train_words)} words{f' of {language}' if language else ''}), "
        f"with {'a budget of ' * bool(results.budget.seconds)}{budget_text(results)} each on "
        f"{where}, "
        "and did the same "
        f"{small_number(len(results.tasks))} task{'s' * (len(results.tasks) != 1)}."
        f"{_beside(results)}"
    )


def _from_to(rungs: list[Rung]) -> str:
    families = {rung.family for rung in rungs}
    return ", from counts to contextual vectors," if {"counts", "contextual"} <= families else ""


def _beside(results: Results) -> str:
    others = [rung.title for rung in done_rungs(results) if not learned_here(rung)]
    if not others:
        return ""
    verb = "stands" if len(others) == 1 else "stand"
    # An own model may well have read this text, with what the ladder holds out of it.
    return (
        f" Beside them {verb} {listed(others)}, not trained here: what was read before, held-out "
        "text or not, is not known."
    )


def _who_leads(results: Results) -> str:
    wins: dict[str, list[str]] = {}
    has_ties = False
    for task in results.tasks:
        if len(numbers(results, task)) < 2:
            continue
        best = [rung.name for rung in results.rungs if rung.name in best_rungs(results, task)]
        has_ties = has_ties or len(best) > 1
        for name in best:
            wins.setdefault(name, []).append(task.title)
    if not wins:
        return ""
    order = sorted(wins, key=lambda name: -len(wins[name]))
    parts = [
        f"{results.rung(name).title} in {small_number(len(wins[name]))} ({_few(wins[name])})"
        for name in order
    ]
    ties = " (ties count for each)" if has_ties else ""
    return f"The best figures of the columns{ties} are those of {'; '.join(parts)}."


def _few(titles: list[str], most: int = 3) -> str:
    shown = [title[:1].lower() + title[1:] if title[1:2].islower() else title for title in titles]
    rest = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {rest} more" if rest > 0 else "")


def _against_baselines(results: Results) -> str:
    verdicts: dict[str, list[bool]] = {}
    for task in results.tasks:
        for name, cell in numbers(results, task).items():
            verdict = is_above_baseline(cell, task)
            if verdict is not None:
                verdicts.setdefault(name, []).append(verdict)
    total = sum(map(len, verdicts.values()))
    if not total:
        return ""
    above = sum(map(sum, verdicts.values()))
    never = [results.rung(name).title for name, own in verdicts.items() if not any(own)]
    tail = f"; {listed(never)} {'is' if len(never) == 1 else 'are'} nowhere above it" * bool(never)
    return f"{above} of {total} figures are above the best baseline of their column{tail}."


def _senses(results: Results, task: Task) -> str:
    found, hardest = numbers(results, task), best_baseline(task)
    families = {rung.name: rung.family for rung in results.rungs if learned_here(rung)}
    parts = []
    for family, title in (("contextual", "contextual models"), ("static", "static vectors")):
        means = [cell.mean or 0.0 for name, cell in found.items() if families.get(name) == family]
        if means:
            low, high = min(means), max(means)
            span = score(low) if score(low) == score(high) else f"{score(low)} to {score(high)}"
            parts.append(f"{title} reach {span}{' %' if task.unit == '%' else ''}")
    if not parts:
        return ""
    tail = f", {hardest[0]} {with_unit(hardest[1], task)}" if hardest else ""
    return f"{headline(task)} ({task.metric}): {', '.join(parts)}{tail}."


def _what_is_missing(results: Results) -> str:
    parts = []
    for state, verb in (("failed", "failed"), ("left out", "left out")):
        names = [rung.title for rung in results.rungs if rung.state == state]
        if names:
            be = "were " if len(names) > 1 else "was "
            parts.append(f"{listed(names)} {be if state == 'left out' else ''}{verb}")
    waiting = [r.title for r in results.rungs if r.state in ("waiting", "training")]
    missing = f"{'; '.join(parts)}; the table says why." if parts else ""
    verb = "is" if len(waiting) == 1 else "are"
    coming = f"{listed(waiting)} {verb} still to come." if waiting else ""
    return f"{missing} {coming}".strip()

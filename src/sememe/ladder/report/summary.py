"""What was measured and what was run, in sentences, so that it can be repeated."""

from sememe.ladder.report.formatting import (
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
from sememe.ladder.report.tables import (
    best_baseline,
    best_rungs,
    done_rungs,
    is_above_baseline,
    learned_here,
    num_repetitions,
    numbers,
    sentence,
)
from sememe.ladder.results import Column, Corpus, Machine, Results

LANGUAGES = {"en": "English", "zh": "Chinese"}


def summary(results: Results) -> list[str]:
    """The sentences of the summary; the first names the best models, and by how much they lead."""
    return [
        unbroken(line)
        for line in (
            _takeaway(results),
            _what_was_run(results),
            _against_baselines(results),
            *(_senses(results, task) for task in results.tasks if task.group == "senses"),
            _what_is_missing(results),
        )
        if line
    ]


def budget_text(results: Results) -> str:
    """The budget of each rung."""
    if results.budget.seconds is not None:
        return f"{duration(results.budget.seconds)} of training"
    if results.budget.tokens is not None:
        return f"{count(results.budget.tokens)} tokens"
    return "no limit"


def machine_text(machine: Machine) -> str:
    """The machine, in a few words."""
    parts = [
        machine.gpu,
        plural(machine.cores, "core") + (f" of {machine.processor}" if machine.processor else ""),
        gigabytes(machine.memory) if machine.memory else "",
        machine.system,
    ]
    return ", ".join(part for part in parts if part)


def corpus_text(corpus: Corpus) -> str:
    """The corpus: its training and its held-out part."""
    language = language_name(corpus.language)
    return (
        f"{corpus.name}{f', {language}' if language else ''}: "
        f"{plural(corpus.documents, 'document')}, {plural(corpus.words, 'word')}; trained on "
        f"{plural(corpus.train_documents, 'document')}, {plural(corpus.train_words, 'word')}; "
        f"held out {plural(corpus.heldout_documents, 'document')}, "
        f"{plural(corpus.heldout_words, 'word')}. {sentence(corpus.split)}"
    ).rstrip()


def spread_words(results: Results) -> str:
    """What ± means."""
    repeated = num_repetitions(results)
    if not repeated:
        return "Each score was measured once, so there is no standard deviation."
    times = listed([str(number) for number in repeated], "or")
    return (
        f"Mean ± standard deviation over {times} repetitions; a score without ± was measured once."
    )


def task_facts(task: Column, results: Results) -> str:
    """The metric, how the task is done, and the number of training and test rows."""
    rows = [f"{task.num_train:,} training rows"] * bool(task.num_train)
    found = numbers(results, task).values()
    nums = sorted({cell.num for cell in found if cell.num}) or [task.num_test]
    span = f"{nums[0]:,}" if len(nums) == 1 else f"{nums[0]:,} to {nums[-1]:,}"
    total = max((cell.details.get("questions", 0) for cell in found), default=0) or task.num_test
    rows += [f"{span}{f' of {total:,}' if total > nums[0] else ''} test questions"] * bool(nums[-1])
    return "; ".join([unit(task), *([task.how] if task.how else []), *rows])


def language_name(code: str) -> str:
    """The name of a language, if known."""
    return LANGUAGES.get(code, code)


def _what_was_run(results: Results) -> str:
    done, corpus = [rung for rung in results.rungs if learned_here(rung)], results.corpus
    if not done:
        return f"No model has been trained yet on {corpus.name}."
    where = results.machine.gpu or plural(results.machine.cores, "core")
    language = language_name(corpus.language)
    is_line = {"counts", "contextual"} <= {rung.family for rung in done}
    return (
        f"{small_number(len(done)).capitalize()} model{'s' * (len(done) > 1)}"
        f"{', from counts to contextual vectors,' * is_line} were trained on the same text, "
        f"{corpus.name} "
        f"({count(corpus.train_words)} words{f' of {language}' if language else ''}), "
        f"with {'a budget of ' * bool(results.budget.seconds)}{budget_text(results)} each on "
        f"{where}, "
        "and evaluated on the same "
        f"{small_number(len(results.tasks))} task{'s' * (len(results.tasks) != 1)}."
        f"{_trained_elsewhere(results)}"
    )


def _trained_elsewhere(results: Results) -> str:
    others = [rung.title for rung in done_rungs(results) if not learned_here(rung)]
    if not others:
        return ""
    # A user's own model may have seen the documents that the ladder holds out.
    return (
        f" {listed(others)} {'was' if len(others) == 1 else 'were'} not trained here and may have "
        "seen the held-out text."
    )


def _takeaway(results: Results) -> str:
    """The three models that lead the most tasks, each with its clearest lead."""
    leads: dict[str, list[tuple[float, str]]] = {}
    for task in results.tasks:
        means = {name: cell.mean or 0.0 for name, cell in numbers(results, task).items()}
        best = [name for name in means if name in best_rungs(results, task)]
        sign = 1 if task.higher_is_better else -1
        for name in best:
            second = sign * max(sign * mean for one, mean in means.items() if one not in best)
            gap = abs(means[name] - second) / max(abs(means[name]), abs(second))
            lead = f"{with_unit(means[name], task)}, next best {with_unit(second, task)}"
            leads.setdefault(name, []).append((gap, f"{task.title} ({lead})"))
    parts = [
        f"{results.rung(name).title} is best in {len(own)} of {len(results.tasks)} tasks"
        f"{', most clearly in' if len(own) > 1 else ':'} {max(own)[1]}"
        for name, own in sorted(leads.items(), key=lambda lead: -len(lead[1]))[:3]
    ]
    return f"With {budget_text(results)} each, {'; '.join(parts)}." if parts else ""


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
    tail = f"; {listed(never)} never {'is' if len(never) == 1 else 'are'}" * bool(never)
    return f"{above} of {total} scores are above the best baseline of their column{tail}."


def _senses(results: Results, task: Column) -> str:
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
    failed, left, waiting = (
        [rung.title for rung in results.rungs if rung.state in states]
        for states in (("failed",), ("left out",), ("waiting", "training"))
    )
    parts = [f"{listed(failed)} failed"] * bool(failed)
    parts += [f"{listed(left)} {'was' if len(left) == 1 else 'were'} skipped"] * bool(left)
    missing = f"{'; '.join(parts)}; the table says why." if parts else ""
    verb = "is" if len(waiting) == 1 else "are"
    coming = f"{listed(waiting)} {verb} not finished yet." if waiting else ""
    return f"{missing} {coming}".strip()


def facts(results: Results) -> list[tuple[str, str]]:
    """The facts that a reader needs to judge the scores: names and values."""
    corpus = results.corpus
    sizes = [plural(corpus.vocabulary, "word")] * bool(corpus.vocabulary)
    sizes += [plural(corpus.subwords, "sub-word token")] * bool(corpus.subwords)
    known = [
        ("Started", results.started),
        ("Text", corpus_text(corpus)),
        ("Vocabulary", ", ".join(sizes)),
        ("Budget per model", budget_text(results)),
        ("Machine", machine_text(results.machine)),
        ("Versions", ", ".join(f"{name} {one}" for name, one in results.versions.items())),
        ("Seeds", ", ".join(map(str, results.seeds))),
    ]
    return [(name, value) for name, value in known if value]

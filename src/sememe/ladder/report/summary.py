"""What was measured and what was run, in sentences, so that it can be repeated."""

from sememe.ladder.report.formatting import (
    count,
    duration,
    gigabytes,
    headline,
    joined,
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
from sememe.localization import say, translate

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
        return say("{time} of training", time=duration(results.budget.seconds))
    if results.budget.tokens is not None:
        return say("{num} tokens of training", num=count(results.budget.tokens))
    return say("no limit")


def budget_short(results: Results) -> str:
    """The budget of each rung, as a value."""
    seconds, tokens = results.budget.seconds, results.budget.tokens
    if seconds is not None:
        return duration(seconds)
    return say("no limit") if tokens is None else say("{num} tokens", num=count(tokens))


def machine_text(machine: Machine) -> str:
    """The machine, in a few words."""
    parts = [
        machine.gpu,
        say(
            "{cores} of {processor}",
            cores=plural(machine.cores, "core"),
            processor=machine.processor,
        )
        if machine.processor
        else plural(machine.cores, "core"),
        gigabytes(machine.memory) if machine.memory else "",
        machine.system,
    ]
    return joined([part for part in parts if part])


def corpus_text(corpus: Corpus) -> str:
    """The corpus: its training and its held-out part."""
    sizes = [
        joined([plural(documents, "document"), plural(words, "word")])
        for documents, words in (
            (corpus.documents, corpus.words),
            (corpus.train_documents, corpus.train_words),
            (corpus.heldout_documents, corpus.heldout_words),
        )
    ]
    return say(
        "{name}: {all}; trained on {train}; held out {heldout}. {split}",
        name=joined([part for part in (corpus.name, language_name(corpus.language)) if part]),
        all=sizes[0], train=sizes[1], heldout=sizes[2], split=sentence(corpus.split),
    ).rstrip()  # fmt: skip


def spread_words(results: Results) -> str:
    """What ± and the interval mean, and from how many trainings the scores are."""
    repeated = num_repetitions(results)
    told = [say("Each score was measured once, so there is no standard deviation.")]
    if repeated:
        told = [
            say(
                "Mean ± standard deviation over {times} repetitions; a score without ± was "
                "measured once.",
                times=listed([str(number) for number in repeated], "or"),
            )
        ]
    if any(cell.interval for cell in results.cells):
        told.append(say("Two bounds are the 95 % interval over the questions."))
    if len(results.seeds) == 1:
        told.append(say("Each model was trained once, with one seed."))
    return joined(told, "{one} {other}")


def task_facts(task: Column, results: Results) -> str:
    """The metric, how the task is done, and the number of training and test rows."""
    rows = [say("{num:,} training rows", num=task.num_train)] * bool(task.num_train)
    found = numbers(results, task).values()
    nums = sorted({cell.num for cell in found if cell.num}) or [task.num_test]
    span = f"{nums[0]:,}"
    if len(nums) > 1:
        span = say("{low} to {high}", low=span, high=f"{nums[-1]:,}")
    total = max((cell.details.get("questions", 0) for cell in found), default=0) or task.num_test
    if nums[-1]:
        questions = (
            "{num} of {total:,} test questions" if total > nums[0] else "{num} test questions"
        )
        rows.append(say(questions, num=span, total=total))
    return joined([unit(task), *([task.how] if task.how else []), *rows], "{one}; {other}")


def language_name(code: str) -> str:
    """The name of a language, if known."""
    return say(LANGUAGES.get(code, code))


def _what_was_run(results: Results) -> str:
    done, corpus = [rung for rung in results.rungs if learned_here(rung)], results.corpus
    if not done:
        return say("No model has been trained yet on {name}.", name=corpus.name)
    is_line = {"counts", "contextual"} <= {rung.family for rung in done}
    text = say(
        "{models} were trained on the same text, {name} ({words}), with {budget} each on "
        "{machine}, and evaluated on the same {tasks}.",
        models=say(
            "{models}, from counts to contextual vectors," if is_line else "{models}",
            models=_counted(len(done), "model").capitalize(),
        ),
        name=corpus.name,
        words=words_of(corpus),
        budget=say(
            "a budget of {time}" if results.budget.seconds else "{time}", time=budget_text(results)
        ),
        machine=results.machine.gpu or plural(results.machine.cores, "core"),
        tasks=_counted(len(results.tasks), "task"),
    )
    return joined([text, *_trained_elsewhere(results)], "{one} {other}")


def words_of(corpus: Corpus) -> str:
    """The number of training words, with the language if known."""
    template = "{num} words of {language}" if corpus.language else "{num} words"
    return say(template, num=count(corpus.train_words), language=language_name(corpus.language))


def _counted(number: int, name: str) -> str:
    """A small number in words with its noun."""
    return say(f"{{num}} {name}{'s' * (number != 1)}", num=small_number(number))


def _trained_elsewhere(results: Results) -> list[str]:
    others = [rung.title for rung in done_rungs(results) if not learned_here(rung)]
    if not others:
        return []
    # A user's own model may have seen the documents that the ladder holds out.
    one = "{models} was not trained here and may have seen the held-out text."
    more = "{models} were not trained here and may have seen the held-out text."
    return [say(one if len(others) == 1 else more, models=listed(others))]


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
            lead = say(
                "{task} ({score}, next best {second})",
                task=task.title, score=with_unit(means[name], task), second=with_unit(second, task),
            )  # fmt: skip
            leads.setdefault(name, []).append((gap, lead))
    one = "{model} is best in {num} of {total} tasks: {lead}"
    several = "{model} is best in {num} of {total} tasks, most clearly in {lead}"
    parts = [
        say(
            several if len(own) > 1 else one,
            model=results.rung(name).title, num=len(own), total=len(results.tasks),
            lead=max(own)[1],
        )
        for name, own in sorted(leads.items(), key=lambda lead: -len(lead[1]))[:3]
    ]  # fmt: skip
    told = joined(parts, "{one}; {other}")
    return say("With {budget} each, {leads}.", budget=budget_text(results), leads=told) * bool(
        parts
    )


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
    text = "{num} of {total} scores are above the best baseline of their column"
    if never:
        text += "; {models} never is" if len(never) == 1 else "; {models} never are"
    return say(text + ".", num=above, total=total, models=listed(never))


def _senses(results: Results, task: Column) -> str:
    found, hardest = numbers(results, task), best_baseline(task)
    families = {rung.name: rung.family for rung in results.rungs if learned_here(rung)}
    parts = []
    for family, title in (("contextual", "contextual models"), ("static", "static vectors")):
        means = [cell.mean or 0.0 for name, cell in found.items() if families.get(name) == family]
        if means:
            low, high = min(means), max(means)
            span = with_unit(high, task)
            if score(low) != score(high):
                span = say("{low} to {high}", low=score(low), high=span)
            parts.append(say("{models} reach {scores}", models=say(title), scores=span))
    if not parts:
        return ""
    if hardest:
        parts.append(say("{task} {score}", task=hardest[0], score=with_unit(hardest[1], task)))
    return say(
        "{task} ({metric}): {scores}.",
        task=headline(task), metric=translate(task.metric), scores=joined(parts),
    )  # fmt: skip


def _what_is_missing(results: Results) -> str:
    failed, left, waiting = (
        [rung.title for rung in results.rungs if rung.state in states]
        for states in (("failed",), ("left out",), ("waiting", "training"))
    )
    skipped = "{models} was skipped" if len(left) == 1 else "{models} were skipped"
    unfinished = (
        "{models} is not finished yet." if len(waiting) == 1 else "{models} are not finished yet."
    )
    parts = [
        say(template, models=listed(names))
        for template, names in (("{models} failed", failed), (skipped, left))
        if names
    ]
    told = [say("{models}; the table says why.", models=joined(parts, "{one}; {other}"))] * bool(
        parts
    )
    told += [say(unfinished, models=listed(waiting))] * bool(waiting)
    return joined(told, "{one} {other}")


def facts(results: Results) -> list[tuple[str, str]]:
    """The facts that a reader needs to judge the scores: names and values."""
    corpus = results.corpus
    sizes = [plural(corpus.vocabulary, "word")] * bool(corpus.vocabulary)
    sizes += [plural(corpus.subwords, "sub-word token")] * bool(corpus.subwords)
    known = [
        ("Started", results.started),
        ("Text", corpus_text(corpus)),
        ("Vocabulary", joined(sizes)),
        ("Budget per model", budget_text(results)),
        ("Machine", machine_text(results.machine)),
        ("Versions", joined([f"{name} {one}" for name, one in results.versions.items()])),
        ("Seeds", joined([*map(str, results.seeds)])),
    ]
    return [(say(name), value) for name, value in known if value]

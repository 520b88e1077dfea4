"""The plan in sentences before anything is trained; what a reader of the report must know."""

from __future__ import annotations

from collections.abc import Sequence

from sememe.ladder.config import LadderConfig
from sememe.ladder.plan import Plan, cpu_workers
from sememe.ladder.results import Machine
from sememe.ladder.rungs import SPECS
from sememe.ladder.text import LadderText
from sememe.progress.figures import format_count, format_duration


def said(plan: Plan, machine: Machine, num_rungs: int) -> list[str]:
    """What is given to each rung, for the terminal and the report."""
    gpu = f", {machine.gpu}" if machine.gpu else ""
    place = f"{machine.cores} cores, {machine.memory / 2**30:.0f} GB{gpu}"
    if plan.is_timed:
        given = f"{format_duration(plan.budget_s)} of training"
    else:
        given = f"{format_count(plan.tokens, 'tokens')} of training"
    return [
        f"{num_rungs} {'rung' if num_rungs == 1 else 'rungs'}, {given} for each, on {place}.",
        f"Sizes that fit this: networks {plan.preset} with {plan.vocab_size:,} sub-words, word "
        f"vectors of {plan.dim} numbers, language models of {plan.predicted_words:,} words; tasks "
        f"are learned from up to {plan.num_rows:,} rows.",
    ]


def said_beforehand(plan: Plan, names: Sequence[str], seconds: float) -> list[str]:
    """What will be done with the rungs of these names, for the terminal alone."""
    sentences = []
    if started := _started(plan, names):
        sentences.append(
            f"{started} begins with a skip-gram over the same text, which takes a quarter of its "
            "training, or one pass at least."
        )
    if plan.num_helpers:
        has_networks, has_others = _trained_by(names)
        parts = ["Networks are trained one after the other on the GPU"] * has_networks
        if has_others:
            others = "beside them the other rungs" if has_networks else "Rungs are trained in turn"
            parts.append(f"{others} on the cores")
        sentences.append(f"{', and '.join(parts)}; then all are asked side by side.")
    if plan.is_timed:
        units = (("hours", 3_600), ("minutes", 60))
        unit = next((name for name, size in units if seconds >= size), "")
        clock = f"{format_duration(seconds)} {unit}" if unit else f"{seconds:.0f} seconds"
        sentences.append(f"All of it will take about {clock}.")
    return sentences


def _started(plan: Plan, names: Sequence[str]) -> str:
    """The titles of the rungs that begin with a skip-gram."""
    found = [SPECS[name].title for name in names if SPECS[name].options(plan).get("start_epochs")]
    return ", ".join(found)


def _trained_by(names: Sequence[str]) -> tuple[bool, bool]:
    """Whether there are rungs for the GPU to train, and whether there are others."""
    is_network = [SPECS[name].is_network for name in names]
    return any(is_network), not all(is_network)


def _told_of_lanes(config: LadderConfig, names: Sequence[str]) -> str:
    has_networks, has_others = _trained_by(names)
    parts = ["networks had the GPU for themselves"] * has_networks
    if has_others:
        num = cpu_workers(config, has_networks=has_networks)
        parts.append(f"models of the CPU had {num} {'thread' if num == 1 else 'threads'}")
    return f"While they were trained, {', and '.join(parts)}; only the asking was side by side."


def notes_of(text: LadderText, plan: Plan, config: LadderConfig, names: Sequence[str]) -> list[str]:
    """How the rungs of these names were trained and asked, and what the figures do not say."""
    given = (
        "One-hot, counts and n-grams need one pass over the text and take no longer; the speed of "
        "all other rungs was measured first, and they were given what fits into the same time. How "
        "long each took stands beside it."
        if plan.is_timed
        else "All rungs were given the same number of tokens, words or sub-words as they read "
        "them; one-hot, counts and n-grams need one pass."
    )
    how = (
        "Tasks on sentences fine-tune the networks whole; word vectors stand under a BiLSTM. Each "
        f"is taught the same rows {config.seeds} times with other first weights and another order; "
        "± is the deviation over these."
        if config.finetune
        else "Tasks on sentences use frozen vectors of words in their sentence and one and the "
        "same linear head for every rung (no window, no network above); fine-tuning all would "
        f"not fit into the budget. Each head is trained on {config.seeds} draws of rows; ± is the "
        "deviation over the draws."
    )
    words = (
        "Contextual models stand in the columns of words with the mean over uses of each word in "
        "the training text, all dimensions scaled alike; side by side are their first, middle and "
        "last layers."
    )
    notes = [f"Every rung read the same training documents, split {text.split}.", given, how, words]
    if started := _started(plan, names):
        notes.append(
            f"{started} began with the vectors of a skip-gram over the same text, for its words "
            "and for its softmax. A quarter of its training, or one pass at least, was that "
            "skip-gram's; it is counted in its time and in its tokens."
        )
    if plan.num_helpers:
        notes.append(_told_of_lanes(config, names))
    if text.is_built_in:
        notes.append(
            "Docstrings repeat phrases of one another, which makes their held-out text easier, for "
            "n-grams above all."
        )
    if plan.is_timed and plan.budget_s < 3_600 and plan.preset in ("tiny", "mini"):
        notes.append(
            "Minutes on few cores make no BERT: what stands here of contextual models is what such "
            "small ones learned in this time, not what the architectures can do."
        )
    return notes

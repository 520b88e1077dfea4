"""What a reader of the report must know to judge its figures, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from sememe.ladder.config import LadderConfig
from sememe.ladder.plan import Plan
from sememe.ladder.rungs import SPECS
from sememe.ladder.text import LadderText


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
    started = [SPECS[name].title for name in names if SPECS[name].options(plan).get("start_epochs")]
    if started:
        notes.append(
            f"{', '.join(started)} began with the vectors of a skip-gram over the same text, for "
            "its words and for its softmax. A quarter of its training, or one pass at least, was "
            "that skip-gram's; it is counted in its time and in its tokens."
        )
    if plan.num_helpers:
        notes.append(
            "Networks had the GPU for themselves while they were trained, and models of the CPU "
            "all cores but two; only the asking was side by side."
        )
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

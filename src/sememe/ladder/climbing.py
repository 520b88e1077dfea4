"""The pieces of a climb: a rung is trained, a rung is asked; what was found comes out as news.

The ladder takes the same news from its own process and from helpers beside it (beside.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from sememe.errors import SememeError
from sememe.ladder.answers import FAILURES, answered
from sememe.ladder.config import LadderConfig
from sememe.ladder.looks import look_at
from sememe.ladder.plan import Plan
from sememe.ladder.questions import Interview
from sememe.ladder.results import Cell, Looks, Rung
from sememe.ladder.rungs import SPECS, Chosen, needs_torch
from sememe.ladder.tasks import Questions, make_questions
from sememe.ladder.text import LadderText
from sememe.ladder.training import forget, planned, trained
from sememe.progress import Reporter
from sememe.tokens.locking import locked


class Doing(NamedTuple):
    """A rung begins with something."""

    rung: str
    what: str


News = Doing | Rung | Cell | Looks


@dataclass(frozen=True, kw_only=True)
class Brief:
    """All that must be known to train and to ask the rungs of one ladder."""

    text: LadderText
    plan: Plan
    config: LadderConfig
    chosen: Chosen
    words: Sequence[str | Path] | None
    tasks: Mapping[str, tuple[str, str]] | None
    senses: Sequence[str | Path] | None
    models: Path

    def questions(self, reporter: Reporter) -> Questions:
        """What rungs are asked; the same whoever makes them."""
        return make_questions(
            self.text, self.plan, self.chosen, seeds=self.config.seeds,
            finetune=self.config.finetune, words=self.words, tasks=self.tasks, senses=self.senses,
            reporter=reporter,
        )  # fmt: skip


def training(brief: Brief, rung: Rung, reporter: Reporter) -> Iterator[News]:
    """Train a rung, from its last checkpoint where there is one; what fails is said in words."""
    spec, out = SPECS[rung.name], brief.models / rung.name
    if why := needs_torch(spec):
        yield replace(rung, state="left out", why=why)
        return
    try:
        # The helper of a ladder that was killed may still be at its last checkpoint.
        with locked(out, reporter.note):
            if rung.state != "training":
                forget(out)
                yield Doing(rung.name, "measuring")
                rung = planned(spec, replace(rung, why=""), brief.plan, brief.text, reporter)
                yield rung
            yield Doing(rung.name, "training")
            yield trained(spec, rung, brief.plan, brief.text, out, reporter)
    except FAILURES as error:
        yield replace(rung, state="failed", why=str(error) or "There was too little memory.")


def asking(
    brief: Brief, interview: Interview, asked: Questions, wanted: Collection[str], *, looks: bool
) -> Iterator[News]:
    """Ask a rung the questions of some names, and look at it."""
    name = interview.rung.name
    for question in asked.questions:
        if question.task.name in wanted:
            yield Doing(name, f"asked: {question.task.title}")
            yield answered(question, interview)
    if looks:
        yield Doing(name, "looked at")
        with suppress(SememeError):  # of a model that cannot be opened; its cells say so
            yield look_at(interview, asked.shown, brief.text)

"""The steps of a rung: training, and evaluation, whose answers become cells of the table.

Each step yields news; the ladder handles news from its own process and from worker processes
(worker_pool.py) in the same way.
"""

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from sememe.errors import MissingExtraError, SememeError
from sememe.ladder.config import LadderConfig
from sememe.ladder.context_questions import CENTERED, CONTEXT, LAST
from sememe.ladder.plan import LadderPlan
from sememe.ladder.reading import Question, RungAnswer, RungModel
from sememe.ladder.results import Cell, Results, Rung, Visuals
from sememe.ladder.rungs import SPECS, Chosen
from sememe.ladder.tasks import LadderQuestions, make_questions
from sememe.ladder.text import LadderText
from sememe.ladder.training import forget, planned, trained
from sememe.ladder.visuals import collect_visuals
from sememe.metrics import spread
from sememe.progress import FEW, Reporter
from sememe.storage.folder import locked

# Errors that end one evaluation only. PyTorch reports exhausted GPU memory as a RuntimeError.
FAILURES = (SememeError, MemoryError, RuntimeError)

# Baselines for senses that need no network: the best word vectors of any rung.
_AROUND = {
    CONTEXT: "best mean of the other words' vectors",
    CENTERED: "best centered mean of the other words' vectors",
}


def evaluated(question: Question, rung_model: RungModel) -> Cell:
    """Evaluate one rung on one task; an error becomes the cell's reason."""
    begun_s = time.monotonic()
    try:
        answer = question.evaluate(rung_model)
    except FAILURES as error:
        answer = RungAnswer(why=str(error) or "Out of memory.")
    found = spread(answer.scores) if answer.scores else None
    is_sure = answer.interval and all(map(math.isfinite, answer.interval))
    return Cell(
        rung=rung_model.rung.name,
        task=question.task.name,
        scores=[round(float(score), 4) for score in answer.scores],
        mean=None if found is None else round(float(found.mean), 4),
        sd=None if found is None or found.num < 2 else round(float(found.sd), 4),
        interval=[round(float(bound), 4) for bound in answer.interval] if is_sure else None,
        num=answer.num,
        few_questions=0 < answer.num < FEW,
        why=answer.why,
        seconds=round(time.monotonic() - begun_s, 2),
        # Only values that JSON can represent.
        details={
            name: value
            for name, value in answer.details.items()
            if not isinstance(value, float) or math.isfinite(value)
        },
    )


def with_baselines(results: Results) -> Results:
    """The same results, with the chance levels of senses and masked words in their columns."""
    found: dict[str, dict[str, float]] = {}
    static = {rung.name for rung in results.rungs if rung.family in ("counts", "static")}
    for cell in results.cells:
        # Earlier versions wrote the key `commonest`.
        top = cell.details.get("most_frequent", cell.details.get("commonest"))
        if cell.task == "hidden" and top is not None:
            found["hidden"] = {"most frequent": top}
        if cell.task == "senses" and "chance" in cell.details:
            own = found.setdefault("senses", {"chance": cell.details["chance"]})
            for name, title in _AROUND.items():
                if cell.rung in static and name in cell.details:
                    own[title] = max(cell.details[name], own.get(title, 0.0))
    return replace(
        results,
        tasks=[
            replace(task, baselines={**task.baselines, **found.get(task.name, {})})
            for task in results.tasks
        ],
        notes=[
            *(note for note in results.notes if not note.startswith(_SENSES)),
            *_sense_notes(results),
        ],
    )


_SENSES = "Senses: "


def _sense_notes(results: Results) -> list[str]:
    """A sentence that compares contextual rungs with the mean of the words around."""
    parts = []
    for rung in results.rungs:
        cell = results.cell(rung.name, "senses")
        if rung.family == "contextual" and cell is not None and cell.mean is not None:
            last, around = cell.details.get(LAST), cell.details.get(CONTEXT)
            if last is not None and around is not None:
                parts.append(f"{rung.title} {cell.mean:.1f} % ({last:.1f} %, {around:.1f} %)")
    if not parts:
        return []
    return [
        f"{_SENSES}the score of the vector from which a network predicts the masked word; in "
        "parentheses, its last layer at the word and the mean input vector of the other words: "
        f"{', '.join(parts)}. One vector per word scores at chance level; the mean of the other "
        "words' vectors is the baseline to beat."
    ]


class Activity(NamedTuple):
    """What a rung is doing now."""

    rung: str
    what: str


News = Activity | Rung | Cell | Visuals


@dataclass(frozen=True, kw_only=True)
class Brief:
    """What is needed to train and evaluate the rungs of one ladder."""

    text: LadderText
    plan: LadderPlan
    config: LadderConfig
    chosen: Chosen
    words: Sequence[str | Path] | None
    tasks: Mapping[str, tuple[str, str]] | None
    senses: Sequence[str | Path] | None
    models: Path

    def questions(self, reporter: Reporter) -> LadderQuestions:
        """The evaluation tasks, the same in every process."""
        return make_questions(
            self.text, self.plan, self.chosen, seeds=self.config.seeds,
            finetune=self.config.finetune, words=self.words, tasks=self.tasks, senses=self.senses,
            reporter=reporter,
        )  # fmt: skip


def training(brief: Brief, rung: Rung, reporter: Reporter) -> Iterator[News]:
    """Train a rung, from its last checkpoint if there is one; an error becomes its reason."""
    spec, out = SPECS[rung.name], brief.models / rung.name
    try:
        spec.model_class  # noqa: B018  (before any clock runs, and here if PyTorch is missing)
        # The worker of a killed ladder may still be writing its last checkpoint.
        with locked(out, reporter.note):
            if rung.state != "training":
                forget(out)
                yield Activity(rung.name, "measuring")
                rung = planned(spec, replace(rung, why=""), brief.plan, brief.text, reporter)
                yield rung
            yield Activity(rung.name, "training")
            yield trained(spec, rung, brief.plan, brief.text, out, reporter)
    except MissingExtraError as error:
        yield replace(rung, state="left out", why=str(error))
    except FAILURES as error:
        yield replace(rung, state="failed", why=str(error) or "Out of memory.")


def evaluating(
    brief: Brief,
    rung_model: RungModel,
    asked: LadderQuestions,
    wanted: Collection[str],
    *,
    looks: bool,
) -> Iterator[News]:
    """Evaluate a rung on the named tasks, and collect its visuals."""
    name = rung_model.rung.name
    for question in asked.questions:
        if question.task.name in wanted:
            yield Activity(name, f"evaluating: {question.task.title}")
            yield evaluated(question, rung_model)
    if looks:
        yield Activity(name, "looked at")
        with suppress(SememeError):  # of a model that cannot be opened; its cells say so
            yield collect_visuals(rung_model, asked.shown, brief.text)

"""From answers to cells: means, deviations, failures in words; baselines that come from rungs."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from sememe.errors import SememeError
from sememe.ladder.context_questions import CENTERED, CONTEXT, LAST
from sememe.ladder.questions import Answer, Interview, Question
from sememe.ladder.results import Cell, Results
from sememe.metrics import spread

# What stops one piece and no other: PyTorch says as a RuntimeError that a GPU's memory is full.
FAILURES = (SememeError, MemoryError, RuntimeError)

# Baselines of senses that need no network: the best that word vectors of a rung reach.
_AROUND = {
    CONTEXT: "best mean of the other words' vectors",
    CENTERED: "best centered mean of the other words' vectors",
}


def answered(question: Question, interview: Interview) -> Cell:
    """Ask one rung one question; what it cannot answer becomes a sentence."""
    begun_s = time.monotonic()
    try:
        answer = question.ask(interview)
    except FAILURES as error:
        answer = Answer(why=str(error) or "There was too little memory.")
    found = spread(answer.scores) if answer.scores else None
    return Cell(
        rung=interview.rung.name,
        task=question.task.name,
        scores=[round(float(score), 4) for score in answer.scores],
        mean=None if found is None else round(float(found.mean), 4),
        sd=None if found is None or found.num < 2 else round(float(found.sd), 4),
        why=answer.why,
        seconds=round(time.monotonic() - begun_s, 2),
        details={name: value for name, value in answer.details.items() if _is_known(value)},
    )


def _is_known(value: Any) -> bool:
    """Whether JSON gives a figure back as it is."""
    return not isinstance(value, float) or math.isfinite(value)


def with_baselines(results: Results) -> Results:
    """The same results, the columns of senses and hidden words with what rungs told of chance."""
    found: dict[str, dict[str, float]] = {}
    static = {rung.name for rung in results.rungs if rung.family in ("counts", "static")}
    for cell in results.cells:
        if cell.task == "hidden" and "commonest" in cell.details:
            found["hidden"] = {"most frequent": cell.details["commonest"]}
        if cell.task == "senses" and "chance" in cell.details:
            own = found.setdefault("senses", {"chance": cell.details["chance"]})
            for name, title in _AROUND.items():
                if cell.rung in static and name in cell.details:
                    own[title] = max(cell.details[name], own.get(title, 0.0))
    tasks = [
        replace(task, baselines={**task.baselines, **found.get(task.name, {})})
        for task in results.tasks
    ]
    notes = [note for note in results.notes if not note.startswith(_SENSES)]
    return replace(results, tasks=tasks, notes=[*notes, *_sense_notes(results)])


_SENSES = "Senses: "


def _sense_notes(results: Results) -> list[str]:
    """What was measured of contextual rungs beside the mean of the words around, in a sentence."""
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
        f"{_SENSES}what a network expects in the word's place, and in brackets its last layer at "
        "the word, and the mean over the other words of the sentence before any layer: "
        f"{', '.join(parts)}. A model with one vector a word is at chance by itself; the mean over "
        "the other words of good word vectors is the baseline to beat."
    ]

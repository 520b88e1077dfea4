"""Predictions as the page shows them: generation with chosen tokens, and rows of fine-tuned models.

steps = steered_steps(model, "Once upon a", {2: 417}, max_tokens=10)
prediction_of(classifier, TaskRow("The film is a joy."))["items"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sememe.contract import GenerationStep, NextToken
from sememe.errors import InputError
from sememe.examples.tagging import OUTSIDE
from sememe.tasks.importance import WordImportance


def steered_steps(
    model: Any,
    prompt: str,
    choices: Mapping[int, int] | None = None,
    *,
    max_tokens: int = 20,
    **options: Any,
) -> Iterator[GenerationStep]:
    """`model.generate_steps` that continues from chosen tokens: step from 0 → id of its token."""
    ids: list[int] = []
    for last, token_id in [*sorted((choices or {}).items()), (max_tokens - 1, None)]:
        num = min(last + 1, max_tokens) - len(ids)
        if num < 1:
            continue
        for step in model.generate_steps(prompt, ids=ids, max_tokens=num, **options):
            is_by_hand = token_id is not None and len(ids) == last
            own = step._replace(chosen=_named(step, token_id)) if is_by_hand else step
            yield own
            ids = [*ids, own.chosen.id]
        if len(ids) <= last or not own.chosen.text:
            return  # the text has ended


def _named(step: GenerationStep, token_id: int | None) -> NextToken:
    found = [own for own in step.tokens if own.id == token_id]
    if not found:
        raise InputError(f"Token {token_id} is not among the {len(step.tokens)} most likely ones.")
    return found[0]


class TaskRow(NamedTuple):
    """The texts of a row, of which each kind of model reads its own."""

    text: str  # of an answer, the text that it is in
    other: str = ""
    question: str = ""
    choices: Sequence[str] = ()


def row_of(model: Any, given: TaskRow) -> Any:
    """The row as `model.predict` takes it."""
    if not given.text.strip():
        raise InputError("The text is empty.")
    if model.kind == "choose":
        if len(given.choices) < 2:
            raise InputError("Give two choices or more.")
        choices = {f"choice{number}": own for number, own in enumerate(given.choices, start=1)}
        return {"text": given.text, **choices}
    if model.kind == "answer":
        if not given.question.strip():
            raise InputError("The question is empty.")
        return (given.question, given.text)
    if model.kind == "pairs" or (model.kind == "regress" and "score_pairs" in model.capabilities):
        if not given.other.strip():
            raise InputError("This model reads pairs: the second text is empty.")
        return (given.text, given.other)
    return given.text


def prediction_of(model: Any, given: TaskRow) -> dict[str, Any]:
    """The prediction for a row in JSON values, as items with their scores, and in its text."""
    row = row_of(model, given)
    (found,) = model.predict_scores([row])
    if found is None:
        raise InputError("The model knows nothing in this text.")
    told = model.prediction_json(found)
    items, spans = shown(told, given)
    text = told.get("text", "") if model.kind == "tag" else given.text
    parts = cut(text, [(own["start"], own["end"], own) for own in spans])
    return {"prediction": told, "row": repr(row), "items": items, "spans": spans, "parts": parts}


def shown(told: dict[str, Any], given: TaskRow) -> tuple[list[Any], list[Any]]:
    """The items (label, value, whether it is predicted), and the spans of the text."""
    if "spans" in told:
        columns = (told[name] for name in ("tags", "words", "starts", "ends", "probabilities"))
        names = ("type", "text", "start", "end", "probability")
        words = [dict(zip(names, one, strict=True)) for one in zip(*columns, strict=True)]
        return [], told["spans"] or [own for own in words if own["type"] != OUTSIDE]
    if "candidates" in told:
        place = (told["start"], told["end"])
        spans = [own | {"type": ""} for own in told["candidates"]]
        items = [
            (own["text"], own["probability"], (own["start"], own["end"]) == place) for own in spans
        ]
        return items, [own for own in spans if (own["start"], own["end"]) == place]
    if "score" in told:
        return [("", told["score"], True)], []
    if "number" in told:
        pairs = zip(given.choices, told["probabilities"], strict=True)
        found = [(own, chance, own == told["text"]) for own, chance in pairs]
    else:
        labels = [own["label"] for own in told.get("labels", [told])]
        chances = told.get("probabilities") or {
            own["label"]: own["probability"] for own in told["labels"]
        }
        # Without probabilities of all labels, these are all labels, the predicted one first.
        chosen = labels if "probabilities" in told else labels[:1]
        found = [(own, chance, own in chosen) for own, chance in chances.items()]
    return sorted(found, key=lambda own: -own[1]), []


def importance_of(row: Any, found: WordImportance) -> dict[str, Any]:
    """The words of a row with what hiding each of them costs, and what is between them."""
    texts = row.values() if isinstance(row, dict) else [row] if isinstance(row, str) else row
    parts: list[tuple[str, Any]] = []
    for index, text in enumerate(texts):
        words = [own for own in found.words if own.text_index == index]
        parts += [
            *([("\n", None)] if index else []),
            *cut(text, [(w.start, w.end, w.drop) for w in words]),
        ]
    return {**found._asdict(), "words": [own._asdict() for own in found.words], "parts": parts}


def cut(text: str, places: Sequence[tuple[int, int, Any]]) -> list[tuple[str, Any]]:
    """The text in parts, each with its label; the page counts characters otherwise."""
    parts, last = [], 0
    for start, end, told in places:
        parts += [(text[last:start], None), (text[start:end], told)]
        last = end
    return [own for own in [*parts, (text[last:], None)] if own[0]]

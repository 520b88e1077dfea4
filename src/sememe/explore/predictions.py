"""Predictions: texts in; generations step by step, predicted rows and which words matter out.

Masked and next words are routes of the service (/v1/fill, /v1/next).
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from sememe.contract import GenerationStep
from sememe.explore.prediction_results import (
    TaskRow,
    importance_of,
    prediction_of,
    row_of,
    steered_steps,
)
from sememe.explore.routing import explore_router
from sememe.serve.routes import Body, Text
from sememe.serve.service import Service, as_dicts, json_response
from sememe.tasks.importance import WordImportance, importance_steps

_MOST_STEPS = 200


class Follows(Body):
    """A text, and texts that may follow it."""

    text: Text
    others: Annotated[list[Text], Field(min_length=1, max_length=20)]


class Generation(Body):
    """The start of a text, how it is continued, and tokens that were chosen by hand: step → id."""

    prompt: Text = ""
    choices: dict[Annotated[int, Field(ge=0, lt=_MOST_STEPS)], int] = Field(default_factory=dict)
    count: Annotated[int, Field(ge=1, le=50)] = 10
    max_tokens: Annotated[int, Field(ge=1, le=_MOST_STEPS)] = 20
    temperature: Annotated[float, Field(ge=0, le=1_000)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=2**31)] = 0
    top_p: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**31)] = 1


class Row(Body):
    """The texts of a row, of which each kind of model reads its own."""

    text: Text  # of an answer, the text that it is in
    other: Text = ""
    question: Text = ""
    choices: Annotated[list[Text], Field(default_factory=list, max_length=20)]

    @property
    def given(self) -> TaskRow:
        """Its texts."""
        return TaskRow(self.text, self.other, self.question, self.choices)


def prediction_routes(service: Service) -> APIRouter:
    """The routes of this view."""
    router = explore_router()

    @router.post("/follows", summary="Whether texts follow another")
    async def follows(request: Request, body: Follows) -> Response:
        def call(model: Any) -> list[float]:
            return [model.follows(body.text, other) for other in body.others]

        found = await service.answer(request, body.model, "follows", call)
        return json_response({"probabilities": found})

    @router.post("/generation", summary="Continue a text, with the alternatives of each token")
    async def generation(request: Request, body: Generation) -> Response:
        own = await service.model(request, body.model, "generate")
        steps = steered_steps(own.model, **body.model_dump(exclude={"model"}))

        async def taken() -> list[dict[str, Any]]:
            return [step_of(step) async for step in service.batcher.steps(steps)]

        with service.models.using(own):
            return json_response({"steps": await service.waiting(request, taken())})

    @router.post("/predict", summary="What a fine-tuned model predicts for a row")
    async def predict(request: Request, body: Row) -> Response:
        found = await service.answer(
            request, body.model, "predict", lambda model: prediction_of(model, body.given)
        )
        return json_response(found)

    @router.post("/importance", summary="Which words a prediction depends on")
    async def importance(request: Request, body: Row) -> Response:
        own = await service.model(request, body.model, "predict")
        row = row_of(own.model, body.given)
        steps = importance_steps(own.model, row)

        async def last() -> WordImportance:
            found = [step async for step in service.batcher.steps(steps)]
            return found[-1]

        with service.models.using(own):
            return json_response(importance_of(row, await service.waiting(request, last())))

    return router


def step_of(step: GenerationStep) -> dict[str, Any]:
    """A step of a generation in JSON values."""
    return {
        "chosen": step.chosen._asdict(),
        "tokens": as_dicts(step.tokens),
        "num_kept": step.num_kept,
    }

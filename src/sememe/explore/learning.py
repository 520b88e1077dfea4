"""How models learn: a sentence or a corpus in; steps, a film of a training, and masks out."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field

from sememe.explore.jobs import Jobs, Report
from sememe.explore.routing import columns_response, explore_router
from sememe.machine import imported
from sememe.serve.routes import Body, Text
from sememe.serve.service import Service, json_response

_STEPS, _FILM = "sememe.models.word2vec.steps", "sememe.models.word2vec.snapshots"
_MASKS = "sememe.models.bert.mask_draws"  # these are imported when they are first used
Seed = Annotated[int, Field(ge=0, le=2**31)]


class StepOf(Body):
    """A sentence, the number of a step, and the options of StepConfig."""

    text: Text
    step: Annotated[int, Field(ge=0)] = 0
    dim: int = 8
    window: int = 2
    negatives: int = 3
    learning_rate: float = 0.2
    seed: Seed = 1


class FilmOf(Body):
    """The options of a short training."""

    num_words: Annotated[int, Field(ge=3, le=2_000)] = 200
    num_snapshots: Annotated[int, Field(ge=2, le=100)] = 30
    epochs: Annotated[int, Field(ge=1, le=100)] = 20
    dim: Annotated[int, Field(ge=2, le=300)] = 50
    window: Annotated[int, Field(ge=1, le=20)] = 5
    negatives: Annotated[int, Field(ge=1, le=20)] = 5
    seed: Seed = 1


class MasksOf(Body):
    """A text, and how often and by which options it is masked."""

    text: Text
    num: Annotated[int, Field(ge=1, le=2_000)] = 1_000
    seed: Seed = 1
    rate: Annotated[float, Field(ge=0.001, le=1)] = 0.15
    unit: Literal["token", "word"] = "token"


def learning_routes(service: Service, jobs: Jobs, corpus: str | Path | None = None) -> APIRouter:
    """The routes of this view; without a corpus, the film is of the built-in one."""
    router = explore_router("/learning")

    @router.post("/step", summary="One step of word2vec with all its numbers")
    async def step(request: Request, body: StepOf) -> Response:
        work = service.batcher.call_beside(lambda: step_of(body))
        return json_response(await service.waiting(request, work))

    @router.post("/film", summary="Train word2vec for a short time, if that was not done yet")
    async def film(request: Request, body: FilmOf) -> Response:
        def work(report: Report) -> tuple[dict[str, Any], np.ndarray]:
            return film_of(body, corpus, report)

        return json_response(jobs.start(film_key(body), work).state())

    @router.post("/film/snapshots", summary="The places of words at each snapshot")
    async def snapshots(request: Request, body: FilmOf) -> Response:
        meta, positions_SN2 = jobs.result(film_key(body))
        return columns_response(meta, positions=positions_SN2)

    @router.post("/masks", summary="Many draws of BERT's masks of a text")
    async def masks(request: Request, body: MasksOf) -> Response:
        answer: Response = await service.answer(
            request, body.model, "embed_words", lambda model: masks_of(model, body)
        )
        return answer

    return router


def step_of(body: StepOf) -> dict[str, Any]:
    """A step of word2vec in JSON values."""
    options = body.model_dump(exclude={"model", "text", "step"})
    found = imported(_STEPS, "training_step")(body.text, body.step, **options)
    told = asdict(found)
    del told["input_VD"], told["output_VD"]
    return {
        **told, "center": found.sentence[found.pair.center],
        "context": found.sentence[found.pair.context],
    }  # fmt: skip


def film_of(
    body: FilmOf, corpus: str | Path | None, report: Report
) -> tuple[dict[str, Any], np.ndarray]:
    """What the page shows of a film; its model, which is much larger, is not kept."""
    found = imported(_FILM, "train_film")(
        corpus, report=report, **body.model_dump(exclude={"model"})
    )
    meta = {
        "words": found.words, "counts": found.counts, "num_words": found.num_words_S,
        "losses": found.losses_S, "corpus": str(corpus or ""),
    }  # fmt: skip
    return meta, found.positions_SN2


def film_key(body: FilmOf) -> str:
    """The key of a film's job: its options."""
    return f"film-{hashlib.sha256(body.model_dump_json().encode()).hexdigest()[:16]}"


def masks_of(model: Any, body: MasksOf) -> Response:
    """The fates of the tokens in each draw, and the ids that the network sees."""
    options = body.model_dump(exclude={"model", "text"})
    found = imported(_MASKS, "draw_masks")(model, body.text, **options)
    names = {int(own): found.tokenizer.token(int(own)) for own in np.unique(found.seen_NT)}
    meta = {
        "tokens": found.tokens, "is_word_start": found.is_word_start_T.tolist(),
        "names": {str(own): name for own, name in names.items()}, "counts": found.counts(),
    }  # fmt: skip
    return columns_response(meta, fates=found.fates_NT, seen=found.seen_NT.astype(np.uint32))

"""Routes in the shape of Text Embeddings Inference, for clients that speak it."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field

from sememe import __version__
from sememe.serve.json_route import Check, json_route
from sememe.serve.models import INDEX
from sememe.serve.routes import Body, Text, described, pair_scores, predicted, ranked
from sememe.serve.service import Service, json_response

Inputs = Text | Annotated[list[Text], Field(min_length=1, max_length=2_048)]


class Embed(Body):
    """Texts to embed."""

    inputs: Inputs
    truncate: bool = False
    normalize: bool = True


class RerankTexts(Body):
    """A query and texts."""

    query: Text
    texts: Annotated[list[Text], Field(min_length=1, max_length=2_048)]
    return_text: bool = False
    truncate: bool = False


class Texts(Body):
    """One text, or several."""

    inputs: Inputs


class Predict(Texts):
    """Texts to predict."""

    truncate: bool = False


def tei_routes(service: Service, check: Check) -> APIRouter:
    """The routes of TEI; the field `model` chooses one of several models."""
    router = APIRouter(tags=["TEI"], route_class=json_route(check))

    @router.post("/embed", summary="Vectors of texts")
    async def embed(request: Request, body: Embed) -> Response:
        _, vectors_ND, _ = await service.embed(
            request, body.model, body.inputs, truncate=body.truncate
        )
        if body.normalize:
            norms_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
            vectors_ND = vectors_ND / np.maximum(norms_N1, 1e-12)
        return json_response(list(vectors_ND))

    @router.post("/rerank", summary="Sort texts by a query")
    async def rerank(request: Request, body: RerankTexts) -> Response:
        scores = await pair_scores(
            service, request, body.model, body.query, body.texts, truncate=body.truncate
        )
        found = ranked(scores.results)
        if body.return_text:
            found = [own | {"text": body.texts[own["index"]]} for own in found]
        return json_response(found)

    @router.post("/predict", summary="Labels of texts with their scores")
    async def predict(request: Request, body: Predict) -> Response:
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        answers = await predicted(service, request, body.model, texts, truncate=body.truncate)
        found = [scored(own) for own in answers.results]
        return json_response(found[0] if isinstance(body.inputs, str) else found)

    @router.post("/tokenize", summary="Tokens of texts")
    async def tokenize(request: Request, body: Texts) -> Response:
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        found = await service.answer(
            request, body.model, "embed", lambda model: model.tokenize(texts)
        )
        return json_response(
            [
                [
                    {"id": one.id, "text": one.text, "special": False, "start": one.start,
                     "stop": one.end}
                    for one in own
                ]
                for own in found
            ]
        )  # fmt: skip

    @router.get("/info", summary="What is served")
    async def info() -> Response:
        own = [described(one) for one in service.models.served.values()]
        first = next((one for one in own if one["kind"] != INDEX), own[0])
        return json_response(
            {
                "model_id": first["id"], "max_input_length": first["max_tokens"],
                "max_client_batch_size": service.config.max_inputs, "version": __version__,
                "models": own,
            }
        )  # fmt: skip

    return router


def scored(prediction: Any) -> list[dict[str, Any]]:
    """A prediction as labels with scores, the most likely first."""
    if not isinstance(prediction, dict):
        return [{"label": str(prediction), "score": None}]
    found = prediction.get("labels")
    if found is None:
        found = [prediction]
    return [
        {
            "label": own.get("label", own.get("prediction")),
            "score": own.get("probability", own.get("score")),
        }
        for own in found
    ]

"""Routes in the shape of Text Embeddings Inference, for clients that speak it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field

from sememe import __version__
from sememe.contract import KINDS
from sememe.errors import OptionError
from sememe.serve.batching import TOKENS_AT_ONCE
from sememe.serve.gate import Refused
from sememe.serve.json_route import Check, json_route
from sememe.serve.models import INDEX, Served
from sememe.serve.routes import Body, Text, TextsOrIds, described, pair_scores, predicted, ranked
from sememe.serve.service import Service, json_response

Texts = Annotated[list[Text], Field(min_length=1, max_length=2_048)]
# A text, or a pair of texts.
Row = Annotated[list[Text], Field(min_length=1, max_length=2)]
_MOST_TOLD = 50  # proxies take heads of a few kB


class Cut(Body):
    """What TEI may cut; its clients send the values that are the only ones here, too."""

    truncate: bool | None = None
    truncation_direction: Literal["right", "Right"] = "right"


class Embed(Cut):
    """Texts or token ids to embed."""

    inputs: TextsOrIds
    normalize: bool = True
    prompt_name: Literal["query", "document"] | None = None
    dimensions: Annotated[int, Field(ge=1)] | None = None


class RerankTexts(Cut):
    """A query and texts."""

    query: Text
    texts: Texts
    return_text: bool = False
    raw_scores: Literal[False] = False


class Tokenize(Body):
    """One text, or several."""

    inputs: Text | Texts
    add_special_tokens: Literal[False] = False


class Predict(Cut):
    """A text, a pair [text, text], or a batch of both: [[text], [text, text]]."""

    inputs: Text | Texts | Annotated[list[Row], Field(min_length=1, max_length=2_048)]
    raw_scores: Literal[False] = False


def tei_routes(service: Service, check: Check) -> APIRouter:
    """The routes of TEI; the field `model` chooses one of several models."""
    router = APIRouter(tags=["TEI"], route_class=json_route(check))

    @router.post("/embed", summary="Vectors of texts")
    async def embed(request: Request, body: Embed) -> Response:
        _, vectors_ND, read = await service.embed(
            request, body.model, body.inputs, role=body.prompt_name or "",
            truncate=bool(body.truncate), dimensions=body.dimensions,
        )  # fmt: skip
        if body.normalize:
            norms_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
            vectors_ND = vectors_ND / np.maximum(norms_N1, 1e-12)
        return told(list(vectors_ND), read.truncated)

    @router.post("/rerank", summary="Sort texts by a query")
    async def rerank(request: Request, body: RerankTexts) -> Response:
        scores = await pair_scores(
            service, request, body.model, body.query, body.texts, truncate=bool(body.truncate)
        )
        found = ranked(scores.results)
        if body.return_text:
            found = [own | {"text": body.texts[own["index"]]} for own in found]
        return told(found, scores.truncated)

    @router.post("/predict", summary="Labels of texts or pairs with their scores")
    async def predict(request: Request, body: Predict) -> Response:
        own = await service.model(request, body.model, "predict")
        rows, is_one = rows_of(own, body.inputs)
        if not all(any(map(str.strip, row)) for row in rows):
            raise Refused(400, "An input is an empty string.", "empty_input", "inputs")
        if any(len(row) == 2 for row in rows) and not reads_pairs(own):
            raise OptionError(f"{own.name} reads single texts, not pairs.")
        answers = await predicted(
            service, request, own.name, [row[0] if len(row) == 1 else tuple(row) for row in rows],
            truncate=bool(body.truncate),
        )  # fmt: skip
        if not all(map(has_labels, answers.results)):
            raise OptionError(
                f"{own.name} is a {KINDS[own.kind].title}, which gives no label per text: "
                f"use /v1/{own.kind}."
            )
        found = [scored(one) for one in answers.results]
        return told(found[0] if is_one else found, answers.truncated)

    @router.post("/tokenize", summary="Tokens of texts")
    async def tokenize(request: Request, body: Tokenize) -> Response:
        service.check_size(body.inputs, service.config.max_input_tokens)
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
                "max_client_batch_size": service.config.max_inputs,
                "max_concurrent_requests": service.config.max_queue,
                "max_batch_tokens": TOKENS_AT_ONCE, "auto_truncate": False,
                "version": __version__, "models": own,
            }
        )  # fmt: skip

    return router


def told(content: Any, truncated: list[dict[str, int]]) -> Response:
    """An answer of TEI's shape; what was cut is told in headers, a part of it if it is much."""
    response = json_response(content)
    if truncated:
        response.headers["x-truncated-count"] = str(len(truncated))
        response.headers["x-truncated"] = json.dumps(truncated[:_MOST_TOLD])
    return response


def rows_of(own: Served, inputs: Any) -> tuple[list[list[str]], bool]:
    """The rows, each of one or two texts, and whether it is only one, as TEI reads `inputs`.

    Two strings are a pair. A model that reads no pairs takes a list of strings as texts.
    """
    if isinstance(inputs, str):
        return [[inputs]], True
    if not isinstance(inputs[0], str):
        return inputs, False
    if len(inputs) == 2 and reads_pairs(own):
        return [inputs], True
    return [[text] for text in inputs], False


def reads_pairs(own: Served) -> bool:
    """Whether the rows of a model are pairs of texts."""
    return "score_pairs" in own.capabilities


def has_labels(prediction: Any) -> bool:
    """Whether a prediction is labels or a score of its whole text; one of no words is neither."""
    return prediction is None or not {"label", "labels", "score"}.isdisjoint(prediction)


def scored(prediction: Any) -> list[dict[str, Any]]:
    """A prediction as all labels with their scores, the most likely first; none for no words."""
    if prediction is None:
        return []
    if "score" in prediction:  # of a regression
        return [{"label": "score", "score": prediction["score"]}]
    chances = prediction.get("probabilities") or {
        own["label"]: own["probability"] for own in prediction["labels"]
    }
    found = [{"label": label, "score": chance} for label, chance in chances.items()]
    return sorted(found, key=lambda own: -own["score"])

"""The routes of models: the OpenAI API for vectors, then one route for each capability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from sememe.contract import KINDS
from sememe.errors import InputError, OptionError
from sememe.serve.gate import Refused
from sememe.serve.json_route import Check, json_route
from sememe.serve.models import INDEX, Served
from sememe.serve.service import Answers, Service, as_dicts, base64_vector, json_response

_MOST_WEIGHTS = 4_000_000  # of one answer about attention
Num = Annotated[int, Field(ge=1, le=1_000)]
Text = Annotated[str, Field(max_length=1_000_000)]
Word = Annotated[str, Field(min_length=1, max_length=1_000)]


class Body(BaseModel):
    """What every request has; an unknown field is an error, not ignored."""

    model_config = ConfigDict(extra="forbid")
    model: Annotated[str, Field(max_length=1_000)] | None = None


# In this order: finding the best of all forms takes longer than reading the first that fits.
TextsOrIds = Annotated[
    StrictStr
    | Annotated[list[StrictStr], Field(min_length=1)]
    | Annotated[list[StrictInt], Field(min_length=1)]
    | Annotated[list[Annotated[list[StrictInt], Field(min_length=1)]], Field(min_length=1)],
    Field(union_mode="left_to_right"),
]


class Embeddings(Body):
    """A request of the OpenAI API."""

    input: TextsOrIds
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None
    input_type: Literal["query", "document"] | None = None
    truncate: bool = False
    user: str | None = None  # sent by clients, not used


class Neighbors(Body):
    """The words nearest to a word, or to a sum of words."""

    word: Word | None = None
    positive: Annotated[list[Word], Field(max_length=1_000)] = []
    negative: Annotated[list[Word], Field(max_length=1_000)] = []
    num: Num = 10


class Analogy(Body):
    """a is to b as c is to …"""

    a: Word
    b: Word
    c: Word
    num: Num = 5
    method: Literal["add", "mul"] = "add"


class Similarity(Body):
    """Two words, or two texts."""

    a: Text
    b: Text
    of: Literal["words", "texts"] = "words"


class Fill(Body):
    """A text with [MASK]."""

    text: Text
    num: Num = 5


class Generate(Body):
    """The start of a text, and how it is continued."""

    prompt: Text = ""
    max_tokens: Annotated[int, Field(ge=1, le=4_096)] = 50
    temperature: Annotated[float, Field(ge=0, le=1_000)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=2**31)] = 0
    top_p: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**62)] = 1
    stream: bool = False


class NextWords(Body):
    """A text whose next word is suggested."""

    text: Text
    num: Num = 5


class Rows(Body):
    """Rows to predict, as `model.predict` takes them."""

    inputs: Annotated[list[str | list[str] | dict[str, Any]], Field(min_length=1, max_length=2_048)]
    truncate: bool = False


class Translate(Body):
    """Texts to translate."""

    texts: Annotated[list[Text], Field(min_length=1, max_length=2_048)]


class AttentionOf(Body):
    """A text, or a pair of texts, and perhaps one layer and head, counted from 1."""

    text: Text
    other: Text | None = None
    layer: Annotated[int, Field(ge=1)] | None = None
    head: Annotated[int, Field(ge=1)] | None = None


class Rerank(Body):
    """A query, and the documents to sort by how well they fit."""

    query: Text
    documents: Annotated[list[Text], Field(min_length=1, max_length=2_048)]
    top: Num | None = None
    truncate: bool = False


class SearchQuery(Body):
    """A query to a search index."""

    query: Text
    top: Num = 10
    mode: Literal["auto", "dense", "lexical", "hybrid"] = "auto"
    where: str | list[str] | dict[str, Any] | None = None


def model_routes(service: Service, check: Check) -> APIRouter:
    """The routes that need a key, if there is one."""
    router = APIRouter(route_class=json_route(check))

    @router.get("/v1/models", summary="List the models")
    async def models() -> Response:
        found = [described(own) for own in service.models.served.values()]
        return json_response({"object": "list", "data": found})

    @router.get("/v1/models/{name:path}", summary="Describe a model")
    async def model(name: str) -> Response:
        return json_response(described(service.models.find(name, lambda own: True)))

    @router.post("/v1/embeddings", summary="One vector per text")
    async def embeddings(request: Request, body: Embeddings) -> Response:
        own, vectors_ND, read = await service.embed(
            request, body.model, body.input, role=body.input_type or "", truncate=body.truncate,
            dimensions=body.dimensions,
        )  # fmt: skip
        is_text = body.encoding_format == "base64"
        data = [
            {"object": "embedding", "index": index, "embedding": base64_vector(v) if is_text else v}
            for index, v in enumerate(vectors_ND)
        ]
        num_tokens = sum(read.sizes)
        answer: dict[str, Any] = {
            "object": "list", "data": data, "model": own.name,
            "usage": {"prompt_tokens": num_tokens, "total_tokens": num_tokens},
        }  # fmt: skip
        answer |= reported(read.truncated)
        return json_response(answer, is_checked=True)  # looking at each vector takes longer

    @router.post("/v1/neighbors", summary="The nearest words")
    async def neighbors(request: Request, body: Neighbors) -> Response:
        positive = [*([] if body.word is None else [body.word]), *body.positive]
        if not positive and not body.negative:
            raise Refused(422, "Give word, positive or negative.", "missing", "word")
        return await answered(
            request, body, "words", "neighbors",
            lambda model: as_dicts(
                model.words.neighbors(positive=positive, negative=body.negative, num=body.num)
            ),
        )  # fmt: skip

    @router.post("/v1/analogy", summary="a is to b as c is to …")
    async def analogy(request: Request, body: Analogy) -> Response:
        return await answered(
            request, body, "words", "answers",
            lambda model: as_dicts(
                model.words.analogy(body.a, body.b, body.c, body.num, method=body.method)
            ),
        )  # fmt: skip

    @router.post("/v1/similarity", summary="The cosine of two words or texts")
    async def similarity(request: Request, body: Similarity) -> Response:
        if body.of == "words":
            return await answered(
                request, body, "words", "similarity",
                lambda model: model.words.similarity(body.a, body.b),
            )  # fmt: skip
        own, (a, b), _ = await service.embed(request, body.model, [body.a, body.b])
        norms = float((a @ a) * (b @ b)) ** 0.5
        score = float(a @ b) / norms if norms else 0.0
        return json_response({"model": own.name, "similarity": score})

    @router.post("/v1/fill", summary="Tokens for each [MASK]")
    async def fill(request: Request, body: Fill) -> Response:
        return await answered(
            request, body, "fill", "masks",
            lambda model: [as_dicts(own) for own in model.fill(body.text, top=body.num)],
        )  # fmt: skip

    @router.post("/v1/generate", summary="Continue a text", response_model=None)
    async def generate(request: Request, body: Generate) -> Response:
        own = await service.model(request, body.model, "generate")
        pieces = own.model.stream(
            body.prompt, **body.model_dump(exclude={"model", "prompt", "stream"})
        )
        if body.stream:
            # The first part is computed before the status is sent: bad options are a 400.
            with service.models.using(own):
                begun = service.batcher.call(lambda: list(islice(pieces, 1)))
                first = await service.waiting(request, begun)
            return StreamingResponse(
                service.events(request, own, first, pieces), media_type="text/event-stream"
            )
        with service.models.using(own):
            text = await service.waiting(request, service.text(pieces))
        return json_response({"model": own.name, "text": text})

    @router.post("/v1/next", summary="Suggest the next word")
    async def next_words(request: Request, body: NextWords) -> Response:
        return await answered(
            request, body, "next_words", "suggestions",
            lambda model: [
                {"word": own[0], "probability": own[1]}
                for own in model.next_words(body.text, count=body.num)
            ],
        )  # fmt: skip

    @router.post("/v1/translate", summary="Translate texts")
    async def translate(request: Request, body: Translate) -> Response:
        found = await service.answers(
            request, body.model, "translate", lambda model, texts: model.translate(texts),
            body.texts,
        )  # fmt: skip
        return json_response({"model": request.state.model, "translations": found.results})

    @router.post("/v1/attention", summary="The attention over a text")
    async def attention(request: Request, body: AttentionOf) -> Response:
        service.check_size([body.text, body.other])
        return json_response(
            await service.answer(
                request, body.model, "attention", lambda model: attention_of(model, body)
            )
            | {"model": request.state.model}
        )

    @router.post("/v1/rerank", summary="Sort documents by a query")
    async def rerank(request: Request, body: Rerank) -> Response:
        found = await pair_scores(
            service, request, body.model, body.query, body.documents, truncate=body.truncate
        )
        answer = {"model": request.state.model, "results": ranked(found.results)[: body.top]}
        return json_response(answer | reported(found.truncated))

    @router.post("/v1/search", summary="Search an index")
    async def search(request: Request, body: SearchQuery) -> Response:
        return await answered(
            request, body, INDEX, "hits",
            lambda index: [
                hit.to_dict()
                for hit in index.search(body.query, body.top, mode=body.mode, where=body.where)
            ],
        )  # fmt: skip

    for task in ("classify", "pairs", "regress", "choose", "tag", "answer"):
        _add_task(router, service, task)

    async def answered(
        request: Request, body: Any, capability: str, name: str, call: Any
    ) -> Response:
        service.check_size(body.model_dump(exclude={"model"}))
        found = await service.answer(request, body.model, capability, call)
        return json_response({"model": request.state.model, name: found})

    return router


def _add_task(router: APIRouter, service: Service, task: str) -> None:
    """The route of a fine-tuned task; a model of another task is refused."""
    kinds = (task, "fasttext-classifier") if task == "classify" else (task,)

    async def predict(request: Request, body: Rows) -> Response:
        own = service.models.find(body.model, lambda one: one.kind in kinds)
        request.state.model = own.name
        if own.kind not in kinds:
            title = KINDS[own.kind].title if own.kind in KINDS else "search index"
            raise OptionError(
                f"{own.name} is a {title}; this route needs kind {' or '.join(kinds)}."
            )
        rows = [
            tuple(row) if isinstance(row, list) and task == "pairs" else row for row in body.inputs
        ]
        found = await predicted(service, request, own.name, rows, truncate=body.truncate)
        answer = {"model": own.name, "predictions": found.results}
        return json_response(answer | reported(found.truncated))

    router.post(f"/v1/{task}", summary=f"Predict: {KINDS[task].title}")(predict)


async def predicted(
    service: Service, request: Request, name: str | None, rows: list[Any], *, truncate: bool
) -> Answers:
    """The predictions for rows in JSON values."""

    def call(model: Any, own: Sequence[Any]) -> list[Any]:
        return _well_formed(model.predict_json, own)

    def cuts(model: Any, own: Sequence[Any]) -> list[Any]:
        return _well_formed(model.truncations, own)

    return await service.answers(request, name, "predict", call, rows, cuts=cuts, truncate=truncate)


def reported(truncated: list[dict[str, int]]) -> dict[str, Any]:
    """The field of an answer that lists what was cut, if anything was."""
    return {"truncated": truncated} if truncated else {}


def _well_formed(call: Callable[[Any], list[Any]], rows: Sequence[Any]) -> list[Any]:
    """The result of a call with rows; rows that it cannot read are bad input."""
    try:
        return call(rows)
    except (KeyError, IndexError, AttributeError) as error:
        raise InputError(
            f"These rows do not have the form that the model reads: {error}."
        ) from error


async def pair_scores(
    service: Service,
    request: Request,
    name: str | None,
    query: str,
    texts: list[str],
    *,
    truncate: bool,
) -> Answers:
    """How well each text fits a query."""
    return await service.answers(
        request, name, "score_pairs", lambda model, pairs: model.score_pairs(pairs).tolist(),
        [(query, text) for text in texts],
        cuts=lambda model, pairs: model.pair_truncations(pairs), truncate=truncate,
    )  # fmt: skip


def ranked(scores: list[float]) -> list[dict[str, Any]]:
    """Indexes with their scores, best first."""
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return [{"index": index, "score": scores[index]} for index in order]


def attention_of(model: Any, body: AttentionOf) -> dict[str, Any]:
    """The weights of one layer, of one head or the mean over heads."""
    found = model.attention(body.text, body.other)
    num_layers, num_heads = found.weights_LHTS.shape[:2]
    weights_TS = found.of(body.layer, body.head)
    if weights_TS.size > _MOST_WEIGHTS:
        raise InputError(f"The text has {len(found.target):,} tokens: too many for one answer.")
    return {
        "target": found.target, "source": found.source, "weights": weights_TS.tolist(),
        "num_layers": num_layers, "num_heads": num_heads, "translation": found.translation,
    }  # fmt: skip


def described(own: Served) -> dict[str, Any]:
    """A model as `GET /v1/models` shows it."""
    model = own.model
    has_vectors = model is not None and own.kind != INDEX and "embed" in own.capabilities
    return {
        "id": own.name, "object": "model", "created": own.created, "owned_by": "sememe",
        "kind": own.kind, "capabilities": sorted(own.capabilities), "state": own.state,
        "dimensions": own.dimensions if has_vectors else None,
        "max_tokens": (model.max_tokens or None) if has_vectors else None,
        **({"error": own.error} if own.error else {}),
    }  # fmt: skip

"""The view "context" of the explorer: a word in many sentences as points, layer by layer.

N uses of a word, L layers (the first are the input vectors), D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from weakref import ref

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from sememe.errors import InputError
from sememe.explore.clusters import MOST_CLUSTERS
from sememe.explore.jobs import Recent
from sememe.explore.routing import columns_response, explore_router
from sememe.explore.uses import Use, UsesText, known_senses, locate, of_set
from sememe.explore.word_contexts import (
    Layers,
    WordContexts,
    arranged,
    check_number,
    embedded,
    layers_of,
)
from sememe.serve.models import Served
from sememe.serve.routes import Body, Word
from sememe.serve.service import Service, json_response

MOST_USES = 500
_FEWEST_OF_EXAMPLE = 20  # uses of a word that is offered as an example
_NUM_EXAMPLES = 6
_LOOKED_AT = 200  # hits of an example
_MOST_BYTES = 500_000_000  # of vectors that are kept for the next request
# Offered if the text uses them often, those of several senses first.
_CANDIDATES = {
    "en": (
        "bank", "spring", "light", "match", "plant", "current", "apple", "star", "board", "window",
        "key", "field", "class", "order", "stream", "kernel", "degree", "root", "signal",
    ),
    "zh": ("打", "苹果", "包", "意思", "花", "水分", "杜鹃", "长", "行", "东西", "问题", "运动"),
}  # fmt: skip


class UsesOf(Body):
    """Which uses: of a word in the text, or in a sense set."""

    word: Word
    set: Annotated[str, Field(max_length=100)] = ""
    num: Annotated[int, Field(ge=3, le=MOST_USES)] = 150


class PointsOf(UsesOf):
    """Uses as points; `clusters` 0: as many as separate best. `sentence` is compared with all."""

    clusters: Annotated[int, Field(ge=0, le=MOST_CLUSTERS)] = 0
    sentence: Annotated[str, Field(max_length=2_000)] = ""


def context_routes(service: Service, text: UsesText) -> APIRouter:
    """The routes of this view."""
    router = explore_router("/context")
    contexts = _Contexts(service, text)

    @router.get("/examples", summary="Words with several senses, in the text or in a sense set")
    async def examples(
        request: Request, model: Annotated[str | None, Query(max_length=1_000)] = None
    ) -> Response:
        own = await service.model(request, model, "embed_words")
        language = own.model.text.language
        found = await contexts.beside(request, lambda: example_words(text, language))
        return json_response({"text": text.name, "words": found})

    @router.post("/uses", summary="Sentences with a word")
    async def uses(request: Request, body: UsesOf) -> Response:
        return json_response(await contexts.beside(request, lambda: contexts.told(body)))

    @router.post("/points", summary="Uses of a word as points, layer by layer")
    async def points(request: Request, body: PointsOf) -> Response:
        found: Response = await contexts.points(request, body)
        return found

    return router


def example_words(text: UsesText, language: str) -> list[dict[str, Any]]:
    """Words of several senses that the text really uses, then those whose senses are known."""
    is_chinese = language == "zh" or text.is_chinese
    candidates = _CANDIDATES["zh" if is_chinese else "en"]
    found: list[str] = []
    for word in candidates if is_chinese == text.is_chinese else ():
        if text.find(word, _LOOKED_AT, _LOOKED_AT).num_found >= _FEWEST_OF_EXAMPLE:
            found.append(word)
        if len(found) == _NUM_EXAMPLES:
            break
    name = "chinese" if is_chinese else "english"
    known = [word for word in candidates if name in known_senses().get(word, {})]
    return [{"word": word, "set": ""} for word in found] + [
        {"word": word, "set": name} for word in known[:_NUM_EXAMPLES]
    ]


class _Contexts:
    """What the routes share: the text, and the vectors of the last words."""

    def __init__(self, service: Service, text: UsesText) -> None:
        self.service, self.text = service, text
        self._kept = Recent[Layers](_MOST_BYTES)

    async def beside(self, request: Request, call: Any) -> Any:
        """Compute at the same time as the networks."""
        return await self.service.waiting(request, self.service.batcher.call_beside(call))

    def uses(self, body: UsesOf) -> list[Use]:
        """The uses of a word in their order."""
        if body.set:
            return of_set(body.word, body.set)[: body.num]
        return self.text.find(body.word.strip(), body.num).uses

    def told(self, body: UsesOf) -> dict[str, Any]:
        """The uses with what was searched to find them."""
        uses = self.uses(body)
        answer = {
            "uses": [own._asdict() for own in uses],
            "sets": {name: len(own) for name, own in known_senses().get(body.word, {}).items()},
        }  # fmt: skip
        if body.set:
            return answer
        found, text = self.text.find(body.word.strip(), body.num), self.text
        return answer | {
            "num_found": found.num_found, "num_hits": found.num_hits,
            "num_checked": found.num_checked, "is_part": found.is_part,
            "num_bytes": text.num_bytes, "num_documents": text.num_documents,
            "is_whole": text.is_whole,
        }  # fmt: skip

    async def points(self, request: Request, body: PointsOf) -> Response:
        """The points of one model with what is known about its layers."""
        uses = await self.beside(request, lambda: self.uses(body))
        where = f"the sense set {body.set}" if body.set else self.text.name
        check_number(body.word, uses, where)
        own = await self.service.model(request, body.model, "embed_words")
        layers = await self._layers(request, own, uses, (body.word, body.set, body.num))
        single, problem = None, ""
        if body.sentence.strip():
            try:
                place = await self.beside(request, lambda: locate(body.word.strip(), body.sentence))
                single = await self._embed(request, own, [place]), place
            except InputError as error:  # the uses are shown all the same
                problem = str(error)
        answer: Response = await self.beside(
            request,
            lambda: drawn(
                arranged(uses, layers, body.word, body.clusters, single, has_senses=bool(body.set)),
                problem,
            ),
        )
        return answer

    async def _layers(
        self, request: Request, own: Served, uses: list[Use], key: tuple[str, str, int]
    ) -> Layers:
        full_key = ref(own.model), key
        if (known := self._kept.get(full_key)) is not None:
            return known
        found = await self._embed(request, own, uses)
        self._kept.put(full_key, found, sum(units_ND.nbytes for units_ND in found.units_LND))
        return found

    async def _embed(self, request: Request, own: Served, uses: Sequence[Use]) -> Layers:
        rows = [[use.sentence, use.start, use.end] for use in uses]
        found = await self.service.answers(request, own.name, "embed_words", embedded, rows)
        return layers_of(uses, own.model, own.name, lambda _: list(found.results))


def drawn(found: WordContexts, problem: str = "") -> Response:
    """The points as columns, and what is known about the layers."""
    columns: dict[str, np.ndarray] = {
        "x": found.places_LN2[..., 0], "y": found.places_LN2[..., 1], "cluster": found.cluster_N,
        "is_known": found.is_known_N.astype(np.uint8),
    }  # fmt: skip
    if found.own_L2 is not None and found.cosines_LN is not None:
        columns |= {"own": found.own_L2, "cosines": found.cosines_LN}
    is_known_N = found.is_known_N
    told = {
        "place": found.own._asdict() if found.own else None, "problem": problem,
        "num_layers": len(found.places_LN2), "num_unknown": int((~is_known_N).sum()),
        "is_one_point": found.is_one_point, "mean_cosines": found.mean_cosines,
        "same_sense": found.same_sense, "chance": found.chance,
        "clusters": [
            {"words": words, "num": int((found.cluster_N[is_known_N] == number).sum())}
            for number, words in enumerate(found.clusters)
        ],
    }  # fmt: skip
    return columns_response(told, **columns)

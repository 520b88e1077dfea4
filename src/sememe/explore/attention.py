"""Attention: a text in; one matrix of weights, and thumbnails of all heads, out as columns.

L layers, H heads, T target tokens, S source tokens.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from weakref import ref

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field

from sememe.contract import Attention
from sememe.errors import InputError, UnsupportedError
from sememe.explore.jobs import Recent
from sememe.explore.routing import columns_response, explore_router
from sememe.serve.routes import Body, Text
from sememe.serve.service import Service

_MOST_TOKENS = 1_024  # memory grows with their square, times layers and heads
_THUMBNAIL = 48  # cells of its sides
_MOST_BYTES = 500_000_000  # of results that are kept for the next request
Number = Annotated[int, Field(ge=1, le=10_000)]


class AttentionView(Body):
    """A text or a pair, and one matrix: of a layer and head (default: their mean) or of all."""

    text: Text
    other: Text | None = None
    layer: Number | None = None
    head: Number | None = None
    over_all: Literal["mean", "rollout"] | None = None
    thumbnails: bool = False


class RecentAttention:
    """The last results, so that moving from head to head computes nothing."""

    def __init__(self) -> None:
        self._kept = Recent[Attention](_MOST_BYTES)

    def of(self, model: Any, text: str, other: str | None) -> Attention:
        """The attention of a model over a text or a pair."""
        key = ref(model), text, other
        if (known := self._kept.get(key)) is not None:
            return known
        _check_length(model, text, other)
        found: Attention = model.attention(text, other)
        self._kept.put(key, found, found.weights_LHTS.nbytes)
        return found


def _check_length(model: Any, text: str, other: str | None) -> None:
    texts = [text, other or ""]
    try:
        num = sum(map(len, model.token_ids(texts)))
    except UnsupportedError:  # translation models do not show their tokens
        num = sum(len(own.split()) for own in texts)
    if num > _MOST_TOKENS:
        raise InputError(
            f"The text has {num:,} tokens; attention is shown for at most {_MOST_TOKENS:,}."
        )


def attention_routes(service: Service) -> APIRouter:
    """The weights of a text, matrix by matrix."""
    router = explore_router()
    recent = RecentAttention()

    @router.post("/attention", summary="Attention weights as columns")
    async def attention(request: Request, body: AttentionView) -> Response:
        def call(model: Any) -> Response:
            return answer(recent.of(model, body.text, body.other), body)

        found: Response = await service.answer(request, body.model, "attention", call)
        return found

    return router


def answer(found: Attention, body: AttentionView) -> Response:
    """One matrix with the tokens, and thumbnails if they are wanted."""
    if body.over_all is None:
        weights_TS = found.of(body.layer, body.head)
    else:
        weights_TS = found.mean() if body.over_all == "mean" else found.rollout()
    num_layers, num_heads = found.weights_LHTS.shape[:2]
    columns = {"weights": np.asarray(weights_TS, np.float32)}
    if body.thumbnails:
        columns["thumbnails"] = thumbnails(found.weights_LHTS)
    meta = {
        "target": found.target, "source": found.source, "segments": list(found.segments),
        "translation": found.translation, "num_layers": num_layers, "num_heads": num_heads,
    }  # fmt: skip
    return columns_response(meta, **columns)


def thumbnails(weights_LHTS: np.ndarray) -> np.ndarray:
    """All heads as small pictures, 255 being the largest weight of a head.

    A head that spreads its weight evenly stays pale: 255 is at least four times the even weight.
    Cells of a long text are the largest weight of several, so that single strong ones stay visible.
    """
    starts_T, starts_S = (
        np.linspace(0, num, min(num, _THUMBNAIL), endpoint=False).astype(np.int64)
        for num in weights_LHTS.shape[2:]
    )
    small_LHTS = np.maximum.reduceat(weights_LHTS, starts_T, axis=2)
    small_LHTS = np.maximum.reduceat(small_LHTS, starts_S, axis=3)
    largest = small_LHTS.max((2, 3), keepdims=True)
    strongest = np.maximum(largest, min(1.0, 4 / weights_LHTS.shape[3]))
    return np.rint(255 * small_LHTS / strongest).astype(np.uint8)

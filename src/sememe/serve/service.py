"""What routes share: find a model, read its input, compute, and write the answer."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import orjson
from fastapi import Request, Response
from starlette.concurrency import iterate_in_threadpool

from sememe.contract import checked_finite
from sememe.errors import OptionError, UnsupportedError
from sememe.serve.batching import Batcher
from sememe.serve.config import ServeConfig
from sememe.serve.gate import Metrics, Refused
from sememe.serve.models import INDEX, Models, Served

_SMALL = 2_000  # characters that word vectors read at once on the event loop: under a millisecond


class Input(NamedTuple):
    """Texts or token ids as a model reads them, with their numbers of tokens."""

    items: list[Any]
    sizes: list[int]
    are_ids: bool
    truncated: list[dict[str, int]]


class Service:
    """The models, the queue and the limits, for all routes."""

    def __init__(self, models: Models, config: ServeConfig) -> None:
        self.models, self.config, self.metrics = models, config, Metrics()
        self.batcher = Batcher(config.max_queue, on_batch=self.metrics.note_batch)
        self.metrics.queue.set_function(lambda: self.batcher.num_waiting)
        self.is_ready = self.is_draining = False

    # ---- models ---------------------------------------------------------------------------------

    async def model(self, request: Request, name: str | None, capability: str) -> Served:
        """The model that answers a request, loaded; one that cannot is refused."""

        def can(own: Served) -> bool:
            return capability in own.capabilities

        own = self.models.find(name, can)
        request.state.model = own.name
        found = await self.models.opened(own)
        if not can(own):
            if own.kind == INDEX:
                raise OptionError(f"{own.name} is a search index: it answers /v1/search.")
            if capability == INDEX:
                raise OptionError(f"{own.name} is not a search index.")
            found.require(capability)
        return own

    async def answer(
        self, request: Request, name: str | None, capability: str, call: Callable[[Any], Any]
    ) -> Any:
        """The result of a call of a model, off the event loop."""
        own = await self.model(request, name, capability)
        found = own.model
        with self.models.using(own):
            return await self.waiting(request, self.batcher.call(lambda: call(found)))

    async def waiting(self, request: Request, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for work in limited time; if the client leaves, the work is cancelled."""
        task = asyncio.ensure_future(work)
        left = asyncio.ensure_future(_left(request))
        try:
            done, _ = await asyncio.wait(
                {task, left}, timeout=self.config.timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if task in done:
                return task.result()
            if left in done:
                raise Refused(499, "The client has left.", "cancelled")
            raise Refused(504, f"No result within {self.config.timeout:g} s.", "timeout")
        finally:
            task.cancel()
            left.cancel()

    # ---- embeddings -----------------------------------------------------------------------------

    async def read(self, model: Any, given: Any, role: str, truncate: bool) -> Input:
        """Check and tokenize what a request wants to embed."""
        texts = [given] if isinstance(given, str) else given
        if texts and isinstance(texts[0], int):
            texts = [texts]
        if not texts:
            raise Refused(400, "input is empty.", "empty_input", "input")
        if len(texts) > self.config.max_inputs:
            most = f"{len(texts):,} inputs are more than {self.config.max_inputs:,}."
            raise Refused(422, most, "too_many_inputs", "input")
        are_texts = isinstance(texts[0], str)
        if are_texts and not all(texts):
            raise Refused(400, "An input is an empty string.", "empty_input", "input")
        if not are_texts and not model.embeds_ids:
            raise Refused(400, "This model takes texts, not token ids.", "no_token_ids", "input")
        if are_texts and model.embeds_ids and (before := model.prompt(role)):
            texts = [before + text for text in texts]
        counted = await self._counted(model, texts) if are_texts else texts
        return self._checked(model, texts, counted, truncate)

    async def _counted(self, model: Any, texts: list[str]) -> list[Any]:
        """The token ids of texts; word lists for models without ids."""

        def count() -> list[Any]:
            try:
                return model.token_ids(texts)
            except UnsupportedError:  # networks over words that do not show their tokens
                return [text.split() for text in texts]

        if sum(map(len, texts)) <= _SMALL:
            return count()
        return await self.batcher.call(count)

    def _checked(self, model: Any, texts: list[Any], ids: list[Any], truncate: bool) -> Input:
        most, truncated = model.max_tokens, []
        total = sum(map(len, ids))
        if total > self.config.max_input_tokens:
            limit = f"{total:,} tokens are more than {self.config.max_input_tokens:,} per request."
            raise Refused(422, limit, "too_many_tokens", "input")
        for index, own in enumerate(ids):
            if not most or len(own) <= most:
                continue
            if not truncate:
                told = (
                    f"Input {index} has {len(own):,} tokens, but this model reads {most:,} at "
                    "once: shorten it, or send truncate: true."
                )
                raise Refused(422, told, "input_too_long", "input")
            truncated.append({"index": index, "tokens": len(own), "kept": most})
            ids[index] = own[:most]
        sizes = [max(1, len(own)) for own in ids]
        if model.embeds_ids:
            return Input(ids, sizes, True, truncated)
        return Input(texts, sizes, False, truncated)

    async def vectors(
        self, request: Request, own: Served, model: Any, given: Input, role: str = ""
    ) -> np.ndarray:
        """The vector of each input, computed with those of other requests."""
        compute = model.embed_token_ids if given.are_ids else model.embed
        if role and not given.are_ids:
            compute = partial(model.embed_role, role=role)
        # The words of word vectors are themselves.
        is_cheap = "words" in model.capabilities and model.words is model
        if is_cheap and sum(map(len, given.items)) <= _SMALL:
            return np.asarray(compute(given.items))
        key = (own.name, id(model), given.are_ids, role)
        work = self.batcher.embed(key, compute, given.items, given.sizes)
        return np.asarray(await self.waiting(request, work))

    async def embed(
        self,
        request: Request,
        name: str | None,
        given: Any,
        *,
        role: str = "",
        truncate: bool = False,
        dimensions: int | None = None,
    ) -> tuple[Served, np.ndarray, Input]:
        """The vectors of a request with their model and what was read."""
        own = await self.model(request, name, "embed")
        model = own.model  # own may get another one, or none, while this request waits
        with self.models.using(own):
            read = await self.read(model, given, role, truncate)
            vectors_ND = await self.vectors(request, own, model, read, role)
        checked_finite("model", vectors_ND)  # here, because base64 hides it later
        if dimensions is not None:
            vectors_ND = _cut(own.name, model, vectors_ND, dimensions)
        num_tokens = sum(read.sizes)
        request.state.tokens = num_tokens
        self.metrics.tokens.labels(own.name).inc(num_tokens)
        return own, vectors_ND, read

    # ---- streams --------------------------------------------------------------------------------

    async def pieces(self, own: Served, pieces: Iterator[str]) -> Any:
        """The parts of a generated text as server-sent events."""
        with self.models.using(own):
            end_s = time.monotonic() + self.config.timeout
            async for piece in iterate_in_threadpool(pieces):
                yield b"data: " + orjson.dumps({"text": piece}) + b"\n\n"
                if time.monotonic() > end_s:
                    yield b'data: {"error": {"message": "Time is up.", "code": "timeout"}}\n\n'
                    return
            yield b"data: [DONE]\n\n"

    def close(self) -> None:
        """Stop all threads."""
        self.batcher.close()
        self.models.close()


async def _left(request: Request) -> None:
    """Return when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _cut(name: str, model: Any, vectors_ND: np.ndarray, dimensions: int) -> np.ndarray:
    """The first dimensions, normalized again."""
    width = vectors_ND.shape[1]
    if dimensions == width:
        return vectors_ND
    if dimensions > width or not model.is_matryoshka:
        known = f"{name} has {width:,} dimensions"
        why = "" if dimensions > width else ", and was not trained to be cut to fewer"
        raise Refused(400, f"{known}{why}.", "bad_dimensions", "dimensions")
    cut_ND = vectors_ND[:, :dimensions]
    norms_N1 = np.linalg.norm(cut_ND, axis=1, keepdims=True)
    return cut_ND / np.maximum(norms_N1, 1e-12)


def base64_vector(vector_D: np.ndarray) -> str:
    """A vector as little-endian float32 in base64."""
    return base64.b64encode(np.ascontiguousarray(vector_D, "<f4").tobytes()).decode("ascii")


def json_response(content: Any) -> Response:
    """An answer as JSON; NaN is an error, never an answer."""
    return Response(
        orjson.dumps(
            checked_finite("model", content), option=orjson.OPT_SERIALIZE_NUMPY, default=_plain
        ),
        media_type="application/json",
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(type(value).__name__)


def as_dicts(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Named tuples as JSON objects."""
    return [own._asdict() for own in found]

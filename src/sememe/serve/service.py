"""What routes share: find a model, read its input, compute, and write the answer."""

from __future__ import annotations

import asyncio
import sys
import time
from binascii import b2a_base64
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import orjson
from fastapi import Request, Response

from sememe.contract import Truncation, checked_finite
from sememe.errors import OptionError, SememeError, UnsupportedError
from sememe.machine import available_cores
from sememe.serve.batching import TOKENS_AT_ONCE, Batcher
from sememe.serve.config import ServeConfig
from sememe.serve.gate import Metrics, Refused
from sememe.serve.models import INDEX, Models, Served

_WATCH_S = 0.25  # after which a request is worth watching whether its client leaves
_SMALL = 2_000  # characters that word vectors read at once on the event loop: under a millisecond


class Input(NamedTuple):
    """Texts or token ids as a model reads them, with their numbers of tokens."""

    items: list[Any]
    sizes: list[int]
    are_ids: bool
    truncated: list[dict[str, int]]


class Answers(NamedTuple):
    """The results of rows, and what was cut from the rows."""

    results: list[Any]
    truncated: list[dict[str, int]]


class Service:
    """The models, the queue and the limits, for all routes."""

    def __init__(self, models: Models, config: ServeConfig) -> None:
        self.models, self.config, self.metrics = models, config, Metrics()
        self.batcher = Batcher(
            config.max_queue, num_cores=config.threads or available_cores(), set_cores=_set_cores,
            on_batch=self.metrics.note_batch,
        )  # fmt: skip
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
        # Only networks compute one after the other.
        run = self.batcher.call_beside if own.is_table else self.batcher.call
        with self.models.using(own):
            return await self.waiting(request, run(lambda: call(found)))

    def check_size(self, given: Any, most: int = TOKENS_AT_ONCE) -> None:
        """Refuse what one call of a model would compute for longer than a batch."""
        num = num_bytes(given) // 4  # about one token
        if num > (most := min(most, self.config.max_input_tokens)):
            told = f"About {num:,} tokens are more than {most:,}, which this route reads at once."
            raise Refused(422, told, "too_many_tokens")

    async def answers(
        self,
        request: Request,
        name: str | None,
        capability: str,
        call: Callable[[Any, list[Any]], Sequence[Any]],
        rows: Sequence[Any],
        *,
        cuts: Callable[[Any, Sequence[Any]], list[Truncation | None]] | None = None,
        truncate: bool = False,
    ) -> Answers:
        """The result of each row, computed with those of other requests of the same form.

        `cuts` gives what the model cuts from each row.
        """
        own = await self.model(request, name, capability)
        found = own.model
        key = (own.name, id(found), request.scope["path"], *sorted(set(map(_form, rows))))
        sizes = [1 + num_characters(row) // 4 for row in rows]
        if sum(sizes) > self.config.max_input_tokens:
            most = f"more than {self.config.max_input_tokens:,} per request"
            told = f"About {sum(sizes):,} tokens are {most}."
            raise Refused(422, told, "too_many_tokens")
        truncated: list[dict[str, int]] = []
        with self.models.using(own):
            if cuts is not None:
                known = await self._beside(rows, partial(cuts, found, rows))
                truncated = _truncated(known, truncate)
            work = self.batcher.results(key, partial(call, found), rows, sizes)
            return Answers(await self.waiting(request, work), truncated)

    async def _beside(self, rows: Any, count: Callable[[], list[Any]]) -> list[Any]:
        """Tokenize a little text at once, and more of it at the same time as the batches."""
        if num_characters(rows) <= _SMALL:
            return count()
        counted: list[Any] = await self.batcher.read(count)
        return counted

    async def waiting(self, request: Request, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for work in limited time; if the client leaves, the work is cancelled."""
        limit = asyncio.timeout(self.config.timeout)
        left: asyncio.Future[None] | None = None

        def stop(own: asyncio.Future[None]) -> None:
            with suppress(RuntimeError):  # the work is done
                if not own.cancelled():
                    limit.reschedule(0)  # at once

        def watch() -> None:
            nonlocal left
            left = asyncio.ensure_future(_left(request))
            left.add_done_callback(stop)

        # A task takes a tenth of the time of a short request.
        timer = asyncio.get_running_loop().call_later(_WATCH_S, watch)
        try:
            async with limit:
                return await work
        except TimeoutError as error:
            if not limit.expired():
                raise
            if left is not None and left.done():
                raise Refused(499, "The client has left.", "cancelled") from error
            told = f"No result within {self.config.timeout:g} s."
            raise Refused(504, told, "timeout") from error
        finally:
            timer.cancel()
            if left is not None:
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

        return await self._beside(texts, count)

    def _checked(self, model: Any, texts: list[Any], ids: list[Any], truncate: bool) -> Input:
        most = model.max_tokens
        total = sum(map(len, ids))
        if total > self.config.max_input_tokens:
            limit = f"{total:,} tokens are more than {self.config.max_input_tokens:,} per request."
            raise Refused(422, limit, "too_many_tokens", "input")
        cuts = [Truncation(len(own), most) if 0 < most < len(own) else None for own in ids]
        truncated = _truncated(cuts, truncate)
        for one in truncated:
            ids[one["index"]] = ids[one["index"]][:most]
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
        if own.is_table and sum(map(len, given.items)) <= _SMALL:
            return np.asarray(compute(given.items))
        key = (own.name, id(model), given.are_ids, role)
        is_parallel = given.are_ids and own.is_parallel
        work = self.batcher.embed(key, compute, given.items, given.sizes, is_parallel=is_parallel)
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
        self.metrics.note_tokens(own.name, num_tokens)
        return own, vectors_ND, read

    # ---- streams --------------------------------------------------------------------------------

    async def text(self, pieces: Iterator[str]) -> str:
        """All parts of a generated text; a client that leaves ends the computation."""
        return "".join([piece async for piece in self.batcher.steps(pieces)])

    async def events(
        self, request: Request, own: Served, first: list[str], pieces: Iterator[str]
    ) -> AsyncIterator[bytes]:
        """The parts of a generated text as server-sent events."""
        end_s = time.monotonic() + self.config.timeout
        with self.models.using(own):
            try:
                for piece in first:
                    yield _event({"text": piece})
                async for piece in self.batcher.steps(pieces):
                    yield _event({"text": piece})
                    if time.monotonic() > end_s:
                        raise TimeoutError(f"No result within {self.config.timeout:g} s.")
            except Exception as error:  # the status is already sent
                yield _event({"error": self._told(request, error)})
                return
            yield b"data: [DONE]\n\n"

    def _told(self, request: Request, error: Exception) -> dict[str, str]:
        """An error in the middle of a stream; the log says what is not for the client."""
        if isinstance(error, TimeoutError):
            code, message = "timeout", str(error)
        elif isinstance(error, SememeError):
            code, message = "bad_request", str(error)
        else:
            code, message = "internal_error", "The service failed."
            request.state.fault = f"{type(error).__name__}: {error}"
        request.state.code = code
        return {"message": message, "code": code}

    def close(self) -> None:
        """Stop all threads."""
        self.batcher.close()


def _set_cores(num: int) -> None:
    """Set the number of cores on which PyTorch computes for this thread."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(num)


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(content) + b"\n\n"


def _truncated(cuts: Sequence[Truncation | None], truncate: bool) -> list[dict[str, int]]:
    """What is cut, as answers report it; refused unless the request says `truncate`."""
    found = [{"index": index, **cut._asdict()} for index, cut in enumerate(cuts) if cut]
    if found and not truncate:
        index, tokens, kept = found[0].values()
        told = f"Input {index} has {tokens:,} tokens, but this model reads {kept:,} at once"
        advice = "shorten it, or send truncate: true."
        raise Refused(422, f"{told}: {advice}", "input_too_long", "input")
    return found


def _form(row: Any) -> str:
    """What distinguishes rows that a model reads in different ways: text, list, or named fields."""
    if isinstance(row, dict):
        return "fields " + " ".join(sorted(row))
    return "text" if isinstance(row, str) else f"list {len(row)}"


def num_characters(row: Any) -> int:
    """The length of all texts of a row."""
    if isinstance(row, str):
        return len(row)
    if isinstance(row, dict):
        row = row.values()
    return sum(map(num_characters, row)) if isinstance(row, Iterable) else 1


def num_bytes(given: Any) -> int:
    """The length of all texts in UTF-8."""
    if isinstance(given, str):
        return len(given) if given.isascii() else len(given.encode("utf-8", "replace"))
    if isinstance(given, dict):
        given = [*given, *given.values()]
    return sum(map(num_bytes, given)) if isinstance(given, Iterable) else 1


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
    return b2a_base64(np.ascontiguousarray(vector_D, "<f4").data, newline=False).decode("ascii")


def json_response(content: Any, *, is_checked: bool = False) -> Response:
    """An answer as JSON; NaN is an error, never an answer."""
    if not is_checked:
        checked_finite("model", content)
    return Response(
        orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY, default=_plain),
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

"""Clients of `sememe serve`: Client blocks, AsyncClient awaits; both have the same methods.

_Calls says what each method sends and how its answer is read; the two clients only send.
"""

import asyncio
import base64
import functools
import inspect
import json
import math
import os
import random
import time
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, get_args

import httpx
import numpy as np

from sememe.errors import OptionError, ServiceError

P = ParamSpec("P")
T = TypeVar("T")

Task = Literal["classify", "pairs", "regress", "choose", "tag", "answer"]
Scored = list[tuple[str, float]]

_BUSY = (429, 503)
_FIRST_PAUSE = 0.5  # seconds; doubles with every attempt
_LONGEST_PAUSE = 30.0
# A read timeout is not retried: the server may still be computing the first answer.
_CONNECTION_LOST = (httpx.NetworkError, httpx.ConnectTimeout, httpx.RemoteProtocolError)


@dataclass(frozen=True)
class _Call(Generic[T]):
    """One request, and the function that reads its answer."""

    method: str
    path: str
    body: bytes | None
    read: Callable[[Any], T]


def _get(path: str, read: Callable[[Any], T]) -> _Call[T]:
    return _Call("GET", path, None, read)


def _post(path: str, read: Callable[[Any], T], **fields: Any) -> _Call[T]:
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        body = json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise OptionError(f"The request to {path} cannot be written as JSON: {error}.") from error
    return _Call("POST", path, body, read)


def _listed(texts: Sequence[Any], name: str) -> list[Any]:
    if isinstance(texts, str):
        raise OptionError(f"{name} is a list, not one string; write [{texts[:20]!r}].")
    return list(texts)


def _terms(words: str | Sequence[str] | None) -> list[str] | None:
    return [words] if isinstance(words, str) else None if words is None else list(words)


def _scored(rows: Sequence[Mapping[str, Any]], key: str, score: str) -> Scored:
    return [(str(row[key]), float(row[score])) for row in rows]


def _vectors(answer: Any, count: int, dimensions: int | None) -> np.ndarray:
    """Decode base64 embeddings into the rows that their indexes name."""
    rows = {
        row["index"]: np.frombuffer(base64.b64decode(row["embedding"], validate=True), "<f4")
        for row in answer["data"]
    }
    if len(answer["data"]) != count or set(rows) != set(range(count)):
        raise ValueError(f"{count} texts were sent, but the embeddings have other indexes")
    sizes = {len(row) for row in rows.values()}
    if len(sizes) > 1:
        raise ValueError(f"the embeddings differ in dimensions: {sorted(sizes)}")
    if dimensions is not None and sizes - {dimensions}:
        raise ValueError(f"{dimensions} dimensions were requested, but {sizes.pop()} came back")
    if not rows:
        return np.zeros((0, dimensions or 0), np.float32)
    return np.stack([rows[place] for place in range(count)]).astype(np.float32)


def _attention(answer: Any) -> dict[str, Any]:
    return {**answer, "weights": np.array(answer["weights"], np.float32)}


class _Calls:
    """The request of every method; an option left at None takes the server's default."""

    def health(self) -> _Call[dict[str, Any]]:
        """Return the health report of the server."""
        return _get("/health", dict)

    def models(self) -> _Call[list[dict[str, Any]]]:
        """List the models that are served."""
        return _get("/v1/models", lambda answer: list(answer["data"]))

    def embed(
        self,
        texts: Sequence[str],
        model: str | None = None,
        input_type: Literal["query", "document"] | None = None,
        dimensions: int | None = None,
        truncate: bool = False,
    ) -> _Call[np.ndarray]:
        """Embed texts as a float32 array with one row per text."""
        sent = _listed(texts, "texts")
        return _post(
            "/v1/embeddings",
            lambda answer: _vectors(answer, len(sent), dimensions),
            model=model,
            input=sent,
            encoding_format="base64",
            dimensions=dimensions,
            input_type=input_type,
            truncate=truncate,
        )

    def neighbors(
        self,
        word: str | None = None,
        model: str | None = None,
        *,
        positive: str | Sequence[str] | None = None,
        negative: str | Sequence[str] | None = None,
        num: int | None = None,
    ) -> _Call[Scored]:
        """Find the words nearest to a word, or to positive minus negative words."""
        return _post(
            "/v1/neighbors",
            lambda answer: _scored(answer["neighbors"], "word", "score"),
            model=model,
            word=word,
            positive=_terms(positive),
            negative=_terms(negative),
            num=num,
        )

    def analogy(
        self,
        a: str,
        b: str,
        c: str,
        model: str | None = None,
        *,
        num: int | None = None,
        method: str | None = None,
    ) -> _Call[Scored]:
        """Find the words that relate to c as b relates to a."""
        return _post(
            "/v1/analogy",
            lambda answer: _scored(answer["answers"], "word", "score"),
            model=model,
            a=a,
            b=b,
            c=c,
            num=num,
            method=method,
        )

    def similarity(
        self, a: str, b: str, model: str | None = None, *, of: Literal["words", "texts"] = "words"
    ) -> _Call[float]:
        """Compute the cosine similarity of two words or two texts."""
        return _post(
            "/v1/similarity",
            lambda answer: float(answer["similarity"]),
            model=model,
            a=a,
            b=b,
            of=of,
        )

    def fill(
        self, text: str, model: str | None = None, *, num: int | None = None
    ) -> _Call[list[Scored]]:
        """Predict the tokens of every mask in a text, with their probabilities."""
        return _post(
            "/v1/fill",
            lambda answer: [_scored(mask, "token", "probability") for mask in answer["masks"]],
            model=model,
            text=text,
            num=num,
        )

    def generate(
        self,
        prompt: str,
        model: str | None = None,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> _Call[str]:
        """Generate a text that continues the prompt."""
        return _post(
            "/v1/generate",
            lambda answer: str(answer["text"]),
            model=model,
            prompt=prompt,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            stream=False,
        )

    def stream(
        self,
        prompt: str,
        model: str | None = None,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> _Call[str]:
        """Generate a text and yield each part of it as soon as the server sends it."""
        return _post(
            "/v1/generate",
            lambda event: str(event["text"]),
            model=model,
            prompt=prompt,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            stream=True,
        )

    def next_words(
        self, text: str, model: str | None = None, *, num: int | None = None
    ) -> _Call[Scored]:
        """Predict the next word of a text, with probabilities."""
        return _post(
            "/v1/next",
            lambda answer: _scored(answer["suggestions"], "word", "probability"),
            model=model,
            text=text,
            num=num,
        )

    def predict(
        self,
        task: Task,
        rows: Sequence[Any],
        model: str | None = None,
        *,
        truncate: bool = False,
    ) -> _Call[list[Any]]:
        """Predict with a task model, one prediction per row."""
        if task not in get_args(Task):
            raise OptionError(f"task is one of {', '.join(get_args(Task))}, not {task!r}.")
        sent = _listed(rows, "rows")
        return _post(
            f"/v1/{task}",
            lambda answer: _as_many(answer["predictions"], len(sent)),
            model=model,
            inputs=sent,
            truncate=truncate,
        )

    def translate(self, texts: Sequence[str], model: str | None = None) -> _Call[list[str]]:
        """Translate texts, one translation per text."""
        sent = _listed(texts, "texts")
        return _post(
            "/v1/translate",
            lambda answer: _as_many(answer["translations"], len(sent)),
            model=model,
            texts=sent,
        )

    def attention(
        self,
        text: str,
        other: str | None = None,
        model: str | None = None,
        *,
        layer: int | None = None,
        head: int | None = None,
    ) -> _Call[dict[str, Any]]:
        """Return the attention weights of a text as an array, with the tokens they belong to."""
        return _post(
            "/v1/attention",
            _attention,
            model=model,
            text=text,
            other=other,
            layer=layer,
            head=head,
        )

    def rerank(
        self,
        query: str,
        documents: Sequence[str],
        model: str | None = None,
        *,
        top: int | None = None,
        truncate: bool = False,
    ) -> _Call[list[tuple[int, float]]]:
        """Rank documents by relevance to a query, as pairs of index and score."""
        return _post(
            "/v1/rerank",
            lambda answer: [(int(hit["index"]), float(hit["score"])) for hit in answer["results"]],
            model=model,
            query=query,
            documents=_listed(documents, "documents"),
            top=top,
            truncate=truncate,
        )

    def search(
        self,
        query: str,
        model: str | None = None,
        *,
        top: int | None = None,
        mode: str | None = None,
        where: Any = None,
    ) -> _Call[list[dict[str, Any]]]:
        """Search an index and return its hits, best first."""
        return _post(
            "/v1/search",
            lambda answer: list(answer["hits"]),
            model=model,
            query=query,
            top=top,
            mode=mode,
            where=where,
        )


def _as_many(rows: list[Any], count: int) -> list[Any]:
    if len(rows) != count:
        raise ValueError(f"{count} rows were sent, but {len(rows)} came back")
    return rows


_CALLS = _Calls()


def _unreadable(url: str, error: Exception, answer: httpx.Response) -> ServiceError:
    reason = f"{error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
    return ServiceError(
        f"The answer of {url} could not be read: {reason or type(error).__name__}.",
        status=answer.status_code,
        request_id=answer.headers.get("x-request-id"),
    )


def _read(call: _Call[T], answer: httpx.Response) -> T:
    """Read a successful answer, or say that it is malformed."""
    try:
        return call.read(answer.json())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable(str(answer.url), error, answer) from error


def _refusal(answer: httpx.Response, body: Any) -> ServiceError:
    """Turn the body of a failed answer into an error."""
    found = body.get("error") if isinstance(body, dict) else None
    fields = found if isinstance(found, dict) else {"message": found}
    reason = f"{answer.status_code} {answer.reason_phrase}".strip()
    return ServiceError(
        str(fields.get("message") or f"{answer.url} answered {reason}."),
        status=answer.status_code,
        code=fields.get("code"),
        param=fields.get("param"),
        request_id=answer.headers.get("x-request-id"),
    )


def _failed(answer: httpx.Response) -> ServiceError:
    try:
        body = answer.json()
    except ValueError:
        body = None
    return _refusal(answer, body)


def _unreachable(url: str, error: httpx.RequestError) -> ServiceError:
    if isinstance(error, httpx.TimeoutException):
        return ServiceError(f"{url} did not answer in time; raise timeout or check the server.")
    reason = str(error).rstrip(".") or type(error).__name__
    return ServiceError(f"{url} could not be reached ({reason}); check that the server runs.")


def _seconds_asked(answer: httpx.Response) -> float | None:
    """Read Retry-After, which holds seconds or a date."""
    text = answer.headers.get("retry-after", "")
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


class _Events(Generic[T]):
    """The server-sent events of one answer, cut from the bytes as they arrive."""

    def __init__(self, call: _Call[T], answer: httpx.Response) -> None:
        self._call = call
        self._answer = answer
        self._rest = b""
        self.is_done = False

    def feed(self, chunk: bytes) -> Iterator[T]:
        """Yield what the lines completed by this chunk hold."""
        # httpx's iter_lines also breaks at U+2028 and U+0085, which generated text may contain.
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            name, _, data = line.strip().partition(b":")
            if name != b"data" or self.is_done:
                continue
            if data.strip() == b"[DONE]":
                self.is_done = True
                continue
            yield self._event(data)

    def finish(self) -> None:
        """Raise if the answer ended before the server said that it is complete."""
        if not self.is_done and self._rest.strip() != b"data: [DONE]":
            broken = ValueError("the stream ended before it was complete")
            raise _unreadable(str(self._answer.url), broken, self._answer)

    def _event(self, data: bytes) -> T:
        try:
            event = json.loads(data)
            if isinstance(event, dict) and "error" in event:
                raise _refusal(self._answer, event)
            return self._call.read(event)
        except (KeyError, TypeError, ValueError) as error:
            raise _unreadable(str(self._answer.url), error, self._answer) from error


class _Settings:
    """What both clients share: checked options and the decision to retry."""

    def __init__(
        self, base_url: str, api_key: str | None, timeout: float | None, retries: int
    ) -> None:
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL as error:
            raise OptionError(f"base_url {base_url!r} is not a URL: {error}.") from error
        if url.userinfo:
            raise OptionError("base_url holds a user name or password; pass the key as api_key.")
        if url.scheme not in ("http", "https") or not url.host:
            raise OptionError(f"base_url starts with http:// or https://, unlike {base_url!r}.")
        if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
            raise OptionError(f"timeout is a number of seconds above 0, not {timeout}.")
        if retries < 0:
            raise OptionError(f"retries is 0 or more, not {retries}.")
        key = os.environ.get("SEMEME_API_KEY") if api_key is None else api_key
        if key and not (key.isascii() and key.isprintable()):
            raise OptionError("The API key holds characters other than printable ASCII.")
        self.retries = retries
        self.url = str(url).rstrip("/")
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.timeout = timeout
        # A proxy from the environment cannot reach this machine's own addresses.
        self.trust_env = url.host not in ("127.0.0.1", "localhost", "::1")

    def request(self, call: _Call[Any]) -> httpx.Request:
        """Build the HTTP request of a call."""
        headers = dict(self.headers)
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        return httpx.Request(
            call.method,
            self.url + call.path,
            content=call.body,
            headers=headers,
            extensions={"timeout": httpx.Timeout(self.timeout).as_dict()},
        )

    def pause(self, attempt: int, outcome: httpx.Response | httpx.RequestError) -> float:
        """Return the seconds to wait before the next attempt, or raise if there is none."""
        asked: float | None = None
        if isinstance(outcome, httpx.Response):
            error, can_retry = _failed(outcome), outcome.status_code in _BUSY
            asked = _seconds_asked(outcome)
        else:
            error = _unreachable(self.url, outcome)
            can_retry = isinstance(outcome, _CONNECTION_LOST)
        if not can_retry or attempt >= self.retries:
            raise error from (outcome if isinstance(outcome, Exception) else None)
        if asked is not None:
            return min(asked, _LONGEST_PAUSE)
        longest = min(_FIRST_PAUSE * 2.0 ** min(attempt, 20), _LONGEST_PAUSE)
        return longest * random.uniform(0.5, 1.0)


def _dress(method: Callable[..., Any], build: Callable[..., Any], returns: Any = None) -> None:
    """Give a client's method the name, docstring and signature of the call it sends."""
    functools.update_wrapper(method, build)
    signature = inspect.signature(build)
    kind = returns or get_args(signature.return_annotation)[0]
    method.__signature__ = signature.replace(return_annotation=kind)  # type: ignore[attr-defined]
    method.__annotations__ = {**method.__annotations__, "return": kind}
    del method.__wrapped__  # type: ignore[attr-defined]


def _blocking(
    build: Callable[Concatenate[_Calls, P], _Call[T]],
) -> Callable[Concatenate["Client", P], T]:
    def method(self: "Client", /, *args: P.args, **options: P.kwargs) -> T:
        call = build(_CALLS, *args, **options)
        return _read(call, self._send(call))

    _dress(method, build)
    return method


def _blocking_stream(
    build: Callable[Concatenate[_Calls, P], _Call[T]],
) -> Callable[Concatenate["Client", P], Generator[T, None, None]]:
    def method(self: "Client", /, *args: P.args, **options: P.kwargs) -> Generator[T, None, None]:
        return self._events(build(_CALLS, *args, **options))

    _dress(method, build, Generator[str, None, None])
    return method


def _awaiting(
    build: Callable[Concatenate[_Calls, P], _Call[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    async def method(self: "AsyncClient", /, *args: P.args, **options: P.kwargs) -> T:
        call = build(_CALLS, *args, **options)
        return _read(call, await self._send(call))

    _dress(method, build)
    return method


def _awaiting_stream(
    build: Callable[Concatenate[_Calls, P], _Call[T]],
) -> Callable[Concatenate["AsyncClient", P], AsyncGenerator[T, None]]:
    def method(
        self: "AsyncClient", /, *args: P.args, **options: P.kwargs
    ) -> AsyncGenerator[T, None]:
        return self._events(build(_CALLS, *args, **options))

    _dress(method, build, AsyncGenerator[str, None])
    return method


class Client:
    """A blocking client of `sememe serve`; threads may share one."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        timeout: float | None = 60.0,
        retries: int = 3,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._settings = _Settings(base_url, api_key, timeout, retries)
        self._http = httpx.Client(transport=transport, trust_env=self._settings.trust_env)

    health = _blocking(_Calls.health)
    models = _blocking(_Calls.models)
    embed = _blocking(_Calls.embed)
    neighbors = _blocking(_Calls.neighbors)
    analogy = _blocking(_Calls.analogy)
    similarity = _blocking(_Calls.similarity)
    fill = _blocking(_Calls.fill)
    generate = _blocking(_Calls.generate)
    stream = _blocking_stream(_Calls.stream)
    next_words = _blocking(_Calls.next_words)
    predict = _blocking(_Calls.predict)
    translate = _blocking(_Calls.translate)
    attention = _blocking(_Calls.attention)
    rerank = _blocking(_Calls.rerank)
    search = _blocking(_Calls.search)

    def close(self) -> None:
        """Close the connections to the server."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, call: _Call[Any], stream: bool = False) -> httpx.Response:
        """Send a call until it succeeds or may not be retried."""
        attempt = 0
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = self._http.send(self._settings.request(call), stream=stream)
                if outcome.is_success:
                    return outcome
                outcome.read()  # reading a streamed answer to its end also closes it
            except httpx.RequestError as error:
                outcome = error
            time.sleep(self._settings.pause(attempt, outcome))
            attempt += 1

    def _events(self, call: _Call[T]) -> Generator[T, None, None]:
        with closing(self._send(call, stream=True)) as answer:
            events = _Events(call, answer)
            try:
                for chunk in answer.iter_bytes():
                    yield from events.feed(chunk)
            except httpx.RequestError as error:
                raise _unreadable(str(answer.url), error, answer) from error
            events.finish()


class AsyncClient:
    """A client of `sememe serve` for asyncio."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        timeout: float | None = 60.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = _Settings(base_url, api_key, timeout, retries)
        self._http = httpx.AsyncClient(transport=transport, trust_env=self._settings.trust_env)

    health = _awaiting(_Calls.health)
    models = _awaiting(_Calls.models)
    embed = _awaiting(_Calls.embed)
    neighbors = _awaiting(_Calls.neighbors)
    analogy = _awaiting(_Calls.analogy)
    similarity = _awaiting(_Calls.similarity)
    fill = _awaiting(_Calls.fill)
    generate = _awaiting(_Calls.generate)
    stream = _awaiting_stream(_Calls.stream)
    next_words = _awaiting(_Calls.next_words)
    predict = _awaiting(_Calls.predict)
    translate = _awaiting(_Calls.translate)
    attention = _awaiting(_Calls.attention)
    rerank = _awaiting(_Calls.rerank)
    search = _awaiting(_Calls.search)

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _send(self, call: _Call[Any], stream: bool = False) -> httpx.Response:
        """Send a call until it succeeds or may not be retried."""
        attempt = 0
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = await self._http.send(self._settings.request(call), stream=stream)
                if outcome.is_success:
                    return outcome
                await outcome.aread()
            except httpx.RequestError as error:
                outcome = error
            await asyncio.sleep(self._settings.pause(attempt, outcome))
            attempt += 1

    async def _events(self, call: _Call[T]) -> AsyncGenerator[T, None]:
        async with aclosing(await self._send(call, stream=True)) as answer:
            events = _Events(call, answer)
            try:
                async for chunk in answer.aiter_bytes():
                    for event in events.feed(chunk):
                        yield event
            except httpx.RequestError as error:
                raise _unreadable(str(answer.url), error, answer) from error
            events.finish()

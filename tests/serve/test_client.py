"""The clients of `sememe serve`: requests, answers, retries, streams and errors."""

import asyncio
import base64
import inspect
import json
import pickle
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest

httpx = pytest.importorskip("httpx")

from sememe.errors import OptionError, SememeError, ServiceError
from sememe.serve import client as module
from sememe.serve.client import AsyncClient, Client

ROWS = np.array([[1.5, -2.0, 0.25], [0.0, 3.0, 1e-7]], np.float32)
METHODS = [name for name in vars(Client) if not name.startswith("_") and name != "close"]


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that arrives in the given chunks."""

    def __init__(self, *chunks: bytes, then: Exception | None = None) -> None:
        self.chunks, self.then = chunks, then
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self.chunks
        if self.then:
            raise self.then

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.is_closed = True


class Server:
    """A transport that gives prepared answers in turn and records the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, httpx.Response):
            return httpx.Response(200, json=answer)
        if isinstance(answer.stream, Pieces):
            return answer
        # A sent answer is tied to its client, and a parameter of a test is sent by both.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.requests[-1].content)


def blocking(server: Server, use: Callable[[Any], Any], **options: Any) -> Any:
    with Client(transport=httpx.MockTransport(server), **options) as client:
        found = use(client)
        return list(found) if inspect.isgenerator(found) else found


def awaiting(server: Server, use: Callable[[Any], Any], **options: Any) -> Any:
    async def main() -> Any:
        async with AsyncClient(transport=httpx.MockTransport(server), **options) as client:
            found = use(client)
            return [piece async for piece in found] if inspect.isasyncgen(found) else await found

    return asyncio.run(main())


@pytest.fixture(params=[blocking, awaiting])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return request.param


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses between attempts instead of sleeping."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.delenv("SEMEME_API_KEY", raising=False)
    monkeypatch.setattr(module.time, "sleep", found.append)
    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    return found


def embeddings(rows: np.ndarray, order: list[int]) -> dict[str, Any]:
    coded = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows]
    return {"data": [{"index": place, "embedding": coded[place]} for place in order]}


def refusal(status: int, **headers: str) -> httpx.Response:
    error = {"message": "No room.", "type": "t", "param": "input", "code": "full"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"error": error}, headers=named)


def test_embeddings_are_decoded_and_ordered_by_index(call):
    server = Server(embeddings(ROWS, [1, 0]))
    found = call(server, lambda client: client.embed(["a", "b"], "m", dimensions=3))
    assert found.dtype == np.float32 and found.flags.writeable
    np.testing.assert_array_equal(found, ROWS)
    assert server.requests[0].url.path == "/v1/embeddings"
    assert server.body == {
        "model": "m",
        "input": ["a", "b"],
        "encoding_format": "base64",
        "dimensions": 3,
        "truncate": False,
    }


@pytest.mark.parametrize(
    "answer",
    [
        embeddings(ROWS, [0]),
        embeddings(ROWS, [0, 0]),
        embeddings(ROWS, [0, 1, 1]),
        embeddings(ROWS[:, :2], [0, 1]),
        {"data": [{"index": 0, "embedding": "?"}, {"index": 1, "embedding": "?"}]},
        {},
        [],
        httpx.Response(200, text="<html>"),
    ],
)
def test_malformed_embeddings_are_an_error(call, answer):
    with pytest.raises(ServiceError, match="/v1/embeddings") as caught:
        call(Server(answer), lambda client: client.embed(["a", "b"], dimensions=3))
    assert caught.value.status == 200


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("closed"),
        refusal(429),
        refusal(503),
    ],
)
def test_a_retry_succeeds(call, pauses, failure):
    server = Server(failure, failure, {"similarity": 0.5})
    assert call(server, lambda client: client.similarity("a", "b")) == 0.5
    assert len(server.requests) == 3
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("9999", 30.0),
        ("-1", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 30.0),
    ],
)
def test_retry_after_sets_the_pause_up_to_a_cap(call, pauses, value, seconds):
    server = Server(refusal(429, retry_after=value), {"similarity": 1})
    call(server, lambda client: client.similarity("a", "b"))
    assert pauses == [seconds]


def test_an_unreadable_retry_after_falls_back_to_backoff(call, pauses):
    server = Server(refusal(503, retry_after="soon"), {"similarity": 1})
    call(server, lambda client: client.similarity("a", "b"))
    assert 0.25 <= pauses[0] <= 0.5


def test_retries_run_out(call, pauses):
    server = Server(*[refusal(503)] * 3)
    with pytest.raises(ServiceError) as caught:
        call(server, lambda client: client.models(), retries=2)
    assert caught.value.status == 503 and len(pauses) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 413, 421, 422, 500, 302])
def test_other_failures_are_not_retried(call, pauses, status):
    server = Server(refusal(status, x_request_id="r-1"))
    with pytest.raises(ServiceError, match="No room") as caught:
        call(server, lambda client: client.embed(["a"]))
    error = caught.value
    assert isinstance(error, SememeError) and not pauses
    assert (error.status, error.code, error.param) == (status, "full", "input")
    assert (error.message, error.request_id) == ("No room.", "r-1")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.status, copy.request_id) == ("No room.", status, "r-1")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"detail": 1}', b""])
def test_a_failure_in_another_shape_names_url_and_status(call, body):
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1.*502") as caught:
        call(Server(httpx.Response(502, content=body)), lambda client: client.models())
    assert caught.value.status == 502 and caught.value.code is None


def test_a_read_timeout_is_not_retried(call, pauses):
    with pytest.raises(ServiceError, match="timeout") as caught:
        call(Server(httpx.ReadTimeout("slow")), lambda client: client.models())
    assert caught.value.status is None and not pauses


def test_an_unreachable_server_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with Client(url, retries=1) as client, pytest.raises(ServiceError, match=url) as caught:
            client.health()

        async def main() -> None:
            async with AsyncClient(url, retries=0) as twin:
                await twin.health()

        with pytest.raises(ServiceError, match=url):
            asyncio.run(main())
    assert caught.value.status is None and "\n" not in str(caught.value)


def test_a_stream_yields_text_across_chunk_borders(call):
    text = '猫\u2028"\n'
    sent = ": ping\r\n\r\ndata: {}\r\n\r\ndata: {}\n\ndata: [DONE]\n\n".format(
        json.dumps({"text": text}, ensure_ascii=False), json.dumps({"text": "b"})
    ).encode()
    chunks = [sent[place : place + 3] for place in range(0, len(sent), 3)]
    body = Pieces(*chunks)
    server = Server(refusal(503), httpx.Response(200, stream=body))
    assert call(server, lambda client: client.stream("p", seed=3)) == [text, "b"]
    assert server.body == {"prompt": "p", "seed": 3, "stream": True}
    assert body.is_closed


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (b"", "before it was complete"),
        (b'data: {"error": {"message": "No memory.", "code": "oom"}}\n\n', "No memory"),
        (b"data: {\n\n", "/v1/generate"),
        (b"data: {}\n\n", "text"),
    ],
)
def test_a_broken_stream_is_an_error(call, end, message):
    body = Pieces(b'data: {"text": "a"}\n\n' + end)
    with pytest.raises(ServiceError, match=message):
        call(Server(httpx.Response(200, stream=body)), lambda client: client.stream("p"))
    assert body.is_closed


def test_a_connection_lost_within_a_stream_is_not_retried(call, pauses):
    body = Pieces(b'data: {"text": "a"}\n\n', then=httpx.ReadError("reset"))
    with pytest.raises(ServiceError, match="reset"):
        call(Server(httpx.Response(200, stream=body)), lambda client: client.stream("p"))
    assert not pauses


def test_a_refused_stream_has_the_fields_of_the_error(call):
    with pytest.raises(ServiceError) as caught:
        call(Server(refusal(422)), lambda client: client.stream("p"))
    assert (caught.value.status, caught.value.param) == (422, "input")


def test_a_stream_yields_before_the_answer_ends_and_closes_early():
    body = Pieces(b'data: {"text": "a"}\n\n', then=AssertionError("read too far"))
    server = Server(httpx.Response(200, stream=body))
    with Client(transport=httpx.MockTransport(server)) as client:
        pieces = client.stream("p")
        assert next(pieces) == "a"
        pieces.close()
    assert body.is_closed


WORDS = [{"word": "w", "score": 0.5}]
CALLS = [
    (lambda c: c.models(), "/v1/models", None, {"data": [{"id": "m"}]}, [{"id": "m"}]),
    (lambda c: c.health(), "/health", None, {"status": "ok"}, {"status": "ok"}),
    (
        lambda c: c.neighbors("x", num=2),
        "/v1/neighbors",
        {"word": "x", "num": 2},
        {"neighbors": WORDS},
        [("w", 0.5)],
    ),
    (
        lambda c: c.neighbors(positive="x", negative=("y",)),
        "/v1/neighbors",
        {"positive": ["x"], "negative": ["y"]},
        {"neighbors": []},
        [],
    ),
    (
        lambda c: c.analogy("x", "y", "z", method="mul"),
        "/v1/analogy",
        {"a": "x", "b": "y", "c": "z", "method": "mul"},
        {"answers": WORDS},
        [("w", 0.5)],
    ),
    (
        lambda c: c.similarity("x", "y", "m", of="texts"),
        "/v1/similarity",
        {"model": "m", "a": "x", "b": "y", "of": "texts"},
        {"similarity": 1},
        1.0,
    ),
    (
        lambda c: c.fill("a [MASK]", num=1),
        "/v1/fill",
        {"text": "a [MASK]", "num": 1},
        {"masks": [[{"token": "b", "probability": 0.25}]]},
        [[("b", 0.25)]],
    ),
    (
        lambda c: c.generate("p", max_tokens=3, temperature=0.0),
        "/v1/generate",
        {"prompt": "p", "max_tokens": 3, "temperature": 0.0, "stream": False},
        {"text": "q"},
        "q",
    ),
    (
        lambda c: c.next_words("a"),
        "/v1/next",
        {"text": "a"},
        {"suggestions": [{"word": "b", "probability": 0.5}]},
        [("b", 0.5)],
    ),
    (
        lambda c: c.predict("pairs", [("a", "b")], "m", truncate=True),
        "/v1/pairs",
        {"model": "m", "inputs": [["a", "b"]], "truncate": True},
        {"predictions": ["yes"]},
        ["yes"],
    ),
    (
        lambda c: c.translate(["a"]),
        "/v1/translate",
        {"texts": ["a"]},
        {"translations": ["b"]},
        ["b"],
    ),
    (
        lambda c: c.rerank("q", ["a", "b"], top=1, truncate=True),
        "/v1/rerank",
        {"query": "q", "documents": ["a", "b"], "top": 1, "truncate": True},
        {"results": [{"index": 1, "score": 2}]},
        [(1, 2.0)],
    ),
    (
        lambda c: c.search("q", "i", top=1, mode="hybrid"),
        "/v1/search",
        {"model": "i", "query": "q", "top": 1, "mode": "hybrid"},
        {"hits": [{"id": 1}]},
        [{"id": 1}],
    ),
]


@pytest.mark.parametrize(("use", "path", "body", "answer", "result"), CALLS)
def test_each_method_sends_its_fields_and_reads_its_answer(call, use, path, body, answer, result):
    server = Server(answer)
    assert call(server, use) == result
    (request,) = server.requests
    assert (request.method, request.url.path) == ("GET" if body is None else "POST", path)
    assert body is None or server.body == body


def test_attention_weights_are_an_array(call):
    server = Server({"weights": [[0.5, 0.5]], "target": ["a"], "source": ["a", "b"]})
    found = call(server, lambda client: client.attention("a", "b", layer=0))
    assert server.body == {"text": "a", "other": "b", "layer": 0}
    assert found["weights"].shape == (1, 2) and found["source"] == ["a", "b"]


def test_too_few_predictions_are_an_error(call):
    with pytest.raises(ServiceError, match="2 rows"):
        call(Server({"predictions": [1]}), lambda client: client.predict("tag", ["a", "b"]))


def test_the_key_comes_from_the_argument_or_the_environment(call, monkeypatch):
    monkeypatch.setenv("SEMEME_API_KEY", "from-env")
    for given, sent in ((None, "Bearer from-env"), ("given", "Bearer given"), ("", None)):
        server = Server({"data": []})
        call(server, lambda client: client.models(), api_key=given)
        assert server.requests[0].headers.get("authorization") == sent


def test_a_base_url_keeps_its_path_and_timeout(call):
    server = Server({"data": []})
    call(server, lambda client: client.models(), base_url="http://h/sub/", timeout=5)
    assert str(server.requests[0].url) == "http://h/sub/v1/models"
    assert server.requests[0].extensions["timeout"]["read"] == 5


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "localhost:8000"},
        {"base_url": "http://"},
        {"base_url": "http://a:port"},
        {"base_url": "http://user:secret@host"},
        {"api_key": "schlüssel"},
        {"api_key": "a\nb"},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"retries": -1},
    ],
)
def test_bad_options_are_refused(kind, options):
    with pytest.raises(OptionError) as caught:
        kind(**options)
    assert "secret" not in str(caught.value) and "schl" not in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.embed("one text"),
        lambda client: client.translate("one text"),
        lambda client: client.embed(["\ud800"]),
        lambda client: client.predict("sing", ["a"]),
        lambda client: client.predict("regress", [float("nan")]),
        lambda client: client.predict("regress", [object()]),
    ],
)
def test_bad_arguments_are_refused_before_sending(call, use):
    server = Server()
    with pytest.raises(OptionError):
        call(server, use)
    assert not server.requests


@pytest.mark.parametrize("name", METHODS)
def test_both_clients_have_the_same_documented_methods(name):
    first, second = getattr(Client, name), getattr(AsyncClient, name)
    assert first.__doc__ and first.__doc__ == second.__doc__
    assert first.__name__ == second.__name__ == name
    assert inspect.signature(first).parameters == inspect.signature(second).parameters
    assert next(iter(inspect.signature(first).parameters)) == "self"
    assert "_Call" not in str(inspect.signature(first))
    assert inspect.iscoroutinefunction(second) == (name != "stream")

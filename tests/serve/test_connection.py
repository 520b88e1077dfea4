"""Clients that send or read slowly, or not at all: their connections end, and others' do not."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")
uvicorn = pytest.importorskip("uvicorn")

from sememe.serve.connection import JoinedWrites, LimitedConnection

LARGE = 30_000_000  # bytes: more than the buffers of a connection hold


class Short(LimitedConnection):
    """The limits of a test."""

    head_s = stalled_s = 1.0


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer after a while, with much if asked for it, in one part or in several."""
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(2.5)
    num_parts = {"/parts": 30, "/large": 1}.get(scope["path"], 0)
    size = LARGE if num_parts else 2
    length = [(b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    for _ in range(num_parts):
        part = b"a" * (LARGE // num_parts)
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"" if num_parts else b"ok"})


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    settings = uvicorn.Config(
        application, port=0, http=Short, ws="none", lifespan="off", log_level="error",
        timeout_keep_alive=30,
    )  # fmt: skip
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end_s = time.monotonic() + 120
    while not server.started:
        assert time.monotonic() < end_s
        time.sleep(0.02)
    yield server.servers[0].sockets[0].getsockname()[:2]
    server.should_exit = True
    thread.join(30)


def connected(address: tuple[str, int], sent: bytes = b"") -> socket.socket:
    own = socket.create_connection(address, timeout=60)
    own.sendall(sent)
    return own


def request(path: str = "/", more: bytes = b"") -> bytes:
    return b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (path.encode(), more)


def is_closed(own: socket.socket, seconds: float = 60) -> bool:
    """Whether the server ends a connection in time, without an answer."""
    own.settimeout(seconds)
    try:
        return own.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def is_ok(own: socket.socket) -> bool:
    """Whether the short answer comes next."""
    found = b""
    while not found.endswith(b"\r\n\r\nok") and (byte := own.recv(1)):
        found += byte
    return found.startswith(b"HTTP/1.1 200") and found.endswith(b"ok")


def whole(own: socket.socket, pause_s: float = 0) -> int:
    """Bytes of an answer until nothing comes, read slowly."""
    num = 0
    own.settimeout(30)
    try:
        while part := own.recv(1_000_000):
            num += len(part)
            time.sleep(pause_s)
    except (ConnectionResetError, TimeoutError):
        pass
    return num


@pytest.mark.parametrize("sent", [b"", b"GET / HT", request()[:-2]])
def test_a_head_that_does_not_come_ends_the_connection(
    address: tuple[str, int], sent: bytes
) -> None:
    with connected(address, sent) as own:
        assert is_closed(own)


def test_bytes_that_trickle_in_are_no_way_around(address: tuple[str, int]) -> None:
    with connected(address, request()[:-2]) as own:
        end_s = time.monotonic() + 60
        try:
            while time.monotonic() < end_s:
                own.sendall(b"X: y\r\n")
                time.sleep(0.1)
        except (ConnectionResetError, BrokenPipeError):
            return
        raise AssertionError("the connection is still open")


def test_the_second_request_has_the_same_limit(address: tuple[str, int]) -> None:
    with connected(address, request()) as own:
        assert is_ok(own)
        time.sleep(2.5)  # an idle connection stays open
        own.sendall(request())
        assert is_ok(own)
        own.sendall(request()[:-2])
        assert is_closed(own)


def test_a_slow_answer_ends_nothing(address: tuple[str, int]) -> None:
    with connected(address, request("/slow")) as own:
        assert is_ok(own)
    with connected(address, request("/slow") * 3) as own:  # requests that are sent at once
        assert is_ok(own) and is_ok(own) and is_ok(own)


@pytest.mark.parametrize("path", ["/large", "/parts"])
def test_an_answer_that_is_not_read_ends_the_connection(
    address: tuple[str, int], path: str
) -> None:
    with connected(address, request(path)) as own:
        time.sleep(6)
        assert whole(own) < LARGE
    with connected(address, request()) as other:
        assert is_ok(other)


@pytest.mark.parametrize("path", ["/large", "/parts"])
def test_an_answer_that_is_read_slowly_arrives(address: tuple[str, int], path: str) -> None:
    with connected(address, request(path, b"Connection: close\r\n")) as own:
        assert whole(own, 0.05) > LARGE


@pytest.mark.parametrize(
    "head",
    [
        request("/", b"X: " + b"a" * 70_000 + b"\r\n"),
        request("/", b"X: a\r\n" * 12_000),
        request("/" + "a" * 70_000),
        b"GET / HTTP/1.1\r\nX: " + b"a" * 1_000_000,
        b"GET /" + b"a" * 1_000_000,
    ],
)
def test_a_large_head_is_refused(address: tuple[str, int], head: bytes) -> None:
    with connected(address) as own:
        try:
            for start in range(0, len(head), 20_000):
                own.sendall(head[start : start + 20_000])
                time.sleep(0.001)
            assert own.recv(100).startswith(b"HTTP/1.1 431 ")
        except (ConnectionResetError, BrokenPipeError):
            pass  # the answer was lost, because the rest of the head was not read
    with connected(address, request()) as other:
        assert is_ok(other)


def test_what_is_no_http_is_refused(address: tuple[str, int]) -> None:
    with connected(address, b"HELLO\r\n\r\n") as own:
        assert own.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_large_body_before_the_next_head_is_no_head(address: tuple[str, int]) -> None:
    body = b"Content-Length: 200000\r\n\r\n" + b"a" * 200_000
    with connected(address, request("/", body)[:-2] + request()[:-2]) as own:
        assert is_ok(own)
        own.sendall(b"\r\n")
        assert is_ok(own)


class Sent:
    """A transport that notes what it sends."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bytes]] = []

    def write(self, data: bytes) -> None:
        self.told.append(("one", data))

    def writelines(self, parts: Any) -> None:
        self.told.append(("several", b"".join(parts)))

    def close(self) -> None:
        self.told.append(("close", b""))

    def is_closing(self) -> bool:
        return False


def test_the_head_and_the_body_of_an_answer_are_sent_together() -> None:
    async def test() -> None:
        transport = Sent()
        joined = JoinedWrites(transport, asyncio.get_running_loop())  # type: ignore[arg-type]
        joined.write(b"head")
        assert not transport.told
        joined.write(b"body")
        assert transport.told == [("several", b"headbody")]
        # The head of a stream does not wait for its first part.
        joined.write(b"head of a stream")
        await asyncio.sleep(0)
        assert transport.told[1:] == [("one", b"head of a stream")]
        joined.write(b"last")
        joined.close()
        assert transport.told[2:] == [("one", b"last"), ("close", b"")]
        await asyncio.sleep(0)
        assert len(transport.told) == 4
        assert not joined.is_closing()

    asyncio.run(test())

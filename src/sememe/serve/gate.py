"""What every request passes: host, size and time limits, a request id, the log, the metrics."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TextIO

import orjson
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sememe.serve.config import ServeConfig

_BODY_S = 30.0  # in which the body of a request must arrive
_LOG_S = 0.05
_LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@,\s]+))(?::[0-9]*)?")  # with its port
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024)


def error_type(status: int) -> str:
    """The type of an error in the OpenAI API."""
    known = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    return known.get(status, "server_error" if status >= 500 else "invalid_request_error")


def error_body(message: str, kind: str, code: str = "", param: str | None = None) -> bytes:
    """An error in the shape of the OpenAI API."""
    told = {"message": message, "type": kind, "param": param, "code": code or None}
    return json.dumps({"error": told}, ensure_ascii=False).encode("utf-8", "replace")


class Refused(HTTPException):
    """A request that is refused, with the code of the reason."""

    def __init__(self, status: int, message: str, code: str, param: str | None = None) -> None:
        super().__init__(status, message)
        self.code, self.param = code, param


class Metrics:
    """Requests, failures, queue, batches and latencies for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        by_route = ("route", "model")
        self.requests = Counter("sememe_requests", "Requests.", (*by_route, "status"), **own)
        self.failures = Counter("sememe_failures", "Failed requests.", (*by_route, "code"), **own)
        self.latency = Histogram(
            "sememe_request_seconds", "Latency.", by_route, buckets=_LATENCIES, **own
        )
        self.tokens = Counter("sememe_tokens", "Tokens read.", ("model",), **own)
        self.batch_texts = Histogram(
            "sememe_batch_texts", "Texts of a batch.", buckets=_SIZES, **own
        )
        self.batch_tokens = Histogram(
            "sememe_batch_tokens",
            "Tokens of a batch.",
            buckets=tuple(16 * x for x in _SIZES),
            **own,
        )
        self.queue = Gauge("sememe_queue", "Requests that wait or are computed.", **own)
        self.unlogged = Counter("sememe_unlogged", "Log lines that could not be written.", **own)

        # Looking labels up takes longer than counting.
        self._known: dict[tuple[str, str, int], tuple[Any, Any]] = {}
        self._known_tokens: dict[str, Any] = {}

    def note_request(self, route: str, model: str, status: int, seconds: float) -> None:
        """Note a request."""
        key = (route, model, status)
        if (own := self._known.get(key)) is None:
            own = self.requests.labels(route, model, status), self.latency.labels(route, model)
            self._known[key] = own
        own[0].inc()
        own[1].observe(seconds)

    def note_tokens(self, model: str, num: int) -> None:
        """Note tokens that a model reads."""
        if (own := self._known_tokens.get(model)) is None:
            own = self._known_tokens[model] = self.tokens.labels(model)
        own.inc(num)

    def note_batch(self, num_texts: int, num_tokens: int) -> None:
        """Note the size of a batch."""
        self.batch_texts.observe(num_texts)
        self.batch_tokens.observe(num_tokens)


class Log:
    """One JSON line per request; a full disk loses lines, never requests.

    Lines are written together, at most _LOG_S late.
    """

    def __init__(self, path: str, metrics: Metrics) -> None:
        self._metrics = metrics
        self._file: TextIO = sys.stderr
        self._lines: list[bytes] = []
        if path:
            self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 (open as long as we are)

    def write(self, **told: Any) -> None:
        """Write a line soon; from the event loop."""
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **told}
        if not self._lines:
            asyncio.get_running_loop().call_later(_LOG_S, self.flush)
        try:
            self._lines.append(orjson.dumps(line) + b"\n")
        except TypeError:  # a lone surrogate, or a very large number
            self._lines.append(json.dumps(line).encode() + b"\n")

    def flush(self) -> None:
        """Write the lines that wait."""
        lines, self._lines = self._lines, []
        try:
            self._file.write(b"".join(lines).decode())
            self._file.flush()
        except (OSError, ValueError):
            self._metrics.unlogged.inc(len(lines))


class Gate:
    """The outermost application: refuses, measures, logs, and names every request."""

    def __init__(self, app: ASGIApp, config: ServeConfig, metrics: Metrics, log: Log) -> None:
        self._app, self._metrics, self._log = app, metrics, log
        self._max_body, self._hosts = int(config.max_body * 1e6), config.hosts
        self._takes_addresses = config.is_open and not config.allow_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start_s, request_id = time.perf_counter(), os.urandom(16).hex()
        told = scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"], (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]  # fmt: skip
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, _limited(receive, self._max_body), answer)
        except Refused as error:
            if not status:
                await _refuse(answer, error)
        except Exception as error:
            told["fault"] = f"{type(error).__name__}: {error}"
            if not status:
                await _refuse(answer, Refused(500, "The service failed.", "internal_error"))
        finally:
            self._note(scope, status, time.perf_counter() - start_s)

    def _check(self, scope: Scope) -> None:
        hosts = []
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value.decode("latin-1"))
            elif (
                name == b"content-length"
                and value.isdigit()
                # Python reads numbers of limited length only.
                and (len(value) > 20 or int(value) > self._max_body)
            ):
                raise _too_large(self._max_body)
        if len(hosts) != 1:
            raise Refused(400, "A request needs one Host header.", "bad_host")
        if not self._is_known(_host_name(hosts[0])):
            raise Refused(421, "This Host header is not allowed: see --allow-host.", "bad_host")

    def _is_known(self, host: str) -> bool:
        """Whether a page of another site cannot have this name; an address is none."""
        is_address = self._takes_addresses and _is_address(host)
        return not self._hosts or host in self._hosts or is_address

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        known = scope.get("route")
        route = "other" if known is None else known.path
        state = scope["state"]
        model = state.get("model", "")
        self._metrics.note_request(route, model, status, seconds)
        if status >= 400:
            self._metrics.failures.labels(route, model, state.get("code", status)).inc()
        if route not in ("/health", "/ready", "/metrics"):
            more = {name: state[name] for name in ("code", "tokens", "fault") if name in state}
            self._log.write(
                request_id=state["request_id"], method=scope["method"], route=route, model=model,
                status=status, ms=round(1e3 * seconds, 2), **more,
            )  # fmt: skip


def _host_name(host: str) -> str:
    """The name of a Host header, without its port and brackets; nothing if it is malformed."""
    found = _HOST.fullmatch(host.strip().lower())
    return (found[1] or found[2]) if found else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _too_large(most: int) -> Refused:
    return Refused(413, f"The body is larger than {most:,} bytes.", "body_too_large")


def _limited(receive: Receive, most: int) -> Receive:
    """Receive a body of limited size in limited time."""
    received, is_whole = 0, False
    loop = asyncio.get_running_loop()
    end_s = loop.time() + _BODY_S

    async def limited() -> Message:
        nonlocal received, is_whole
        if is_whole:
            return await receive()  # waits for the client to leave
        try:
            async with asyncio.timeout_at(end_s):
                message = await receive()
        except TimeoutError:
            raise Refused(408, "The body did not arrive in time.", "timeout") from None
        received += len(message.get("body", b""))
        is_whole = not message.get("more_body")
        if received > most:
            raise _too_large(most)
        return message

    return limited


async def _refuse(send: Send, error: Refused) -> None:
    body = error_body(error.detail, error_type(error.status_code), error.code)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    # What is left of the body is not read.
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})

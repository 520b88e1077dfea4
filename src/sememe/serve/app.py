"""The application: models in, an HTTP service out.

    app = create_app(["runs/bert", "reviews=runs/encoder"])

Routes are in routes.py and tei.py; every request passes gate.py first.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import hmac
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp
from swagger_ui_bundle import swagger_ui_path

from sememe import __version__
from sememe.errors import (
    ArtifactError,
    OptionError,
    SememeError,
    TooLongError,
    UnknownWordError,
    UnsupportedError,
)
from sememe.serve.batching import QueueFullError
from sememe.serve.config import KEY_VARIABLE, ServeConfig, listed
from sememe.serve.connection import LimitedConnection
from sememe.serve.gate import Gate, Log, Refused, error_body, error_type
from sememe.serve.json_route import Direct, told_of
from sememe.serve.models import Models, UnavailableError, UnknownModelError
from sememe.serve.routes import model_routes
from sememe.serve.service import Service
from sememe.serve.tei import tei_routes

_DRAIN_S = 30  # that running requests may take after SIGTERM
# Status and code of errors that a request can cause, the most special first.
_STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (UnknownModelError, 404, "model_not_found"),
    (TooLongError, 422, "input_too_long"),
    (UnknownWordError, 400, "unknown_word"),
    (UnsupportedError, 400, "unsupported"),
    (QueueFullError, 429, "queue_full"),
    (UnavailableError, 503, "model_unavailable"),
    (ArtifactError, 503, "model_damaged"),
    (SememeError, 400, "bad_request"),
    (MemoryError, 503, "out_of_memory"),
    (TimeoutError, 504, "timeout"),
)


# Adds the routes of a page to the application and its service.
Add = Callable[[FastAPI, Service], None]


def create_app(
    paths: Sequence[str | Path], config: ServeConfig | None = None, add: Add | None = None
) -> Any:
    """The ASGI application of these models; `add` gives it a page, which knows no key."""
    config = config or ServeConfig()
    if add is None:
        config = with_key(config)
    service = Service(Models(paths, config), config)
    log = Log(config.log_file, service.metrics)
    service.models.note = log.write

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async def start() -> None:
            if not config.lazy:
                await service.models.load_all()
            service.is_ready = True

        task = asyncio.create_task(start())
        yield
        task.cancel()
        service.close()
        log.flush()

    app = FastAPI(
        title="sememe", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    check = _authorized(config)
    routers = [model_routes(service, check), tei_routes(service, check)]
    for router in routers:
        app.include_router(router)
    if add is not None:
        add(app, service)
    _add_operations(app, service, config)
    if config.api_key:
        _describe_key(app)
    for kind in (Exception, HTTPException, RequestValidationError, *(own[0] for own in _STATUS)):
        app.add_exception_handler(kind, _handle_error)
    app.state.service = service
    inner: ASGIApp = Direct(app, [route for router in routers for route in router.routes], _failed)
    if config.cors:
        inner = CORSMiddleware(
            inner, allow_origins=listed(config.cors), allow_methods=["GET", "POST"],
            allow_headers=["authorization", "x-api-key", "content-type"],
            expose_headers=["x-request-id", "retry-after", "x-truncated", "x-truncated-count"],
        )  # fmt: skip
    gate = Gate(inner, config, service.metrics, log)
    gate.service = service  # type: ignore[attr-defined]
    return gate


def with_key(config: ServeConfig) -> ServeConfig:
    """The options with the key of the environment, unless they have one or want none."""
    key = os.environ.get(KEY_VARIABLE, "")
    return config if config.api_key or config.no_auth or not key else replace(config, api_key=key)


def _authorized(config: ServeConfig) -> Any:
    """What routes with models depend on: the right key, if there is one."""
    wanted = config.api_key.encode()

    async def check(request: Request) -> None:
        if not wanted:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            given = request.headers.get("x-api-key", "")
        if not hmac.compare_digest(given.strip().encode("utf-8", "replace"), wanted):
            needed = "An API key is needed: send Authorization: Bearer KEY."
            why = "The API key is wrong." if given else needed
            raise Refused(401, why, "invalid_api_key")

    return check


def _add_operations(app: FastAPI, service: Service, config: ServeConfig) -> None:
    """Health, readiness, metrics and the page of all routes."""

    @app.get("/health", tags=["operations"], summary="Whether the process answers")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready", tags=["operations"], summary="Whether requests are accepted")
    async def ready() -> Response:
        state = "draining" if service.is_draining else "ready" if service.is_ready else "loading"
        return Response(
            json.dumps({"status": state}), 200 if state == "ready" else 503,
            media_type="application/json",
        )  # fmt: skip

    @app.get("/metrics", tags=["operations"], dependencies=[Depends(_authorized(config))])
    async def metrics() -> Response:
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    app.mount("/docs/assets", StaticFiles(directory=swagger_ui_path), name="docs")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        assets = "/docs/assets/"
        return get_swagger_ui_html(
            openapi_url="/openapi.json", title="sememe",
            swagger_js_url=f"{assets}swagger-ui-bundle.js",
            swagger_css_url=f"{assets}swagger-ui.css",
            swagger_favicon_url=f"{assets}favicon-32x32.png",
        )  # fmt: skip


def _describe_key(app: FastAPI) -> None:
    """Say in the schema that a key is needed: the page of all routes has a field for it then."""
    schema_of = app.openapi

    def openapi() -> dict[str, Any]:
        schema = schema_of()
        kind = {"type": "http", "scheme": "bearer"}
        schema.setdefault("components", {})["securitySchemes"] = {"key": kind}
        return schema | {"security": [{"key": []}]}

    app.openapi = openapi  # type: ignore[method-assign]


def _failed(request: Request, error: Exception) -> Response:
    """Every failure as an error of the OpenAI API."""
    param = None
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        param = ".".join(str(part) for part in first["loc"][1:]) or None
        status, code, message = 422, "invalid", told_of(param or "The body", first)
    elif isinstance(error, HTTPException):
        status, message = error.status_code, str(error.detail)
        code, param = getattr(error, "code", ""), getattr(error, "param", None)
        if status == 404 and message == "Not Found":
            code, message = "not_found", "There is no such route; /docs lists all."
    else:
        own = ((status, code) for kind, status, code in _STATUS if isinstance(error, kind))
        status, code = next(own, (500, "internal_error"))
        message = str(error) or code
    if status == 500:
        message = "The service failed."  # the log says why
        request.state.fault = f"{type(error).__name__}: {error}"
    request.state.code = code
    headers = {"retry-after": "1"} if status in (429, 503) else {}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    body = error_body(message, error_type(status), code, param)
    return Response(body, status, headers, media_type="application/json")


async def _handle_error(request: Request, error: Exception) -> Response:
    return _failed(request, error)


def _freeze_objects() -> None:
    """Exempt all objects so far from Python's garbage collection.

    PyTorch and models have some 500,000. Looking through them takes 0.1 s and more, in which no
    request is answered. They are freed all the same when nothing refers to them.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """A server whose readiness ends when it is told to stop."""

    service: Service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note that no new requests should come."""
        self.service.is_draining = True
        # Not as the base class does it, which sends the signal to itself again in the end: a
        # service that was told to stop, and did, has not failed.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve(
    paths: Sequence[str | Path],
    config: ServeConfig,
    on_start: Any = print,
    add: Add | None = None,
) -> None:
    """Serve models until SIGTERM or Ctrl-C; running requests are finished."""
    app = create_app(paths, config, add)
    app.service.models.after_load = _freeze_objects
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once: 1 ms instead of 44 for each.
    own = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with own:
        try:
            own.bind((config.host, config.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise OptionError(
                    f"Port {config.port} is in use; choose another one, or any free one with "
                    "--port 0."
                ) from error
            raise OptionError(
                f"The service cannot listen on host {config.host}, port {config.port}: "
                f"{error.strerror}."
            ) from error
        own.listen(2_048)  # who reads the address below may connect at once
        host = f"[{config.host}]" if ":" in config.host else config.host
        on_start(f"http://{host}:{own.getsockname()[1]}")
        settings = uvicorn.Config(
            app, http=LimitedConnection, ws="none", log_level="warning", access_log=False,
            server_header=False, lifespan="on", limit_concurrency=4_096, timeout_keep_alive=30,
            timeout_graceful_shutdown=_DRAIN_S, proxy_headers=False,
        )  # fmt: skip
        server = _Server(settings)
        server.service = app.service
        server.run(sockets=[own])

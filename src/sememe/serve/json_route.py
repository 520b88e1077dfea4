"""A route of the service: the key is checked, then the body is read, then the model is called.

FastAPI's own handler reads and parses a body before it checks a key. The layers around a handler
take longer than a model of word vectors; `Direct` calls the handlers of POST routes without them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from sememe.serve.gate import Refused

Check = Callable[[Request], Coroutine[Any, Any, None]]
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class JSONRoute(APIRoute):
    """A route whose function takes the request, perhaps with a `body` that is a model."""

    handle_json: Handler | None = None  # for `Direct`


def json_route(check: Check) -> type[JSONRoute]:
    """The class of routes that need what `check` requires."""

    class CheckedRoute(JSONRoute):
        """A route with this check."""

        def get_route_handler(self) -> Handler:
            """The function that answers a request."""
            endpoint, plain = self.endpoint, super().get_route_handler()
            kind = get_type_hints(endpoint).get("body")

            async def handle(request: Request) -> Response:
                await check(request)
                if kind is None:
                    return await plain(request)
                found: Response = await endpoint(request, await read_body(request, kind))
                return found

            if kind is not None:
                self.handle_json = handle
            return handle

    return CheckedRoute


class Direct:
    """An application in front of another one: POST requests go straight to their handlers."""

    def __init__(
        self, app: ASGIApp, routes: Iterable[Any], failed: Callable[[Request, Exception], Response]
    ) -> None:
        """`failed` makes an answer of what a handler raises."""
        self._app, self._failed = app, failed
        self._routes = {
            route.path: (route, route.handle_json)
            for route in routes
            if isinstance(route, JSONRoute) and route.handle_json and route.methods == {"POST"}
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        route, handle = self._routes.get(scope["path"], (None, None)) if is_post else (None, None)
        if handle is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        request = Request(scope, receive, send)
        try:
            response = await handle(request)
        except Exception as error:
            response = self._failed(request, error)
        await response(scope, receive, send)


async def read_body(request: Request, kind: type[BaseModel]) -> BaseModel:
    """The validated body of a request.

    A page of another site can send text without asking, but not JSON.
    """
    headers = dict(request.scope["headers"])  # request.headers compares with each in turn
    sent = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if sent != b"application/json":
        raise Refused(415, "Send JSON, with Content-Type: application/json.", "not_json")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refused(415, "Send the body as it is, without Content-Encoding.", "compressed")
    parts = []
    is_whole = False
    while not is_whole:  # request.body() does the same in twice the time
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Refused(499, "The client has left.", "cancelled")
        parts.append(message.get("body", b""))
        is_whole = not message.get("more_body")
    try:
        return kind.model_validate_json(b"".join(parts))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        param = ".".join(map(str, first["loc"])) or None
        raise Refused(422, told_of(param or "The body", first), "invalid", param) from error


def told_of(what: str, error: Mapping[str, Any]) -> str:
    """Why a field is refused, in plain words where its length is wrong."""
    size = error.get("ctx", {})
    if error["type"] == "too_long":
        return f"{what} may have {size['max_length']:,} items at most."
    if error["type"] == "string_too_long":
        return f"{what} may have {size['max_length']:,} characters at most."
    if error["type"] in ("too_short", "string_too_short") and size["min_length"] == 1:
        return f"{what} is empty."
    return f"{what}: {error['msg']}."

"""Pages of the explorer for tests: served, as a client of the routes, and in a browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient

from sememe.explore.app import Explorer

HOSTILE = "<img src=x onerror=alert(1)>"


def wait_until_ready(get: Callable[[], int]) -> None:
    """Wait until all models are loaded."""
    end_s = time.monotonic() + 300
    while get() != 200:
        assert time.monotonic() < end_s
        time.sleep(0.05)


@contextmanager
def served_page(explorer: Explorer) -> Iterator[str]:
    """The address of a page, served as the command serves it."""
    import httpx
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(explorer.create_app(), host="127.0.0.1", port=0, log_level="error")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    ready = f"http://127.0.0.1:{port}/ready"
    wait_until_ready(lambda: httpx.get(ready, timeout=120).status_code)
    yield f"http://127.0.0.1:{port}/explore/"
    server.should_exit = True
    thread.join(10)
    explorer.jobs.close()


@contextmanager
def client_of(explorer: Explorer) -> Iterator[TestClient]:
    """A client of all routes, with every model loaded."""
    with TestClient(explorer.create_app(), base_url="http://localhost") as client:
        wait_until_ready(lambda: client.get("/ready").status_code)
        yield client
    explorer.jobs.close()


class Tab:
    """A page of the browser that notes what must not happen: errors and foreign requests."""

    def __init__(self, chromium: Any, address: str, **options: Any) -> None:
        self.address = address
        self.context = chromium.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "locale": "en-US"} | options
        )
        self.context.set_default_timeout(180_000)  # a busy machine takes its time
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", self._requested)

    def _told(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def _requested(self, request: Any) -> None:
        own = self.address.removesuffix("explore/")
        if not request.url.startswith((own, "blob:")):
            self.faults.append(f"foreign request: {request.url}")

    def open(self, place: str) -> Any:
        """Open a view by its address: open("words?word=king")."""
        self.page.goto(f"{self.address}#/{place}")
        self.page.wait_for_selector(".view")
        return self.page

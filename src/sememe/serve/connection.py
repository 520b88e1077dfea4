"""A connection of the service: a client that stops sending or reading does not keep it open.

uvicorn waits without end for the head of a request and for a client to read its answer. As it
accepts a limited number of connections, idle clients could lock out all others. Its fastest parser
reads heads of any size. The time in which a body must arrive is limited in gate.py.

uvicorn also sends the head and the body of an answer one after the other, which wakes the client
twice and takes a third of the time of a short answer; here they are sent together.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sememe.serve.gate import error_body, error_type


class JoinedWrites:
    """A transport that holds each first write until the next one, or the end of the loop's turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        """Do everything else as the transport does it."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data with what is held, or hold it."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.writelines((held, data))
        else:
            self._held = data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Send what is held, then close the connection."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)


class LimitedConnection(HttpToolsProtocol):
    """HTTP with heads of limited size and time, and limited time for each part of an answer."""

    head_bytes: ClassVar[int] = 65_536
    head_s: ClassVar[float] = 30  # from the first byte, or from the connection, to the empty line
    stalled_s: ClassVar[float] = 30  # without a byte of the answer being read

    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _is_in_head = False
    _num_parsed = _num_fed = 0  # bytes of this head, and those of its further parts as they arrived

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_head_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; what belongs to no running request must become one in time."""
        if self._is_in_head:
            self._num_fed += len(data)
        super().data_received(data)
        if self._is_in_head and self._num_fed > self.head_bytes:  # the parser waits for an end
            self._refuse(431, self._too_large)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_head_timer()
        elif self._head_timer is None:
            self._expect_head()

    def on_message_begin(self) -> None:
        """Start to count the head."""
        super().on_message_begin()
        self._is_in_head, self._num_parsed, self._num_fed = True, 0, 0

    def on_url(self, url: bytes) -> None:
        """Count a part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header."""
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start to answer."""
        self._is_in_head = False
        super().on_headers_complete()

    def _count(self, num: int) -> None:
        self._num_parsed += num
        if self._num_parsed > self.head_bytes:
            raise ValueError(self._too_large)  # the parser stops

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or too large."""
        if self._is_in_head and self._num_parsed > self.head_bytes:
            self._refuse(431, self._too_large)
        else:
            self._refuse(400, msg)

    @property
    def _too_large(self) -> str:
        return f"The head of the request is larger than {self.head_bytes:,} bytes."

    def _refuse(self, status: int, message: str) -> None:
        body = error_body(message, error_type(status), "bad_request")
        headers = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close"
        self.transport.write(STATUS_LINE[status] + headers % len(body) + b"\r\n\r\n" + body)
        self.transport.close()

    def pause_writing(self) -> None:
        """Note that the client reads slower than answers come."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """Note that the client has read nearly everything."""
        self._stop_read_timer()
        super().resume_writing()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_s, self.transport.abort)

    def _expect_reading(self) -> None:
        left = self.transport.get_write_buffer_size()

        def check() -> None:
            if self.transport.get_write_buffer_size() < left:
                self._expect_reading()
            else:
                self.transport.abort()

        self._read_timer = self.loop.call_later(self.stalled_s, check)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

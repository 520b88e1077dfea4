"""Batches across clients: texts of many requests in, one vector each out, off the event loop.

One thread computes. While it works, requests wait; the next batch takes texts from each waiting
request of a model in turn, up to a budget of tokens. So a large request delays a short one by
one batch at most, and texts of several clients are computed together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from sememe.errors import SememeError

TOKENS_AT_ONCE = 4_096  # of one batch; a network computes parts of similar length within it

Compute = Callable[[list[Any]], np.ndarray]


class QueueFullError(SememeError):
    """More requests are waiting than the service accepts."""


class _Request:
    """The items of one request, and the vectors that are computed of them so far."""

    def __init__(self, items: Sequence[Any], sizes: Sequence[int]) -> None:
        self.items, self.sizes = items, sizes
        self.next = 0
        self.num_done = 0
        self.found: list[np.ndarray | None] = [None] * len(items)
        self.done: asyncio.Future[np.ndarray] = asyncio.get_running_loop().create_future()

    @property
    def is_waiting(self) -> bool:
        """Whether items are left to compute for somebody who still waits."""
        return not self.done.done() and self.next < len(self.items)


_Taken = tuple[_Request, int]


def _keep(own: _Request, index: int, vector_D: np.ndarray) -> None:
    """Note the vector of an item; the last one completes its request."""
    own.found[index] = vector_D
    own.num_done += 1
    if own.num_done == len(own.items) and not own.done.done():
        own.done.set_result(np.stack(own.found))  # type: ignore[arg-type]


class Batcher:
    """Computes the vectors of waiting requests in batches, one model after the other."""

    def __init__(
        self,
        max_queue: int,
        *,
        tokens_at_once: int = TOKENS_AT_ONCE,
        on_batch: Callable[[int, int], None] = lambda items, tokens: None,
    ) -> None:
        self._max_queue, self._tokens_at_once, self._on_batch = max_queue, tokens_at_once, on_batch
        self._thread = ThreadPoolExecutor(1, "sememe-batch")
        self._calls = ThreadPoolExecutor(2, "sememe-call")
        self._waiting: dict[Any, deque[_Request]] = {}  # by model and role
        self._computes: dict[Any, Compute] = {}
        self._pump: asyncio.Task[None] | None = None
        self.num_waiting = 0

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self.num_waiting >= self._max_queue:
            raise QueueFullError(f"{self._max_queue:,} requests are waiting: try again later.")
        self.num_waiting += 1
        try:
            yield
        finally:
            self.num_waiting -= 1

    async def embed(
        self, key: Any, compute: Compute, items: Sequence[Any], sizes: Sequence[int]
    ) -> np.ndarray:
        """The vectors of items; those of requests with the same key are computed together.

        If the caller is cancelled, its items leave the queue.
        """
        with self._counted():
            request = _Request(items, sizes)
            self._waiting.setdefault(key, deque()).append(request)
            self._computes[key] = compute
            if self._pump is None or self._pump.done():
                self._pump = asyncio.create_task(self._run())
            return await request.done

    async def call(self, function: Callable[[], Any]) -> Any:
        """Run a function that is not batched, beside the batches."""
        with self._counted():
            return await asyncio.get_running_loop().run_in_executor(self._calls, function)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            key, requests = next(iter(self._waiting.items()))
            taken = self._take(requests)
            # The next model comes first in the next turn.
            del self._waiting[key]
            if any(own.is_waiting for own in requests):
                self._waiting[key] = requests
            compute = self._computes[key] if key in self._waiting else self._computes.pop(key)
            if not taken:
                continue
            items = [own.items[index] for own, index in taken]
            self._on_batch(len(items), sum(own.sizes[index] for own, index in taken))
            try:
                vectors_ND = await loop.run_in_executor(self._thread, compute, items)
                rows = list(zip(taken, vectors_ND, strict=True))
            except Exception as error:
                await self._apart(taken, compute, error)
            else:
                for one, vector_D in rows:
                    _keep(*one, vector_D)

    async def _apart(self, taken: list[_Taken], compute: Compute, error: Exception) -> None:
        """Compute a failed batch request by request, so that one bad text fails only its own."""
        loop = asyncio.get_running_loop()
        requests = {id(own): own for own, _ in taken}
        for mark, own in requests.items():
            indexes = [index for one, index in taken if id(one) == mark]
            try:
                if len(requests) == 1:
                    raise error
                items = [own.items[index] for index in indexes]
                vectors_ND = await loop.run_in_executor(self._thread, compute, items)
                rows = list(zip(indexes, vectors_ND, strict=True))
            except Exception as reason:
                if not own.done.done():
                    own.done.set_exception(reason)
            else:
                for index, vector_D in rows:
                    _keep(own, index, vector_D)

    def _take(self, requests: deque[_Request]) -> list[_Taken]:
        """Items of all waiting requests in turn, up to the budget, at least one."""
        taken: list[_Taken] = []
        num_tokens = 0
        while requests:
            own = requests[0]
            if not own.is_waiting:
                requests.popleft()
                continue
            size = own.sizes[own.next]
            if taken and num_tokens + size > self._tokens_at_once:
                break
            taken.append((own, own.next))
            num_tokens += size
            own.next += 1
            requests.rotate(-1)
        return taken

    def close(self) -> None:
        """Stop the threads after what they compute now."""
        for pool in (self._thread, self._calls):
            pool.shutdown(wait=False, cancel_futures=True)

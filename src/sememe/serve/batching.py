"""Batches across clients: texts of many requests in, one result each out, off the event loop.

While a batch is computed, requests wait; the next batch takes texts from each waiting request of a
model in turn, up to a budget of tokens. So a large request delays a short one by one batch at most,
and texts of several clients are computed together.

A batch of texts is divided among threads with a core each. PyTorch would divide each operation
instead, and its threads wait for each other after every one: on two cores, 16 short texts took
22 ms, and their halves, at the same time, 16 ms. Only a text that comes alone is computed on all
cores, always by the first thread: OpenMP, on which PyTorch runs, has a team for each thread that
calls it, and several teams are in each other's way. What may not run several times at once is left
to the first thread, too; it is computed in parts of similar length.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from sememe.errors import SememeError

TOKENS_AT_ONCE = 4_096  # of one batch
_TOKENS_OF_A_CALL = 64
_MOST_WORKERS = 8  # more would wait for Python's lock; with more cores, each worker has several
_TOKENS_OF_A_SHARE = 16  # at least, to be worth a worker
_QUIET_TURNS, _MOST_TURNS = 4, 100  # of the event loop between two batches
_PATIENCE = 0.05  # of the time of a batch: the wait for the next requests of its clients
_SPREAD = 2  # the longest text of a part by its shortest

_END = object()  # of an iterator

Compute = Callable[[list[Any]], Sequence[Any]]


class QueueFullError(SememeError):
    """More requests are waiting than the service accepts."""


class _Request:
    """The items of one request, and the results that are computed of them so far."""

    def __init__(self, items: Sequence[Any], sizes: Sequence[int]) -> None:
        self.items, self.sizes = items, sizes
        self.next = 0
        self.num_done = 0
        self.found: list[Any] = [None] * len(items)
        self.done: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

    @property
    def is_waiting(self) -> bool:
        """Whether items are left to compute for somebody who still waits."""
        return not self.done.done() and self.next < len(self.items)


_Taken = tuple[_Request, int]


class _Queue:
    """The waiting requests of a model, and what computes them."""

    def __init__(self, compute: Compute, *, is_parallel: bool) -> None:
        self.compute, self.is_parallel = compute, is_parallel
        self.requests: deque[_Request] = deque()

    def take(self, budget: int) -> list[_Taken]:
        """Items of all requests in turn, up to a number of tokens, at least one."""
        taken: list[_Taken] = []
        num_tokens = 0
        while self.requests:
            own = self.requests[0]
            if not own.is_waiting:
                self.requests.popleft()
                continue
            size = own.sizes[own.next]
            if taken and num_tokens + size > budget:
                break
            taken.append((own, own.next))
            num_tokens += size
            own.next += 1
            self.requests.rotate(-1)
        return taken


def _keep(own: _Request, index: int, result: Any) -> None:
    """Note the result of an item; the last one completes its request."""
    own.found[index] = result
    own.num_done += 1
    if own.num_done == len(own.items) and not own.done.done():
        own.done.set_result(own.found)


def _size(one: _Taken) -> int:
    own, index = one
    return own.sizes[index]


def _by_length(taken: list[_Taken]) -> Iterator[list[_Taken]]:
    """The items in parts of similar length, the short ones first.

    Attention takes time with the square of the longest text of a part for all of its texts, and a
    further part as much as about _TOKENS_OF_A_CALL tokens.
    """
    part: list[_Taken] = []
    num_tokens = 0
    for one in sorted(taken, key=_size):
        if num_tokens >= _TOKENS_OF_A_CALL and _size(one) > _SPREAD * _size(part[0]):
            yield part
            part, num_tokens = [], 0
        part.append(one)
        num_tokens += _size(one)
    yield part


def _shares(taken: list[_Taken], most: int) -> list[list[_Taken]]:
    """The items in shares of about as many tokens, one for each worker."""
    num = min(most, len(taken), max(1, sum(map(_size, taken)) // _TOKENS_OF_A_SHARE))
    shares: list[list[_Taken]] = [[] for _ in range(num)]
    totals = [0] * num
    for one in sorted(taken, key=_size, reverse=True):
        least = totals.index(min(totals))
        shares[least].append(one)
        totals[least] += _size(one)
    return shares


def _computed(compute: Compute, taken: list[_Taken], is_parallel: bool) -> list[tuple[_Taken, Any]]:
    """The items with their results."""
    # What several threads compute at once are token ids: `embed_token_ids` sorts them itself.
    return [
        one
        for part in ([taken] if is_parallel else _by_length(taken))
        for one in zip(part, compute([own.items[index] for own, index in part]), strict=True)
    ]


class Batcher:
    """Computes the items of waiting requests in batches, one model after the other."""

    def __init__(
        self,
        max_queue: int,
        *,
        num_cores: int = 1,
        set_cores: Callable[[int], None] = lambda num: None,
        tokens_at_once: int = TOKENS_AT_ONCE,
        on_batch: Callable[[int, int], None] = lambda items, tokens: None,
    ) -> None:
        """`set_cores` sets the number of cores on which the calling thread computes."""
        self._max_queue, self._tokens_at_once, self._on_batch = max_queue, tokens_at_once, on_batch
        self._num_cores, self._set_cores = num_cores, set_cores
        num_workers = min(num_cores, _MOST_WORKERS)
        self._workers = [ThreadPoolExecutor(1, "sememe-batch") for _ in range(num_workers)]
        self._calls = ThreadPoolExecutor(2, "sememe-call")
        self._waiting: dict[Any, _Queue] = {}  # by model and what is computed
        self._pump: asyncio.Task[None] | None = None
        self.num_waiting = self._num_asked = self._num_reading = 0

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
        self,
        key: Any,
        compute: Compute,
        items: Sequence[Any],
        sizes: Sequence[int],
        *,
        is_parallel: bool = False,
    ) -> np.ndarray:
        """The vectors of items, as `results` computes them."""
        found = await self.results(key, compute, items, sizes, is_parallel=is_parallel)
        return np.stack(found)

    async def results(
        self,
        key: Any,
        compute: Compute,
        items: Sequence[Any],
        sizes: Sequence[int],
        *,
        is_parallel: bool = False,
    ) -> list[Any]:
        """The result of each item; items of requests with the same key are computed together.

        `is_parallel` allows several workers to compute at the same time. If the caller is
        cancelled, its items leave the queue.
        """
        with self._counted():
            request = _Request(items, sizes)
            self._num_asked += 1
            if key not in self._waiting:
                self._waiting[key] = _Queue(compute, is_parallel=is_parallel)
            self._waiting[key].requests.append(request)
            if self._pump is None or self._pump.done():
                self._pump = asyncio.create_task(self._run())
            return await request.done

    async def call(self, function: Callable[[], Any]) -> Any:
        """Run a function of a network that is not batched, between two batches."""
        with self._counted():
            return await self._on_cores(0, self._num_cores, function)

    async def call_beside(self, function: Callable[[], Any]) -> Any:
        """Run a function that needs no network, at the same time as the batches."""
        with self._counted():
            return await asyncio.get_running_loop().run_in_executor(self._calls, function)

    async def read(self, function: Callable[[], Any]) -> Any:
        """Tokenize for a request that will wait for results; the next batch waits for it."""
        self._num_reading += 1
        try:
            return await self.call_beside(function)
        finally:
            self._num_reading -= 1

    async def steps(self, items: Iterator[Any]) -> AsyncIterator[Any]:
        """The items of an iterator, each computed between two batches.

        If the caller is cancelled, no further item is computed.
        """
        with self._counted():
            while (item := await self._on_cores(0, self._num_cores, next, items, _END)) is not _END:
                yield item

    async def _on_cores(
        self, number: int, num_cores: int, function: Callable[..., Any], *given: Any
    ) -> Any:
        """The result of a function that a worker computes on some cores."""

        def result() -> Any:
            self._set_cores(num_cores)
            return function(*given)

        return await asyncio.get_running_loop().run_in_executor(self._workers[number], result)

    async def _run(self) -> None:
        while self._waiting:
            key, queue = next(iter(self._waiting.items()))
            taken = queue.take(self._tokens_at_once)
            # The next model comes first in the next turn.
            del self._waiting[key]
            if any(own.is_waiting for own in queue.requests):
                self._waiting[key] = queue
            if not taken:
                continue
            self._on_batch(len(taken), sum(map(_size, taken)))
            began = time.perf_counter()
            shares, num_cores = [taken], self._num_cores
            if queue.is_parallel and len(taken) > 1:
                shares = _shares(taken, len(self._workers))
                num_cores //= len(self._workers)
            await asyncio.gather(
                *(self._compute(number, num_cores, queue, own) for number, own in enumerate(shares))
            )
            num_answered = len({id(own) for own, _ in taken if own.done.done()})
            await self._settled(num_answered, _PATIENCE * (time.perf_counter() - began))

    async def _compute(
        self, number: int, num_cores: int, queue: _Queue, taken: list[_Taken]
    ) -> None:
        """Let a worker compute its share."""
        given = queue.compute, taken, queue.is_parallel
        try:
            found = await self._on_cores(number, num_cores, _computed, *given)
        except Exception as error:
            await self._apart(number, num_cores, taken, queue.compute, error)
        else:
            for (own, index), result in found:
                _keep(own, index, result)

    async def _settled(self, num_answered: int, patience_s: float) -> None:
        """Let the event loop send the answers, and read the requests that have arrived meanwhile.

        They are computed together then. At the same time as a batch, both take longer: the thread
        that computes needs Python's lock for a moment at every step. Clients that were answered
        often send their next request at once: for a moment, the next batch waits for as many, or
        two clients would be computed in turn, each with the time of both.
        """
        first, deadline = self._num_asked, time.perf_counter() + patience_s
        num_busy = num_quiet = 0
        while num_busy < _MOST_TURNS:
            before = self._num_asked
            await asyncio.sleep(0)
            if self._num_asked != before or self._num_reading:
                num_busy, num_quiet = num_busy + 1, 0
                continue
            num_quiet += 1
            have_come_back = self._num_asked - first >= num_answered
            if num_quiet >= _QUIET_TURNS and (have_come_back or time.perf_counter() >= deadline):
                return

    async def _apart(
        self, number: int, num_cores: int, taken: list[_Taken], compute: Compute, error: Exception
    ) -> None:
        """Compute a failed batch request by request, so that one bad text fails only its own."""
        requests = {id(own): own for own, _ in taken}
        for mark, own in requests.items():
            indexes = [index for one, index in taken if id(one) == mark]
            try:
                if len(requests) == 1:
                    raise error
                items = [own.items[index] for index in indexes]
                found = await self._on_cores(number, num_cores, compute, items)
                rows = list(zip(indexes, found, strict=True))
            except Exception as reason:
                if not own.done.done():
                    own.done.set_exception(reason)
            else:
                for index, result in rows:
                    _keep(own, index, result)

    def close(self) -> None:
        """Stop the threads after what they compute now."""
        for pool in (*self._workers, self._calls):
            pool.shutdown(wait=False, cancel_futures=True)

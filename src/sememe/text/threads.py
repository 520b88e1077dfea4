"""Batches through threads: read before they are asked for, worked on by several, kept in order."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from sememe.text.readers.batches import Batch

Result = TypeVar("Result")


def read_ahead(
    batches: Generator[Batch, None, None], size: int = 2
) -> Generator[Batch, None, None]:
    """Read in a thread of its own, at most `size` batches before the one that is asked for."""
    line: queue.Queue[Batch | BaseException | None] = queue.Queue(size)
    is_closed = threading.Event()

    def put(item: Batch | BaseException | None) -> bool:
        while not is_closed.is_set():
            try:
                line.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            with closing(batches):
                for batch in batches:
                    if not put(batch):
                        return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=work, name="sememe-reader", daemon=True)
    thread.start()
    try:
        while (item := line.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_closed.set()


def each_batch(
    batches: Iterable[Batch],
    work: Callable[[Batch], Result],
    workers: int,
    on_bytes: Callable[[int], None] | None,
) -> Generator[Result, None, None]:
    """Do `work` on batches in `workers` threads; give what it returns in order, few at a time."""
    pending: deque[tuple[Future[Result], int]] = deque()
    with ThreadPoolExecutor(workers) as pool:

        def finish() -> Result:
            future, num_bytes = pending.popleft()
            result = future.result()
            if on_bytes is not None:
                on_bytes(num_bytes)
            return result

        try:
            for batch in batches:
                pending.append((pool.submit(work, batch), batch.num_bytes))
                while len(pending) > workers or (pending and pending[0][0].done()):
                    yield finish()
            while pending:
                yield finish()
        finally:
            for future, _ in pending:
                future.cancel()

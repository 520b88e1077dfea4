"""Batches prepared ahead of time by a thread, while the network computes with the one before."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
_POLL_S = 0.05


class Prefetcher(Generic[Item]):
    """Calls `make(step)` for one step after the other in a thread, a few steps ahead.

        with Prefetcher(source.batch, range(first, last)) as batches:
            for batch in batches: ...

    What `make` raises is raised where the item is asked for. Leaving the block, by Ctrl-C too, ends
    the thread; kernels run without the GIL, so it takes next to nothing from the main one.
    """

    def __init__(
        self, make: Callable[[int], Item], steps: Iterable[int], *, depth: int = 4
    ) -> None:
        self._make, self._steps = make, iter(steps)
        self._ready: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=depth)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sememe batches", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            for step in self._steps:
                if not self._put(True, self._make(step)):
                    return
            self._put(False, StopIteration())
        except BaseException as error:
            self._put(False, error)

    def _put(self, is_item: bool, thing: Any) -> bool:
        while not self._is_closed.is_set():
            try:
                self._ready.put((is_item, thing), timeout=_POLL_S)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        """The item of the next step."""
        if self._is_closed.is_set():
            raise StopIteration
        is_item, thing = self._ready.get()
        if not is_item:
            self.close()
            raise thing
        return thing

    def close(self) -> None:
        """End the thread; items that were prepared but not asked for are dropped."""
        self._is_closed.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Prefetcher[Item]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

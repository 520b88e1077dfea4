"""Batches across requests: who is computed with whom, in which order, and who fails."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

from sememe.serve.batching import Batcher, QueueFullError


class Model:
    """Embeds a number as itself, once the test lets it; notes its batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go, self.started = threading.Event(), threading.Event()

    def __call__(self, items: list[int]) -> np.ndarray:
        self.batches.append(items)
        self.started.set()
        assert self.go.wait(10)
        if -1 in items:
            raise ValueError("bad text")
        return np.array(items, float)[:, None]


def run(test: Callable[[Model, Batcher], Awaitable[Any]], **options: Any) -> Any:
    """Run a test with a batcher whose first batch is already being computed."""

    async def whole() -> Any:
        model, batcher = Model(), Batcher(options.pop("max_queue", 100), **options)
        try:
            return await asyncio.wait_for(test(model, batcher), 20)
        finally:
            model.go.set()
            batcher.close()

    return asyncio.run(whole())


def asked(batcher: Batcher, model: Model, items: list[int], size: int = 1, key: str = "a") -> Any:
    return asyncio.ensure_future(batcher.embed(key, model, items, [size] * len(items)))


async def blocked(batcher: Batcher, model: Model) -> asyncio.Future[np.ndarray]:
    """A first request that is being computed, so that the next ones wait."""
    first = asked(batcher, model, [0], key="first")
    while not model.started.is_set():
        await asyncio.sleep(0.001)
    return first


def test_texts_of_several_requests_are_one_batch() -> None:
    sizes: list[tuple[int, int]] = []

    async def test(model: Model, batcher: Batcher) -> None:
        first = await blocked(batcher, model)
        others = [asked(batcher, model, [n, 10 + n], size=3) for n in range(1, 5)]
        await asyncio.sleep(0)
        model.go.set()
        found = await asyncio.gather(first, *others)
        assert [own.ravel().tolist() for own in found] == [[0], *([n, 10 + n] for n in range(1, 5))]
        assert [sorted(batch) for batch in model.batches] == [[0], [1, 2, 3, 4, 11, 12, 13, 14]]

    run(test, on_batch=lambda items, tokens: sizes.append((items, tokens)))
    assert sizes == [(1, 1), (8, 24)]


def test_a_batch_has_a_budget_of_tokens_but_always_one_text() -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        model.go.set()
        assert (await asked(batcher, model, list(range(7)), size=3)).shape == (7, 1)
        assert [len(batch) for batch in model.batches] == [3, 3, 1]
        model.batches.clear()
        assert (await asked(batcher, model, [1, 2], size=1_000)).shape == (2, 1)
        assert model.batches == [[1], [2]]

    run(test, tokens_at_once=10)


@pytest.mark.parametrize("key", ["a", "other model"])
def test_a_large_request_does_not_starve_a_short_one(key: str) -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        large = asked(batcher, model, list(range(1_000)))
        while not model.started.is_set():
            await asyncio.sleep(0.001)
        short = asked(batcher, model, [7_777], key=key)
        await asyncio.sleep(0)
        model.go.set()
        await short
        assert any(7_777 in batch for batch in model.batches[1:3])
        assert not large.done()
        assert (await large).ravel().tolist() == list(range(1_000))

    run(test, tokens_at_once=10)


def test_a_cancelled_request_leaves_the_queue() -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        first = await blocked(batcher, model)
        gone, stays = asked(batcher, model, [1, 2, 3]), asked(batcher, model, [4])
        only = asked(batcher, model, [5], key="b")
        await asyncio.sleep(0)
        assert batcher.num_waiting == 4
        gone.cancel()
        only.cancel()
        await asyncio.sleep(0)
        assert batcher.num_waiting == 2
        model.go.set()
        await asyncio.gather(first, stays)
        assert model.batches == [[0], [4]]
        # Nothing is left of it, and the queue still works.
        assert (await asked(batcher, model, [6], key="b")).item() == 6
        assert batcher.num_waiting == 0
        assert not batcher._waiting

    run(test)


def test_a_request_cancelled_while_it_is_computed_harms_nobody() -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        first = await blocked(batcher, model)
        second = asked(batcher, model, [1], key="first")
        await asyncio.sleep(0)
        first.cancel()
        model.go.set()
        assert (await second).item() == 1

    run(test)


def test_a_full_queue_refuses() -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        first = await blocked(batcher, model)
        second = asked(batcher, model, [1])
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError, match="2 requests"):
            await asked(batcher, model, [2])
        with pytest.raises(QueueFullError):
            await batcher.call(lambda: 1)
        model.go.set()
        await asyncio.gather(first, second)
        assert await batcher.call(lambda: 1) == 1
        assert (await asked(batcher, model, [3])).item() == 3

    run(test, max_queue=2)


def test_one_bad_text_fails_only_its_own_request() -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        first = await blocked(batcher, model)
        waiting = [asked(batcher, model, items) for items in ([1, 2], [3, -1], [4])]
        await asyncio.sleep(0)
        model.go.set()
        _, good, bad, other = await asyncio.gather(first, *waiting, return_exceptions=True)
        assert good.ravel().tolist() == [1, 2]
        assert other.item() == 4
        assert isinstance(bad, ValueError)
        with pytest.raises(ValueError, match="bad text"):
            await asked(batcher, model, [-1])
        assert (await asked(batcher, model, [5])).item() == 5
        assert batcher.num_waiting == 0

    run(test)


def test_a_bad_text_of_a_large_request_ends_it_at_once() -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        model.go.set()
        with pytest.raises(ValueError, match="bad text"):
            await asked(batcher, model, [-1, *range(100)])
        assert (await asked(batcher, model, [5])).item() == 5
        assert len(model.batches) <= 3  # the rest of it is not computed

    run(test, tokens_at_once=10)


def test_a_model_that_returns_too_few_rows_is_an_error_and_not_a_hang() -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        for _ in range(2):
            with pytest.raises(ValueError, match="zip"):
                await batcher.embed("a", lambda items: np.zeros((0, 2)), [1], [1])
        model.go.set()
        assert (await asked(batcher, model, [5])).item() == 5

    run(test)


def test_results_may_be_anything() -> None:
    async def test(model: Model, batcher: Batcher) -> None:
        found = await batcher.results(
            "a", lambda items: [{"own": n} for n in items], [1, 2], [1] * 2
        )
        assert found == [{"own": 1}, {"own": 2}]

    run(test)


def test_steps_wait_for_batches_and_end_with_their_caller() -> None:
    """A text that is generated takes its turn at every part, and stops when nobody reads it."""

    async def test(model: Model, batcher: Batcher) -> None:
        made: list[int] = []

        def count() -> Any:
            for number in range(1_000_000):
                made.append(number)
                yield number

        async def read() -> None:
            async for _ in batcher.steps(count()):
                pass

        model.go.set()
        task = asyncio.ensure_future(read())
        while len(made) < 3:
            await asyncio.sleep(0.001)
        assert (await asked(batcher, model, [7])).item() == 7  # between two parts
        assert batcher.num_waiting == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await batcher.call(lambda: None)  # after the part that was being computed
        num = len(made)
        for _ in range(3):
            await batcher.call(lambda: None)
        assert len(made) == num < 1_000_000
        assert batcher.num_waiting == 0

    run(test)


class Parallel:
    """Embeds a number as itself when the test lets it; notes who computes what at the same time."""

    def __init__(self) -> None:
        self.go, self.batches, self.cores = threading.Event(), [], []
        self.most = self.num = 0
        self.lock = threading.Lock()

    def set_cores(self, num: int) -> None:
        self.cores.append(num)

    def __call__(self, items: list[int]) -> np.ndarray:
        with self.lock:
            self.batches.append(items)
            self.num += 1
            self.most = max(self.most, self.num)
        assert self.go.wait(10)
        with self.lock:
            self.num -= 1
        if -1 in items:
            raise ValueError("bad text")
        return np.array(items, float)[:, None]


def run_parallel(test: Callable[[Parallel, Batcher], Awaitable[Any]], num_cores: int) -> None:
    async def whole() -> None:
        model = Parallel()
        batcher = Batcher(100, num_cores=num_cores, set_cores=model.set_cores)
        try:
            await asyncio.wait_for(test(model, batcher), 20)
        finally:
            model.go.set()
            batcher.close()

    asyncio.run(whole())


def test_workers_share_what_waits() -> None:
    async def test(model: Parallel, batcher: Batcher) -> None:
        work = [
            asyncio.ensure_future(batcher.embed("a", model, [n], [50], is_parallel=True))
            for n in range(8)
        ]
        while model.most < 2:
            await asyncio.sleep(0.001)
        assert [len(batch) for batch in model.batches] == [4, 4]
        model.go.set()
        assert [own.item() for own in await asyncio.gather(*work)] == list(range(8))
        assert model.cores == [1] * len(model.batches)

    run_parallel(test, 2)


def test_one_large_request_is_computed_by_all_workers() -> None:
    async def test(model: Parallel, batcher: Batcher) -> None:
        work = asyncio.ensure_future(
            batcher.embed("a", model, list(range(60)), [50] * 60, is_parallel=True)
        )
        while model.most < 3:
            await asyncio.sleep(0.001)
        model.go.set()
        assert (await work).ravel().tolist() == list(range(60))

    run_parallel(test, 3)


def test_what_may_not_run_at_the_same_time_does_not() -> None:
    async def test(model: Parallel, batcher: Batcher) -> None:
        work = [asyncio.ensure_future(batcher.embed(n, model, [n], [50])) for n in range(4)]
        await asyncio.sleep(0.05)
        model.go.set()
        await asyncio.gather(*work, batcher.call(lambda: 1))
        assert model.most == 1
        assert set(model.cores) == {2}

    run_parallel(test, 2)


def test_a_text_that_comes_alone_gets_all_cores() -> None:
    async def test(model: Parallel, batcher: Batcher) -> None:
        model.go.set()
        for size in (500, 5):
            await batcher.embed("a", model, [1], [size], is_parallel=True)
        assert model.cores == [2, 2]

    run_parallel(test, 2)


class Clock:
    """Seconds that pass by batches of ten of them, and a little each time somebody looks."""

    def __init__(self, step_s: float) -> None:
        self.now_s, self.step_s = 0.0, step_s
        self.batches: list[int] = []
        self.both_have_asked = threading.Event()

    def perf_counter(self) -> float:
        self.now_s += self.step_s
        return self.now_s

    def __call__(self, items: list[int]) -> np.ndarray:
        self.batches.append(len(items))
        self.now_s += 10
        assert self.both_have_asked.wait(30)
        return np.zeros((len(items), 1))


def run_two_clients(monkeypatch: pytest.MonkeyPatch, clock: Clock, *, comes_back: bool) -> None:
    """One client asks, a second one while the first is computed, then the first once more.

    It comes back after a while, or only when the second has been answered.
    """
    monkeypatch.setattr("sememe.serve.batching.time", clock)

    async def main() -> None:
        batcher = Batcher(10)

        def ask(number: int) -> "asyncio.Task[np.ndarray]":
            return asyncio.create_task(batcher.embed("a", clock, [number], [5]))

        first = ask(1)
        while not clock.batches:
            await asyncio.sleep(0.001)
        second = ask(2)
        await asyncio.sleep(0)
        clock.both_have_asked.set()
        await first
        if comes_back:
            await asyncio.sleep(0.02)  # many turns of the event loop
        else:
            await second
        await asyncio.gather(second, ask(1))
        batcher.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_the_next_request_of_an_answered_client_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(step_s=0)
    run_two_clients(monkeypatch, clock, comes_back=True)
    assert clock.batches == [1, 2]


def test_a_client_that_does_not_come_back_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(step_s=0.1)  # of the half second of patience
    run_two_clients(monkeypatch, clock, comes_back=False)
    assert clock.batches == [1, 1, 1]


def test_many_cores_are_divided_among_a_few_workers() -> None:
    async def test(model: Parallel, batcher: Batcher) -> None:
        model.go.set()
        await batcher.embed("a", model, list(range(99)), [50] * 99, is_parallel=True)
        assert model.cores
        assert set(model.cores) == {2}

    run_parallel(test, 17)


def test_a_bad_text_fails_only_its_own_request_on_any_worker() -> None:
    async def test(model: Parallel, batcher: Batcher) -> None:
        model.go.set()
        items = [[1], [-1], [2], [3], [-1], [4]]
        work = (batcher.embed("a", model, own, [50], is_parallel=True) for own in items)
        found = await asyncio.gather(*work, return_exceptions=True)
        assert [isinstance(own, ValueError) for own in found] == [own == [-1] for own in items]
        assert batcher.num_waiting == 0

    run_parallel(test, 2)

"""Cores are counted on every system."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from sememe.machine import available_cores, in_order


def test_cores_are_counted_where_the_system_tells_no_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert available_cores() == os.cpu_count()


def test_work_comes_out_in_order_and_little_is_made_ahead() -> None:
    taken: list[int] = []

    def tasks():
        for number in range(100):
            taken.append(number)
            yield number

    with ThreadPoolExecutor(3) as pool:
        for number, square in enumerate(in_order(pool, lambda n: n * n, tasks(), 3)):
            assert square == number**2
            assert len(taken) <= number + 4
    assert len(taken) == 100

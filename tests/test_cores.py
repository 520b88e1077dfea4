"""Cores are counted on every system."""

from __future__ import annotations

import os

import pytest

from sememe.cores import available_cores


def test_cores_are_counted_where_the_system_tells_no_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert available_cores() == os.cpu_count()

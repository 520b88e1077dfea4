"""Results that are kept: which go first, models that are gone, and several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from weakref import ref

from sememe.explore.jobs import Recent


class _Model:
    """Something that can be forgotten."""


def test_the_least_recent_result_goes_first() -> None:
    recent = Recent[str](10)
    recent.put("a", "1", 4)
    recent.put("b", "2", 4)
    assert recent.get("a") == "1"
    recent.put("c", "3", 4)
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == ("1", None, "3")


def test_a_result_above_the_limit_stays_until_the_next() -> None:
    recent = Recent[str](10)
    recent.put("small", "1", 4)
    recent.put("large", "2", 11)
    assert recent.get("small") is None and recent.get("large") == "2"
    recent.put("large", "3", 11)
    assert recent.get("large") == "3"
    recent.put("small", "4", 4)
    assert recent.get("large") is None and recent.get("small") == "4"


def test_a_model_loaded_anew_has_no_results_yet() -> None:
    recent, first, second = Recent[str](10), _Model(), _Model()
    recent.put((ref(first), "text"), "1", 1)
    assert recent.get((ref(first), "text")) == "1"
    assert recent.get((ref(second), "text")) is None
    del first
    third = _Model()  # perhaps at the same address
    assert recent.get((ref(third), "text")) is None


def test_several_threads_may_use_it() -> None:
    recent = Recent[int](20)

    def work(number: int) -> None:
        for step in range(3_000):
            recent.put((number, step % 7), step, 5)
            recent.get((number, step % 5))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [None] * 8

"""Background work: progress, results, failures and cancelling."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from sememe.errors import InputError
from sememe.explore.jobs import CancelledError, Jobs, Report


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    own = Jobs()
    yield own
    own.close()


def test_result_and_progress(jobs: Jobs) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(report: Report) -> int:
        report(0.5, "Half")
        begun.set()
        go_on.wait(10)
        return 7

    job = jobs.start("seven", work)
    assert begun.wait(10)
    assert job.state() == {"id": "seven", "state": "running", "progress": 0.5, "message": "Half"}
    with pytest.raises(InputError, match="not finished"):
        jobs.result("seven")
    go_on.set()
    assert job.future.result(10) == 7 == jobs.result("seven")
    assert job.state()["state"] == "done"


def test_the_same_key_is_computed_once_and_again_after_a_failure(jobs: Jobs) -> None:
    num_calls = 0

    def fail(_: Report) -> None:
        nonlocal num_calls
        num_calls += 1
        raise InputError("No such thing.")

    job = jobs.start("key", fail)
    assert isinstance(job.future.exception(10), InputError)
    assert (job.state()["state"], job.state()["error"]) == ("failed", "No such thing.")
    second = jobs.start("key", lambda report: 1)
    assert second is not job and second.future.result(10) == 1
    assert jobs.start("key", fail) is second and num_calls == 1
    assert jobs.start("key", fail, is_new=True) is not second


def test_cancelling_ends_work_at_its_next_report(jobs: Jobs) -> None:
    begun, is_over = threading.Event(), threading.Event()

    def work(report: Report) -> None:
        try:
            while True:
                begun.set()
                report(0.1)
                time.sleep(0.01)
        finally:
            is_over.set()

    job = jobs.start("endless", work)
    assert begun.wait(10)
    jobs.cancel("endless")
    assert (job.state()["state"], job.state()["error"]) == ("failed", "Cancelled.")
    assert isinstance(job.future.exception(10), CancelledError) and is_over.is_set()
    assert jobs.start("endless", lambda report: 2).future.result(10) == 2


def test_work_that_waits_is_cancelled_before_it_begins(jobs: Jobs) -> None:
    go_on = threading.Event()
    for number in range(4):
        jobs.start(f"busy-{number}", lambda report: go_on.wait(10))
    is_begun = threading.Event()
    job = jobs.start("later", lambda report: is_begun.set())
    jobs.cancel("later")
    assert job.state()["state"] == "failed"
    go_on.set()
    assert isinstance(job.future.exception(10), CancelledError) and not is_begun.is_set()


def test_unknown_jobs_are_told(jobs: Jobs) -> None:
    for call in (jobs.find, jobs.result, jobs.cancel):
        with pytest.raises(InputError, match="no such job"):
            call("nothing")


def test_only_finished_jobs_are_forgotten_the_oldest_first(jobs: Jobs) -> None:
    go_on = threading.Event()
    running = jobs.start("running", lambda report: go_on.wait(10))
    jobs.start("old", lambda report: 1).future.result(10)
    jobs.start("again", lambda report: 1).future.result(10)
    for number in range(61):
        jobs.start(f"{number}", lambda report: 1).future.result(10)
    jobs.start("old", lambda report: 2, is_new=True).future.result(10)
    jobs.start("last", lambda report: 1)
    assert jobs.find("running") is running and jobs.result("old") == 2
    with pytest.raises(InputError, match="no such job"):
        jobs.find("again")
    jobs.close()
    assert running.is_cancelled.is_set()
    go_on.set()

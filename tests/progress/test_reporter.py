"""Progress: what reaches a log, a terminal and nobody; and what an update costs."""

from __future__ import annotations

import io
import time

import pytest

from sememe.progress import SILENT, Reporter, format_count, format_duration, format_metric


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_plain_lines_with_rate_and_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    reporter = Reporter(stream=stream, line_s=0.02)
    with reporter.task("training", total=100, unit="words") as task:
        for done in (10, 20, 50):
            now[0] += 0.03
            task.update(done, loss=0.25, learning_rate=0.02)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0] == "training: 10.0%, 333 words/s, loss 0.25, lr 0.02, 0:00 left"
    assert lines[-1].startswith("training: 50 words in 0:00")
    assert "\x1b" not in stream.getvalue()


def test_a_quiet_reporter_and_the_silent_one_write_nothing() -> None:
    stream = io.StringIO()
    for reporter in (Reporter(quiet=True, stream=stream), SILENT):
        reporter.note("hello")
        with reporter.task("work", total=None, unit="MB") as task:
            task.update(3)
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_and_notes_stay_readable() -> None:
    stream = Terminal()
    reporter = Reporter(stream=stream)
    with reporter.task("reading", total=200, unit="B") as task:
        time.sleep(0.01)
        task.update(100, loss=0.5)
        reporter.note("compiling kernels, once [not markup]")
    shown = stream.getvalue()
    assert "reading" in shown and "50%" in shown and "loss 0.5" in shown
    assert "compiling kernels, once [not markup]" in shown
    assert reporter._live is None


def test_nested_tasks_share_one_display() -> None:
    stream = Terminal()
    reporter = Reporter(stream=stream)
    with reporter.task("outer", total=2, unit="files") as outer:
        with reporter.task("inner", total=None, unit="words") as inner:
            inner.update(5)
        assert reporter._live is not None
        outer.update(1)
    assert reporter._live is None
    assert "outer: 1 files in" in stream.getvalue()


def test_a_failed_task_says_where_it_stopped() -> None:
    stream = io.StringIO()
    with (
        pytest.raises(RuntimeError),
        Reporter(stream=stream).task("training", total=10, unit="words") as task,
    ):
        task.update(4)
        raise RuntimeError
    assert stream.getvalue().startswith("training stopped: 4 words in")


def test_resumed_work_does_not_count_what_was_done_before() -> None:
    task = SILENT.task("training", total=1000, unit="words", start=900)
    with task:
        time.sleep(0.02)
        task.update(910)
    assert 0 < task.rate < 10 / 0.02
    assert task.summarize().startswith("10 words in")


def test_a_closed_stream_does_not_stop_the_work() -> None:
    stream = io.StringIO()
    reporter = Reporter(stream=stream)
    stream.close()
    reporter.note("nobody reads this")
    assert reporter.quiet


def test_an_update_costs_microseconds() -> None:
    with Reporter(stream=io.StringIO()).task("work", total=10**6, unit="words") as task:
        begun = time.thread_time()  # of this thread alone, and not while others have the core
        for done in range(20_000):
            task.update(done, loss=0.1)
        assert (time.thread_time() - begun) / 20_000 < 20e-6


@pytest.mark.parametrize(
    ("number", "unit", "expected"),
    [
        (0, "words", "0 words"),
        (999, "words", "999 words"),
        (1_210_000, "words", "1.21 M words"),
        (34_000_000, "B", "34.0 MB"),
        (12.345, "steps", "12.3 steps"),
        (512, "B", "512 B"),
    ],
)
def test_counts(number: float, unit: str, expected: str) -> None:
    assert format_count(number, unit) == expected


def test_durations_and_metrics() -> None:
    assert [format_duration(s) for s in (7, 750, 11_100, 187_200, float("nan"))] == [
        "0:07", "12:30", "3:05:00", "2 d 4:00:00", "-:--",
    ]  # fmt: skip
    assert format_metric("learning_rate", 0.0182349) == "lr 0.01823"
    assert format_metric("epoch", "2 of 5") == "epoch 2 of 5"

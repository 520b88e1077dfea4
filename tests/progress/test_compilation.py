"""While kernels are compiled: the user is told, no rate is shown, and no time is counted."""

from __future__ import annotations

import gc
import io
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sememe import machine, progress
from sememe.machine import Compilation
from sememe.progress import Reporter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for something that comes in less than a second, or later on a busy machine."""
    end_s = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@pytest.fixture
def compilation(monkeypatch: pytest.MonkeyPatch) -> Compilation:
    """Of a version that has compiled nothing yet."""
    own = Compilation()
    monkeypatch.setattr(machine, "COMPILATION", own)
    monkeypatch.setattr(progress, "COMPILATION", own)
    monkeypatch.setattr(machine, "is_first_use", lambda: True)
    return own


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed, which a test sets."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_clock_stands_still_while_kernels_are_compiled(
    compilation: Compilation, passed: list[float]
) -> None:
    begun = machine.clock()
    passed[0] += 2
    compilation.start()
    passed[0] += 10
    assert machine.clock() - begun == 2 and compilation.seconds == 10
    compilation.start()  # a function that the kernel calls
    passed[0] += 5
    compilation.end()
    assert compilation.is_on and compilation.num_kernels == 0
    compilation.end()
    passed[0] += 1
    assert machine.clock() - begun == 3 and compilation.seconds == 15
    assert (compilation.num_kernels, compilation.num_functions) == (1, 2)


def test_the_time_to_expect_follows_from_the_first_kernels(
    compilation: Compilation, passed: list[float]
) -> None:
    assert compilation.expected_s == compilation.usual_s
    for _ in range(20):
        compilation.start()
        passed[0] += 0.5  # a machine that is slower than usual
        compilation.end()
    assert compilation.expected_s == pytest.approx(0.5 * compilation.usual_functions)
    for _ in range(80):
        compilation.start()
        passed[0] += 0.5
        compilation.end()
    assert compilation.expected_s == pytest.approx(50), "never less than it has taken"


def test_no_rate_is_shown_meanwhile_and_none_counts_it(
    compilation: Compilation, passed: list[float]
) -> None:
    stream = io.StringIO()
    reporter = Reporter(stream=stream, line_s=1.0)
    with reporter.task("training", total=1000, unit="words") as task:
        compilation.start()
        for second in range(1, 21):
            passed[0] += 1
            task.update(second)
            assert task.describe()[1:] == ["compiling kernels"]
        compilation.end()
        passed[0] += 2
        task.update(220, loss=0.5)
        passed[0] += 2
        task.update(420, loss=0.5)
        assert task.rate == pytest.approx(420 / 4)
        assert task.remaining_s == pytest.approx(580 / 105)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Compiling kernels: once for this version, about 15 seconds."
    during = [line for line in lines if "compiling kernels" in line]
    assert during and not any("/s" in line or "left" in line for line in during[:-1])
    assert lines[-1] == (
        "training: 420 words in 0:04, 105 words/s, loss 0.5, after 0:20 of compiling"
    )


def test_a_log_gets_a_line_now_and_then(compilation: Compilation, passed: list[float]) -> None:
    stream = io.StringIO()
    reporter = Reporter(stream=stream, line_s=10.0)
    for _ in range(9):
        compilation.start()
        passed[0] += 3
        compilation.end()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3 and lines[0].startswith("Compiling kernels: once")
    assert lines[1] == "compiling kernels: 4 done, 0:12 of about 0:15"
    assert lines[2] == "compiling kernels: 8 done, 0:24"
    del reporter
    gc.collect()
    compilation.start()
    compilation.end()
    assert len(stream.getvalue().splitlines()) == 3, "who has gone is told nothing"


def test_later_kernels_of_a_version_are_announced_without_a_time(
    compilation: Compilation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "is_first_use", lambda: False)
    stream = io.StringIO()
    reporter = Reporter(stream=stream)
    compilation.start()
    compilation.end()
    assert stream.getvalue() == "Compiling kernels that this version has not used yet.\n"
    quiet = Reporter(quiet=True, stream=stream)
    compilation.start()
    compilation.end()
    assert len(stream.getvalue().splitlines()) == 1 and reporter is not quiet


def test_a_terminal_gets_a_line_that_moves_and_goes(compilation: Compilation) -> None:
    stream = Terminal()
    reporter = Reporter(stream=stream)
    before = set(threading.enumerate())
    with reporter.task("reading", total=200, unit="B") as task:
        task.update(10)
        worker = threading.Thread(target=compilation.start)
        worker.start()
        worker.join()
        # Drawn by itself: the thread that waits for a kernel draws nothing.
        wait_until(lambda: stream.getvalue().count("compiling kernels") > 2)
        assert set(threading.enumerate()) - before
        compilation.end()
        assert reporter._compiling_bar is not None, "more kernels may follow"
        time.sleep(0.15)  # a bar is drawn ten times a second at most
        task.update(100)
        assert reporter._compiling_bar is None
    assert reporter._live is None
    shown = stream.getvalue()
    assert re.search(r"0 done, 0:0\d of about 0:15", shown)
    # Between two tasks, too.
    compilation.start()
    assert reporter._live is not None
    compilation.end()
    assert reporter._live is None
    wait_until(lambda: set(threading.enumerate()) <= before)


KERNELS = """
import numba
from sememe import machine
from sememe.machine import COMPILATION, kernel

@kernel
def inner(number):
    return 2 * number

@kernel
def outer(number):
    return inner(number) + 1

@numba.njit
def users_own(number):
    return number + 1

users_own(1)
assert (COMPILATION.num_kernels, COMPILATION.num_functions) == (0, 0)
assert outer(20) == 41
assert (COMPILATION.num_kernels, COMPILATION.num_functions) == (1, 2)
assert COMPILATION.is_first and not COMPILATION.is_on and 0 < COMPILATION.seconds < 600
seconds = COMPILATION.seconds
outer(21)
assert COMPILATION.seconds == seconds
"""


def test_numba_tells_of_our_kernels_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))
    (tmp_path / "program.py").write_text(KERNELS, encoding="utf-8")
    run = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # From the cache nothing is compiled.
    again = subprocess.run(run, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "(1, 2)" in again.stderr


@pytest.mark.slow
def test_a_first_training_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))
    words = " ".join(f"word{number % 50}" for number in range(2_000))
    (tmp_path / "text.txt").write_text(f"{words}\n" * 20, encoding="utf-8")
    command = [
        sys.executable, "-m", "sememe.cli", "train", "word2vec", str(tmp_path / "text.txt"),
        "--out", str(tmp_path / "model"), "--min-count", "1",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Compiling kernels: once for this version, about 15 s")
    (told,) = (line for line in lines if line.startswith("training: ") and " in " in line)
    assert " of compiling" in told
    again = subprocess.run([*command, "--overwrite"], capture_output=True, text=True, check=True)
    assert "ompiling" not in again.stderr

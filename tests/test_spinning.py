"""Threads that wait for each other sleep where other work has the cores."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sememe import machine


@pytest.fixture
def environment(monkeypatch) -> dict[str, str]:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return os.environ


def load(monkeypatch, value: float) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (value, value, value), raising=False)


def test_threads_sleep_on_a_busy_machine_alone(environment, monkeypatch):
    load(monkeypatch, 0.5)
    machine.limit_spinning()
    assert "OMP_WAIT_POLICY" not in environment
    load(monkeypatch, 14.0)
    machine.limit_spinning()
    assert environment.pop("OMP_WAIT_POLICY") == "PASSIVE"


def test_the_package_decides_before_pytorch_is_imported():
    program = (
        "import os, sys\n"
        "os.getloadavg = lambda: (1e9, 1e9, 1e9)\n"
        "import sememe\n"
        "print(os.environ.get('OMP_WAIT_POLICY'), 'torch' in sys.modules)\n"
    )
    own = {name: value for name, value in os.environ.items() if name not in machine._WAITING}
    said = subprocess.run([sys.executable, "-c", program], env=own, capture_output=True, text=True)
    assert said.stdout.split() == ["PASSIVE", "False"], said.stderr


def test_what_the_user_has_set_stays(environment, monkeypatch):
    load(monkeypatch, 14.0)
    monkeypatch.setenv("GOMP_SPINCOUNT", "77")
    machine.limit_spinning()
    assert "OMP_WAIT_POLICY" not in environment


def test_a_training_on_a_busy_machine_tells_when_one_thread_is_faster(monkeypatch):
    torch = pytest.importorskip("torch")
    import sememe
    from recorded_notes import Notes

    used, sleep = torch.set_num_threads, []
    monkeypatch.setattr(torch, "set_num_threads", lambda num: (sleep.append(num), used(num)))
    load(monkeypatch, 0.0)

    def trained(workers: int) -> tuple[str, float]:
        notes = Notes()
        texts = ["the old cat sat on the warm mat", "a king had lunch with a dog"] * 20
        model = sememe.NNLM(
            dim=4, num_hidden=4, min_count=1, length=8, steps=3, batch_size=2, workers=workers,
            evaluate_batches=0, device="cpu",
        )  # fmt: skip
        model.fit(texts, progress=notes)
        return " ".join(notes.lines), model.history.last()["loss"]

    quiet, loss = trained(2)
    load(monkeypatch, 99.0)
    monkeypatch.setattr("sememe.training.loop.time.monotonic", slow_clock(sleep))
    busy, same = trained(2)
    assert "Other programs use the cores" not in quiet
    assert "Other programs use the cores" in busy and "--workers 1" in busy
    assert same == loss  # what was tried left nothing behind


def slow_clock(used: list[int]):
    """A clock that goes ten times as fast while there are two threads."""
    state = [0.0]

    def now() -> float:
        state[0] += 10.0 if used and used[-1] == 2 else 1.0
        return state[0]

    return now

"""A process killed at any moment and started again gives the bits of one that was left alone."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = Path(__file__).parents[1] / "training" / "run_toy.py"
OPTIONS = {
    "steps": 300, "batch_size": 16, "dropout": 0.1, "checkpoint_minutes": 0.0005, "accumulate": 2,
}  # fmt: skip


def start(out: Path, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), str(out), json.dumps(OPTIONS | options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen[str]) -> int:
    process.communicate()  # its pipe would fill up
    return process.returncode


@pytest.mark.slow
def test_kills_at_random_moments_change_nothing(tmp_path):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    # Without checkpoints, and at another pace.
    assert finish(start(alone, checkpoint_minutes=0)) == 0
    chance, num_kills = random.Random(3), 0
    while num_kills < 5:
        process = start(killed, pause_s=0.02)
        time.sleep(chance.uniform(0.1, 0.9))
        process.send_signal(signal.SIGKILL)
        if finish(process) == 0:
            break
        num_kills += 1
    assert num_kills >= 3, "the run was over before it could be killed often enough"
    assert finish(start(killed)) == 0
    assert killed.read_bytes() == alone.read_bytes()


def test_a_polite_stop_saves_first(tmp_path):
    out = tmp_path / "model"
    process = start(out, pause_s=0.05, checkpoint_minutes=0, told=5)
    folder = Path(f"{out}.checkpoints")
    assert process.stdout is not None and process.stdout.readline() == "training\n"
    process.send_signal(signal.SIGTERM)
    assert finish(process) != 0
    assert json.loads((folder / "latest.json").read_text())["latest"].startswith("step-")

"""Two processes give the loss of one with twice the rows (torchrun, gloo, CPU)."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from sememe.storage.tensors import read_tensors

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("run_toy.py")
# Rows that are asked for are drawn, so the two halves of a batch have different counts.
OPTIONS = {"steps": 12, "batch_size": 32, "dropout": 0.0}


def free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])


def train(out: Path, num_processes: int, **options: Any) -> list[dict[str, Any]]:
    torchrun = [
        "-m", "torch.distributed.run", f"--nproc-per-node={num_processes}",
        "--master-addr=127.0.0.1", f"--master-port={free_port()}",
    ]  # fmt: skip
    command = [
        sys.executable, *(torchrun if num_processes > 1 else []), str(PROGRAM), str(out),
        json.dumps(OPTIONS | options),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if "SIGABRT" in ran.stderr:  # gloo's own threads, once in hundreds of starts
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout.splitlines()[-1])


def test_two_processes_equal_one_with_all_rows(tmp_path):
    alone = train(tmp_path / "one", 1)
    together = train(tmp_path / "two", 2)
    parts = train(tmp_path / "parts", 2, accumulate=2)
    for name in ("loss", "class_accuracy", "validation_loss", "tokens", "step"):
        expected = [record[name] for record in alone if name in record]
        for other in (together, parts):
            found = [record[name] for record in other if name in record]
            np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=name)
    ours, theirs = read_tensors(tmp_path / "one"), read_tensors(tmp_path / "two")
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], atol=1e-5)

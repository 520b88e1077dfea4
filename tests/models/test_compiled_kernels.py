"""The Triton kernels compile for a GPU, also where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

PROGRAM = Path(__file__).with_name("compiled_kernels.py")


@pytest.mark.slow
def test_the_kernels_compile_for_a_gpu(tmp_path):
    # In a process of its own: here they belong to the interpreter.
    environment = {key: own for key, own in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert len(done.stdout.splitlines()) == 5

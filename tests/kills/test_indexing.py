"""An index whose building is killed is complete or absent; one that changes is old or new."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sememe.search.index import Search

PROGRAM = """
import sys
from sememe.search.index import Search
folder, num = sys.argv[1], int(sys.argv[2])
rows = [{"id": str(n), "text": f"row number {n} of many rows"} for n in range(num)]
print("ready", flush=True)
for _ in range(50):
    Search.build(rows, folder=folder)
    print("built", flush=True)
"""


@pytest.mark.slow
def test_killed_indexes_are_complete_or_absent(tmp_path: Path) -> None:
    folder, chance, num_kills, num_found = tmp_path / "index", random.Random(4), 0, 0
    build_s = 0.0  # measured once: a busy machine takes many times as long
    for size in [2_000, 3_000] * 8:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder), str(size)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        if build_s:
            time.sleep(chance.uniform(0.02, 1.5 * build_s))
        else:
            begun_s = time.monotonic()
            assert process.stdout.readline() == "built\n"
            build_s = time.monotonic() - begun_s
        process.send_signal(signal.SIGKILL)
        process.communicate()
        num_kills += process.returncode == -signal.SIGKILL
        if folder.exists():
            index = Search.load(folder)
            assert len(index) in (2_000, 3_000)
            last = len(index) - 1
            assert index.search(f"number {last}", 1)[0].id == str(last)
            num_found += 1
    assert num_kills > 10 and num_found
    Search.build(["one row"], folder=folder)
    assert {path.name for path in tmp_path.iterdir()} == {"index"}, "killed runs left something"

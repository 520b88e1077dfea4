"""Kernels are compiled before a ladder's clock runs, and the terminal is told of it once."""

import subprocess
import sys

PROGRAM = """
import sememe.ladder.running  # a ladder has imported kernels before it warms up
from sememe.ladder.warming import warm_up
from sememe.progress import Reporter

class Heard(Reporter):
    def note(self, text):
        print(text)

warm_up(["onehot"], Heard())
print("once more")
warm_up(["onehot"], Heard())
"""


def test_an_empty_cache_is_filled_and_told_of_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    first, *rest = done.stdout.splitlines()
    assert first.startswith("Compiling the kernels") and rest == ["once more"]
    assert list(tmp_path.glob("kernels/*/*/*.nbc"))

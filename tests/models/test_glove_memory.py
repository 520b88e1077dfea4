"""GloVe's counting and training stay within the memory given."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

NUM_WORDS, NUM_TOKENS = 12_000, 600_000

SCRIPT = f"""
import hashlib, json, re, sys
from pathlib import Path
import numpy as np
import sememe
from sememe.tokens.caching import open_or_build

def peak():
    # What getrusage tells includes the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024

def sentences():
    random = np.random.default_rng(0)
    for start in range(0, {NUM_TOKENS}, 1000):
        # Half of the words are drawn evenly: nearly every pair of them is a new cell.
        even = random.integers(0, {NUM_WORDS}, 1000)
        skewed = ({NUM_WORDS} ** random.random(1000)).astype(int)
        yield [f"w{{n}}" for n in np.where(random.random(1000) < 0.5, even, skewed)]

options = dict(dim=20, epochs=1, min_count=1, workers=1)
sememe.GloVe(**options).fit([["a", "b", "c"]] * 10)
if sys.argv[1] == "compile":  # in a process of its own, because that takes memory too
    sys.exit()
store = open_or_build(sentences(), sememe.TextSettings(language="none"), min_count=1)
before = peak()
model = sememe.GloVe(**options, memory=sys.argv[1]).fit(store)
numbers = hashlib.sha256(model.input.tobytes()).hexdigest()
print(json.dumps({{"before": before, "after": peak(), "numbers": numbers}}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is Linux's")
def test_the_peak_stays_within_the_memory(own_cache):
    grown, numbers = {}, set()
    for memory in ("compile", "64M", "4G"):
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT, memory], capture_output=True, text=True, check=True
        )
        if memory == "compile":
            continue
        told = json.loads(ran.stdout)
        grown[memory] = told["after"] - told["before"]
        numbers.add(told["numbers"])
    assert grown["64M"] <= 64, f"64 MB were given, {grown['64M']:.0f} were taken"
    assert grown["4G"] > 64, "the text is too small to show anything"
    assert len(numbers) == 1, "the result depends on the memory"

"""GloVe stopped at any moment, resumed, gives the same bits; its counts are made once."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, OptionError
from sememe.storage.checkpoints import Checkpoints

EPOCHS = 60

# It rests after every epoch: without that a fast machine is done before it can be killed.
SCRIPT = f"""
import sys, time, sememe
import sememe.static.glove.kernels

class Rest:
    every_words = 60_000

    def __call__(self, model, record):
        time.sleep(0.1)

corpus, out = sys.argv[1:]
print("ready", flush=True)
sememe.GloVe(dim=30, epochs={EPOCHS}, min_count=1, window=5, workers=1, seed=4).fit(
    corpus, language="none", out=out, resume=True, checkpoint_minutes=0.001, callbacks=[Rest()])
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    chance = 1 / np.arange(1, 2001)
    draws = random.choice(2000, 60_000, p=chance / chance.sum())
    lines = (" ".join(f"w{i}" for i in draws[n : n + 20]) for n in range(0, 60_000, 20))
    path.write_text("\n".join(lines))
    return path


def model(**options) -> sememe.GloVe:
    defaults = {"dim": 30, "epochs": EPOCHS, "min_count": 1, "window": 5, "workers": 1, "seed": 4}
    return sememe.GloVe(**(defaults | options))


def content(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def uninterrupted(corpus, tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("whole") / "model"
    model().fit(corpus, language="none", out=out)
    return content(out)


class Interrupt:
    """Presses Ctrl-C in the middle."""

    every_words = EPOCHS * 60_000 // 3

    def __call__(self, model, record):
        os.kill(os.getpid(), signal.SIGINT)


def interrupted(corpus: Path, out: Path, **options) -> None:
    with pytest.raises(KeyboardInterrupt):
        model(**options).fit(corpus, language="none", out=out, callbacks=[Interrupt()])


def wait_for_checkpoint(pointer: Path, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the run has written a checkpoint of its own; False if it ended before."""
    before = pointer.read_bytes() if pointer.exists() else b""
    while process.poll() is None:
        if pointer.exists() and pointer.read_bytes() != before:
            return True
        time.sleep(0.002)
    return False


def test_kills_change_nothing(corpus, uninterrupted, tmp_path):
    out, random = tmp_path / "model", np.random.default_rng(7)
    num_in_training = 0
    for number in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(corpus), str(out)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        if number % 2:
            num_in_training += wait_for_checkpoint(Path(f"{out}.checkpoints/latest.json"), process)
        time.sleep(float(random.uniform(0.0, 0.1 if number % 2 else 0.6)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert num_in_training >= 2, "too few kills fell into the training"
    model().fit(corpus, language="none", out=out, resume=True)
    assert content(out) == uninterrupted
    assert [path.name for path in tmp_path.iterdir()] == ["model"], "nothing is left behind"


def test_ctrl_c_leaves_what_a_resume_needs(corpus, uninterrupted, tmp_path):
    out = tmp_path / "model"
    interrupted(corpus, out)
    assert Checkpoints(f"{out}.checkpoints").latest() is not None
    assert not out.exists()
    assert (tmp_path / "model.pairs" / "cells.bin").exists()
    model(memory="100M").fit(corpus, language="none", out=out, resume=True)
    assert content(out) == uninterrupted
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("damage", ["removed", "cut", "half-written"])
def test_counts_that_are_not_whole_are_made_again(corpus, uninterrupted, tmp_path, damage):
    out, pairs = tmp_path / "model", tmp_path / "model.pairs"
    interrupted(corpus, out)
    cells = pairs / "cells.bin"
    if damage == "removed":
        cells.unlink()
    elif damage == "cut":
        cells.write_bytes(cells.read_bytes()[:-8])
    else:
        (pairs / "sememe.json").unlink()
    model().fit(corpus, language="none", out=out, resume=True)
    assert content(out) == uninterrupted


def test_resume_refuses_other_options_and_other_text(corpus, tmp_path):
    out = tmp_path / "model"
    interrupted(corpus, out)
    with pytest.raises(OptionError, match="window was 5, is 6"):
        model(window=6).fit(corpus, language="none", out=out, resume=True)
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text().replace("w7 ", "w8 "))
    with pytest.raises(ArtifactError, match="other text"):
        model().fit(other, language="none", out=out, resume=True)
    assert (tmp_path / "model.pairs").exists(), "the run can still be resumed"
    with pytest.raises(OptionError, match="out"):
        model().fit(corpus, language="none", resume=True)

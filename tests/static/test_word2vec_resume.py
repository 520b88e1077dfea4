"""Stop at any moment, resume, and get the same bits."""

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

EPOCHS = 40

# It rests after every epoch: without that a fast machine is done before it can be killed.
SCRIPT = f"""
import sys, time, sememe
import sememe.static.word2vec.kernels
from sememe.text import stream

class Rest:
    every_words = 400_000

    def __call__(self, model, record):
        time.sleep(float(rest_s))

corpus, out, rest_s = sys.argv[1:]
print("ready", flush=True)
sememe.Word2Vec(dim=32, epochs={EPOCHS}, min_count=1, workers=1, seed=4).fit(
    corpus, language="none", out=out, resume=True, checkpoint_minutes=0.001, callbacks=[Rest()])
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    words = [f"w{i}" for i in range(3000)]
    chance = 1 / np.arange(1, 3001)
    draws = random.choice(3000, 400_000, p=chance / chance.sum())
    lines = (" ".join(words[i] for i in draws[n : n + 20]) for n in range(0, 400_000, 20))
    path.write_text("\n".join(lines))
    return path


def content(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def uninterrupted(corpus, tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("whole") / "model"
    sememe.Word2Vec(dim=32, epochs=EPOCHS, min_count=1, workers=1, seed=4).fit(
        corpus, language="none", out=out
    )
    return content(out)


def is_writing(folder: Path) -> bool:
    """Whether a checkpoint is half written at this moment."""
    return any(folder.glob(".step-*"))


def wait_for_write(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a checkpoint is being written."""
    while process.poll() is None and not is_writing(folder):
        time.sleep(0.0005)


def test_twenty_kills_change_nothing(corpus, uninterrupted, tmp_path):
    out, random = tmp_path / "model", np.random.default_rng(7)
    keeper = Checkpoints(f"{out}.checkpoints")
    num_kills = num_in_write = 0
    for _ in range(60):
        rest_s = "0.3" if num_kills < 20 else "0"
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(corpus), str(out), rest_s], stdout=subprocess.PIPE
        )
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        if num_kills < 20:
            time.sleep(float(random.uniform(0.05, 0.4)))
            if num_kills % 2:
                wait_for_write(keeper.folder, process)
            process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode != -signal.SIGKILL:
            break
        num_kills += 1
        num_in_write += is_writing(keeper.folder)
    assert process.returncode == 0
    assert num_kills == 20, "the run was over before it could be killed often enough"
    assert num_in_write >= 3, "too few kills fell into a checkpoint write"
    assert content(out) == uninterrupted
    assert [path.name for path in tmp_path.iterdir()] == ["model"], "nothing is left behind"


def test_ctrl_c_leaves_a_checkpoint_that_resumes(corpus, uninterrupted, tmp_path):
    out = tmp_path / "model"

    class Interrupt:
        every_words = 1_000_000

        def __call__(self, model, record):
            os.kill(os.getpid(), signal.SIGINT)

    def fit(**options):
        model = sememe.Word2Vec(dim=32, epochs=EPOCHS, min_count=1, workers=1, seed=4)
        return model.fit(corpus, language="none", out=out, **options)

    with pytest.raises(KeyboardInterrupt):
        fit(callbacks=[Interrupt()])
    assert Checkpoints(f"{out}.checkpoints").latest() is not None
    assert not out.exists()
    fit(resume=True)
    assert content(out) == uninterrupted


def test_resume_refuses_other_options_and_other_text(corpus, tmp_path):
    out = tmp_path / "model"

    class Interrupt:
        every_words = 1_000_000

        def __call__(self, model, record):
            raise KeyboardInterrupt

    def model(**options):
        return sememe.Word2Vec(**({"dim": 8, "epochs": 6, "min_count": 1, "workers": 1} | options))

    with pytest.raises(KeyboardInterrupt):
        model().fit(corpus, language="none", out=out, callbacks=[Interrupt()])
    with pytest.raises(OptionError, match="dim was 8, is 9"):
        model(dim=9).fit(corpus, language="none", out=out, resume=True)
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text().replace("w7 ", "w8 "))
    with pytest.raises(ArtifactError, match="other text"):
        model().fit(other, language="none", out=out, resume=True)
    with pytest.raises(OptionError, match="out"):
        model().fit(corpus, language="none", resume=True)


def test_a_damaged_checkpoint_is_refused(corpus, tmp_path):
    out = tmp_path / "model"
    keeper = Checkpoints(f"{out}.checkpoints")

    class Interrupt:
        every_words = 1_000_000

        def __call__(self, model, record):
            raise KeyboardInterrupt

    def model():
        return sememe.Word2Vec(dim=8, epochs=6, min_count=1, workers=1)

    with pytest.raises(KeyboardInterrupt):
        model().fit(corpus, language="none", out=out, callbacks=[Interrupt()])
    tensors = keeper.latest() / "model.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-100])
    with pytest.raises(ArtifactError, match="truncated"):
        model().fit(corpus, language="none", out=out, resume=True)

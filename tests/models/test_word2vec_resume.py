"""Stop at any moment, resume, and get the same bits."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, OptionError
from sememe.storage.checkpoints import Checkpoints

EPOCHS = 40


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
    with pytest.raises(ArtifactError, match="checksum"):
        model().fit(corpus, language="none", out=out, resume=True)

"""GloVe stopped at any moment, resumed, gives the same bits; its counts are made once."""

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

EPOCHS = 60


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

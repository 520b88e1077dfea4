"""ELMo from the command line: train, ask, embed, tag; what is wrong is said in one sentence."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")

from sememe.cli import app
from sememe.models.word2vec.training import WindowRun

SMALL = (
    "--num-cells", "16", "--width", "8", "--filters", "1:4 2:4", "--num-highways", "1",
    "--length", "12", "--batch-size", "4", "--steps", "6", "--min-count", "1", "--workers", "1",
    "--device", "cpu", "--evaluate-batches", "1", "--validation-share", "0.2", "--quiet",
)  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path, own_cache: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("The old king sees a cat. A cat sees the king.\n" * 30, encoding="utf-8")
    return path


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_an_interrupt_of_the_first_skipgram_speaks_of_resuming(corpus, tmp_path, monkeypatch):
    learn = WindowRun.step

    def interrupted(self: WindowRun, step: int, *more: Any) -> None:
        if step == 1:
            os.kill(os.getpid(), signal.SIGINT)
        learn(self, step, *more)

    command = ("train", "elmo", corpus, "--out", tmp_path / "elmo", "--start-epochs", 50, *SMALL)
    for more in ((), ("--overwrite",)):  # the second time over a finished model
        with monkeypatch.context() as patch:
            patch.setattr(WindowRun, "step", interrupted)
            assert "with --resume" in run(*command, *more, code=130)
        run(*command, "--resume")
        assert not list(tmp_path.glob("elmo.*"))


def test_a_model_is_trained_asked_and_put_under_a_task(corpus, tmp_path):
    out = tmp_path / "elmo"
    said = run("train", "elmo", corpus, "--out", out, *SMALL)
    assert "forwards" in said and "by frequency alone" in said
    known = json.loads(run("info", out, "--json"))
    assert known["kind"] == "elmo" and known["config"]["width"] == 8 and known["parameters"] > 1_000
    found = json.loads(run("suggest", out, "The old ", "--json", "-k", 3))
    assert len(json.dumps(found)) > 20
    texts = tmp_path / "texts.txt"
    texts.write_text("The king\n\nA dog 看见\n", encoding="utf-8")
    run("embed", out, texts, "--pool", "words", "--layers", "1", "--out", tmp_path / "w.npy")
    assert np.load(tmp_path / "w.npy").shape == (6, 16)
    run("embed", out, texts, "--out", tmp_path / "t.npy")
    assert np.load(tmp_path / "t.npy").shape == (3, 16)
    rows = tmp_path / "rows.txt"
    rows.write_text("Paul B-PER\nsees O\nParis B-LOC\n\n" * 8, encoding="utf-8")
    run(
        "finetune", "tag", out, "--train", rows, "--dev", rows, "--crf", "--epochs", "1",
        "--reader-width", "8", "--device", "cpu", "--workers", "1", "--out", tmp_path / "task",
        "--quiet",
    )  # fmt: skip
    assert "Paul\t" in run("predict", tmp_path / "task", rows)


def test_what_is_wrong_is_said(corpus, tmp_path):
    assert "lengths with numbers" in run(
        "train", "elmo", corpus, "--out", tmp_path / "x", "--filters", "wide", code=2
    )
    assert "--out must name" in run("train", "elmo", corpus, code=2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    said = run("train", "elmo", corpus, "--out", tmp_path / "mine", *SMALL, code=2)
    assert "is not a elmo model" in said
    out = tmp_path / "elmo"
    run("train", "elmo", corpus, "--out", out, *SMALL)
    assert "cls" in run("embed", out, corpus, "--pool", "cls", "-o", tmp_path / "a.npy", code=2)
    said = run("embed", out, corpus, "--layers", "9", "-o", tmp_path / "a.npy", code=2)
    assert "layers must" in said

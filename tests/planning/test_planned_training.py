"""One real plan, the training that follows it, and what the two say of each other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from sememe.cli import app
from sememe.planning import planned
from sememe.planning.losses import Expected
from sememe.planning.plan import Plan

OPTIONS = (
    "--num-layers", 1, "--width", 32, "--num-heads", 2, "--length", 32, "--vocab-size", 300,
    "--batch-size", 8, "--workers", 1, "--device", "cpu", "--validation-share", 0.3,
    "--evaluate-batches", 2,
)  # fmt: skip
WORDS = ("the", "red", "cat", "sat", "on", "an", "old", "mat", "while", "two", "dogs", "ran")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    rows = [" ".join(WORDS[start:] + WORDS[:start]) + "." for start in range(len(WORDS))]
    path.write_text("\n".join(rows * 20) + "\n")
    return path


@pytest.fixture
def run(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command that succeeds, or fails with this exit code."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(item) for item in arguments])
        assert result.exit_code == code, result.stderr or repr(result.exception)
        return result

    return call


def test_a_plan_its_training_and_their_comparison(run, text, tmp_path):
    command = ("bert", text, "--preset", "tiny", "--steps", 30, *OPTIONS)
    found = json.loads(run("plan", *command, "--json").stdout)
    (size,) = found["sizes"]
    assert found["best"] == "tiny" and size["steps"] == 30 and size["seconds"] > 0
    assert size["memory_bytes"] > 100 << 20 and found["text"]["is_whole"]
    assert size["loss"] is None or size["loss"]["low"] < size["loss"]["high"]
    assert not (tmp_path / "model").exists()

    told = run("train", *command, "--out", "model").stdout
    assert "Planned and actual: time" in told and "memory" in told
    forecast = json.loads((tmp_path / "model" / "sememe.json").read_text())["forecast"]
    assert forecast["expected"]["steps"] == forecast["actual"]["steps"] == 30
    assert forecast["actual"]["seconds"] > 0 and forecast["actual"]["validation_loss"] > 0
    # The process of the test has other things in memory than that of the trial.
    assert forecast["actual"]["memory_bytes"] > 100 << 20

    other = run("train", *command[:-1], 1, "--out", "other").stdout
    assert "Planned" not in other  # another training has no plan


def test_a_plan_by_words(run, text):
    told = run("plan", "gpt", text, "--preset", "tiny", "--steps", 30, *OPTIONS).stdout
    assert "tiny" in told and "30" in told and "Machine: " in told and "Text: " in told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("onehot", "text.txt"), "onehot"),
        (("bert", "text.txt", "--steps", "x"), "steps"),
        (("bert", "missing.txt", "--steps", 3), "missing.txt"),
        (("bert", "-", "--steps", 3), "once"),
        (("bert", "text.txt", "--memory", "much"), "memory"),
    ],
)
def test_what_cannot_be_planned(run, text, arguments, says):
    assert says in run("plan", *arguments, code=2).stderr


def test_what_is_kept_of_a_plan_may_be_damaged(own_cache):
    planned.keep("0", planned.PlannedSize(preset="tiny"))
    assert planned.kept("0")["preset"] == "tiny" and planned.kept("1") == {}
    (own_cache / "plans" / "made" / "0.json").write_text("{")
    assert planned.kept("0") == {}


def test_word_vectors_are_planned_and_compared(run, text, tmp_path):
    command = ("word2vec", text, "--epochs", 30, "--dim", 8, "--min-count", 1, "--workers", 1)
    (size,) = json.loads(run("plan", *command, "--json").stdout)["sizes"]
    assert size["seconds"] > 0 and size["memory_bytes"] > 10 << 20 and size["loss"] is None
    told = run("train", *command, "--out", "vectors").stdout
    assert "Planned and actual: time" in told and "loss" not in told.split("Planned")[1]
    forecast = json.loads((tmp_path / "vectors" / "sememe.json").read_text())["forecast"]
    assert forecast["actual"]["seconds"] >= 0 and forecast["expected"]["seconds"] > 0


def test_auto_trains_the_best_size_and_says_so(run, text, tmp_path, monkeypatch):
    sizes = [
        planned.PlannedSize(
            preset=name, steps=2, seconds=3.0, memory_bytes=1 << 28, weights=1,
            loss=Expected(loss, loss - 0.5, loss + 0.5), loss_per_byte=loss,
        )
        for name, loss in (("tiny", 6.0), ("mini", 5.0), ("small", 5.5))
    ]  # fmt: skip
    asked = []

    def plan(model: Any, *data: Any, presets: list[str], **_: Any) -> Plan:
        asked.extend(presets)
        return Plan(kind="bert", sizes=tuple(sizes), model=model)

    monkeypatch.setattr(planned, "plan", plan)
    command = ("bert", text, "--preset", "auto", "--steps", 2, *OPTIONS, "--out", "model")
    told = run("train", *command)
    assert "takes mini" in told.stderr and "second best is small" in told.stderr
    assert {"tiny", "mini", "large"} <= set(asked)
    manifest = json.loads((tmp_path / "model" / "sememe.json").read_text())
    assert manifest["preset"] == "mini" and manifest["forecast"]["expected"]["loss"]["loss"] == 5.0
    assert "Planned and actual" in told.stdout


def test_a_trial_of_word_vectors_has_no_pytorch_in_its_memory(text):
    task = {"kind": "onehot", "options": {}, "data": [str(text)], "fit": {}, "text": None}
    program = (
        "import json, sys\n"
        "from sememe.planning import trial\n"
        "try: trial.run(json.load(sys.stdin))\n"
        "except AssertionError: pass\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(task), text=True, check=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "False"

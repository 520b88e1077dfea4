"""The study of reversal: its sequences, its counting, its folder, resume."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.errors import MissingExtraError, OptionError, WriteError
from sememe.models.translation import reversal_study
from sememe.models.translation.config import ReversalConfig
from sememe.models.translation.reversal_study import (
    MODELS,
    accuracy_by_length,
    asked_of,
    study_reversal,
    synthetic_pairs,
)
from sememe.storage.checkpoints import Checkpoints

SMALL = {
    "num_symbols": 3, "longest": 4, "num_sequences": 200, "num_tests": 20, "width": 16,
    "batch_size": 128, "steps": 8, "workers": 1, "device": "cpu",
}  # fmt: skip


def config(**options):
    return ReversalConfig(**{**SMALL, **options})


def test_targets_are_the_sources_backwards():
    pairs = synthetic_pairs(config())
    assert {len(pairs.sources[index]) for index in range(len(pairs))} == {2, 3, 4, 5}
    for index in range(len(pairs)):
        source, target = pairs.sources[index].tolist(), pairs.targets[index].tolist()
        assert source[-1] == target[-1] == reversal_study.END and target[0] == reversal_study.START
        assert source[:-1] == target[1:-1][::-1]
        assert all(2 <= symbol < 5 for symbol in source[:-1])
    tests = list(asked_of(config()))
    assert [len(own[0]) for own in tests] == [1, 2, 3, 4] and {len(own) for own in tests} == {20}


class Writes:
    """Writes sources of fewer than three symbols backwards, and longer ones as they are."""

    def __init__(self, sources):
        self.rows = [
            own[:-1][::-1].tolist() if len(own) < 4 else own[:-1].tolist() for own in sources
        ]
        self.place = 0

    def step(self, ids_BK):
        logits = torch.full((len(self.rows), 1, 5), -50.0)
        for row, ids in enumerate(self.rows):
            logits[row, 0, ids[self.place] if self.place < len(ids) else reversal_study.END] = 0.0
        self.place += 1
        return logits

    def choose(self, kept_C, parents_CK):
        self.rows = [self.rows[row] for row in kept_C.tolist()]


class Knows(torch.nn.Module):
    def writer(self, sources, num_beams):
        return Writes(sources)


def test_only_sequences_without_a_mistake_count():
    shares = accuracy_by_length(Knows(), config(num_tests=200))
    assert shares[:2] == [1.0, 1.0]
    # A sequence that reads the same from both ends is right as it is: one of three, one of nine.
    assert shares[2] == pytest.approx(1 / 3, abs=0.1) and shares[3] == pytest.approx(1 / 9, abs=0.1)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("reversal") / "study"
    return out, study_reversal(config(), out=out)


def test_a_study(done):
    out, study = done
    assert list(study.right) == list(MODELS) and {len(own) for own in study.right.values()} == {4}
    assert [row[0] for row in study.table()] == [1, 2, 3, 4]
    assert (out / "study.md").read_text(encoding="utf-8").count("\n") == 6
    assert (out / "study.png").stat().st_size > 1_000
    manifest = json.loads((out / "sememe.json").read_text(encoding="utf-8"))
    assert manifest["right"] == study.right and manifest["models"]["fixed"]["steps"] == 8


def test_a_study_that_was_stopped_goes_on(done, tmp_path, monkeypatch):
    write, seen = Checkpoints.write, []

    class StopError(Exception):
        pass

    def write_and_stop(self, step):
        seen.append(self.folder.name)
        if "attention" in self.folder.name and step > 4:
            raise StopError
        return write(self, step)

    monkeypatch.setattr(Checkpoints, "write", write_and_stop)
    options = config(checkpoint_minutes=1e-9)
    with pytest.raises(StopError):
        study_reversal(options, out=tmp_path / "study")
    monkeypatch.undo()
    resumed = study_reversal(options, out=tmp_path / "study", resume=True)
    assert resumed.right == done[1].right
    assert resumed.facts["models"] == done[1].facts["models"]
    with pytest.raises(OptionError, match="width was 16, is 24"):
        study_reversal(config(width=24), out=tmp_path / "study", resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    with pytest.raises(WriteError, match="is not a reversal study"):
        study_reversal(config(), out=tmp_path / "other")


def test_short_sequences_are_learned_by_all(tmp_path):
    options = config(steps=120, longest=2, width=32, learning_rate=5e-3)
    study = study_reversal(options, out=tmp_path / "study")
    for name in MODELS:
        assert np.mean(study.right[name]) > 0.8, name


def test_tensorboard_that_is_missing_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match="pip install tensorboard"):
        study_reversal(config(tensorboard="events"), out=tmp_path / "study")
    assert not list(tmp_path.iterdir())


def test_by_command(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from sememe.cli import app

    monkeypatch.chdir(tmp_path)
    words = [
        f for name, value in SMALL.items() for f in (f"--{name.replace('_', '-')}", str(value))
    ]
    ran = CliRunner().invoke(app, ["study", "reversal", "--out", "study", "--quiet", *words])
    assert ran.exit_code == 0, ran.output
    assert [line.split("\t")[0] for line in ran.stdout.splitlines()] == ["length", *"1234"]
    ran = CliRunner().invoke(
        app, ["study", "reversal", "--out", "study", "--quiet", "--resume", "--json", *words]
    )
    assert set(json.loads(ran.stdout)["right"]) == set(MODELS)

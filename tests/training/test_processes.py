"""Several processes give the losses of one with all rows (torchrun, gloo, CPU)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from run_jobs import do

from sememe import load
from sememe.errors import OptionError, SememeError
from sememe.models.bert.config import BERTTrainingConfig
from sememe.storage.tensors import read_tensors
from sememe.training.distributed import Processes, check_division

PROGRAM = Path(__file__).with_name("run_jobs.py")
TOY = {"steps": 12, "batch_size": 32}
# Rows that are asked for are drawn, so the parts of a batch have different counts.
BERT = {"steps": 8, "batch_size": 8}
MUON = BERT | {"optimizer": "muon", "average_share": 0.5}
FULL = {"sharding": "full"}
NUM_PROCESSES = (2, 4)


def test_a_training_that_processes_cannot_share_is_refused():
    with pytest.raises(OptionError, match=r"batch_size \(2\).*\(4\)"):
        check_division(BERTTrainingConfig(batch_size=2), 4)
    with pytest.raises(OptionError, match="several processes"):
        check_division(BERTTrainingConfig(batch_size=8, sharding="full"), 1)
    check_division(BERTTrainingConfig(batch_size=8, sharding="full"), 2)


def run(num_processes: int, jobs: list[dict[str, Any]]) -> list[Any]:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        f"--nproc-per-node={num_processes}", str(PROGRAM), json.dumps(jobs),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, timeout=3_000)
    if "SIGABRT" in ran.stderr:  # gloo's own threads, once in hundreds of starts
        ran = subprocess.run(command, capture_output=True, text=True, timeout=3_000)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    lines = (f"the man of town{i % 31} read book{i % 17} . he slept in room{i % 7} !\n\n"
             for i in range(300))  # fmt: skip
    path.write_text("".join(lines))
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, corpus):
    """The folders of 1, 2 and 4 processes, and the histories of every job in each."""
    place = tmp_path_factory.mktemp("processes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMEME_CACHE", str(place / "cache"))
        yield train_all(place, corpus)


def train_all(place: Path, corpus: str) -> tuple[Path, dict[int, Any], dict[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {
        "toy": {"options": TOY}, "parts": {"options": TOY | {"accumulate": 2}},
        "bert": {"options": BERT, "corpus": corpus}, "muon": {"options": MUON, "corpus": corpus},
    }  # fmt: skip
    for name in ("toy", "bert", "muon"):
        kinds[f"{name}-full"] = kinds[name] | {"options": kinds[name]["options"] | FULL}
    for name, step in (("toy", 5), ("toy-full", 5), ("muon", 6), ("muon-full", 6)):
        kinds[f"{name}-stopped"] = kinds[name] | {"stop": step}
    histories: dict[int, dict[str, Any]] = {}
    for num in (1, *NUM_PROCESSES):
        (place / str(num)).mkdir()
        jobs = {name: job | {"out": str(place / str(num) / name)} for name, job in kinds.items()}
        if num == 1:
            alone = {name: job for name, job in jobs.items() if "-" not in name}
            found = [do(job, Processes()) for job in alone.values()]
            histories[1] = dict(zip(alone, found, strict=True))
        else:
            histories[num] = dict(zip(jobs, run(num, list(jobs.values())), strict=True))
    return place, histories, kinds


def assert_same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    names = ("loss", "class_accuracy", "masked_loss", "next_loss", "validation_loss", "tokens",
             "step", "gradient_norm")  # fmt: skip
    for name in names:
        ours = [record[name] for record in found if name in record]
        theirs = [record[name] for record in expected if name in record]
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("num", NUM_PROCESSES)
@pytest.mark.parametrize("name", ["toy", "parts", "bert", "muon"])
def test_processes_have_the_losses_of_one(trained, num, name):
    place, histories, _ = trained
    assert len(histories[1][name]) > 5
    assert_same(histories[num][name], histories[1][name])
    if name in ("toy", "parts"):
        ours, theirs = (read_tensors(place / str(number) / name) for number in (1, num))
        for key, value in ours.items():
            np.testing.assert_allclose(value, theirs[key], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("num", NUM_PROCESSES)
@pytest.mark.parametrize("name", ["toy", "bert", "muon"])
def test_divided_weights_have_the_same_losses(trained, num, name):
    place, histories, _ = trained
    assert_same(histories[num][f"{name}-full"], histories[1][name])
    if name != "toy":  # the saved folder is that of one process
        ours, theirs = (place / str(n) / own for n, own in ((1, name), (num, f"{name}-full")))
        assert {p.name for p in ours.iterdir()} == {p.name for p in theirs.iterdir()}
        texts = ["the man read ."]
        np.testing.assert_allclose(load(theirs).embed(texts), load(ours).embed(texts), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["toy", "toy-full", "muon", "muon-full"])
def test_two_processes_stop_and_one_resumes(trained, tmp_path, name):
    place, histories, kinds = trained
    assert histories[2][f"{name}-stopped"] is None
    plain = name.removesuffix("-full")
    before = Path(f"{place / '2' / name}-stopped.checkpoints")
    latest = json.loads((before / "latest.json").read_text())["latest"]
    assert (before / latest / "parts").is_dir() == (name != plain)
    shutil.copytree(before, tmp_path / "run.checkpoints")
    found = do(kinds[plain] | {"out": str(tmp_path / "run")}, Processes())
    assert_same(found, histories[1][plain])


@pytest.mark.slow
def test_another_number_of_processes_resumes(trained, tmp_path):
    """Two stopped and four go on, whole or divided, from whole or divided checkpoints."""
    place, histories, kinds = trained
    jobs, expected = [], []
    for kept in ("toy", "toy-full", "muon", "muon-full"):
        plain = kept.removesuffix("-full")
        for own in (plain, f"{plain}-full"):
            out = tmp_path / f"{kept}-{own}"
            shutil.copytree(f"{place / '2' / kept}-stopped.checkpoints", f"{out}.checkpoints")
            jobs.append(kinds[own] | {"out": str(out)})
            expected.append(histories[1][plain])
    for found, own in zip(run(4, jobs), expected, strict=True):
        assert_same(found, own)


@pytest.mark.slow
def test_a_resumed_run_with_other_options_is_refused(trained, tmp_path):
    place, _, kinds = trained
    shutil.copytree(place / "2" / "toy-full-stopped.checkpoints", tmp_path / "run.checkpoints")
    job = kinds["muon"] | {"out": str(tmp_path / "run")}
    with pytest.raises(SememeError, match="start again without resume"):
        do(job, Processes())

"""Folders of earlier versions open and give the same numbers; trainings learn the same bits.

fixtures.tar.xz and expected.json were written by make_fixtures.py, trainings.json by trainings.py,
both with the version before the models were put under one contract. That version gave the same
answers except for one, which is meant: a released ELMo obeys --language. Doc2Vec came later. The
bits of a training may differ between CPUs: trainings.json lists the machines that were tried.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")
pytest.importorskip("h5py")

import make_fixtures
import program
import questions
import sample_texts
import trainings

EXPECTED = json.loads(make_fixtures.EXPECTED.read_text("utf-8"))
RECORD = json.loads(trainings.RECORD.read_text("utf-8"))


@pytest.fixture(scope="module")
def fixtures(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all fixtures and the texts that questions speak of."""
    folder = tmp_path_factory.mktemp("fixtures")
    sample_texts.write(folder / "texts")
    for path in golden.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def workplace(fixtures: Path, own_cache: Path) -> Iterator[Path]:
    """The same, as the working folder, with one thread and an empty cache of texts."""
    with program.working_in(fixtures):
        yield fixtures


def assert_close(found: Any, wanted: Any, place: str) -> None:
    """Numbers agree within 1e-5 of their size, everything else is equal."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict) and wanted.keys() <= found.keys(), place
        for key, own in wanted.items():
            assert_close(found[key], own, f"{place} {key}")
    elif isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), place
        for index, (mine, own) in enumerate(zip(found, wanted, strict=True)):
            assert_close(mine, own, f"{place} {index}")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5, nan_ok=True), place
    else:
        assert found == wanted, place


@pytest.mark.parametrize(
    ("name", "question"),
    [
        pytest.param(name, one, id=f"{name}-{questions.name_of(one)}")
        for name, own in questions.QUESTIONS.items()
        for one in own
    ],
)
def test_a_fixture_answers_as_before(name: str, question: questions.Question, workplace: Path):
    wanted = EXPECTED[name][questions.name_of(question)]
    assert_close(questions.ask(question, name), wanted, name)


def test_every_fixture_is_asked() -> None:
    with tarfile.open(make_fixtures.ARCHIVE) as archive:
        held = {Path(name).parts[0] for name in archive.getnames()}
    assert held == {Path(name).parts[0] for name in questions.QUESTIONS}
    assert held == set(make_fixtures.writers())
    assert questions.QUESTIONS.keys() == EXPECTED.keys()


def test_every_training_is_recorded() -> None:
    assert RECORD.keys() == {"machines", *trainings.COMMANDS}


@pytest.mark.parametrize("name", trainings.COMMANDS)
def test_a_training_learns_the_same(name: str, workplace: Path) -> None:
    wanted = dict(RECORD[name])
    machines = wanted.pop("machines")
    found = trainings.summary(trainings.train(name, f"again/{name}"))
    assert found.keys() == wanted.keys()
    for tensor, own in wanted.items():
        assert found[tensor]["shape"] == own["shape"], tensor
        # On another CPU sums are rounded otherwise, which training makes larger; biases of keys
        # and of a softmax have gradients of rounding alone.
        far = (2e-3, 1e-4) if len(own["shape"]) > 1 else (0.05, 0.02)
        assert found[tensor]["norm"] == pytest.approx(own["norm"], rel=far[0], abs=far[1]), tensor
    changed = [key for key, own in wanted.items() if found[key]["sha256"][0] not in own["sha256"]]
    if changed and trainings.number_of(trainings.machine(), RECORD["machines"]) not in machines:
        pytest.skip(f"norms agree; the bits of {trainings.machine()} are not recorded")
    assert not changed

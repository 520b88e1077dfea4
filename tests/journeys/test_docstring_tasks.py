"""The four free tasks of the built-in corpus, learned in a minute or two on two cores.

Each score must pass a floor that is missed by all that understands nothing: the commonest label,
tag or answer, regular expressions, logistic regression on the mean of word vectors, a model that
was not taught. What is measured is the light version of benchmarks/docstring_tasks.py, one seed of
it, on test rows; docs/results.md has two seeds and tells how options and floors were found.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("sympy")

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "docstring_tasks.py"
NAMES = ("packages", "summaries", "parameters", "types")


def loaded() -> ModuleType:
    """The program that measures, as a module; it imports another one beside it."""
    sys.path.insert(0, str(PROGRAM.parent))
    spec = importlib.util.spec_from_file_location("docstring_tasks", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return loaded()


@pytest.fixture(scope="module")
def vectors(program: ModuleType) -> Any:
    """Word vectors that all four tasks begin with."""
    return program.vectors_of()


@pytest.mark.parametrize("name", NAMES)
def test_what_understands_nothing_misses_the_floor(program, vectors, name):
    floor, _ = program.CASES[name]
    found = program.baselines(name, vectors)
    means = {"packages": "mean of word vectors", "summaries": "compared means"}
    assert {"majority", means.get(name, "regular expression")} <= set(found)
    assert max(found.values()) < floor - 0.01, found
    untaught = program.untaught(name, vectors)
    assert untaught.evaluate(program.rows_of(name, "test")[:500]).value < floor - 0.1


@pytest.mark.parametrize("name", NAMES)
def test_a_small_reader_passes_the_floor(program, vectors, name):
    floor, options = program.CASES[name]
    task = program.taught(name, vectors, **options)
    assert task.evaluate(program.rows_of(name, "test")).value > floor


def test_rows_that_choose_and_rows_that_are_scored_are_of_other_modules(program):
    for name in NAMES:
        modules = [
            {row.source for row in program.rows_of(name, split)}
            for split in ("train", "dev", "test")
        ]
        assert all(modules) and not any(
            modules[i] & modules[j] for i, j in ((0, 1), (0, 2), (1, 2))
        )

"""Kernels are compiled beside a ladder, before its clock runs; the terminal is told of it once."""

import subprocess
import sys

import pytest

from sememe.ladder.config import LadderConfig
from sememe.ladder.plan import make_plan
from sememe.ladder.results import Machine
from sememe.ladder.rungs import SPECS

PROGRAM = """
import sememe.ladder.running  # a ladder has imported kernels before it warms up
from sememe.ladder.training import warmed_up
from sememe.progress import Reporter

class Heard(Reporter):
    def note(self, text):
        print(text)

with warmed_up(["onehot", "counts"], Heard()):
    print("reading")
print("once more")
with warmed_up(["onehot", "counts"], Heard()):
    print("reading")
"""

FEW = PROGRAM.replace('"onehot", "counts"', '"onehot"')  # with the fewest kernels

BROKEN = """
from sememe.ladder import training
from sememe.progress import SILENT

begun = []
start = training._compiling
training._compiling = lambda names: begun.append(start(names)) or begun[-1]
try:
    with training.warmed_up(["counts", "ngram"], SILENT):
        raise ValueError("There is no text.")
except ValueError:
    codes = [process.wait() for process in begun]
    print(len(codes), all(code != 0 for code in codes))
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_an_empty_cache_is_filled_and_told_of_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path))
    first, *rest = run(PROGRAM).splitlines()
    assert first.startswith("Compiling the kernels")
    assert rest == ["reading", "once more", "reading"]
    assert list(tmp_path.glob("kernels/*/*/*.nbc"))


def test_a_ladder_that_fails_leaves_nobody_compiling(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path))
    assert run(BROKEN).split() == ["2", "True"]


@pytest.mark.slow
def test_a_process_that_dies_leaves_its_kernels_to_the_ladder(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path))
    dying = "from sememe.ladder import training\ntraining.sys.executable = '/bin/false'\n"
    _, *rest = run(dying + FEW).splitlines()
    # The ladder compiles them itself then, and says so before the user waits again.
    waiting = "Compiling kernels: once for this version, about 15 seconds."
    assert rest == ["reading", waiting, "once more", "reading"]
    assert list(tmp_path.glob("kernels/*/*/*.nbc"))


@pytest.mark.slow
def test_a_file_of_the_working_folder_is_not_taken_for_a_module(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numba.py").write_text("open('taken', 'w')")
    run(FEW)
    assert list(tmp_path.glob("cache/kernels/*/*/*.nbc"))
    assert not (tmp_path / "taken").exists()


@pytest.mark.parametrize("preset", ["tiny", "mini", "small", "medium"])
def test_the_rows_of_every_bert_are_compiled(preset):
    machine = Machine(cores=2, memory=8 << 30, processor="", gpu="", system="")
    plan = make_plan(LadderConfig(preset=preset), machine)
    has_pairs = SPECS["bert"].options(plan).get("next_sentence", True)
    assert has_pairs in [own["next_sentence"] for own in SPECS["bert"].warming]

"""`sememe clean` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememe.cli import app

TEXT = "the quick brown fox jumps over the lazy dog and then it goes home to sleep"


def run(*words: str, code: int = 0, **more) -> str:
    ran = CliRunner().invoke(app, ["clean", *words], **more)
    assert ran.exit_code == code, ran.output
    return ran.output


@pytest.fixture
def corpus(place: Path) -> Path:
    lines = [TEXT, TEXT, f"{TEXT.title()}!", "http://example.com", "the cafÃ© is open", "\ufffd"]
    Path("in.txt").write_text("\n".join(lines), "utf-8")
    return place


def test_the_report_and_the_file(corpus):
    output = run("in.txt", "--out", "out.txt", "--quiet")
    assert "duplicates\t1\t16.7%\t0\n" in output
    assert f"near-duplicates\tin.txt:3 ≈ 1 (100%)\t{TEXT.title()}!\n" in output
    assert "Kept 2 of 6 lines, repaired 1 lines." in output and "Wrote" not in output
    assert Path("out.txt").read_text("utf-8") == f"{TEXT}\nthe café is open\n"


def test_json_and_no_output(corpus):
    found = json.loads(run("in.txt", "--json", "--quiet", "--no-links"))
    assert (found["rows"], found["kept"], found["out"]) == (6, 3, None)
    assert found["rules"]["broken"]["samples"][0]["line"] == 6
    assert found["options"]["links"] is False
    assert sorted(path.name for path in corpus.iterdir()) == ["in.txt"]


def test_standard_input(corpus):
    assert "Kept 1 of 2 lines" in run("-", "--quiet", input=f"{TEXT}\n{TEXT}\n")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["none.txt"], "none.txt"),
        (["in.txt", "--out", "in.txt", "--overwrite"], "part of the corpus"),
        (["in.txt", "--out", "out.doc"], "out.doc"),
        (["in.txt", "--threshold", "3"], "threshold"),
        (["in.txt", "--keep-language", "english"], "english"),
        (["in.txt", "--encoding", "klingon"], "klingon"),
    ],
)
def test_mistakes_are_one_sentence(corpus, words, part):
    output = run(*words, "--quiet", code=2)
    assert output.startswith("Error: ") and part in output and output.count("\n") == 1


def test_a_pipe_of_the_shell(corpus):
    command = f"{sys.executable} -m sememe.cli clean <(cat in.txt) -q --json"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["kept"] == 2

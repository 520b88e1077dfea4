"""The wheel, built and installed into an empty environment without PyTorch: does it work there?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MOST_MEGABYTES = 680

SMOKE = """
import sys, sememe
lines = [["the", "cat", "sat", "on", "the", "mat"], ["the", "dog", "sat", "too"]] * 50
model = sememe.Word2Vec(dim=8, min_count=1, epochs=1, workers=1).fit(lines, out="model")
vectors = sememe.load("model")
assert vectors.kind == "word2vec" and vectors.words is vectors
assert vectors.embed(["the cat sat"]).shape == (1, 8)
assert "torch" not in sys.modules
try:
    sememe.BERT
except sememe.SememeError as error:
    print(error)
"""


def run(*command: str | Path, **options: object) -> str:
    """Run a command and return what it printed; show all of it if it fails."""
    # A path of the caller would offer the sources instead of the wheel.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # A package index that does not answer is asked again.
    clean = {"PIP_RETRIES": "10", "PIP_DEFAULT_TIMEOUT": "60", **clean}
    ran = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env=clean, **options
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but the wheel and what it needs."""
    place = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", place, ROOT)
    (wheel,) = place.glob("sememe-*.whl")
    run(sys.executable, "-m", "venv", place / "venv")
    python = place / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    return place / "venv"


def test_the_installation_is_small_and_has_no_torch(environment: Path):
    packages = next(environment.glob("lib/python*/site-packages"))
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file())
    assert (packages / "sememe" / "contract.py").exists()
    assert not (packages / "torch").exists() and not (packages / "pyarrow").exists()
    assert size / 2**20 <= MOST_MEGABYTES


def test_vectors_can_be_trained_and_opened(environment: Path, tmp_path: Path):
    printed = run(environment / "bin" / "python", "-c", SMOKE, cwd=tmp_path)
    assert "sememe[neural]" in printed
    neighbors = run(environment / "bin" / "sememe", "neighbors", "model", "cat", cwd=tmp_path)
    assert "dog" in neighbors or "mat" in neighbors


def test_the_report_finds_its_templates(environment: Path, tmp_path: Path):
    """Data files of the package are in the wheel."""
    code = (
        "from importlib.resources import files; import sememe;"
        "root = files('sememe');"
        "print(*[p.name for p in (root / 'ladder' / 'report').iterdir()])"
    )
    printed = run(environment / "bin" / "python", "-c", code, cwd=tmp_path)
    assert ".html" in printed and ".css" in printed


def test_the_static_ladder_runs_on_the_built_in_corpus(environment: Path, tmp_path: Path):
    command = "ladder --rungs onehot,counts,skipgram --tokens 20000 --json --out ladder"
    printed = run(environment / "bin" / "sememe", *command.split(), cwd=tmp_path)
    results = json.loads(printed)
    assert [rung["state"] for rung in results["rungs"]] == ["done"] * 3
    scored = {cell["rung"] for cell in results["cells"] if cell["mean"] is not None}
    assert scored == {"onehot", "counts", "skipgram"}
    # Half of the corpus comes with PyTorch: the report says so.
    assert any("smaller here, without the docstrings of torch" in note for note in results["notes"])
    assert (tmp_path / "ladder" / "report.html").stat().st_size > 10_000

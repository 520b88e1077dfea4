"""Every trainer killed at random moments and resumed gives the files of a run that was left alone.

The campaign of benchmarks/kills.py, one round of two kills each; that one runs it with 200.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import kills

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    kills.write_texts(folder)
    return folder


@pytest.mark.parametrize("name", kills.TRAINERS)
def test_kills_change_nothing(name, texts, tmp_path):
    whole = kills.whole_run(name, texts, tmp_path / "whole")
    found = kills.killed_run(name, texts, tmp_path / "killed", whole, seed=1, most=2)
    assert found.num_kills and found.is_equal, found


def test_what_differs_is_seen(texts, tmp_path, monkeypatch):
    """A training whose result depends on its kills would not pass."""
    whole = kills.whole_run("counts", texts, tmp_path / "whole")
    (tmp_path / "whole" / "model" / "sememe.json").write_text("{}")
    assert kills.content(tmp_path / "whole") != whole.content
    again = kills.whole_run("counts", texts, tmp_path / "again")
    assert again.content == whole.content
    (tmp_path / "again" / ".model.new-1").mkdir()  # left behind
    assert kills.content(tmp_path / "again") != whole.content


def test_a_campaign_goes_on_where_it_was(tmp_path):
    first = next(kills.campaign(tmp_path, 3, ["counts", "tokenizer"]))
    assert first.trainer == "counts" and first.is_equal
    rest = list(kills.campaign(tmp_path, first.num_kills + 1, ["counts", "tokenizer"]))
    assert [one.trainer for one in rest] == ["tokenizer"] * bool(rest)
    assert "| all |" in kills.table(kills.rounds_in(tmp_path / "kills.jsonl"))[-1]

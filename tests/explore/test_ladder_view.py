"""The view Ladder: the table of the report, its marks and its statement; hostile texts as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sememe.errors import InputError
from sememe.explore.app import Explorer
from sememe.explore.config import ExploreConfig
from sememe.explore.ladder import find_ladder, ladder_table, score
from sememe.ladder.report.summary import spread_words
from sememe.ladder.report.tables import Footnotes, best_baseline, score_tables
from sememe.ladder.results import Results

sys.path.append(str(Path(__file__).parents[1] / "ladder"))
from sample_results import HOSTILE, hostile_results, sample_results


def saved(results: Results, folder: Path) -> Path:
    """A ladder folder with folders for its models."""
    for rung in results.rungs:
        (folder / "models" / rung.name).mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(asdict(results), default=str), "utf-8")
    results.save(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(sample_results(), tmp_path)


def table_of(folder: Path) -> dict[str, Any]:
    ladder = find_ladder(folder)
    assert ladder is not None
    return ladder_table(ladder)


def test_cells_and_marks_are_those_of_the_report(folder: Path) -> None:
    results = Results.load(folder)
    table = table_of(folder)
    (part,) = score_tables(results, Footnotes([]))
    shown = [row for _, rows in part.families for row in rows if not row.gone]
    rows = {row["title"]: row for row in table["rows"]}
    assert shown and [own["title"] for own in table["columns"]] == [t.title for t in part.tasks]
    for wanted in shown:
        for cell, own in zip(wanted.cells, rows[wanted.rung.title]["cells"], strict=True):
            if cell.footnote:
                assert own["value"] is None and own["text"] == "–"
            else:
                assert own["text"] == cell.mean + (f" ± {cell.sd}" if cell.sd else "")
                assert (own["is_best"], own["is_low"]) == (cell.is_best, cell.is_below)
    assert any(own["is_best"] for row in table["rows"] for own in row["cells"])


def test_statement_and_baselines_are_those_of_the_report(folder: Path) -> None:
    results, table = Results.load(folder), table_of(folder)
    assert table["spread"] == spread_words(results)
    for task, own in zip(results.tasks, table["columns"], strict=True):
        wanted = best_baseline(task)
        found = own["baseline"]
        assert found == (wanted and {"name": wanted[0], "score": score(wanted[1])})


def test_only_trained_models_have_links(folder: Path) -> None:
    rows = table_of(folder)["rows"]
    assert {row["name"] for row in rows if row["name"]} == {"onehot", "skipgram", "bert"}
    assert "the loss ran away" in next(row for row in rows if row["title"] == "GPT")["why"]


def test_hostile_texts_stay_as_they_are(tmp_path: Path) -> None:
    table = table_of(saved(hostile_results(), tmp_path))
    assert table["title"] == HOSTILE and table["rows"][0]["title"] == HOSTILE


def test_a_folder_without_a_trained_model_is_refused(tmp_path: Path) -> None:
    assert find_ladder(tmp_path) is None
    (tmp_path / "results.json").write_text('{"rungs": []}', "utf-8")
    with pytest.raises(InputError, match="without a trained model"):
        find_ladder(tmp_path)


@pytest.fixture
def with_ladder(tmp_path: Path, golden: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of the explorer in a folder with runs/ladder, opened without arguments."""
    home = tmp_path / "runs" / "ladder"
    saved(sample_results(), home)
    for name, model in (
        ("skipgram", "word2vec-skipgram-negative"),
        ("bert", "bert"),
        ("onehot", "onehot"),
    ):
        (home / "models" / name).rmdir()
        (home / "models" / name).symlink_to(golden / model)
    monkeypatch.chdir(tmp_path)
    with TestClient(
        Explorer([], ExploreConfig(port=0)).create_app(), base_url="http://localhost"
    ) as own:
        yield own


def test_without_arguments_the_ladder_is_opened(with_ladder: Any) -> None:
    state = with_ladder.get("/explore/api/state").json()
    assert state["has_ladder"]
    assert {own["id"] for own in state["models"]} == {"onehot", "skipgram", "bert"}
    for language in ("en", "zh"):
        found = with_ladder.get("/explore/api/ladder", params={"language": language}).json()
        assert len(found["rows"]) == 5 and found["path"] == str(Path("runs/ladder"))
    assert found["spread"] != spread_words(sample_results())  # in Chinese


def test_without_a_ladder_the_answer_says_what_to_do(client: Any) -> None:
    answer = client.get("/explore/api/ladder")
    assert answer.status_code == 400 and "sememe explore" in answer.json()["error"]["message"]

"""Rows of every task with their predictions, one after the other, as lines and as cells."""

from __future__ import annotations

import json
import shutil
from itertools import product

import pytest
from quick_tasks import QUICK
from typer.testing import CliRunner

import sememe
from sememe.cli import app
from sememe.errors import InputError
from sememe.tasks import task as tasks

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

STEPS = QUICK | {"steps": 2, "epochs": 0.0}
CONTEXT = "the old cat sat on a warm mat, and the dog ran over the field"
# Labelled rows, and a file to predict: its name, its content, the index of a row without a text.
TASKS = {
    "classify": (
        [("a good film", "好"), ("a bad film", "坏")],
        "in.csv", 'text,n\n"a good, old\nfilm",007\n,2\n电影很好看,3\n',
    ),
    "pairs": (
        [("a film", "a story", "yes"), ("a film", "the day", "no")],
        "in.tsv", "sentence1\tsentence2\na film\ta story\na film\t\n电影\t故事\n",
    ),
    "regress": (
        [("a good film", 1.0), ("a bad film", 0.0)],
        "in.csv", "text,score\na good film,n/a\n,1\n电影,\n",
    ),
    "choose": (
        [("a film", ["good", "bad"], 0), ("a story", ["bad", "good"], 1)],
        "in.jsonl",
        '{"context": "a film", "choices": ["good", "bad", "好"], "label": "?"}\n'
        '{"context": "", "choices": ["good", "bad"]}\n'
        '{"context": "电影", "choices": ["好", "坏"]}\n',
    ),
    "tag": (
        [(["the", "cat"], ["O", "B-PET"]), (["a", "dog"], ["O", "B-PET"])],
        "in.txt", "the cat sat\n\n猫坐在垫子上\n",
    ),
    "answer": (
        [("where?", CONTEXT, "on a warm mat"), ("who?", CONTEXT, "the dog")],
        "in.csv", f'question,context\nwho sat?,"{CONTEXT}"\n,"{CONTEXT}"\nwho ran?,"{CONTEXT}"\n',
    ),
}  # fmt: skip
CLASSES = {
    "classify": sememe.Classify, "pairs": sememe.Pairs, "regress": sememe.Regress,
    "choose": sememe.Choose, "tag": sememe.Tag, "answer": sememe.Answer,
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(bert, tmp_path_factory):
    """The folder of each task, hardly trained."""
    place = tmp_path_factory.mktemp("tasks")
    for kind, (rows, *_) in TASKS.items():
        CLASSES[kind](bert, **STEPS).fit(rows * 4, dev=False, out=place / kind)
    return place


def _run(*arguments: object) -> str:
    ran = CliRunner().invoke(app, [*map(str, arguments)])
    assert ran.exit_code == 0, ran.stderr or repr(ran.exception)
    return ran.stdout


@pytest.mark.parametrize(("kind", "ending"), [*product(TASKS, ("csv", "jsonl", "parquet"))])
def test_every_task_writes_every_format(folders, tmp_path, monkeypatch, kind, ending):
    monkeypatch.chdir(tmp_path)
    _, name, content = TASKS[kind]
    (tmp_path / name).write_text(content, encoding="utf-8")
    read = {
        "csv": pd.read_csv,
        "jsonl": lambda path: pd.read_json(path, lines=True),
        "parquet": pd.read_parquet,
    }[ending]
    model = sememe.load(folders / kind)
    expected = model.predict(name)
    assert [one is None for one in expected] == [False, True, False]
    for k in (1, 2, -1):
        _run("predict", folders / kind, name, "--out", f"{k}.{ending}", "-k", k)
        table = read(f"{k}.{ending}")
        assert list(table["row"]) == [1, 2, 3] and {*model.prediction_columns(k)} <= {*table}
        assert table[[*model.prediction_columns(k)]].isna().all(axis=1).tolist() == (
            [False, True, False]
        )
        for index in (0, 2):
            cells = model.prediction_cells(expected[index], k)
            for column, cell in zip(model.prediction_columns(k), cells, strict=True):
                found = table[column][index]
                if isinstance(cell, float):
                    assert found == pytest.approx(cell, rel=1e-5)
                elif isinstance(cell, list):
                    found = json.loads(found) if ending == "csv" else found
                    assert len(found) == len(cell)
                elif cell is not None:
                    assert found == cell


def test_columns_of_each_task(folders, tmp_path):
    columns = {
        kind: [[*sememe.load(folders / kind).prediction_columns(k)] for k in (2, -1)]
        for kind in TASKS
    }
    pair = ["prediction", "probability", "prediction_2", "probability_2"]
    assert columns["classify"] == [pair, ["prediction", "probability", "p(坏)", "p(好)"]]
    assert columns["regress"] == [["prediction"]] * 2
    assert columns["choose"] == [
        ["choice", *pair], ["choice", "prediction", "probability", "probabilities"],
    ]  # fmt: skip
    assert columns["tag"] == [["prediction", "probability", "entities"]] * 2
    assert columns["answer"][1] == ["prediction", "start", "end", "probability", "candidates"]


def test_cells_that_belong_to_the_rows(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind in ("tag", "answer"):
        _, name, content = TASKS[kind]
        (tmp_path / name).write_text(content, encoding="utf-8")
        _run("predict", folders / kind, name, "--out", f"{kind}.jsonl")
    tagged, empty, chinese = map(json.loads, (tmp_path / "tag.jsonl").read_text().splitlines())
    assert tagged["words"] == ["the", "cat", "sat"] and len(tagged["prediction"]) == 3
    assert empty == {
        "row": 2, "text": "", "prediction": None, "probability": None, "entities": None,
    }  # fmt: skip
    assert "".join(chinese["words"]) == "猫坐在垫子上"
    answered = json.loads((tmp_path / "answer.jsonl").read_text().splitlines()[0])
    assert answered["prediction"] == CONTEXT[answered["start"] : answered["end"]]
    squad = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [
        {"id": f"q{n}", "question": "who ran?"} for n in range(3)
    ]}]}]}  # fmt: skip
    (tmp_path / "squad.json").write_text(json.dumps(squad))
    _run("predict", folders / "answer", "squad.json", "--out", "squad.csv")
    found = pd.read_csv("squad.csv")
    assert found["id"].tolist() == ["q0", "q1", "q2"] and found["context"].tolist() == [CONTEXT] * 3


@pytest.mark.parametrize("kind", TASKS)
def test_parts_of_a_file_are_read_as_the_whole(folders, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(tasks, "_ROWS_READ", 2)
    monkeypatch.setattr(tasks, "_ROWS_AT_ONCE", 1)
    _, name, content = TASKS[kind]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    model, notes = sememe.load(folders / kind), []
    expected = model.predict(path, skip_bad=True)
    found = list(model.predict_stream(path, skip_bad=True, on_note=notes.append))
    for one, row in zip(expected, found, strict=True):
        assert (one is None) == (row.prediction is None) and row.cells
        if one is not None:
            # Rows that are computed together differ in their last bits.
            own, other = (model.prediction_cells(each, 2)[:1] for each in (one, row.prediction))
            assert own == (pytest.approx(other, rel=1e-4) if kind == "regress" else other)
    assert len([note for note in notes if "1 row was left out" in note]) == 1
    assert len(notes) == len(set(notes)) == 2


def test_rows_that_are_cut_are_counted(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "_ROWS_AT_ONCE", 1)
    model, notes = sememe.load(folders / "classify"), []
    texts = ["a film", "good " * 500, "bad " * 500]
    path = tmp_path / "long.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    assert len(list(model.predict_stream(path, on_note=notes.append))) == 3
    assert len([note for note in notes if note.startswith("2 of 3 rows are longer")]) == 1
    none, *cuts = model.truncations(texts)
    assert none is None and all(cut.tokens >= 500 > cut.kept for cut in cuts)
    assert [one is None for one in model.truncations(["", "good " * 500])] == [True, False]


def test_rows_given_in_python(folders):
    model = sememe.load(folders / "classify")
    (row,) = model.predict_stream([("a good film",)])
    assert row.cells == {"text": "a good film"} and row.prediction.label in ("好", "坏")
    with pytest.raises(InputError, match="no rows"):
        list(model.predict_stream([""]))
    assert model.predict([]) == []


def test_a_folder_of_transformers_writes_tables(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folders / "classify", "theirs")
    (tmp_path / "theirs" / "sememe.json").unlink()
    (tmp_path / "theirs" / "SHA256SUMS").unlink()
    (tmp_path / "in.csv").write_text(TASKS["classify"][2], encoding="utf-8")
    _run("predict", "theirs", "in.csv", "--out", "theirs.csv", "-k", -1)
    _run("predict", folders / "classify", "in.csv", "--out", "ours.csv", "-k", -1)
    ours, theirs = pd.read_csv("ours.csv"), pd.read_csv("theirs.csv")
    pd.testing.assert_frame_equal(ours, theirs, atol=1e-4)

"""Files of benchmarks by their content: every set, what is unclear, and both from the command."""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
import benchmark_files as files

from sememe.errors import InputError
from sememe.evaluation.benchmarks import ANSWER_SETS, GLUE, SETS, TAG_SETS
from sememe.evaluation.recognition import RULES, head_of, part_of, recognise, sets_of
from sememe.evaluation.rows import DataFolder, read_rows
from sememe.evaluation.suites import find_holdings

EVERY = {**GLUE, **SETS, **TAG_SETS, **ANSWER_SETS}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    files.write_glue(folder / "glue")
    files.write_texts(folder / "texts")
    files.write_chinese(folder / "zh")
    files.write_squad(folder)
    files.write_conll(folder)
    return folder


@pytest.mark.parametrize("name", GLUE)
def test_tasks_of_glue_under_other_names(data, tmp_path, name):
    for path in (data / "glue" / name).glob("*.tsv"):
        (tmp_path / "mine").mkdir(exist_ok=True)
        copy = tmp_path / "mine" / f"{path.name}.gz"
        copy.write_bytes(gzip.compress(path.read_bytes()))
    official = DataFolder(data / "glue").holdings(GLUE[name])
    notes = []
    reporter = type("Notes", (), {"note": lambda self, text: notes.append(text)})()
    held = find_holdings(DataFolder(tmp_path), list(GLUE.values()), reporter)[name]
    assert held.train is not None and set(held.parts) == set(official.parts)
    assert (
        read_rows(GLUE[name], held.train)[0].text == read_rows(GLUE[name], official.train)[0].text
    )
    assert len(notes) == 1 + len(held.parts) and all(f"taken as {name}," in own for own in notes)


def test_all_that_has_a_rule_is_recognized(data):
    found = {}
    for name in RULES:
        holdings = [
            DataFolder(data / part).holdings(EVERY[name]) for part in ("glue", "texts", "zh")
        ]
        holdings.append(DataFolder(data).holdings(EVERY[name]))
        paths = [own.train.paths[0] for own in holdings if own.train]
        found[name] = bool(paths) and name in sets_of(head_of(paths[0]), RULES)
    missed = [name for name, is_found in found.items() if not is_found]
    assert set(missed) <= set(WRITTEN), missed  # the made-up files of these have another form


# What the real files of these sets look like, in made-up rows.
_ANSWERS = (
    '{"version": "v1.0", "data": [{"paragraphs": [{"context": "%s", "qas": [{"id": "1"}]}]}]}'
)
_PAIR = '{"sentence1": "他学会了。", "sentence2": "他不会。", "label": "%s", "prem_id": "x"}'
WRITTEN = {
    "agnews": "A bank fails , and others .\tBusiness\nThe team wins again , at last .\tSports\n",
    "ocnli": "\n".join(_PAIR % label for label in ("entailment", "neutral")),
    "cmrc2018": _ANSWERS % ("这个国家的学会来说明时间。" * 5),
    "drcd": _ANSWERS % ("這個國家的學會來說明時間。" * 5),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_sets_by_a_sample(tmp_path, name):
    (tmp_path / "x").write_text(WRITTEN[name], encoding="utf-8")
    assert sets_of(head_of(tmp_path / "x"), RULES) == [name]


def test_what_is_unclear_is_refused(tmp_path):
    rows = "premise\thypothesis\tlabel\na b\tc\tentailment\nd\te\tneutral\n"
    (tmp_path / "train.tsv").write_text(rows)
    with pytest.raises(InputError, match=r"train\.tsv may be MNLI or snli"):
        recognise(tmp_path, list(SETS.values()))
    found, _ = recognise(tmp_path, [SETS["snli"]])
    assert found["snli"].train is not None
    shutil.copy(tmp_path / "train.tsv", tmp_path / "rows.tsv")
    with pytest.raises(InputError, match=r"rows\.tsv has rows of snli"):
        recognise(tmp_path, [SETS["snli"]])
    (tmp_path / "rows.tsv").rename(tmp_path / "more_train.tsv")
    with pytest.raises(InputError, match="both have rows of snli"):
        recognise(tmp_path, [SETS["snli"]])


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("Some text.\nAnd more of it.\n")
    (tmp_path / "empty.tsv").write_text("")
    (tmp_path / "bytes.bin").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "broken.json").write_text('{"a": [1, 2')
    assert recognise(tmp_path, list(EVERY.values())) == ({}, [])


def test_names_say_the_part():
    mnli = GLUE["MNLI"]
    assert part_of("dev_mismatched", mnli) == "mismatched"
    assert part_of("dev_matched", mnli) == "matched"
    assert part_of("my_train_10k", mnli) == "train" and part_of("dev", mnli) is None
    assert part_of("validation", GLUE["RTE"]) == "dev" and part_of("x", GLUE["RTE"]) is None
    assert part_of("test", GLUE["RTE"]) is None
    assert part_of("eng.testb"[:3] + "test", TAG_SETS["conll2003"]) == "test"


@pytest.mark.parametrize("content", ["text\tlabel\n", "text\tlabel\n我们\n国家\t1\n"])
def test_a_table_without_rows_or_cells_is_no_set(tmp_path, content):
    (tmp_path / "train.tsv").write_text(content, "utf-8")
    assert recognise(tmp_path, list(EVERY.values())) == ({}, [])


def test_files_that_are_not_read_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("sememe.evaluation.recognition._MOST_FILES", 2)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text("Nothing.")
    _, (note,) = recognise(tmp_path, list(EVERY.values()))
    assert "3 files" in note and "2 were read" in note

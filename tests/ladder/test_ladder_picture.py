"""The picture of a whole ladder that benchmarks/ladder_picture.py draws."""

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from sample_results import sample_results

from sememe.errors import OptionError
from sememe.ladder.results import Visuals

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import ladder_picture
from ladder_picture import write_picture


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_picture_for_a_readme(theme, tmp_path):
    path = write_picture(sample_results(), tmp_path / "ladder.svg", theme=theme)
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    words = "".join(root.itertext())
    for shown in ("The ladder", "word2vec, skip-gram", "83.8 ± 0.8", "Failed: the loss ran away."):
        assert shown in words
    assert ("prefers-color-scheme" in text) == (theme == "auto")
    assert len(text) < 150_000
    assert "href" not in text and "url(" not in text


def test_a_picture_shows_an_ambiguous_word_in_every_contextual_model(tmp_path):
    results = sample_results()
    look = results.looks.contexts
    assert look is not None
    rungs = [replace(rung, state="done") for rung in results.rungs]
    points = {**look.points, "gpt": look.points["bert"], "elmo": look.points["bert"]}
    looks = replace(results.looks, contexts=replace(look, points=points))
    path = write_picture(replace(results, rungs=rungs, looks=looks), tmp_path / "ladder.svg")
    texts = [part.text for part in ElementTree.parse(path).iter() if part.tag.endswith("text")]
    told = "2 uses, each with its own vector"
    heads = [head for head, below in pairwise(texts) if below == told]
    assert sorted(heads) == ["BERT", "ELMo", "GPT"]
    assert "“axis”: dimension" in texts and "“axis”: plot" in texts


def test_long_titles_are_broken_in_a_picture(tmp_path):
    results = sample_results()
    tasks = [replace(task, title="analogies: google-analogies") for task in results.tasks] * 3
    tasks = [replace(task, name=f"{task.name}{n}") for n, task in enumerate(tasks)]
    cells = [replace(cell, task=f"{cell.task}{n}") for cell in results.cells for n in range(12)]
    path = write_picture(replace(results, tasks=tasks, cells=cells), tmp_path / "ladder.svg")
    texts = [part.text or "" for part in ElementTree.parse(path).iter()]
    assert "Analogies:" in texts and not any("…" in text for text in texts)


def test_a_picture_is_refused_in_another_form(tmp_path):
    with pytest.raises(OptionError, match="svg"):
        write_picture(sample_results(), tmp_path / "ladder.png")
    with pytest.raises(OptionError, match="light, dark or auto"):
        write_picture(sample_results(), tmp_path / "ladder.svg", theme="pink")


def test_the_command_draws_a_folder_and_refuses_what_is_none(tmp_path, monkeypatch, capsys):
    sample_results().save(tmp_path)
    picture = tmp_path / "dark.svg"
    given = ["ladder_picture.py", str(tmp_path), str(picture), "--theme", "dark"]
    monkeypatch.setattr("sys.argv", given)
    assert ladder_picture.main() == 0 and picture.is_file()
    given[1] = str(tmp_path / "nothing")
    assert ladder_picture.main() == 2
    assert "nothing" in capsys.readouterr().err


def test_names_and_marks_of_the_table_are_in_the_picture(tmp_path):
    results = sample_results()
    first, second, *others = results.tasks
    first = replace(first, title="sst2", is_named=True)
    cells = [replace(cell, few_questions=cell.mean == 24.8) for cell in results.cells]
    results = replace(results, tasks=[first, replace(second, title="origin"), *others], cells=cells)
    text = write_picture(results, tmp_path / "own.svg").read_text("utf-8")
    assert "sst2" in text and "Sst2" not in text and "Origin" in text
    assert "24.8 ± 1.0*<" in text


def test_a_ladder_without_rungs_has_a_picture(tmp_path):
    none = replace(sample_results(), rungs=[], tasks=[], cells=[], looks=Visuals(), notes=[])
    assert ElementTree.parse(write_picture(none, tmp_path / "none.svg")).getroot() is not None

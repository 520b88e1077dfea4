"""What a ladder found survives JSON whole, and broken files are refused with a sentence."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from sample_results import sample_results

from sememe.errors import ArtifactError
from sememe.ladder.reading import RungAnswer
from sememe.ladder.results import Cell, Results, Visuals
from sememe.ladder.rung_steps import evaluated


def without_nan(results: Results) -> Results:
    cells = [replace(cell, mean=None) if cell.why else cell for cell in results.cells]
    return replace(results, cells=cells)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_results_come_back_whole(language, tmp_path):
    results = without_nan(sample_results(language))
    assert Results.load(results.save(tmp_path)) == results
    assert Results.load(tmp_path) == results


def test_the_best_of_a_column_follows_what_is_printed():
    results = sample_results()
    assert results.best("odd") == ["skipgram"]
    cells = [
        Cell(rung="bert", task="odd", mean=83.84),  # printed as 83.8, as that of skip-gram is
        Cell(rung="bert", task="ppl", mean=80.0),
        Cell(rung="skipgram", task="ppl", mean=90.0),
    ]
    known = {(cell.rung, cell.task) for cell in cells}
    kept = [cell for cell in results.cells if (cell.rung, cell.task) not in known]
    changed = replace(results, cells=[*kept, *cells])
    assert changed.best("odd") == ["skipgram", "bert"] and changed.best("ppl") == ["bert"]
    assert changed.cell("onehot", "ppl").mean is None and changed.cell("bert", "nothing") is None


def test_looks_at_several_rungs_are_joined():
    whole = sample_results().looks
    parts = [
        Visuals(
            pca=replace(whole.pca, points={name: whole.pca.points[name]}),
            neighbors={word: {name: own[name]} for word, own in whole.neighbors.items()},
            contexts=replace(whole.contexts, points={name: whole.contexts.points[name]}),
            attention=whole.attention if name == "bert" else None,
        )
        for name in ("bert", "skipgram")
    ]
    assert parts[0].joined(parts[1]) == whole == Visuals().joined(parts[1]).joined(parts[0])


def test_numbers_that_json_lacks_become_null():
    cells = [Cell(rung="a", task="b", mean=math.nan)]
    assert replace(sample_results(), cells=cells).to_dict()["cells"][0]["mean"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [("[]", "results.json"), ('{"format": 99}', "format 99"), ('{"format": 1}', "not a complete"),
     ("{", "cannot be used")],
)  # fmt: skip
def test_broken_files_are_refused(tmp_path, text, said):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ArtifactError, match=said):
        Results.load(tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("looks", "neighbors", "array", "bert", 0, 1), {"value": 0.9}),
        (("looks", "contexts", "sentences", 0), "a sentence"),
        (("rungs", 0, "state"), "gone"),
        (("rungs", 0, "title"), 7),
        (("cells", 0, "scores"), 5.0),
        (("cells", 0, "num"), "many"),
        (("tasks",), {"a": 1}),
        (("corpus",), []),
        (("seeds",), ["one"]),
    ],
    ids=str,
)
def test_values_of_another_type_are_refused(path, value):
    """What loads can be reported, whatever a file holds."""
    content = json.loads(json.dumps(without_nan(sample_results()).to_dict()))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ArtifactError, match="is not a complete ladder result"):
        Results.from_dict(content)


def test_a_figure_that_is_not_there_is_left_out_of_the_details():
    asked = SimpleNamespace(
        task=SimpleNamespace(name="senses"),
        evaluate=lambda rung: RungAnswer([50.0], details={"chance": 40.0, "around": math.nan}),
    )
    cell = evaluated(asked, SimpleNamespace(rung=SimpleNamespace(name="counts")))
    assert cell.mean == 50 and cell.details == {"chance": 40.0}


@pytest.mark.parametrize(("num", "is_few"), [(0, False), (18, True), (29, True), (30, False)])
def test_a_cell_says_of_how_many_questions_it_is(num, is_few):
    question = SimpleNamespace(
        task=SimpleNamespace(name="t"), evaluate=lambda rung: RungAnswer([50.0, 60.0], num)
    )
    cell = evaluated(question, SimpleNamespace(rung=SimpleNamespace(name="r")))
    assert (cell.num, cell.few_questions) == (num, is_few)

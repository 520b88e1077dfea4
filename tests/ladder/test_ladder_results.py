"""What a ladder found survives JSON whole, and broken files are refused with a sentence."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from made_results import made_results

from sememe.errors import ArtifactError
from sememe.ladder.answers import answered
from sememe.ladder.questions import Answer
from sememe.ladder.results import Cell, Looks, Results


def without_nan(results: Results) -> Results:
    cells = [replace(cell, mean=None) if cell.why else cell for cell in results.cells]
    return replace(results, cells=cells)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_results_come_back_whole(language, tmp_path):
    results = without_nan(made_results(language))
    assert Results.load(results.save(tmp_path)) == results
    assert Results.load(tmp_path) == results


def test_the_best_of_a_column_follows_what_is_printed():
    results = made_results()
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
    whole = made_results().looks
    parts = [
        Looks(
            pca=replace(whole.pca, points={name: whole.pca.points[name]}),
            neighbors={word: {name: own[name]} for word, own in whole.neighbors.items()},
            contexts=replace(whole.contexts, points={name: whole.contexts.points[name]}),
            attention=whole.attention if name == "bert" else None,
        )
        for name in ("bert", "skipgram")
    ]
    assert parts[0].joined(parts[1]) == whole == Looks().joined(parts[1]).joined(parts[0])


def test_numbers_that_json_lacks_become_null():
    assert Cell(rung="a", task="b", mean=math.nan).to_dict()["mean"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [("[]", "does not hold"), ('{"format": 99}', "format 99"), ('{"format": 1}', "not a whole"),
     ("{", "cannot be read")],
)  # fmt: skip
def test_broken_files_are_refused(tmp_path, text, said):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ArtifactError, match=said):
        Results.load(tmp_path)


def test_a_figure_that_is_not_there_is_left_out_of_the_details():
    asked = SimpleNamespace(
        task=SimpleNamespace(name="senses"),
        ask=lambda rung: Answer([50.0], details={"chance": 40.0, "around": math.nan}),
    )
    cell = answered(asked, SimpleNamespace(rung=SimpleNamespace(name="counts")))
    assert cell.mean == 50 and cell.details == {"chance": 40.0}

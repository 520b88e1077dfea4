"""What a ladder found survives JSON whole, and broken files are refused with a sentence."""

import math
from types import SimpleNamespace

import pytest

from sememe.errors import ArtifactError
from sememe.ladder.answers import answered
from sememe.ladder.questions import Answer
from sememe.ladder.results import (
    AttentionLook,
    Budget,
    Cell,
    ContextsLook,
    Corpus,
    Looks,
    Machine,
    NearWord,
    Point,
    Results,
    Rung,
    Task,
    Use,
    UsePoint,
    WordPoint,
    WordsLook,
)


def some_results() -> Results:
    return Results(
        title="The ladder",
        corpus=Corpus(
            name="中文", language="zh", documents=10, words=1000, train_documents=9,
            train_words=900, heldout_documents=1, heldout_words=100, split="every tenth",
        ),
        budget=Budget(seconds=30.0),
        machine=Machine(cores=2, memory=8 << 30, processor="x", gpu="", system="Linux"),
        versions={"sememe": "0.1.0"},
        seeds=[1, 2],
        started="2026-01-01T00:00:00+00:00",
        command="sememe ladder",
        rungs=[
            Rung(
                name="bert", title="BERT", family="contextual", state="done",
                options={"dim": 4, "loss": "x"},
                history=[Point(1.0, 100, 2.5), Point(2.0, 200, None)],
            ),
            Rung(name="glove", title="GloVe", family="static"),
        ],
        tasks=[
            Task(name="tag", title="Tags", group="sentences", what="w", metric="F1",
                 baselines={"chance": 3.0}),
            Task(name="ppl", title="P", group="language model", what="w", metric="perplexity",
                 unit="perplexity", higher_is_better=False),
        ],
        cells=[
            Cell(rung="bert", task="tag", scores=[50.0, 52.0], mean=51.0, sd=1.4),
            Cell(rung="glove", task="tag", scores=[51.04], mean=51.04),
            Cell(rung="glove", task="ppl", why="It gives no probabilities."),
            Cell(rung="bert", task="ppl", scores=[80.0], mean=80.0),
        ],
        looks=Looks(
            pca=WordsLook(groups={"a": ["行"]}, points={"bert": [WordPoint("行", "a", 0.5, 1.0)]}),
            neighbors={"行": {"glove": [NearWord("列", 0.9)]}},
            contexts=ContextsLook(
                word="行", sentences=[Use("银行", "bank", 1, 2)],
                points={"bert": [UsePoint(0, "bank", 0.1, 0.2)]},
            ),
            attention=AttentionLook(
                rung="bert", layer=1, head=2, tokens=["a", "b"], weights=[[1.0, 0.0], [0.5, 0.5]]
            ),
        ),
        notes=["It ran."],
    )  # fmt: skip


def test_results_come_back_whole(tmp_path):
    results = some_results()
    assert Results.load(results.save(tmp_path)) == results
    assert Results.load(tmp_path) == results


def test_the_best_of_a_column_follows_what_is_printed():
    results = some_results()
    assert results.best("tag") == ["bert", "glove"]  # both are printed as 51.0
    assert results.best("ppl") == ["bert"]
    assert results.cell("glove", "ppl").mean is None
    assert results.cell("bert", "nothing") is None


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

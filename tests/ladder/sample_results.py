"""Made results of a ladder: small, with every kind of cell, in English and in Chinese."""

from __future__ import annotations

import math
from dataclasses import replace

from sememe.ladder.results import (
    AttentionVisual,
    Budget,
    Cell,
    Column,
    ContextsVisual,
    Corpus,
    Machine,
    NearWord,
    Point,
    Results,
    Rung,
    Use,
    UsePoint,
    Visuals,
    WordPoint,
    WordsVisual,
)

HOSTILE = "<script>alert('1')</script>&\"| `x` *y*"

RUNGS = [
    Rung(name="onehot", title="One-hot", family="counts", state="done", train_s=0.0, tokens=900),
    Rung(
        name="skipgram", title="word2vec, skip-gram", family="static", state="done",
        command="sememe train word2vec --out 'my `runs`'", train_s=30.4, tokens=18_000_000,
        tokens_per_s=592_105.0, parameters=6_200_000, megabytes=24.8,
        history=[Point(float(step), step * 1000, 3.0 / step) for step in range(1, 9)],
    ),
    Rung(
        name="bert", title="BERT", family="contextual", state="done", command="sememe train bert",
        options={"num_layers": 2, "width": 128, "init": ""},
        train_s=61.0, tokens=1_300_000, tokens_per_s=21_311.0, parameters=4_512_345, megabytes=18.2,
        history=[Point(1.0, 100, 9.1), Point(2.0, 200, None), Point(3.0, 300, 7.25)],
    ),
    Rung(name="gpt", title="GPT", family="contextual", state="failed", why="the loss ran away"),
    Rung(name="elmo", title="ELMo", family="contextual", state="left out", why="not asked for"),
]  # fmt: skip

TASKS = [
    Column(
        name="odd", title="Odd one out", group="words", what="which of four words is another kind",
        metric="accuracy", baselines={"chance": 25.0}, num_test=120,
    ),
    Column(
        name="package", title="Which package", group="sentences", what="who wrote a docstring",
        metric="accuracy", baselines={"most frequent": 14.8, "chance": 6.3}, num_train=2000,
        num_test=512, how="frozen vectors, linear head",
    ),
    Column(
        name="senses", title="Senses", group="senses", what="whether two uses mean the same",
        metric="accuracy", baselines={"mean of context vectors": 68.1}, num_test=300,
    ),
    Column(
        name="ppl", title="Perplexity", group="language model", what="how well words are foreseen",
        metric="perplexity", unit="perplexity", higher_is_better=False,
        baselines={"unigram": 812.4},
    ),
]  # fmt: skip

CELLS = [
    Cell(rung="onehot", task="odd", scores=[24.1, 25.5], mean=24.8, sd=0.99),
    Cell(rung="onehot", task="package", scores=[61.5, 61.7], mean=61.6, sd=0.14),
    Cell(rung="onehot", task="senses", scores=[50.0, 50.0], mean=50.0, sd=0.0),
    Cell(rung="onehot", task="ppl", why="it gives no probabilities"),
    Cell(rung="skipgram", task="odd", scores=[83.2, 84.4], mean=83.8, sd=0.85),
    Cell(rung="skipgram", task="package", scores=[70.9, 71.9], mean=71.4, sd=0.71),
    Cell(rung="skipgram", task="senses", scores=[50.0, 50.0], mean=50.0, sd=0.0),
    Cell(rung="skipgram", task="ppl", why="it gives no probabilities"),
    Cell(rung="bert", task="odd", scores=[47.1, 48.5], mean=47.8, sd=0.99),
    Cell(rung="bert", task="package", scores=[70.2, 71.8], mean=71.0, sd=1.13),
    Cell(rung="bert", task="senses", scores=[72.3, 71.3], mean=71.8, sd=0.71),
    Cell(rung="bert", task="ppl", mean=math.nan, why="it fills gaps and foresees nothing"),
]


def sample_results(language: str = "en") -> Results:
    """Results with figures, gaps, a failed rung and one left out; looks in English or Chinese."""
    is_chinese = language == "zh"
    return Results(
        title="The ladder on 中文维基" if is_chinese else "The ladder",
        corpus=Corpus(
            name="中文维基" if is_chinese else "docstrings", language=language, documents=1000,
            words=50_000, train_documents=900, train_words=45_000, heldout_documents=100,
            heldout_words=5_000, vocabulary=4321, subwords=8000, split="every tenth is held out",
        ),
        budget=Budget(seconds=30.0),
        machine=Machine(cores=2, memory=8 << 30, processor="a chip", gpu="", system="Linux"),
        versions={"sememe": "0.1.0", "numpy": "2.1.0"},
        seeds=[1, 2],
        started="2026-01-01T00:00:00+00:00",
        command="sememe ladder --budget 30s",
        rungs=list(RUNGS),
        tasks=list(TASKS),
        cells=list(CELLS),
        looks=_profiles(is_chinese),
        notes=["vectors are frozen in sentence tasks"],
        seconds=321.0,
    )  # fmt: skip


def _profiles(is_chinese: bool) -> Visuals:
    groups = {"国家": ["中国", "法国"], "颜色": ["红", "蓝"]} if is_chinese else {
        "containers": ["list", "dict"], "numbers": ["float", "integer"]}  # fmt: skip
    places = {name: [(0.1, 0.9), (0.2, 0.7)] for name in groups}
    points = [
        WordPoint(word, name, x + index, y - 2 * index)
        for index, name in enumerate(groups)
        for word, (x, y) in zip(groups[name], places[name], strict=True)
    ]
    word = "苹果" if is_chinese else "axis"
    texts = (
        [("他吃了一个苹果。", "水果"), ("苹果发布了手机。", "公司")]
        if is_chinese
        else [("The axis of an array.", "dimension"), ("A label of the x axis.", "plot")]
    )
    uses = [Use(text, sense, text.index(word), text.index(word) + len(word))
            for text, sense in texts]  # fmt: skip
    apart = [UsePoint(index, use.sense, index - 0.5, 0.3 * index) for index, use in enumerate(uses)]
    near = [NearWord("上海" if is_chinese else "arrays", 0.87654), NearWord("b", -0.12)]
    return Visuals(
        pca=WordsVisual(groups=groups, points={"skipgram": points, "bert": points}),
        neighbors={"北京" if is_chinese else "array": {"skipgram": near, "bert": near[:1]}},
        contexts=ContextsVisual(
            word=word,
            sentences=uses,
            points={"skipgram": [one._replace(x=0.0, y=0.0) for one in apart], "bert": apart},
        ),
        attention=AttentionVisual(
            rung="bert", layer=2, head=1, tokens=["[CLS]", word], weights=[[0.75, 0.25], [0.4, 0.6]]
        ),
    )


def hostile_results() -> Results:
    """The same with markup in every place that a user or a corpus can fill."""
    results = sample_results()
    bad = HOSTILE
    looks = results.looks
    assert looks.pca and looks.contexts and looks.attention
    points = [WordPoint(bad, bad, 0.0, 0.0), WordPoint(bad, bad, 1.0, 1.0)]
    uses = [Use(f"{bad} axis {bad}", bad, len(bad) + 1, len(bad) + 5)] * 2
    return replace(
        results,
        title=bad,
        command=bad,
        started=bad,
        notes=[bad],
        versions={bad: bad},
        corpus=replace(results.corpus, name=bad, split=bad),
        rungs=[replace(rung, title=bad, why=bad, command=bad) for rung in results.rungs],
        tasks=[
            replace(task, title=bad, what=bad, how=bad, metric=bad, baselines={bad: 1.0})
            for task in results.tasks
        ],
        cells=[replace(cell, why=bad if cell.why else "") for cell in results.cells],
        looks=Visuals(
            pca=WordsVisual(groups={bad: [bad, bad]}, points={"bert": points}),
            neighbors={bad: {"bert": [NearWord(bad, 0.5)]}},
            contexts=replace(
                looks.contexts,
                word=bad,
                sentences=uses,
                points={"bert": [UsePoint(0, bad, 0.0, 0.0), UsePoint(1, bad, 1.0, 0.0)]},
            ),
            attention=replace(looks.attention, tokens=[bad, bad]),
        ),
    )

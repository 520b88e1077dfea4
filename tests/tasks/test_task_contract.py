"""Tasks as models: opened by `sememe.load`, described, moved, asked for vectors, gone on from."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from quick_tasks import QUICK

import sememe
from sememe import BERT, Classify, OneHot, Regress, Tag
from sememe.contract import CAPABILITIES, KINDS, Model
from sememe.errors import OptionError, UnsupportedError
from sememe.nn.encoders import Backbone
from sememe.tasks.config import FinetuneConfig
from sememe.tasks.scores import Scores

TEXTS = ["a good film", "the day and night"]
CALLS = {
    "embed": lambda model: model.embed(TEXTS),
    "words": lambda model: model.words,
    "embed_words": lambda model: model.embed_words(TEXTS),
    "attention": lambda model: model.attention("a good film"),
    "predict": lambda model: model.predict(TEXTS),
    "score_pairs": lambda model: model.score_pairs([("a", "b")]),
    "encoder": lambda model: model.encoder("text", FinetuneConfig(length=24)),
    "fill": lambda model: model.fill("a [MASK] film"),
    "follows": lambda model: model.follows(*TEXTS),
    "generate": lambda model: model.generate("a good"),
    "next_words": lambda model: model.next_words("a good"),
    "score": lambda model: model.score("a good film"),
    "positions": lambda model: model.positions,
    "translate": lambda model: model.translate("a good film"),
    "embed_expected": lambda model: model.embed_expected(TEXTS, [(2, 6), (4, 7)]),
}


@pytest.fixture(scope="module")
def over_words(opinions, tmp_path_factory):
    """A task over word vectors, opened from its folder."""
    folder = tmp_path_factory.mktemp("words") / "task"
    vectors = OneHot(min_count=1).fit([text.split() for text, _ in opinions])
    Classify(vectors, **QUICK).fit(opinions, out=folder)
    return sememe.load(folder)


def test_a_folder_opens_as_the_task_that_was_fitted(topics):
    task, folder = topics
    opened = sememe.load(folder)
    assert isinstance(opened, Classify) and opened.kind == "classify"
    assert opened.predict(TEXTS) == task.predict(TEXTS)
    told = json.loads(json.dumps(opened.describe()))
    assert told["kind"] == "classify" and told["title"] == KINDS["classify"].title
    assert told["labels"] == ["bad", "good"] and told["network"] == "bert"
    assert told["scores"]["metrics"]["accuracy"] == task.scores.value
    assert "bad" in opened._repr_html_() and "<table>" in opened._repr_html_()
    kept = json.loads((folder / "sememe.json").read_text(encoding="utf-8"))
    assert (kept["kind"], kept["task"]) == ("task", "classify")


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_call_answers_or_names_the_kinds_that_do(capability, topics, over_words):
    for model in (topics[0], over_words):
        if capability in model.capabilities:
            CALLS[capability](model)
            continue
        with pytest.raises(UnsupportedError) as caught:
            CALLS[capability](model)
        assert CAPABILITIES[capability] in str(caught.value)


def test_vectors_are_those_of_the_fine_tuned_network(topics, over_words):
    task, folder = topics
    bert = BERT.around(task.objective.encoder.network, task.coder.tokenizer)
    np.testing.assert_array_equal(task.embed(TEXTS, pool="cls"), bert.embed(TEXTS, pool="cls"))
    np.testing.assert_array_equal(
        sememe.load(folder).embed(TEXTS, layers=0), bert.embed(TEXTS, layers=0)
    )
    assert [len(own) for own in task.embed_words(TEXTS)] == [3, 4]
    assert task.layer_widths == bert.layer_widths
    assert next(own.words for own in task.embed_spans(TEXTS)) == ["a", "good", "film"]
    assert over_words.capabilities == {"predict", "encoder"}
    assert Classify(task).capabilities == {"predict", "encoder"}  # not fitted


def test_a_task_moves_and_refuses_unknown_devices(topics):
    _, folder = topics
    opened = sememe.load(folder, device="cpu")
    assert opened.config.device == "cpu" and opened.to("auto") is opened
    with pytest.raises(OptionError, match="abacus"):
        opened.to("abacus")


def test_what_another_task_goes_on_from(topics, over_words):
    task, _ = topics
    for own in (task, over_words):
        backbone = own.encoder("text", FinetuneConfig(length=24))
        assert isinstance(backbone, Backbone) and backbone.earlier.labels == ["bad", "good"]
        assert backbone.encoder is not own.objective.encoder
        assert backbone.description and backbone.defaults(own.config)[0] > 0
    with pytest.raises(OptionError, match="call fit first"):
        Regress(task).encoder("text", FinetuneConfig())


def test_every_task_is_registered_under_its_name():
    from sememe import Answer, Choose, Pairs

    for task_class in (Answer, Choose, Classify, Pairs, Regress, Tag):
        assert KINDS[task_class.kind].cls() is task_class and issubclass(task_class, Model)


def test_a_task_remembers_the_columns_it_learned_from(bert, tmp_path):
    texts = ("a fine film that I liked", "a dull film that I left")
    rows = [
        f"{n},{texts[n % 2]} {n},{['gut', 'schlecht'][n % 2]},0{n % 9 + 1}.03.2024"
        for n in range(24)
    ]
    train = tmp_path / "train.csv"
    train.write_text("\n".join(["Nr,Betreff,Urteil,Eingang", *rows, ""]), encoding="utf-8")
    out = tmp_path / "task"
    task = sememe.Classify(bert, **QUICK | {"steps": 2, "epochs": 0.0}).fit(train, out=out)
    assert task.columns == {"text": "Betreff", "label": "Urteil"}
    five = tmp_path / "five.csv"
    five.write_text("Urteil,Betreff\n" + "?,Hilfe\n" * 5, encoding="utf-8")
    loaded = sememe.load(out)
    assert loaded.columns == task.columns and len(loaded.predict(five)) == 5


def test_scores_of_earlier_versions_open() -> None:
    """They called the metrics "figures"."""
    old = {"figures": {"accuracy": 0.5, "f1": None}, "main_metric": "accuracy", "num_rows": 2}
    scores = Scores.from_dict(old)
    assert scores.value == 0.5 and math.isnan(scores.metrics["f1"])
    assert scores.to_dict()["metrics"] == old["figures"] and "figures" not in scores.to_dict()

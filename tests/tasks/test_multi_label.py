"""Several labels per row: read, learned by every kind of model, saved, scored; what is refused."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest

pytest.importorskip("torch")

from quick_tasks import LABEL_SETS as ROWS, QUICK, assert_same

from recorded_notes import Notes
from sememe import Classify, ELMo, OneHot, Pairs, ULMFiT
from sememe.errors import InputError, OptionError
from sememe.tasks.config import grid
from sememe.tasks.trials import fit_trials


@pytest.fixture(scope="module")
def fitted(bert, tmp_path_factory):
    """A task that has learned, and its folder."""
    folder = tmp_path_factory.mktemp("several") / "task"
    return Classify(bert, **QUICK | {"epochs": 8.0}).fit(ROWS, dev=ROWS, out=folder), folder


def assert_learned(task: Classify, least: float = 0.9) -> None:
    assert task.labels == ["contra", "pro", "story"] and task.has_sets
    assert task.scores.main_metric == "micro_f1" and task.scores.value > least
    found = task.predict([text for text, _ in ROWS])
    said = [{*one.labels} for one in found]
    assert np.mean([own == {*labels} for own, (_, labels) in zip(said, ROWS, strict=True)]) > 0.8
    for one in found:
        assert {label for label, p in one.probabilities.items() if p >= 0.5} == {*one.labels}
        assert sorted(one.labels, key=lambda label: -one.probabilities[label]) == [*one.labels]


def test_a_bert_learns_sets_of_labels(fitted):
    task, folder = fitted
    assert_learned(task)
    again = Classify.load(folder)
    texts = [text for text, _ in ROWS]
    assert again.predict(texts) == task.predict(texts)
    assert again.evaluate(ROWS).metrics == pytest.approx(task.scores.metrics)
    told = json.loads((folder / "sememe.json").read_text("utf-8"))
    assert told["learned"] == {"multi_label": True, "separator": "list"}
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert config["problem_type"] == "multi_label_classification"
    assert [config["id2label"][str(n)] for n in range(3)] == task.labels


def test_scores_equal_scikit_learns(fitted):
    sklearn = pytest.importorskip("sklearn.metrics")
    task, _ = fitted
    some = ROWS[::3]
    scores = task.evaluate(some)
    said = task.predict([text for text, _ in some])
    gold_NC = np.array([[label in labels for label in task.labels] for _, labels in some])
    said_NC = np.array([[label in one.labels for label in task.labels] for one in said])
    for average in ("micro", "macro", "weighted"):
        theirs = sklearn.precision_recall_fscore_support(gold_NC, said_NC, average=average)
        assert [*scores.averages[average].values()] == pytest.approx(theirs[:3])
        assert scores.metrics[f"{average}_f1"] == pytest.approx(theirs[2])
    theirs = sklearn.precision_recall_fscore_support(gold_NC, said_NC)
    ours = [
        [own[name] for name in ("precision", "recall", "f1", "num_true")] for own in scores.classes
    ]
    np.testing.assert_allclose(np.array(ours).T, theirs)
    assert scores.metrics["accuracy"] == pytest.approx(sklearn.accuracy_score(gold_NC, said_NC))
    chances = np.array([[*one.probabilities.values()] for one in said])
    losses = [sklearn.log_loss(gold_NC[:, c], chances[:, c]) for c in range(3)]
    assert scores.calibration["log_loss"] == pytest.approx(np.mean(losses))
    assert scores.confusion is None and len([*scores.tables("test")]) == 2


def test_a_gpt_and_pairs_learn_sets_of_labels(gpt, bert, tmp_path):
    task = Classify(gpt, **QUICK | {"epochs": 8.0}).fit(ROWS, dev=ROWS, out=tmp_path / "gpt")
    assert_learned(task)
    texts = [text for text, _ in ROWS[:9]]
    assert Classify.load(tmp_path / "gpt").predict(texts) == task.predict(texts)
    pairs = [(text, "a film", labels) for text, labels in ROWS]
    task = Pairs(bert, **QUICK | {"epochs": 8.0}, both_orders="yes").fit(pairs, dev=pairs)
    assert task.scores.value > 0.9


@pytest.mark.parametrize("make", [
    lambda texts: OneHot(min_count=1).fit(texts),
    lambda texts: ULMFiT(num_layers=1, width=12, num_cells=16, min_count=1, steps=2).fit(texts),
    lambda texts: ELMo(num_layers=1, width=8, num_cells=12, min_count=1, steps=2, input="words")
    .fit(texts),
], ids=["onehot", "ulmfit", "elmo"])  # fmt: skip
def test_words_and_lstms_learn_sets_of_labels(make, tmp_path):
    model = make([text.split() for text, _ in ROWS])
    options = QUICK | {"epochs": 12.0, "learning_rate": 1e-2}
    task = Classify(model, **options).fit(ROWS, dev=ROWS, out=tmp_path / "task")
    assert_learned(task, 0.8)
    texts = [text for text, _ in ROWS[:9]]
    again = Classify.load(tmp_path / "task").predict(texts)
    for ours, theirs in zip(task.predict(texts), again, strict=True):
        assert ours.labels == theirs.labels
        assert ours.probabilities == pytest.approx(theirs.probabilities, rel=1e-4)


CHINESE = [
    ("这部电影很好看", "好评;电影"), ("这本书很无聊", "差评;书"), ("这个故事很好", "好评"),
    ("电影很无聊", "差评;电影"), ("书很好看", "好评;书"), ("我在街上跑", ""),
] * 6  # fmt: skip
FORMS = {
    "semicolons.csv": lambda text, labels: f'"{text}",{";".join(labels)}\n',
    "bars.tsv": lambda text, labels: f"{text}\t{' | '.join(labels)}\n",
    "commas.csv": lambda text, labels: f'{text},"{", ".join(labels)}"\n',
    "written.csv": lambda text, labels: f'{text},"{[*labels]}"\n',
    "chinese.tsv": lambda text, labels: f"{text}\t{'、'.join(labels)}\n",
    "lists.jsonl": lambda text, labels: json.dumps({"text": text, "labels": [*labels]}) + "\n",
    "marked.txt": lambda text, own: " ".join([*(f"__label__{one}" for one in own), text]) + "\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_read_and_told(bert, name, tmp_path):
    data = [(text, [own for own in labels.split(";") if own]) for text, labels in CHINESE]
    path = tmp_path / name
    is_table = path.suffix in (".csv", ".tsv")
    header = {".csv": "text,labels\n", ".tsv": "text\tlabels\n"}.get(path.suffix, "")
    path.write_text(header + "".join(FORMS[name](*row) for row in data), encoding="utf-8")
    notes = Notes()
    task = Classify(bert, **QUICK | {"steps": 1, "epochs": 0.0})
    task.fit(path, dev=False, progress=notes)
    rows = task.read(path, labelled=True)
    assert [(row.text, list(row.labels)) for row in rows] == data
    assert task.labels == sorted({"好评", "差评", "电影", "书"})
    mark = {"semicolons.csv": "“;”", "bars.tsv": "“|”", "commas.csv": "“,”", "chinese.tsv": "“、”"}
    assert mark.get(name, "lists") in notes and "several labels per row" in notes
    assert "none in 6 rows" in notes and (is_table or "text" in notes)


def test_test_rows_may_separate_labels_in_another_way(fitted, tmp_path):
    task, _ = fitted
    path = tmp_path / "test.tsv"
    path.write_text(
        "".join(f"{text}\t{'|'.join(labels)}\n" for text, labels in ROWS), encoding="utf-8"
    )
    assert task.evaluate(path).metrics == pytest.approx(task.evaluate(ROWS).metrics)
    path.write_text(path.read_text("utf-8").replace("contra|story", "contra|other"), "utf-8")
    with pytest.raises(InputError, match=r"line \d+: the label 'other'"):
        task.evaluate(path)


def test_columns_of_yes_and_no_are_labels(bert, tmp_path):
    path = tmp_path / "flags.csv"
    lines = [f"{text},{int('pro' in own)},{int('story' in own)}\n" for text, own in ROWS]
    path.write_text("comment,pro,story\n" + "".join(lines), encoding="utf-8")
    task = Classify(bert, **QUICK | {"steps": 1, "epochs": 0.0})
    task.fit(path, dev=False, columns={"label": "pro+story"})
    assert task.labels == ["pro", "story"] and task.has_sets
    rows = task.read(path, labelled=True)
    assert [{*row.labels} for row in rows] == [{*own} - {"contra"} for _, own in ROWS]
    assert len(task.evaluate(path).classes) == 2


def test_the_separator_may_be_given_or_forbidden(bert, tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("".join(f"a film\t{own}\n" for own in ("a/b", "a", "b/c", "a;b")) * 5)
    options = QUICK | {"steps": 1, "epochs": 0.0}
    task = Classify(bert, **options, label_separator="/").fit(path, dev=False)
    assert task.labels == ["a", "a;b", "b", "c"] and task.has_sets
    task = Classify(bert, **options, label_separator="none").fit(path, dev=False)
    assert task.labels == ["a", "a/b", "a;b", "b/c"] and not task.has_sets
    with pytest.raises(InputError, match="2 labels, where one is needed"):
        Classify(bert, **options, label_separator="none").fit(ROWS, dev=False)
    with pytest.raises(InputError, match="2 labels, where one is needed"):
        task.evaluate([("a film", ["a", "b/c"])])
    with pytest.raises(OptionError, match="label_separator"):
        Classify(bert, label_separator="")


def test_one_label_per_row_stays_one(topics, opinions):
    task, _ = topics
    assert not task.has_sets and task.learned == {} and task.scores.main_metric == "accuracy"
    as_lists = [(text, [label]) for text, label in opinions]
    assert task.evaluate(as_lists).metrics == task.evaluate(opinions).metrics


@pytest.mark.parametrize(
    ("rows", "options", "part"),
    [
        ([("a film", [])] * 12, {}, "No row has a label"),
        ([("a film", ["a"]), ("a song", [])] * 6, {}, "Every row has the label 'a'"),
        (ROWS, {"class_weights": "por=2"}, r"'por'.*contra, pro, story"),
        (ROWS, {"metric": "matthews"}, "metric must be one of micro_f1"),
    ],
)
def test_bad_input_gets_one_sentence(bert, rows, options, part):
    with pytest.raises((InputError, OptionError), match=part):
        Classify(bert, **QUICK | options).fit(rows, dev=rows)


def test_a_column_whose_sets_never_come_again_is_refused(bert, tmp_path):
    path = tmp_path / "ids.tsv"
    path.write_text("text\tlabel\n" + "".join(f"a film\tx{n};y{n}\n" for n in range(40)))
    with pytest.raises(InputError, match=r"not clear.*another in each row"):
        Classify(bert, **QUICK).fit(path)
    every = ["".join(own) for own in product("ab", "cd", "ef", "gh", "ij")]  # sets that all differ
    path.write_text("text\tlabel\n" + "".join(f"a film\t{';'.join(own)}\n" for own in every))
    task = Classify(bert, **QUICK | {"steps": 1, "epochs": 0.0}).fit(path)
    assert task.labels == [*"abcdefghij"]


def test_a_label_that_no_row_has_is_told_and_harmless(bert):
    notes = Notes()
    labels = ["contra", "pro", "story", "never"]
    task = Classify(bert, labels=labels, class_weights="balanced", **QUICK | {"epochs": 1.0})
    task.fit(ROWS, dev=ROWS, progress=notes)
    assert "No training row has the label never" in notes
    assert math.isfinite(task.history.last()["loss"])
    assert task.scores.classes[3]["num_true"] == 0


def test_class_weights_find_more_of_a_rare_label(bert):
    rare = [row for row in ROWS if "pro" not in row[1]] + [row for row in ROWS if "pro" in row[1]][
        :4
    ]
    chances = []
    for choice in ("none", "balanced"):
        task = Classify(bert, **QUICK | {"epochs": 3.0}, class_weights=choice)
        task.fit(rare, dev=False)
        found = task.predict([text for text, labels in ROWS if "pro" in labels])
        chances.append(np.mean([one.probabilities["pro"] for one in found]))
    assert chances[1] > chances[0] + 0.1


def test_stopping_and_seeds(bert, tmp_path, monkeypatch):
    def make(options):
        return Classify(bert, **QUICK | {"epochs": 2.0} | options)

    whole = make({}).fit(ROWS)
    calls = []
    real = Classify.measure

    def stop(self, *args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, *args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Classify, "measure", stop)
        make({"checkpoint_minutes": 0.0}).fit(ROWS, out=tmp_path / "task")
    resumed = make({}).fit(ROWS, out=tmp_path / "task", resume=True)
    assert_same(resumed, whole)
    both = fit_trials(make, grid(2, 1), ROWS, ensemble=True, out=tmp_path / "two")
    assert len(both.others) == 1 and both.has_sets
    mean = np.mean([make({"seed": s}).fit(ROWS).predict([ROWS[0][0]])[0].probabilities["pro"]
                    for s in (1, 2)])  # fmt: skip
    again = Classify.load(tmp_path / "two").predict([ROWS[0][0]])[0]
    assert again.probabilities["pro"] == pytest.approx(mean, abs=1e-5)

"""The classifier with several labels per text, class weights, calibration and thresholds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from recorded_notes import Notes
from sememe import FastTextClassifier
from sememe.errors import ArtifactError, InputError, OptionError

SMALL = {
    "preset": "fasttext",
    "dim": 10,
    "epochs": 15,
    "learning_rate": 0.5,
    "workers": 1,
    "seed": 3,
}
LOSSES = ("softmax", "hierarchical", "ova", "negative")
FOOD, PLACES = ("noodles", "tea", "rice", "面条"), ("train", "sea", "road", "北京")


def label_sets(num: int, seed: int = 1) -> list[tuple[str, list[str]]]:
    """Texts about food, about travel, about both, or about neither; some labels are wrong."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(num):
        has = random.random(2) < (0.6, 0.3)
        words = [*random.choice(["the", "a", "of", "day", "and"], 4)]
        labels = []
        for is_there, own, name in zip(has, (FOOD, PLACES), ("饮食", "travel guide"), strict=True):
            words += [*random.choice(own, 2)] if is_there else []
            labels += [name] if is_there == (random.random() > 0.1) else []
        rows.append((" ".join(random.permutation(words)), labels or ["other"]))
    return rows


def one_label(num: int, seed: int = 1) -> list[tuple[str, str]]:
    return [(text, labels[0]) for text, labels in label_sets(num, seed)]


def make(**options) -> FastTextClassifier:
    return FastTextClassifier(**{**SMALL, **options})


@pytest.fixture(autouse=True)
def working(place: Path) -> None:
    """Every test in a folder of its own."""


def test_several_labels_are_predicted_by_their_thresholds():
    train, test = label_sets(600), label_sets(200, 2)
    model = make(loss="ova").fit(train)
    assert model.has_sets and model.own_k == 0 and model.learned == {"multi_label": True}
    both = model.predict("the tea and rice of the train and the sea")
    assert {one.label for one in both} == {"饮食", "travel guide"}
    assert all(one.probability >= 0.5 for one in both)
    assert [one.label for one in model.predict("noodles tea")] == ["饮食"]
    for text, _ in test[:50]:
        everything = model.predict(text, k=-1)
        said = [one for one in everything if one.probability >= 0.5]
        assert model.predict(text) == said and model.predict(text, k=2) == everything[:2]
        assert model.predict(text, threshold=0.2) == [
            one for one in everything if one.probability >= 0.2
        ]
    model.save("model")
    again = FastTextClassifier.load("model")
    texts = [text for text, _ in test]
    assert again.predict(texts) == model.predict(texts) and again.learned == model.learned
    scores = again.evaluate(test)
    assert scores.k == 0 and scores.averages["micro"]["f1"] > 0.75
    assert scores.averages["micro"]["precision"] != scores.averages["micro"]["recall"]


def test_scores_equal_scikit_learns():
    sklearn = pytest.importorskip("sklearn.metrics")
    train, test = label_sets(600), label_sets(200, 2)
    model = make(loss="ova").fit(train)
    scores, names = model.evaluate(test), model.labels
    gold, said = (
        np.array([[name in own for name in names] for own in some])
        for some in (
            [labels for _, labels in test],
            [[one.label for one in own] for own in model.predict([text for text, _ in test])],
        )
    )
    for average, own in scores.averages.items():
        theirs = sklearn.precision_recall_fscore_support(
            gold, said, average=average, zero_division=0
        )
        assert [*own.values()] == pytest.approx(theirs[:3])
    one = make().fit(one_label(600))
    test_one = one_label(200, 2)
    predicted = one.predict([text for text, _ in test_one])
    theirs = sklearn.precision_recall_fscore_support(
        [label for _, label in test_one], predicted, labels=one.labels, zero_division=0
    )
    found = one.evaluate(test_one).classes
    ours = [(own.precision, own.recall, own.f1, own.num_true) for own in found]
    np.testing.assert_allclose(np.array(ours).T, theirs)


@pytest.mark.parametrize(("name", "mark"), [
    ("rows.csv", ";"), ("rows.tsv", "|"), ("quoted.csv", ", "), ("rows.jsonl", ""),
])  # fmt: skip
def test_tables_with_several_labels_are_the_same_text(name, mark):
    rows = label_sets(300)
    if name.endswith("jsonl"):
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in rows]
    else:
        between = "\t" if name.endswith("tsv") else ","
        lines = [between.join(("text", "标签"))]
        lines += [between.join((text, f'"{mark.join(own)}"' if "," in mark else mark.join(own)))
                  for text, own in rows]  # fmt: skip
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    notes = Notes()
    model = make(loss="ova").fit(name, progress=notes)
    same = make(loss="ova").fit(rows)
    np.testing.assert_array_equal(model.weights.input, same.weights.input)
    assert model.labels == same.labels and "several labels per row" in notes
    assert model.config.label_separator == (mark.strip() or "list")
    assert model.evaluate(name).averages == same.evaluate(rows).averages
    model.save("model")
    again = FastTextClassifier.load("model")
    other = "\n".join(["text\tlabel", *(f"{text}\t{'、'.join(own)}" for text, own in rows)])
    Path("other.tsv").write_text(other + "\n", encoding="utf-8")  # separated in another way
    assert again.evaluate("other.tsv").averages == same.evaluate(rows).averages
    if not name.endswith("jsonl"):
        plain = make(label_separator="none").fit(name)
        assert mark.join(["饮食", "travel guide"]) in plain.labels


def test_softmax_tells_that_it_trains_one_of_several_labels():
    notes = Notes()
    model = make(epochs=1).fit(label_sets(100), progress=notes)
    assert "--loss ova" in notes and not model.has_sets and model.predict("tea") in model.labels
    quiet = Notes()
    make(epochs=1, loss="ova").fit(label_sets(100), progress=quiet)
    assert "--loss ova" not in quiet


@pytest.mark.parametrize("loss", LOSSES)
def test_calibration_changes_probabilities_and_no_label(loss):
    """Trained far too long, the probabilities are far too high."""
    train, test = (
        [(f"{text} {' '.join(f'w{n * k % 997}' for k in (7, 11, 13))}", label)
         for n, (text, label) in enumerate(one_label(num, seed))]
        for num, seed in ((600, 1), (900, 2))
    )  # fmt: skip
    options = {"loss": loss, "epochs": 60, "learning_rate": 1.0, "calibration_share": 0.25}
    notes = Notes()
    plain = make(**options, thresholds="f1").fit(train)  # on the same lines
    model = make(**options, calibrate=True).fit(train, validation=test, progress=notes)
    told = model.learned["calibration"]
    assert told["temperature"] > 1.05 and told["bias"] == 0 and told["measured_on"] == "dev"
    assert told["after"]["log_loss"] < told["before"]["log_loss"]
    assert told["after"]["ece"] < told["before"]["ece"]
    assert "Calibrated on" in notes and "before: calibration error" in notes
    assert told["after"] == pytest.approx(model.evaluate(test).calibration)
    texts = [text for text, _ in test]
    again = model.weights.output * told["temperature"]
    np.testing.assert_allclose(again, plain.weights.output, rtol=1e-4)
    first = [own[0].label for own in plain.predict(texts, k=2)]
    assert np.mean(first == model.predict(texts)) > 0.97  # ties of the sigmoid's table aside
    model.save("model")
    model.save("model.bin")  # the rows of the labels carry the temperature
    for path in ("model", "model.bin"):
        assert FastTextClassifier.load(path).predict(texts, k=1) == model.predict(texts, k=1)
    assert FastTextClassifier.load("model").learned == model.learned


@pytest.mark.parametrize("loss", ["softmax", "ova"])
def test_thresholds_are_chosen_saved_and_used(loss):
    train = label_sets(600) if loss == "ova" else one_label(600)
    model = make(loss=loss, epochs=2, thresholds="f1", calibrate=True).fit(train, out="model")
    chosen = model.learned["thresholds"]
    assert chosen.keys() == {*model.labels} and all(value > 0 for value in chosen.values())
    again = FastTextClassifier.load("model")
    for text, _ in train[:60]:
        everything = {one.label: one.probability for one in model.predict(text, k=-1)}
        said = [one.label for one in again.predict(text, k=again.own_k)]
        if loss == "ova":
            assert {*said} == {name for name, p in everything.items() if p >= chosen[name]}
        else:
            assert said == [max(everything, key=lambda name: everything[name] / chosen[name])]
            assert sum(chosen.values()) == pytest.approx(1)
    small = model.quantize(dsub=2) if len(model.words) > 256 else None
    assert small is None or small.learned == model.learned


def test_held_out_lines_are_not_trained_on():
    rows = [(f"{text} w{number}", label) for number, (text, label) in enumerate(one_label(300))]
    model = make(calibrate=True, calibration_share=0.2).fit(rows)
    own = {word for word in model.words if word.startswith("w") and word[1:].isdecimal()}
    num_held = model.learned["calibration"]["num_rows"]
    assert len(own) == 300 - num_held and 50 <= num_held <= 60
    again = make(calibrate=True, calibration_share=0.2).fit(rows)
    np.testing.assert_array_equal(again.weights.output, model.weights.output)
    with pytest.raises(InputError, match="too few to calibrate"):
        make(calibrate=True).fit(rows[:40])


def test_a_stopped_training_is_adjusted_when_it_goes_on():
    train = label_sets(400)
    options = {"loss": "ova", "epochs": 6, "calibrate": True, "thresholds": "f1"}
    whole = make(**options).fit(train)

    class Stop:
        every_words = 3_000

        def __call__(self, model, record):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(**options).fit(train, out="part", callbacks=[Stop()])
    again = make(**options).fit(train, out="part", resume=True)
    np.testing.assert_array_equal(again.weights.output, whole.weights.output)
    assert again.learned == whole.learned == FastTextClassifier.load("part").learned
    done = make(**options).fit(train, out="part", resume=True)
    assert done.learned == whole.learned


def test_autotune_adjusts_the_best_model():
    train = label_sets(300)
    model = make(loss="ova", thresholds="f1", dim=5).fit(
        train, validation=label_sets(100, 2), autotune=0.01, metric="macro_f1"
    )
    assert model.learned["multi_label"] and model.learned["thresholds"].keys() == {*model.labels}


def test_damaged_thresholds_are_refused():
    make(epochs=1, thresholds="f1").fit(one_label(200), out="model")
    path = Path("model/sememe.json")
    whole = json.loads(path.read_text("utf-8"))
    for wrong in ({"饮食": 0.5}, dict.fromkeys(whole["learned"]["thresholds"], -1), [1], "x"):
        path.write_text(json.dumps(whole | {"learned": {"thresholds": wrong}}), encoding="utf-8")
        with pytest.raises(ArtifactError, match=r"sememe\.json"):
            FastTextClassifier.load("model")


def test_unknown_labels_in_weights_are_refused():
    with pytest.raises(OptionError, match=r"'食'.*other"):
        make(class_weights="食=2").fit(one_label(50))

"""Several labels per row, class weights, calibration and thresholds, as people type them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from untrained import write_bert

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

GOOD, BAD = ("good", "great", "好看"), ("bad", "poor", "差劲")
ROWS = [
    (f"the {word} {thing} of the day", opinion + ([("书")] if thing == "book" else []))
    for word, opinion in [
        *((w, ["pro"]) for w in GOOD),
        *((w, ["contra"]) for w in BAD),
        ("old", []),
    ]
    for thing in ("film", "book", "电影", "song", "day")
]
QUICK = (
    "--device", "cpu", "--workers", 1, "--length", 24, "--batch-size", 8, "--learning-rate", 3e-3,
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of an untrained BERT."""
    texts, folder = [text for text, _ in ROWS] * 2, tmp_path_factory.mktemp("models") / "bert"
    return write_bert(folder, texts, vocab_size=200, max_length=32, width=32, initial_std=0.1)


def write(path: Path, times: int = 1) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("评论", "标签"), *((text, "|".join(own)) for text, own in ROWS * times)])
    return path


@pytest.fixture
def task(sememe, model):
    """A task with several labels per row that has learned, with thresholds of its own."""
    train = write(Path("train.csv"), 4)
    return sememe(
        "finetune", "classify", model, "--train", train, "--dev", write(Path("dev.csv")),
        "--out", "task", "--epochs", 10, "--class-weights", "balanced", "--calibrate",
        "--thresholds", "f1", "--calibration-share", 0.3, *QUICK,
    )  # fmt: skip


def test_training_tells_what_it_took_and_what_it_chose(task):
    assert "several labels per row, separated by “|”" in task.err
    assert "Calibrated on" in task.err and "temperature" in task.err and "bias" in task.err
    assert "Thresholds by F1 on" in task.err
    assert "dev: micro f1" in task.out and "right label" not in task.out
    table = {line.split("\t")[0]: line.split("\t") for line in task.out.splitlines()}
    assert table.keys() >= {"pro", "contra", "书", "macro average", "micro average"}
    assert float(table["micro average"][3]) > 0.8


def test_predict_prints_all_labels_that_reach_their_thresholds(sememe, task):
    Path("new.txt").write_text("the good book of the day\nthe old song of the day\n", "utf-8")
    first, second = sememe("predict", "task", "new.txt").out.split("\n")[:2]
    assert {*first.split("|")} == {"pro", "书"} and second == ""
    told = json.loads(sememe("predict", "task", "new.txt", "--json").out.splitlines()[0])
    assert {one["label"] for one in told["labels"]} == {"pro", "书"}
    assert told["probabilities"].keys() == {"pro", "contra", "书"}
    assert len(sememe("predict", "task", "new.txt", "-k", 2).out.splitlines()[1].split("|")) == 2
    assert sememe("predict", "task", "new.txt", "--threshold", 1).out == "\n\n"
    everything = sememe("predict", "task", "new.txt", "--threshold", 1e-9, "--prob").out
    assert len(everything.splitlines()[0].split("|")) == 3 and "pro 0." in everything
    for name, labels in (("p.jsonl", ["pro", "书"]), ("p.csv", '["pro", "书"]')):
        sememe("predict", "task", "dev.csv", "--out", name)
        text = Path(name).read_text("utf-8")
        rows = [*csv.DictReader(text.splitlines())] if name == "p.csv" else [
            json.loads(line) for line in text.splitlines()
        ]  # fmt: skip
        own = next(row for row in rows if row["评论"] == "the good book of the day")
        found = json.loads(own["prediction"]) if name == "p.csv" else own["prediction"]
        assert {*found} == {"pro", "书"} and len(rows) == len(ROWS), labels
    sememe("predict", "task", "dev.csv", "-k", -1, "--out", "all.csv")
    heading = Path("all.csv").read_text("utf-8").splitlines()[0]
    assert heading.endswith("prediction,p(contra),p(pro),p(书)")


def test_evaluate_scores_every_label(sememe, task):
    found = sememe("evaluate", "labels", "task", "dev.csv", "--json").json
    assert found["main_metric"] == "micro_f1" and found["metrics"]["micro_f1"] > 0.8
    assert [one["label"] for one in found["classes"]] == ["contra", "pro", "书"]
    assert found["averages"].keys() == {"macro", "micro", "weighted"}
    assert found["calibration"].keys() == {"ece", "brier", "log_loss"}
    few = sememe("evaluate", "labels", "task", "dev.csv", "--threshold", 1, "--json").json
    assert few["averages"]["micro"]["recall"] == 0
    said = sememe("evaluate", "labels", "task", "dev.csv", "-k", 2, fails=True)
    assert said.code == 2 and "k is only for fastText" in said.err


def test_two_models_are_compared_by_their_labels(sememe, model, task):
    other = ("--train", "train.csv", "--dev", "dev.csv", "--epochs", 1, *QUICK)
    sememe("finetune", "classify", model, *other, "--out", "other")
    found = sememe("compare", "task", "other", "--data", "dev.csv", "--json").json
    assert found["metric"] == "micro_f1" and found["scores"][0] > found["scores"][1]
    scores = sememe("evaluate", "labels", "task", "dev.csv", "--json").json
    assert found["scores"][0] == pytest.approx(scores["metrics"]["micro_f1"])
    whole = sememe(
        "compare", "task", "other", "--data", "dev.csv", "--metric", "accuracy", "--json"
    )
    assert whole.json["scores"][0] == pytest.approx(scores["metrics"]["accuracy"])
    one = (*other, "--label-separator", "none", "--skip-bad", "--out", "one")
    sememe("finetune", "classify", model, *one)
    ran = sememe("compare", "task", "one", "--data", "dev.csv", fails=True)
    assert ran.code == 2 and "only one predicts several labels" in ran.err


def test_json_has_what_was_learned(sememe, model):
    train = write(Path("train.csv"), 2)
    ran = sememe(
        "finetune", "classify", model, "--train", train, "--out", "t", "--epochs", 1, "--seeds", 2,
        "--ensemble", "--thresholds", "f1", "--calibration-share", 0.3, "--json", *QUICK,
    )  # fmt: skip
    assert ran.json["learned"]["multi_label"] and ran.json["learned"]["separator"] == "|"
    assert ran.json["learned"]["thresholds"].keys() == {"pro", "contra", "书"}
    assert len(ran.json["trials"]) == 2 and ran.json["dev"]["classes"]
    again = sememe(
        "finetune", "classify", model, "--train", train, "--out", "t", "--epochs", 1, "--seeds", 2,
        "--ensemble", "--thresholds", "f1", "--calibration-share", 0.3, "--resume", *QUICK,
    )  # fmt: skip
    assert "finished already" in again.err


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--class-weights", "pr=2"), "'pr', but the labels of the training rows are contra, pro"),
        (("--class-weights", "pro=x"), "class_weights must be none, balanced"),
        (("--calibrate", "--calibration-share", "0.05"), "too few to calibrate on"),
        (("--label-separator", ""), "label_separator"),
        (("--thresholds", "f2"), "f2"),
    ],
)
def test_mistakes_get_one_sentence(sememe, model, options, part):
    train = write(Path("train.csv"))
    ran = sememe(
        "finetune", "classify", model, "--train", train, "--out", "t", *QUICK, *options, fails=True
    )
    assert ran.code == 2 and part in ran.err and "Traceback" not in ran.err
    assert not Path("t").exists()

"""The classifier's commands: train, predict, evaluate labels; and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TEXTS = {"good": "a fine film 很 好看", "bad": "a dull film 很 无聊"}


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text(
        "".join(f"__label__{label} {text}\n" for label, text in TEXTS.items()) * 60,
        encoding="utf-8",
    )
    return path


SMALL = (
    "--preset", "fasttext", "--dim", 8, "--epochs", 10, "--learning-rate", 0.5, "--workers", 1,
)  # fmt: skip


@pytest.fixture
def model(sememe, train: Path) -> str:
    sememe("train", "classifier", train, "--out", "model", *SMALL)
    return "model"


def test_a_classifier_that_learned_nothing_says_so(sememe, train: Path):
    slow = ("--dim", 8, "--epochs", 1, "--learning-rate", 0.0001, "--workers", 1)
    told = sememe("train", "classifier", train, "--out", "model", *slow).out
    assert "A loss of 0.693 is no better" in told and "--epochs 50" in told
    assert "guessing" not in sememe("train", "classifier", train, "--out", "good", *SMALL).out


def test_train_tells_how_it_went(sememe, train: Path, tmp_path: Path):
    ran = sememe("train", "classifier", train, "--validation", train, "--out", "model", *SMALL)
    assert "F1 1.0000 on 120 examples" in ran.out and "Saved 2 labels" in ran.out
    ran = sememe(
        "train", "fasttext", "--supervised", train, "--validation", train, "--out", "m.bin",
        *SMALL, "--json",
    )  # fmt: skip
    assert ran.json["labels"] == 2 and ran.json["validation"]["f1"] == 1
    assert (tmp_path / "m.bin").is_file()
    assert sememe("predict", "m.bin", train).out == sememe("predict", "model", train).out


def test_predict_writes_a_line_for_each(sememe, model, tmp_path: Path):
    (tmp_path / "texts.txt").write_text("a fine film\n\n很 无聊\n", encoding="utf-8")
    assert sememe("predict", model, "texts.txt").out.split("\n")[0::2] == ["good", "bad"]
    with_chances = sememe("predict", model, "texts.txt", "-k", 2, "--prob").out.splitlines()
    label, chance, other, rest = with_chances[0].split()
    assert (label, other) == ("good", "bad") and float(chance) > 0.9 > float(rest)
    rows = sememe("predict", model, "-", "--json", stdin="a dull film\n").out
    assert json.loads(rows)["labels"][0]["label"] == "bad"
    sure = sememe("predict", model, "texts.txt", "-k", -1, "--threshold", 0.5).out.splitlines()
    assert sure[0] == "good"


def test_a_file_may_be_written_otherwise_than_the_training(sememe, train: Path, tmp_path: Path):
    (tmp_path / "gb.txt").write_bytes(train.read_text("utf-8").encode("gb18030"))
    sememe("train", "classifier", "gb.txt", "--encoding", "gb18030", "--out", "model", *SMALL)
    own = sememe("predict", "model", "gb.txt").out
    assert sememe("predict", "model", train, "--encoding", "utf-8").out == own
    scores = sememe("evaluate", "labels", "model", train, "--encoding", "utf-8", "--json").json
    assert scores == sememe("evaluate", "labels", "model", "gb.txt", "--json").json


def test_info_and_convert_know_classifiers(sememe, model, train: Path):
    told = sememe("info", model, "--json").json
    assert told["kind"] == "fasttext-classifier" and told["labels"] == 2 and told["size"] > 0
    for arguments in (("m.bin",), ("n.bin", "--format", "fasttext")):
        assert "2 labels" in sememe("convert", model, *arguments).out
        predicted = sememe("predict", arguments[0], train).out
        assert predicted == sememe("predict", model, train).out
    assert len(sememe("neighbors", model, "film", "--num", 2).out.splitlines()) == 2


def test_evaluate_labels(sememe, model, train: Path):
    *rows, f1, certainty, last = [
        line.split("\t") for line in sememe("evaluate", "labels", model, train).out.splitlines()
    ]
    averages = ["macro average", "micro average", "weighted average"]
    assert [row[0] for row in rows] == ["good", "bad", *averages]
    assert {row[1] for row in rows} == {"1.0000"} and rows[-1][-2:] == ["120", "120"]
    assert "F1 1.0000 on 120 examples" in f1[0]
    assert "95 % interval" in certainty[0] and "one seed" in certainty[0]
    assert "probabilities: calibration error 0." in last[0] and "log loss 0." in last[0]
    metrics = sememe("evaluate", "labels", model, train, "-k", 2, "--json").json
    assert metrics["precision"] == 0.5 and metrics["recall"] == 1 and metrics["num_examples"] == 120
    assert metrics["averages"]["macro"]["f1"] == pytest.approx(2 / 3)
    assert metrics["classes"][0]["num_predicted"] == 120 and metrics["calibration"]["ece"] < 0.2


def test_quantize_prints_sizes_and_scores(sememe, train: Path):
    words = "".join(
        f"__label__{label} {text} w{n} w{n % 50}\n"
        for n in range(1_500)
        for label, text in TEXTS.items()
    )
    train.write_text(words, encoding="utf-8")
    quantize = ("--quantize", "--cutoff", 280, "--retrain", "--qnorm")
    ran = sememe("train", "classifier", train, "--out", "small.ftz", *quantize, *SMALL, "--json")
    sizes = ran.json["quantization"]
    assert sizes["bytes_after"] < sizes["bytes_before"] and sizes["f1_after"] > 0.95
    ran = sememe("train", "classifier", train, "--out", "small", "--quantize", *SMALL)
    assert "times smaller" in ran.err and "before" in ran.err
    assert sememe("predict", "small", train).out
    again = ("train", "classifier", train, "--out", "small", "--quantize", "--resume", *SMALL)
    assert "finished already" in sememe(*again).err


@pytest.mark.parametrize("out", ["small", "small.ftz"])
def test_the_scores_of_a_quantized_model_are_those_of_the_saved_one(
    sememe, train: Path, tmp_path: Path, out: str
):
    lines = [f"__label__{n % 3} w{n}\n" for n in range(700)] * 3
    train.write_text("".join(lines), encoding="utf-8")
    (tmp_path / "dev.txt").write_text("".join(lines[::5]), encoding="utf-8")
    quantize = ("--quantize", "--cutoff", 300, "--dsub", 8, "--validation", "dev.txt")
    ran = sememe("train", "classifier", train, "--out", out, *quantize, *SMALL, "--json").json
    saved = sememe("evaluate", "labels", out, "dev.txt", "--json").json
    sizes = ran["quantization"]
    assert sizes["f1_after"] < sizes["f1_before"] - 0.1
    assert ran["validation"]["f1"] == sizes["f1_after"] == pytest.approx(saved["f1"])
    assert ran["history"]["f1"] == ran["validation"]["f1"]
    if out == "small":
        manifest = json.loads((tmp_path / out / "sememe.json").read_text("utf-8"))
        assert manifest["metrics"]["f1"] == ran["validation"]["f1"]


def test_autotune(sememe, train: Path):
    arguments = ("--validation", train, "--autotune", "1s", "--out", "model", "--workers", 1)
    ran = sememe("train", "classifier", train, *arguments, "--dim", 8, "--json")
    assert ran.json["validation"]["f1"] == 1 and ran.json["options"]["dim"] == 8
    assert "trial 1" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "classifier", "none.txt", "--out", "m"), "none.txt"),
        (("train", "classifier", "plain.txt", "--out", "m"), "Error: plain.txt has no label"),
        (("train", "classifier", "train.txt"), "--out"),
        (("train", "classifier", "train.txt", "--out", "m.ftz"), "quantised"),
        (("train", "classifier", "train.txt", "--out", "folder.bin"), "is a folder"),
        (("train", "classifier", "train.txt", "--out", "m", "--validation", "none"), "none"),
        (("train", "classifier", "train.txt", "--out", "m", "--cutoff", "5"), "--quantize"),
        (("train", "classifier", "train.txt", "--out", "m", "--autotune", "5m"), "validation"),
        (("train", "classifier", "train.txt", "--out", "m", "--loss", "ova", "--minn", "3",
          "--maxn", "2"), "minn"),
        (("train", "classifier", "train.txt", "--out", "m", "--quantize", "--cutoff", "5"), "256"),
        (("train", "classifier", "train.txt", "--out", "m", "--quantize", "--cutoff", "500",
          "--retrain", "--calibrate"), "--retrain would undo"),
        (("train", "classifier", "train.txt", "--out", "m.bin", "--thresholds", "f1"), "no place"),
        (("train", "classifier", "train.txt", "--out", "m", "--class-weights", "goood=2"),
         "'goood'"),
        (("train", "classifier", "train.txt", "--out", "m", "--calibrate", "--calibration-share",
          "0.01"), "too few to calibrate"),
        (("convert", "model", "m.vec"), "is a classifier"),
        (("convert", "model", "m", "--format", "fasttext"), "is a classifier"),
        (("predict", "plain.txt", "plain.txt"), "plain.txt"),
        (("predict", "nowhere", "plain.txt"), "nowhere"),
        (("predict", "model", "none.txt"), "none.txt"),
        (("predict", "model", "plain.txt", "-k", "0"), "k must"),
        (("evaluate", "labels", "model", "plain.txt"), "nothing to score"),
    ],
)  # fmt: skip
def test_mistakes_get_one_sentence(sememe, model, tmp_path: Path, arguments, message):
    (tmp_path / "plain.txt").write_text("no label in it\n", encoding="utf-8")
    (tmp_path / "folder.bin").mkdir()
    ran = sememe(*arguments, fails=True)
    assert ran.code == 2 and message in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "m").exists()


def test_a_model_without_labels_is_told_what_gives_them(sememe, corpus: Path):
    sememe("train", "onehot", corpus, "--out", "words", "--quiet")
    told = sememe("predict", "words", corpus, fails=True)
    assert told.code == 2 and "kinds that can: fasttext-classifier, classify" in told.err


def test_columns_of_tickets_are_found_said_and_remembered(sememe, tmp_path):
    texts = ("The printer shows an error", "I cannot log in today")
    rows = [
        f"{1000 + n},{texts[n % 2]} {n},{['IT', 'HR'][n % 2]},2024-03-{n + 1:02}" for n in range(24)
    ]
    header = "Ticket Nr,Body Text,Queue/Team,Created"
    (tmp_path / "tickets.csv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    told = sememe("train", "classifier", "tickets.csv", "--out", "model", "--dim", 4)
    assert (
        "text = “Body Text”" in told.err + told.out
        and "label = “Queue/Team”" in told.err + told.out
    )
    (tmp_path / "new.csv").write_text(
        "Created,Body Text\n1.4.,Hilfe\n2.4.,Druckt nicht\n", encoding="utf-8"
    )
    assert sememe("predict", "model", "new.csv").out.count("\n") == 2
    remark = "A remark that is far longer than all that was asked"
    (tmp_path / "remarks.csv").write_text(
        f"Remark,Body Text\n{remark} 1,Hilfe\n{remark} 2,Druckt nicht\n", encoding="utf-8"
    )
    assert "text = “Body Text” (“Hilfe”" in sememe("predict", "model", "remarks.csv").err
    (tmp_path / "other.csv").write_text(
        "Nr,Anliegen\n1,Bitte um Hilfe\n2,Es druckt nicht\n", encoding="utf-8"
    )
    found = sememe("predict", "model", "other.csv")
    assert found.out.count("\n") == 2 and "Anliegen" in found.err
    chosen = sememe("predict", "model", "other.csv", "--column", "text=Nr")
    assert chosen.out.count("\n") == 2 and "text = “Nr”" in chosen.err
    dates = [f"{texts[n % 2]} {n},2024-03-{n + 1:02}" for n in range(24)]
    (tmp_path / "dates.csv").write_text(
        "\n".join(["Body Text,Created", *dates, ""]), encoding="utf-8"
    )
    refused = sememe("train", "classifier", "dates.csv", "--out", "x", fails=True)
    assert (
        refused.code == 2
        and "'Created' (dates)" in refused.err
        and "--column label=" in refused.err
    )


def test_rows_without_text_or_label_are_counted(sememe, tmp_path):
    rows = [f"the {item} is in the street,{item}" for item in ("printer", "invoice") * 10]
    lines = ["Body Text,Queue", *rows, ",printer", " ,invoice", "nobody knows,"]
    (tmp_path / "tickets.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (tmp_path / "full.csv").write_text("\n".join([*lines[:-3], ""]), encoding="utf-8")
    told = sememe("train", "classifier", "tickets.csv", "--out", "model", "--dim", 4).err
    assert "tickets.csv: 2 rows have an empty text" in told
    assert "1 of 23 lines" in told
    for command in (("predict",), ("evaluate", "labels")):
        assert "2 rows have an empty text" in sememe(*command, "model", "tickets.csv").err
        assert "empty" not in sememe(*command, "model", "full.csv").err
    clean = sememe("train", "classifier", "full.csv", "--out", "other", "--dim", 4).err
    assert "empty" not in clean
    assert "left out" not in clean


def test_one_label_for_all_lines_is_told_with_what_that_scores(sememe, tmp_path):
    lines = [
        f"__label__{label} word{n} more\n"
        for label, num in (("a", 60), ("b", 40))
        for n in range(num)
    ]
    (tmp_path / "c.txt").write_text("".join(lines))
    dull = ("train", "classifier", "c.txt", "--epochs", 1, "--learning-rate", 0.0001, "--out", "c")
    told = sememe(*dull, "--validation", "c.txt")
    assert "“a”" in told.err and "0.6000" in told.err
    told = sememe(*dull, "--validation", "c.txt", "--json", "--overwrite").json
    assert "0.6000" in told["validation"]["remark"]
    assert "“a”" in sememe("evaluate", "labels", "c", "c.txt").err


def test_several_labels_are_predicted_by_chosen_thresholds(sememe, train: Path):
    lines = [
        f"__label__食 {'__label__好 ' if n % 3 else ''}noodles {'fine' if n % 3 else 'plain'} tea\n"
        f"__label__travel train {n % 7} sea\n"
        for n in range(120)
    ]
    train.write_text("".join(lines), encoding="utf-8")
    adjusting = ("--loss", "ova", "--calibrate", "--thresholds", "f1", "--class-weights", "好=2")
    ran = sememe("train", "classifier", train, "--out", "sets", *adjusting, *SMALL, "--json")
    assert ran.json["learned"].keys() == {"multi_label", "calibration", "thresholds"}
    assert "Thresholds by F1 on" in ran.err and "Calibrated on" in ran.err
    Path("new.txt").write_text("fine noodles\nthe sea train\n", encoding="utf-8")
    first, second = sememe("predict", "sets", "new.txt").out.splitlines()
    assert {*first.split()} == {"食", "好"} and second == "travel"
    assert len(sememe("predict", "sets", "new.txt", "-k", 1).out.splitlines()[0].split()) == 1
    told = sememe("evaluate", "labels", "sets", train, "--json").json
    assert told["k"] == 0 and told["averages"]["macro"]["f1"] > 0.9
    sememe("predict", "sets", "new.txt", "--out", "p.jsonl")
    row = json.loads(Path("p.jsonl").read_text("utf-8").splitlines()[0])
    assert {*row["prediction"]} == {"食", "好"} and len(row["probability"]) == 2
    sememe("predict", "sets", "new.txt", "-k", -1, "--out", "all.csv")
    assert Path("all.csv").read_text("utf-8").splitlines()[0].endswith("p(食),p(travel),p(好)")

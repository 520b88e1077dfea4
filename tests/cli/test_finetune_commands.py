"""The fine-tuning commands as people type them: tables, JSON, seeds, grids, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from untrained import write_bert

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

ROWS = [
    (f"the {word} {thing} of the day", label)
    for label, words in (("good", ("good", "great", "fine")), ("坏", ("bad", "poor", "差劲")))
    for word in words
    for thing in ("film", "story", "song", "book", "电影")
]
QUICK = (
    "--device", "cpu", "--workers", 1, "--length", 24, "--batch-size", 8, "--learning-rate", 3e-3,
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of an untrained BERT."""
    texts, folder = [text for text, _ in ROWS] * 2, tmp_path_factory.mktemp("models") / "bert"
    return write_bert(folder, texts, vocab_size=200, max_length=32, width=32, initial_std=0.1)


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.tsv"
    lines = ["review\tstars", *(f"{text}\t{label}" for text, label in ROWS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def task(sememe, model, train):
    """A folder of a task that has learned."""
    ran = sememe(
        "finetune", "classify", model, "--train", train, "--dev", train, "--out", "task",
        "--column", "label=stars", "--epochs", 12, *QUICK,
    )  # fmt: skip
    assert "Saved to task" in ran.out
    return ran


def test_classify_prints_the_table_of_confusions(task):
    assert "good\t" in task.out and "坏\t" in task.out and "dev: accuracy" in task.out
    assert "label = “stars”" in task.err
    heading, *_ = task.out.splitlines()
    assert heading.split("\t") == ["right label \\ given label", "good", "坏"]
    good = next(line for line in task.out.splitlines() if line.startswith("good\t"))
    assert sum(map(int, good.split("\t")[1:])) == 15


def test_predict_and_evaluate(sememe, task, train):
    text = "the great film of the day\nthe 差劲 电影 of the day\n"
    Path("texts.txt").write_text(text, encoding="utf-8")
    assert sememe("predict", "task", "texts.txt").out == "good\n坏\n"
    first = sememe("predict", "task", "-", "--prob", "-k", 2, stdin=text).out.splitlines()[0]
    assert first.split()[0::2] == ["good", "坏"]
    rows = [
        json.loads(line) for line in sememe("predict", "task", train, "--json").out.splitlines()
    ]
    assert len(rows) == 30 and {row["label"] for row in rows} == {"good", "坏"}
    scores = sememe("evaluate", "labels", "task", train, "--column", "label=stars", "--json").json
    assert scores["metrics"]["accuracy"] > 0.9 and scores["num_rows"] == 30
    Path("bad.tsv").write_text("review\tstars\na great film\tgood\na\tb\tc\n", encoding="utf-8")
    for command in (("predict", "task"), ("evaluate", "labels", "task", "--column", "label=stars")):
        assert "--skip-bad" in sememe(*command, "bad.tsv", fails=True).err
        assert "1 row was left out" in sememe(*command, "bad.tsv", "--skip-bad").err
    assert sememe("info", "task", "--json").json["task"] == "classify"


def test_seeds_make_an_ensemble(sememe, model, train):
    ran = sememe(
        "finetune", "classify", model, "--train", train, "--dev", train, "--seeds", 2,
        "--ensemble", "--epochs", 1, "--column", "label=stars", "--out", "five", "--json", "-q",
        *QUICK,
    )  # fmt: skip
    assert [trial["options"]["seed"] for trial in ran.json["trials"]] == [1, 2]
    (setting,) = ran.json["settings"]
    assert len(setting["values"]) == 2 and setting["deviation"] >= 0 and not ran.err
    assert len(sememe("predict", "five", train).out.splitlines()) == 30


def test_a_sweep_tells_of_every_setting(sememe, model, train):
    ran = sememe(
        "finetune", "classify", model, "--train", train, "--sweep",
        "learning_rate=1e-9,3e-3 batch_size=8", "--epochs", 1, "--column", "label=stars", "--out",
        "best", "--seeds", 2, "--device", "cpu", "--workers", 1, "--length", 24,
    )  # fmt: skip
    heading, *lines = ran.out.splitlines()
    assert heading == "learning_rate\tbatch_size\taccuracy, mean ± sd\teach seed"
    assert lines[0].startswith("1e-09\t8\t") and lines[1].startswith("0.003\t8\t")
    assert "±" in lines[0] and "Run 4 of 4" in ran.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "--train must name"),
        (("--train", "nowhere.tsv"), "nowhere.tsv"),
        (("--train", "TRAIN", "--column", "text"), "text=review"),
        (("--train", "TRAIN", "--column", "label=grade"), "grade"),
        (("--train", "TRAIN", "--sweep", "batch_size"), "--sweep"),
        (("--train", "TRAIN", "--sweep", "epochs=two"), "--sweep"),
        (("--train", "TRAIN", "--ensemble"), "--seeds"),
        (("--train", "TRAIN", "--labels", "good,good"), "--labels"),
        (("--train", "TRAIN", "--column", "label=stars", "--labels", "good,x"), "坏"),
        (("--train", "TRAIN", "--length", 1_000), "length"),
    ],
)
def test_mistakes_get_a_sentence(sememe, model, train, arguments, part):
    own = [train if argument == "TRAIN" else argument for argument in arguments]
    ran = sememe("finetune", "classify", model, *QUICK, *own, "--out", "task", fails=True)
    assert ran.code == 2 and part in ran.err
    assert ran.err.splitlines()[-1].startswith("Error: ") and "Traceback" not in ran.err


def test_a_model_that_is_none(sememe, train):
    ran = sememe("finetune", "classify", "nowhere", "--train", train, "--out", "task", fails=True)
    assert ran.code == 2 and "nowhere" in ran.err
    ran = sememe("predict", "nowhere", train, fails=True)
    assert ran.code == 2


def test_options_of_classifiers_are_not_for_tasks(sememe, task, train):
    assert sememe("predict", "task", train, "--threshold", 0.5, fails=True).code == 2
    assert sememe("predict", "task", train, "-k", 0, fails=True).code == 2
    for option, value in (("-k", 2), ("--threshold", 0.5)):
        told = sememe("evaluate", "labels", "task", train, option, value, fails=True)
        assert told.code == 2 and f"{option.lstrip('-')} is " in told.err
        assert "for fastText" in told.err


def test_rows_that_are_left_out_keep_their_line(sememe, task, tmp_path):
    rows = ["the bad film\t", "a\tb\tc", "the good film\tgood", "  \tgood", "the fine song\t"]
    table = ["review\tstars", *rows]
    (tmp_path / "rows.tsv").write_text("\n".join(table))
    told = sememe("predict", "task", "rows.tsv", "--skip-bad")
    lines = told.out.split("\n")[:-1]
    assert [bool(line) for line in lines] == [True, False, True, False, True]
    assert "2 rows were left out" in told.err
    assert "rows.tsv, line 3: 3 columns" in told.err and "rows.tsv, line 5: empty" in told.err
    told = sememe("predict", "task", "rows.tsv", "--skip-bad", "--json").out.splitlines()
    assert [json.loads(line) is None for line in told] == [False, True, False, True, False]
    assert sememe("predict", "task", "rows.tsv", fails=True).code == 2


def test_empty_lines_of_a_text_keep_their_place(sememe, task, tmp_path):
    (tmp_path / "texts.txt").write_text("\nthe bad film\n\n \nthe good film\n\n")
    told = sememe("predict", "task", "texts.txt")
    lines = told.out.split("\n")[:-1]
    assert [bool(line) for line in lines] == [False, True, False, False, True, False]
    assert "4 rows were left out" in told.err and "texts.txt, line 6" in told.err


def test_many_rows_left_out_are_counted(sememe, task, tmp_path):
    (tmp_path / "texts.txt").write_text("the bad film\n" + "\n" * 20)
    told = sememe("predict", "task", "texts.txt")
    assert "20 rows were left out" in told.err and "and 15 more" in told.err


@pytest.fixture
def gb18030_rows(train):
    """Training rows in an encoding that is not UTF-8."""
    path = train.with_name("gb.tsv")
    path.write_bytes(train.read_text(encoding="utf-8").encode("gb18030"))
    return path


def test_predict_reads_the_encoding_of_the_training_rows(sememe, model, gb18030_rows, tmp_path):
    sememe(
        "finetune", "classify", model, "--train", gb18030_rows, "--encoding", "gb18030", "--out",
        "gb", "--column", "label=stars", "--steps", 2, *QUICK,
    )  # fmt: skip
    told = sememe("predict", "gb", gb18030_rows, "--json")
    assert "gb18030" in told.err and set(json.loads(told.out.splitlines()[0])["probabilities"])
    assert sememe("evaluate", "labels", "gb", gb18030_rows, "--json").json["num_rows"] == len(ROWS)
    refused = sememe("predict", "gb", gb18030_rows, "--encoding", "utf-8", fails=True)
    assert refused.code == 2 and "gb.tsv" in refused.err
    wrong = tmp_path / "wrong.tsv"
    wrong.write_bytes(b"review\tstars\nfilm \xff\xff\tgood\n")
    refused = sememe("predict", "gb", wrong, fails=True)
    assert refused.code == 2 and "wrong.tsv" in refused.err


def test_a_classifier_reads_the_encoding_of_the_training_rows(sememe, gb18030_rows):
    named = ("--column", "text=review", "--column", "label=stars", "--out", "gb-class")
    sememe("train", "classifier", gb18030_rows, "--encoding", "gb18030", *named)
    assert len(sememe("predict", "gb-class", gb18030_rows).out.splitlines()) == len(ROWS)
    refused = sememe("predict", "gb-class", gb18030_rows, "--encoding", "utf-8", fails=True)
    assert refused.code == 2 and "gb.tsv" in refused.err


def test_one_label_for_all_rows_is_told_with_what_that_scores(sememe, model, train, task):
    assert "same label" not in task.err and "one label" not in task.err
    named = ("--dev", train, "--column", "label=stars", "--out", "dull", *QUICK)
    dull = ("finetune", "classify", model, "--train", train, "--steps", 1, *named)
    told = sememe(*dull, "--learning-rate", 1e-9)
    table = sememe("predict", "dull", train).out.split()
    assert len({*table}) == 1 or "No better than one label" in told.err  # by chance of its start
    found = sememe("evaluate", "labels", "dull", train, "--json").json
    assert found["majority"] == 0.5 and "0.5000" in found["remark"]
    assert found["only"] == (table[0] if len({*table}) == 1 else "")


def test_scores_beside_the_most_frequent_label():
    from sememe.tasks.scores import Scores, beside_majority

    def remark(gold: str, said: str) -> str:
        right = sum(map(str.__eq__, gold, said)) / len(gold)
        more = beside_majority(gold, said)
        return Scores(
            metrics={"accuracy": right}, main_metric="accuracy", num_rows=99, **more
        ).remark

    assert "“a”" in remark("aaab", "aaaa") and "0.7500" in remark("aaab", "bbbb")
    assert "one label" in remark("aaab", "baab") and not remark("aaab", "aaab")

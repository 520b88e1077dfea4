"""Benchmarks in their official files, from the command line, with a tiny random BERT."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sememe.errors import OptionError

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import benchmark_files as files
from untrained import write_bert

QUICK = ("--steps", 2, "--batch-size", 4, "--length", 32, "--device", "cpu", "--quiet")
GLUE_FILES = {"CoLA", "SST-2", "MRPC", "QQP", "STS-B", "MNLI-m", "MNLI-mm", "QNLI", "RTE", "WNLI"}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """The folder of a BERT that has learned nothing."""
    texts = [*files.GOOD, *files.BAD, "小明在北京喝了牛奶。猫喜欢什么？", "John Smith Berlin Paris"]
    folder = tmp_path_factory.mktemp("models") / "tiny"
    return write_bert(folder, texts * 3, vocab_size=200, max_length=64, width=16)


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    files.write_glue(folder / "glue")
    files.write_texts(folder / "texts")
    files.write_chinese(folder / "zh")
    files.write_squad(folder)
    files.write_conll(folder)
    return folder


def by_name(content) -> dict[str, dict]:
    return {one["benchmark"]: one for one in content["outcomes"]}


def test_tensorboard_that_is_missing_is_said_before_rows_are_read(sememe, tiny, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.delattr("sememe.evaluation.finetuning.prepare")
    command = ("evaluate", "ner", tiny, "--data", data / "conll2003", "--tensorboard", "events")
    ran = sememe(*command, *QUICK, fails=True)
    assert ran.code == 2 and "pip install tensorboard" in ran.err


def test_all_of_glue(sememe, tiny, data, monkeypatch) -> None:
    command = (
        "evaluate",
        "glue",
        tiny,
        "--data",
        data / "glue",
        "--out",
        "kept",
        *QUICK,
    )
    found = sememe(*command, "--json").json
    assert found["missing"] == {} and set(found["columns"]) == {*GLUE_FILES}
    nine = [value for name, value in found["columns"].items() if name != "WNLI"]
    if None not in nine:
        assert found["average"] == pytest.approx(sum(nine) / 9)
    tasks = by_name(found)
    assert tasks["CoLA"]["main_metric"] == "matthews" and tasks["CoLA"]["num_train"] == 8
    assert set(tasks["MRPC"]["parts"]["dev"]["metrics"]) == {"binary_f1", "accuracy"}
    assert set(tasks["STS-B"]["parts"]["dev"]["metrics"]) == {"spearman", "pearson"}
    # Rows without an agreed label are no rows of the task.
    assert tasks["MNLI"]["parts"]["matched"]["num_rows"] == 5
    assert tasks["RTE"]["seeds"] == [1] and "sememe" in tasks["RTE"]["provenance"]["versions"]
    check_submissions(Path("kept") / "submission")
    # A second run takes what the first one left, without training anything.
    monkeypatch.setattr("sememe.tasks.task.Task.fit", None)
    again = sememe(*command[:-1]).out  # not quiet
    assert "MNLI-(m/mm)" in again and "BERT large †" in again and "kept/submission" in again
    assert sememe(*command, "--json").json["columns"] == found["columns"]


def check_submissions(folder: Path) -> None:
    assert {path.stem for path in folder.iterdir()} == GLUE_FILES
    for path in folder.iterdir():
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        assert head == "index\tprediction"
        indices, said = zip(*(line.split("\t") for line in lines), strict=True)
        assert list(indices) == ["0", "1", "2", "3"]
        if path.stem == "STS-B":
            assert all(0 <= float(score) <= 5 for score in said)
        elif path.stem.startswith("MNLI"):
            assert set(said) <= set(files.INFERENCE)
        elif path.stem in ("QNLI", "RTE"):
            assert set(said) <= {"entailment", "not_entailment"}
        else:
            assert set(said) <= {"0", "1"}


def test_missing_tasks_are_named(sememe, tiny, tmp_path) -> None:
    files.write_glue(tmp_path / "glue")
    (tmp_path / "glue" / "CoLA" / "train.tsv").unlink()
    for name in ("MNLI", "QQP", "QNLI", "MRPC", "RTE", "WNLI", "STS-B"):
        (tmp_path / "glue" / name).rename(tmp_path / name)
    result = sememe("evaluate", "glue", tiny, "--data", "glue", *QUICK[:-1])
    assert "CoLA was skipped: there is no CoLA/train.tsv." in result.out
    assert "RTE was skipped: there is no RTE/train.tsv, no RTE/dev.tsv." in result.out
    assert "QQP is skipped" in result.err and "mean of 1" in result.out


def test_seeds_and_earlier_results_stand_in_the_table(sememe, tiny, data) -> None:
    command = ("evaluate", "glue", tiny, "--data", data / "glue", "--only", "RTE", *QUICK)
    first = sememe(*command, "--seeds", 2, "--seed", 5, "--json")
    (task,) = first.json["outcomes"]
    assert task["seeds"] == [5, 6]
    scores = task["parts"]["dev"]["metrics"]["accuracy"]
    assert scores["mean"] == pytest.approx(sum(scores["by_seed"]) / 2) and scores["num"] == 2
    Path("first.json").write_text(first.out)
    lines = sememe(*command, "--against", "first.json").out.splitlines()
    assert len([line for line in lines if line.startswith("tiny  ")]) == 2


def test_sets_of_texts(sememe, tiny, data) -> None:
    command = ("evaluate", "texts", tiny, "--data", data / "texts", *QUICK)
    found = by_name(sememe(*command, "--json").json)
    assert set(found) == {"snli", "scitail", "sst5", "race", "swag", "storycloze", "xnli"}
    assert found["snli"]["parts"]["test"]["num_rows"] == 3
    assert set(found["race"]["parts"]) == {"dev", "test-middle", "test-high"}
    assert found["race"]["parts"]["dev"]["num_rows"] == 4 and found["race"]["num_train"] == 4
    assert set(found["xnli"]["parts"]) == {"test-en", "test-zh"}
    assert found["xnli"]["options"]["length"] == 32
    assert "The most frequent label alone: dev 33.3%" in found["sst5"]["notes"][0]


def test_chinese_sets(sememe, tiny, data) -> None:
    found = by_name(sememe("evaluate", "texts", tiny, "--data", data / "zh", *QUICK, "--json").json)
    assert set(found) == {"chnsenticorp", "lcqmc", "ocnli"}
    assert found["ocnli"]["parts"]["dev"]["num_rows"] == 3
    found = by_name(sememe("evaluate", "ner", tiny, "--data", data / "zh", *QUICK, "--json").json)
    assert set(found) == {"msra", "cluener"}
    command = ("evaluate", "squad", tiny, "--data", data / "zh", *QUICK)
    # Learned from another set, whose own rows cannot be asked any more.
    other = data / "zh" / "drcd" / "DRCD_dev.json"
    found = by_name(sememe(*command, "--train", other, "--json").json)
    assert set(found) == {"cmrc2018"}
    assert found["cmrc2018"]["files"]["train"] == ["DRCD_dev.json"]
    assert set(found["cmrc2018"]["parts"]["dev"]["metrics"]) == {"cmrc_f1", "cmrc_exact"}
    refused = sememe(*command, "--only", "drcd", fails=True)
    assert refused.code == 2 and "drcd: drcd*/DRCD_training.json" in refused.err


def test_answers_and_their_thresholds(sememe, tiny, data) -> None:
    command = ("evaluate", "squad", tiny, "--data", data / "squad", "--out", "kept", *QUICK)
    found = by_name(sememe(*command, "--json").json)
    assert set(found) == {"squad1.1", "squad2.0"}
    assert found["squad1.1"]["parts"]["dev"]["num_rows"] == 2
    assert set(found["squad1.1"]["parts"]["dev"]["metrics"]) == {"squad_f1", "squad_exact"}
    texts = json.loads(Path("kept/squad2.0/dev.seed-1.predictions.json").read_text())
    assert set(texts) == {"a", "b", "c"}  # as the official script takes them
    (details,) = found["squad2.0"]["details"]
    assert details["dev"]["best_f1"] >= 1 / 3  # no answer to all of them
    assert any(row["system"] == "human" for row in found["squad1.1"]["published"])


def test_answers_in_a_file_are_scored_as_the_official_script_does(sememe, data) -> None:
    Path("said.json").write_text(json.dumps({"a": "red cat", "b": "a dog.", "c": ""}))
    command = ("evaluate", "squad", "said.json", "--data", data / "squad", "--quiet")
    found = by_name(sememe(*command, "--json").json)
    scores = found["squad1.1"]["parts"]["dev"]["metrics"]
    # "a dog." and "A dog" are the same; "red cat" and "The red cat", too, without the article.
    assert scores["squad_exact"]["mean"] == 1 and scores["squad_f1"]["mean"] == 1
    Path("said.json").write_text(json.dumps({"a": "warm milk", "b": "dog", "c": "dog"}))
    found = by_name(sememe(*command, "--json").json)
    scores = found["squad2.0"]["parts"]["dev"]["metrics"]
    assert (
        scores["squad2_exact"]["mean"] == pytest.approx(1 / 3) and found["squad2.0"]["seeds"] == []
    )
    Path("said.json").write_text(json.dumps({"a": "warm milk"}))
    refused = sememe(*command, "--only", "squad1.1", fails=True)
    assert refused.code == 2 and "lacks answers to 1 of 2 questions, such as b" in refused.err


def test_a_fine_tuned_model_is_scored_as_it_is_and_compared(sememe, tiny, data) -> None:
    train = data / "conll2003" / "eng.train"
    from sememe.tasks.tag import Tag

    for seed in (1, 2):
        Tag(tiny, steps=2, batch_size=2, length=32, seed=seed, device="cpu").fit(
            train, dev=False, out=f"names-{seed}"
        )
    command = ("evaluate", "ner", "names-1", "--data", data / "conll2003", "--quiet")
    found = by_name(sememe(*command, "--out", "a", "--json").json)["conll2003"]
    assert found["seeds"] == [] and found["num_train"] == 0
    assert set(found["parts"]) == {"dev", "test"} and found["parts"]["test"]["num_rows"] == 4
    kept = [json.loads(line) for line in Path("a/conll2003/test.jsonl").read_text().splitlines()]
    assert len(kept) == 4 and len(kept[0]["gold"]) == len(kept[0]["predicted"]) == 6
    told = sememe(
        "compare", "names-1", "names-2", "--data", data / "conll2003" / "eng.testb", "--quiet"
    )
    assert "entity f1 on 4 rows" in told.out and "The difference" in told.out
    told = sememe("compare", "a/conll2003/test.jsonl", "a/conll2003/test.jsonl", "--json").json
    assert told["metric"] == "entity_f1" and told["is_real"] is False and told["difference"] == 0
    command = ("evaluate", "squad", "names-1", "--data", data / "squad", "--quiet")
    refused = sememe(*command, "--only", "squad1.1", fails=True)
    assert refused.code == 2 and "fine-tuned to tag; squad1.1 needs" in refused.err
    refused = sememe(*command, fails=True)
    assert refused.code == 2 and "with a model that was fine-tuned to tag" in refused.err


def test_a_fine_tuned_model_meets_the_tasks_of_its_labels(sememe, tiny, data) -> None:
    from sememe.tasks.classify import Pairs

    rte = data / "glue" / "RTE"
    Pairs(tiny, steps=2, length=32, device="cpu").fit(rte / "train.tsv", dev=False, out="entails")
    result = sememe("evaluate", "glue", "entails", "--data", data / "glue", "--json")
    assert set(result.json["columns"]) == {"RTE", "QNLI"}
    assert "MNLI is skipped" in result.err and "knows the labels entailment" in result.err


def test_models_of_transformers_are_scored_and_compared(sememe, tiny, data) -> None:
    from sememe.tasks.classify import Pairs

    rte = data / "glue" / "RTE"
    for name in ("ours", "theirs"):
        Pairs(tiny, steps=2, length=32, device="cpu").fit(rte / "train.tsv", dev=False, out=name)
    (Path("theirs") / "sememe.json").unlink()  # all that tells it from a folder of transformers
    command = ("evaluate", "glue", "--data", data / "glue", "--only", "RTE", "--json", "--quiet")
    first, second = (by_name(sememe(*command, name).json)["RTE"] for name in ("ours", "theirs"))
    assert first["parts"] == second["parts"] and second["seeds"] == []
    rows = ("--data", rte / "dev.tsv", "--quiet", "--json")
    told = sememe("compare", "ours", "theirs", *rows).json
    assert told["difference"] == 0 and told["scores"][0] == told["scores"][1]
    columns = ("--column", "text=sentence1", "--column", "second=sentence2")
    assert sememe("compare", "theirs", "theirs", *columns, *rows).json["scores"] == told["scores"]
    said = [sememe("predict", name, rte / "dev.tsv", *columns).out for name in ("ours", "theirs")]
    assert said[0] == said[1]


def test_test_files_that_come_later_are_answered(sememe, tiny, tmp_path) -> None:
    files.write_glue(tmp_path / "glue")
    rte = tmp_path / "glue" / "RTE"
    asked = (rte / "test.tsv").read_text(encoding="utf-8")
    (rte / "test.tsv").unlink()
    command = (
        "evaluate", "glue", tiny, "--data", "glue", "--only", "RTE", "--out", "kept", *QUICK[:-1],
    )  # fmt: skip
    sememe(*command, "--seeds", 2)
    submission = Path("kept/submission/RTE.tsv")
    assert not submission.exists()
    (rte / "test.tsv").write_text(asked, encoding="utf-8")
    assert "training again" in sememe(*command, "--seeds", 2).err
    assert len(submission.read_text().splitlines()) == 5
    assert "training again" not in sememe(*command, "--seeds", 2).err
    submission.unlink()
    for seed in (1, 2):  # whichever was the best of both, alone it must answer
        sememe(*command, "--seed", seed)
        assert len(submission.read_text().splitlines()) == 5
        submission.unlink()
    (rte / "test.tsv").write_text("\n".join(asked.split("\n")[:3]) + "\n", encoding="utf-8")
    assert "training again" in sememe(*command).err
    assert len(submission.read_text().splitlines()) == 3


def test_features_are_compared_and_drawn(sememe, tiny, data) -> None:
    command = (
        "evaluate", "features", tiny, "--data", data / "conll2003", "--reader-width", 4, *QUICK,
    )  # fmt: skip
    text = sememe(*command, "--choice", "first", "--picture", "layers.svg").out
    assert "embeddings" in text and "91.0" in text and "96.4" in text
    assert "<svg" in Path("layers.svg").read_text()
    refused = sememe(*command, "--choice", "concat-last-four", fails=True)
    assert refused.code == 2 and "four layers" in refused.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("glue", "MODEL"), "--data must name"),
        (("glue", "MODEL", "--data", "nowhere"), "nowhere is not a folder"),
        (("glue", "nowhere", "--data", "."), "no model at"),
        (("glue", "MODEL", "--data", "."), "no benchmark that can be run"),
        (("glue", "MODEL", "--data", ".", "--only", "GLUB"), "There is no 'GLUB'"),
        (("ner", "MODEL", "--data", ".", "--seeds", "0"), "--seeds"),
        (("squad", "MODEL", "--data", ".", "--train", "none.json"), "There is no file none.json"),
        (("texts", "MODEL", "--data", ".", "--against", "none.json"), "Cannot read none.json"),
        (("features", "MODEL", "--data", ".", "--choice", "middle"), "--choice must be one of"),
        (("features", "MODEL", "--data", ".", "--picture", "x.bmp"), "must end in .png or .svg"),
    ],
)
def test_what_cannot_be_run_is_refused(sememe, tiny, arguments, says) -> None:
    filled = [tiny if argument == "MODEL" else argument for argument in arguments]
    result = sememe("evaluate", *filled, fails=True)
    assert result.code == 2 and says in result.err and "Traceback" not in result.err


def test_a_comparison_without_rows_is_refused(sememe, tiny) -> None:
    result = sememe("compare", tiny, tiny, fails=True)
    assert result.code == 2 and "--data must name" in result.err
    result = sememe("compare", tiny, tiny, "--data", "x.tsv", fails=True)
    assert result.code == 2 and str(tiny) in result.err and "fine-tuned" in result.err


def test_typed_options_count_even_where_they_are_the_defaults(sememe, tiny, data, monkeypatch):
    seen = []

    def stop(model, folder, *, settings, **more):
        seen.append(settings.options)
        raise OptionError("seen")

    monkeypatch.setattr("sememe.evaluation.suites.evaluate_squad", stop)
    command = ("evaluate", "squad", tiny, "--data", data / "squad")
    sememe(*command, "--length", 128, "--seed", 3, fails=True)  # a benchmark's own is 384
    sememe(*command, fails=True)
    assert seen == [{"length": 128}, {}]


def test_a_recipe_searches_once_for_each_set(sememe, tiny, data, monkeypatch) -> None:
    command = ("evaluate", "glue", tiny, "--data", data / "glue", "--only", "CoLA", "--out", "kept")
    options = ("--recipe", "small-data", "--seeds", 2, *QUICK)
    (found,) = sememe(*command, *options, "--json").json["outcomes"]
    search = json.loads((Path("kept") / "CoLA" / "search.json").read_text())
    assert found["options"]["layer_decay"] == 0.9 and not found["options"]["keep_best"]
    assert f"learning_rate-{found['options']['learning_rate']:g}-draw-0" in search["runs"]
    monkeypatch.setattr("sememe.tasks.task.Task.fit", None)  # nothing is computed again
    (again,) = sememe(*command, *options, "--json").json["outcomes"]
    assert again["options"] == found["options"]
    said = sememe(*command, *options, "--choose-on-dev", fails=True)
    assert said.code == 2 and "choose_on_dev" in said.err

"""Studies by command: masking rates, learning rates."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

TINY = (
    "--num-layers", 1, "--width", 32, "--num-heads", 2, "--length", 32, "--vocab-size", 200,
    "--batch-size", 8, "--workers", 1, "--steps", 3, "--evaluate-batches", 1, "--device", "cpu",
    "--validation-share", 0.3,
)  # fmt: skip


def test_a_study_by_command(sememe, tmp_path):
    rows = [
        json.dumps(
            {
                "text": f"The {word} eats the fish in the sea , near the old red house , today .",
                "by": by,
            }
        )
        for word, by in (("cat", "a"), ("dog", "b"))
        for _ in range(80)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    options = ("rows.jsonl", "--column", "label=by", "--rates", "15,50", "--out", "study", *TINY)
    heading, *told = sememe("study", "masking", *options).out.splitlines()
    assert heading.startswith("hidden\tloss\tright\t")
    assert [line.split("\t")[0] for line in told[:2]] == ["15 %", "50 %"]
    assert told[2].startswith("downstream: which of 2 labels") and "3 steps each" in told[3]
    data = sememe("study", "masking", *options, "--resume", "--json").json
    assert [row["rate"] for row in data["rates"]] == [0.15, 0.5] and data["steps"] == 3
    assert told[0].split("\t")[1] == f"{data['rates'][0]['loss']:.3f}"
    assert (tmp_path / "study" / "study.png").stat().st_size > 1_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--rates", "a,b", "--out", "study"), "5,15,40,80"),
        (("--rates", "15,15", "--out", "study"), "different shares"),
        (("--rates", "15"), "--out"),
    ],
)
def test_what_is_wrong_with_a_study(sememe, corpus, options, says):
    result = sememe("study", "masking", corpus, *options, *TINY, fails=True)
    assert result.code == 2 and says in result.err


def test_a_rate_is_searched_before_any_command_that_trains(sememe, corpus, tmp_path):
    quick = ("--steps", 2, "--batch-size", 4, "--device", "cpu", "--workers", 1, "--quiet")
    search = ("study", "rates", "--num-steps", 30, "--highest", 10)
    nnlm = ("train", "nnlm", corpus, "--dim", 8, "--num-hidden", 8, "--min-count", 1, *quick)
    told = sememe(*search, *nnlm, "--out", "kept").out.splitlines()
    assert told[0].startswith("tried ") and told[1].startswith("the loss falls fastest at ")
    assert told[2].startswith("a tenth of ") and told[-1] == "Saved rates.png"
    assert (tmp_path / "rates.png").stat().st_size > 1_000 and not (tmp_path / "kept").exists()
    data = sememe(*search, "--out", "a.svg", "--json", *nnlm).json
    assert data["command"][:2] == ["train", "nnlm"] and data["present"] == 0.01
    assert data["steepest"] > 1e-5 and len(data["rates"]) == len(data["losses"]) > 9
    assert told[1].endswith(f"{data['steepest']:.1e}") and (tmp_path / "a.svg").exists()
    (tmp_path / "train.tsv").write_text("label\ttext\n" + "good\tred cat\nbad\tblue dog\n" * 12)
    sememe("train", "word2vec", corpus, "--out", "vectors", "--dim", 8, "--min-count", 1, "-q")
    tune = ("finetune", "classify", "vectors", "--train", "train.tsv", *quick)
    assert sememe(*search, "--json", *tune).json["tenth_of_minimum"] > 1e-5


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("train", "word2vec", "text.txt"), "not 'train word2vec'"),
        (("info", "model"), "not 'info model'"),
        (("train",), "not 'train'"),
        (("train", "nnlm", "nowhere.txt"), "nowhere.txt"),
        (("--lowest", 2, "train", "nnlm", "nowhere.txt"), "highest"),
        (("--out", "a.gif", "train", "nnlm", "nowhere.txt"), "must end in"),
    ],
)
def test_what_is_wrong_with_a_search(sememe, command, says):
    result = sememe("study", "rates", *command, fails=True)
    assert result.code == 2 and says in result.err

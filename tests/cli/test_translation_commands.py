"""Translation by command: train, translate, look, and what is wrong."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")

TINY = (
    "--num-layers", 1, "--width", 32, "--vocab-size", 320, "--batch-size", 256, "--workers", 1,
    "--steps", 6, "--device", "cpu",
)  # fmt: skip
ENGLISH = ["The dog runs.", "The cat sleeps.", "A man eats.", "The bird sings."] * 5
GERMAN = ["Der Hund rennt.", "Der Kater schläft.", "Ein Mann isst.", "Der Vogel singt."] * 5


@pytest.fixture
def texts(tmp_path):
    for name, lines in (("en", ENGLISH), ("de", GERMAN)):
        (tmp_path / f"train.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (tmp_path / f"dev.{name}").write_text("\n".join(lines[:4]) + "\n", encoding="utf-8")
    return "train.en", "train.de", "--dev-source", "dev.en", "--dev-target", "dev.de"


def test_from_text_to_translation(sememe, texts, tmp_path):
    told = sememe("train", "transformer", *texts, "--out", "model", *TINY).out
    assert told.startswith("Saved Transformer small to model") and "perplexity" in told
    assert "BLEU" in told and "tok:13a" in told
    facts = sememe("info", "model", "--json").json
    assert facts["kind"] == "transformer" and facts["network"]["width"] == 32
    assert "plan" not in facts and facts["parameters"] > 10_000

    one = sememe("translate", "model", "The dog runs.", "--quiet").out
    assert len(one.splitlines()) == 1
    piped = sememe("translate", "model", stdin="The dog runs.\n\nA man eats.\n").out.splitlines()
    assert len(piped) == 3 and piped[0] == one.rstrip("\n") and piped[1] == ""
    several = sememe("translate", "model", "The dog runs.", "--beam", 4, "--n-best", 2).out
    first, second = (line.split("\t") for line in several.splitlines())
    assert first[0] == second[0] == "The dog runs." and float(first[1]) >= float(second[1])

    sememe("translate", "model", "dev.en", "--out", "dev.hyp", "--quiet")
    lines = (tmp_path / "dev.hyp").read_text(encoding="utf-8").splitlines()
    scored = sememe("translate", "model", "dev.en", "--reference", "dev.de", "--json", "-q").json
    assert [row["translations"][0]["text"] for row in scored["translations"]] == lines
    assert 0 <= scored["bleu"] <= 100 and scored["pairs"] == 4 and scored["beam"] == 5
    told = sememe("translate", "model", "dev.en", "--reference", "dev.de", "--beam", 1, "-q").out
    assert told.startswith("BLEU ") and "beam 1" in told
    assert told.count("95 % interval") == 2 and "one seed" in told
    low, high = scored["bleu_interval"]
    assert 0 <= low <= high <= 100

    sememe("embed", "model", "dev.en", "--out", "texts.npy", "--quiet")
    sememe("embed", "model", "dev.en", "--pool", "words", "--out", "words.npy", "--quiet")
    assert np.load(tmp_path / "texts.npy").shape == (4, 32)
    assert np.load(tmp_path / "words.npy").shape == (16, 32)
    result = sememe("embed", "model", "dev.en", "--pool", "cls", "--out", "x.npy", fails=True)
    assert result.code == 2 and "cls" in result.err

    again = sememe("train", "transformer", *texts, "--out", "model", *TINY, "--resume", "--json")
    assert again.json["scores"]["pairs"] == 4


def test_pictures_of_attention(sememe, texts, tmp_path):
    sememe("train", "transformer", *texts, "--out", "model", *TINY)
    told = sememe("plot", "attention", "model", "The dog runs.", "Der Hund rennt.").out
    assert told == "Saved attention.png\n" and (tmp_path / "attention.png").stat().st_size > 1_000
    data = sememe("plot", "attention", "model", "The dog runs.", "Der Hund", "--json").json
    assert data["source"] == ["The", "dog", "runs", ".", "⟨end⟩"]
    assert data["target"] == ["Der", "Hund", "⟨end⟩"]
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in data["weights"])


def test_pictures_of_positions(sememe, texts, tmp_path):
    told = sememe("plot", "positions", "--length", 30, "--width", 64, "-o", "waves.png").out
    assert told == "Saved waves.png\n" and (tmp_path / "waves.png").stat().st_size > 1_000
    sememe("train", "transformer", *texts, "--out", "model", *TINY)
    sememe("plot", "positions", "model", "--length", 20, "-o", "model.svg")
    assert (tmp_path / "model.svg").stat().st_size > 1_000
    sememe("train", "seq2seq", *texts, "--out", "lstm", *TINY)
    result = sememe("plot", "positions", "lstm", fails=True)
    assert result.code == 2 and "kinds that can: gpt, bert, transformer" in result.err


def test_recurrent_layers(sememe, texts):
    options = ("--embedding-size", 24, "--attention", "additive", "--cell", "gru")
    told = sememe("train", "seq2seq", *texts, "--out", "model", *TINY, *options).out
    assert told.startswith("Saved Seq2Seq small to model") and "BLEU" in told
    assert sememe("info", "model", "--json").json["network"]["attention"] == "additive"
    assert len(sememe("translate", "model", "dev.en", "--beam", 2, "-q").out.splitlines()) == 4
    data = sememe("plot", "attention", "model", "The dog runs.", "--json").json
    assert data["source"][-1] == "⟨end⟩" and data["layer"] == 1


def test_a_table_with_columns(sememe, tmp_path):
    rows = [
        json.dumps({"zh": f"那只{zh}。", "en": f"The {en}."}, ensure_ascii=False)
        for en, zh in (("dog", "狗"), ("cat", "猫"), ("bird", "鸟"))
        for _ in range(5)
    ]
    rows.insert(3, json.dumps({"zh": "", "en": "Nothing."}))
    (tmp_path / "pairs.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    options = ("pairs.jsonl", "--column", "source=en", "--column", "target=zh", "--out", "model")
    result = sememe("train", "transformer", *options, *TINY, fails=True)
    assert result.code == 2 and "line 4: the target is empty" in result.err
    told = sememe("train", "transformer", *options, *TINY, "--skip-bad", "--json").json
    assert told["path"] == "model"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("train", "transformer", "train.en", "train.de"), "--out"),
        (("train", "transformer", "train.en", "none.de", "-o", "m"), "There is no file"),
        (("train", "transformer", "train.en", "dev.de", "-o", "m"), "20 lines"),
        (("train", "transformer", "train.en", "-o", "m"), "one column"),
        (("train", "transformer", "a.tsv", "-o", "m", "--column", "x"), "source=en"),
        (("train", "transformer", "train.en", "train.de", "-o", "m", "--dev-target", "x"), "needs"),
        (("translate", "none", "x"), "none"),
        (("translate", "train.en", "x"), "kinds that can: seq2seq"),
    ],
)
def test_what_is_wrong(sememe, texts, arguments, says):
    result = sememe(*arguments, fails=True)
    assert result.code == 2 and says in result.err


def test_a_file_that_is_not_there_is_no_text(sememe, texts):
    sememe("train", "transformer", *texts, "--out", "model", *TINY)
    result = sememe("translate", "model", "none.en", fails=True)
    assert result.code == 2 and "There is no file none.en" in result.err
    result = sememe("translate", "model", "train.en", "--reference", "dev.de", fails=True)
    assert result.code == 2 and "needs its reference" in result.err
    assert "translating" not in result.err  # it is said before the work

"""ULMFiT on the command line: three steps, suggestions, refusals."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

QUICK = (
    "--steps", 3, "--batch-size", 4, "--length", 12, "--min-count", 1, "--workers", 1,
    "--device", "cpu",
)  # fmt: skip


def test_three_steps_from_text_to_labels(sememe, corpus, tmp_path):
    sizes = "--num-cells", 16, "--width", 8, "--num-layers", 2
    ran = sememe("train", "ulmfit", corpus, "--out", "general", *sizes, *QUICK)
    assert "Saved ULMFiT tiny to general" in ran.out
    found = sememe("suggest", "general", "the ", "-k", 2, "--json").json
    assert len(found["suggestions"]) == 2
    rows = [f"good\tthe film was good {i}\nbad\tthe film was dull {i}" for i in range(8)]
    (tmp_path / "train.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n")
    (tmp_path / "reviews.txt").write_text("the film was good\nthe film was dull\n" * 8)
    more = "--from", "general", "--layer-decay", 0.3846, "--json"
    told = sememe("train", "ulmfit", "reviews.txt", "--out", "target", *more, *QUICK).json
    assert told["words"] == 5 and told["metrics"]["loss"] > 0
    assert sememe("info", "target", "--json").json["config"]["width"] == 8
    tricks = "--schedule", "slanted", "--layer-decay", 0.3846, "--unfreeze-every", 0.5
    sememe(
        "finetune", "classify", "target", "--train", "train.tsv", "--out", "task", "--epochs", 2,
        "--batch-size", 4, "--device", "cpu", "--quiet", *tricks,
    )  # fmt: skip
    said = sememe("predict", "task", "reviews.txt").out.split()
    assert len(said) == 16 and set(said) <= {"good", "bad"}
    assert sememe("info", "task", "--json").json["network"] == "ulmfit"


def test_refusals(sememe, corpus):
    ran = sememe("train", "ulmfit", corpus, "--from", "nowhere", "--out", "x", *QUICK, fails=True)
    assert ran.code == 2 and "no model folder at nowhere" in ran.err
    ran = sememe("train", "ulmfit", corpus, "--layer-decay", 3, "--out", "x", *QUICK, fails=True)
    assert ran.code == 2 and "layer_decay" in ran.err


def test_words_in_context(sememe, corpus, tmp_path):
    import numpy as np

    sizes = "--num-cells", 16, "--width", 8, "--num-layers", 2
    sememe("train", "ulmfit", corpus, "--out", "model", *sizes, *QUICK)
    (tmp_path / "texts.txt").write_text("The red cat .\n\nA dog ran .\n")
    told = sememe("embed", "model", "texts.txt", "--pool", "words", "-o", "w.npy", "--json").json
    assert (told["rows"], told["dim"], told["texts"]) == (6, 8, 3)
    rows = (tmp_path / "w.tsv").read_text().splitlines()
    assert rows[1:3] == ["0\tThe\t0\t3", "0\tred\t4\t7"]
    assert np.load(tmp_path / "w.npy").shape == (6, 8)
    told = sememe("embed", "model", "texts.txt", "--layers", 1, "-o", "t.npy", "--json").json
    assert (told["rows"], told["dim"]) == (3, 16)
    ran = sememe("embed", "model", "texts.txt", "--pool", "cls", "-o", "x.npy", fails=True)
    assert ran.code == 2 and "cls" in ran.err
    sememe("train", "ngram", corpus, "--out", "ngram", "--quiet")
    ran = sememe("embed", "ngram", "texts.txt", "-o", "x.npy", fails=True)
    assert ran.code == 2 and "kinds that can: onehot" in ran.err

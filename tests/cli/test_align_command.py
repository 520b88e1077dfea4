"""`align` and `evaluate induction` as commands, between two made-up languages."""

import numpy as np
import pytest

from sememe.vectors import WordVectors


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(3)
    english = random.normal(size=(200, 8))
    turn, _ = np.linalg.qr(random.normal(size=(8, 8)))
    names = [f"w{index}" if index % 3 else f"same{index}" for index in range(200)]
    words = [f"猫{index}" if name[0] == "w" else name for index, name in enumerate(names)]
    WordVectors(names, english).save(tmp_path / "en")
    WordVectors(words, english @ turn).save(tmp_path / "zh")
    pairs = [f"{a}\t{b}\n" for a, b in zip(words, names, strict=True)]
    (tmp_path / "train.txt").write_text("".join(pairs[:60]), encoding="utf-8")
    (tmp_path / "test.txt").write_text("".join(pairs[50:]), encoding="utf-8")
    return tmp_path


def test_the_commands(sememe, folder):
    made = sememe("align", "zh", "en", "--dictionary", "train.txt", "--out", "aligned")
    assert "seed pairs: 60 of 60" in made.out and "round 0" in made.out and "猫" in made.out
    found = sememe("evaluate", "induction", "aligned", "en", "--data", "test.txt", "--json").json
    assert (found["num_trained"], found["num_words"]) == (10, 140)
    assert found["scores"][0] | {"interval": 0} == {
        "system": "csls", "k": 1, "value": 1.0, "num_right": 140, "interval": 0,
    }  # fmt: skip
    plain = sememe("evaluate", "induction", "zh", "en", "--data", "test.txt").out
    assert "same spelling" in plain and "not scored: 0 that" in plain
    every = sememe(
        "evaluate",
        "induction",
        "aligned",
        "en",
        "--data",
        "test.txt",
        "--include-trained",
        "--json",
    ).json
    assert every["num_words"] == 150
    alike = sememe("align", "zh", "en", "--identical", "--out", "alike", "--json").json
    assert alike["pairs"] == 67 and alike["seed"] == "identical strings"
    assert sememe("neighbors", "aligned", "猫1").out
    assert sememe("info", "aligned").out


def test_commands_refuse(sememe, folder):
    assert "either" in sememe("align", "zh", "en", "--out", "x", fails=True).err
    assert "--out" in sememe("align", "zh", "en", "--identical", fails=True).err
    assert "--data" in sememe("evaluate", "induction", "zh", "en", fails=True).err
    missing = sememe("align", "zh", "en", "--dictionary", "no.txt", "--out", "x", fails=True)
    assert missing.code == 2 and "no.txt" in missing.err and not (folder / "x").exists()

"""GloVe as a command: text in, a folder out, clear words for what cannot be done."""

import json
from pathlib import Path

import numpy as np
import pytest

import sememe as package

TRAIN = ("train", "glove")
SMALL = ("--dim", 8, "--min-count", 2, "--epochs", 3, "--workers", 1, "--window", 5)


def test_a_file(sememe, corpus):
    result = sememe(*TRAIN, corpus, "--out", "model", *SMALL)
    assert "Saved" in result.out and "sememe neighbors model" in result.out
    assert "counts" in result.err and "loss" in result.err
    vectors = package.load("model")
    assert vectors.dim == 8 and "cat" in vectors
    told = sememe("info", "model", "--json").json
    assert told["kind"] == "glove" and told["config"]["x_max"] == 100.0
    assert sememe("neighbors", "model", "cat", "--num", 3).out.count("\n") == 3


def test_quiet_json_and_memory(sememe, corpus):
    options = ("--quiet", "--json", "--memory", "64M", "--unk")
    result = sememe(*TRAIN, corpus, "--out", "model", *SMALL, *options)
    assert result.err == ""
    vectors = package.load("model")
    assert result.json["words"] == len(vectors) and "<unk>" in vectors
    assert result.json["history"]["loss"] > 0
    manifest = json.loads(Path("model/sememe.json").read_text(encoding="utf-8"))
    assert manifest["config"]["memory"] == "64M"


def test_chinese(sememe, chinese_corpus):
    sememe(*TRAIN, chinese_corpus, "--language", "zh", "--out", "model", *SMALL)
    vectors = package.load("model")
    assert "红色" in vectors and np.isfinite(vectors.vectors).all()


def test_what_is_finished_is_not_trained_again(sememe, corpus):
    sememe(*TRAIN, corpus, "--out", "model", *SMALL, "--quiet")
    assert "finished already" in sememe(*TRAIN, corpus, "--out", "model", *SMALL, "--resume").err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--memory", "lots"), "memory must be an amount such as 4G"),
        (("--memory", "1M"), "memory must be at least 64M"),
        (("--x-max", "0"), "x_max must be between"),
        (("--learning-rate", "nan"), "learning_rate must be between"),
    ],
)
def test_options_that_cannot_be(sememe, corpus, options, said):
    result = sememe(*TRAIN, corpus, "--out", "model", *options, fails=True)
    assert said in result.err and "Traceback" not in result.err

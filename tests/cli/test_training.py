"""Training as a command: every way to give text, to stop and go on, to look at the result."""

import gzip
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sememe as package

TRAIN = ("train", "word2vec")
SMALL = ("--dim", 8, "--min-count", 2, "--epochs", 2, "--workers", 1)


def test_a_file(sememe, corpus):
    result = sememe(*TRAIN, corpus, "--out", "model", *SMALL)
    assert "Saved" in result.out and "sememe neighbors model" in result.out
    assert "loss" in result.err
    vectors = package.load("model")
    assert vectors.dim == 8 and "cat" in vectors and "cat".upper() not in vectors
    told = sememe("info", "model", "--json").json
    assert told["kind"] == "word2vec" and told["config"]["dim"] == 8
    assert told["config"]["learning_rate"] == 0.03 and "plan" not in told
    assert told["text"]["language"] == "en"
    assert sememe("neighbors", "model", "cat", "--num", 3).out.count("\n") == 3


def test_quiet_and_json(sememe, corpus):
    result = sememe(*TRAIN, corpus, "--out", "model", *SMALL, "--quiet", "--json")
    assert result.err == ""
    assert result.json["words"] == len(package.load("model"))
    assert result.json["history"]["loss"] > 0


def test_a_model_that_is_there_is_replaced_only_when_asked(sememe, corpus):
    sememe(*TRAIN, corpus, "--out", "model", *SMALL)
    refused = sememe(*TRAIN, corpus, "--out", "model", "--dim", 9, fails=True)
    assert refused.code == 2 and "--overwrite" in refused.err and refused.err.count("\n") == 1
    assert package.load("model").dim == 8
    sememe(*TRAIN, corpus, "--out", "model", *SMALL[2:], "--dim", 9, "--overwrite")
    assert package.load("model").dim == 9


def test_chinese(sememe, chinese_corpus):
    sememe(*TRAIN, chinese_corpus, "--language", "zh", "--out", "model", *SMALL)
    assert "红色" in package.load("model")
    assert sememe("neighbors", "model", "喜欢").out


def test_a_short_text_is_told_to_need_more_passes(sememe, tmp_path):
    (tmp_path / "few.txt").write_text("the cat saw the dog\n" * 40)
    told = sememe(*TRAIN, "few.txt", "--out", "model", *SMALL).out
    (more,) = re.findall(r"(--epochs \S+)", told)  # as it would be typed
    again = sememe(*TRAIN, "few.txt", "--out", "m", *SMALL, *more.split()).out
    assert "--epochs" not in again


def test_the_word_to_try_has_no_apostrophe(sememe, tmp_path):
    (tmp_path / "text.txt").write_text("can't don't isn't we'll won't zebras\n" * 9)
    told = sememe(*TRAIN, "text.txt", "--out", "model", *SMALL).out
    assert "Try: sememe neighbors model zebras\n" in told


def test_the_word_to_try_is_no_single_character(sememe, tmp_path):
    (tmp_path / "zh.txt").write_text("我 你 他 的 了 在 医生 看 病人 和 书\n" * 9, encoding="utf-8")
    told = sememe(*TRAIN, "zh.txt", "--language", "none", "--out", "model", *SMALL).out
    (word,) = re.findall(r"Try: sememe neighbors model (\S+)", told)
    assert word in ("医生", "病人")
    (tmp_path / "one.txt").write_text("好 不\n" * 9, encoding="utf-8")
    assert "Try: " in sememe(*TRAIN, "one.txt", "--language", "none", "--out", "m", *SMALL).out


def test_every_way_to_give_the_same_text(sememe, corpus, tmp_path):
    text = corpus.read_text()
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({"body": line}) + "\n" for line in text.splitlines())
    )
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(text.encode()))
    ways = {
        "file": ((corpus,), None),
        "pattern": (("te*.txt",), None),
        "jsonl": (("rows.jsonl", "--column", "text=body"), None),
        "gz": (("packed.txt.gz",), None),
        "stdin": (("-",), text),
    }
    tables = []
    for name, (arguments, stdin) in ways.items():
        sememe(*TRAIN, *arguments, "--out", name, *SMALL, "--quiet", stdin=stdin)
        tables.append(package.load(name).vectors)
    for table in tables[1:]:
        assert np.array_equal(table, tables[0])


@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["negative", "hierarchical", "softmax"])
def test_every_kind(sememe, corpus, architecture, loss):
    options = ("--architecture", architecture, "--loss", loss, *SMALL, "--quiet")
    sememe(*TRAIN, corpus, "--out", "model", *options)
    assert np.isfinite(package.load("model").vectors).all()


def test_phrases(sememe, tmp_path):
    draw = np.random.default_rng(1)
    rows = [" ".join(f"w{n}" for n in draw.integers(0, 200, 20)) for _ in range(400)]
    rows[::20] = ["we flew to new york"] * 20
    (tmp_path / "text.txt").write_text("\n".join(rows) + "\n")
    sememe(*TRAIN, "text.txt", "--phrases", 2, "--out", "model", *SMALL, "--quiet")
    assert any("_" in word for word in package.load("model"))


def test_a_store_is_kept_and_used_again(sememe, corpus, tmp_path):
    sememe(*TRAIN, corpus, "--store", "store", "--out", "first", *SMALL, "--quiet")
    written = (tmp_path / "store" / "ids.bin").stat().st_mtime_ns
    again = sememe(*TRAIN, corpus, "--store", "store", "--out", "second", *SMALL)
    assert (tmp_path / "store" / "ids.bin").stat().st_mtime_ns == written
    assert "reading text" not in again.err
    assert np.array_equal(package.load("first").vectors, package.load("second").vectors)


def test_pretrained_vectors_as_a_start(sememe, corpus):
    sememe(*TRAIN, corpus, "--out", "first", *SMALL, "--quiet")
    # A rate near zero leaves the start where it was.
    still = ("--learning-rate", 1e-9, "--min-learning-rate", 0)
    sememe(*TRAIN, corpus, "--start", "first", "--out", "second", *SMALL, *still, "--quiet")
    first, second = package.load("first"), package.load("second")
    assert np.allclose(first["cat"], second["cat"], atol=1e-4)


def test_preview(sememe, corpus, chinese_corpus, tmp_path):
    before = sorted(tmp_path.iterdir())
    options = ("--preview", "--min-count", 1, "--sample", 0)
    text = sememe(*TRAIN, corpus, *options).out
    assert "red → the 1 |" in text and "sigmoid" in text and "share a pool" in text
    data = sememe(*TRAIN, corpus, *options, "--json").json
    assert (data["pairs"][0]["source"], data["pairs"][0]["target"]) == (["red"], "the")
    assert f"{data['update'][0]['score']:+.5f}" in text
    text = sememe(*TRAIN, chinese_corpus, "--language", "zh", *options, "--loss", "softmax").out
    assert "喜欢" in text and "softmax" in text and "share a pool" not in text
    assert "left 1" in sememe(*TRAIN, corpus, *options, "--loss", "hierarchical").out
    refused = sememe(*TRAIN, corpus, "--preview", "--min-count", 10**6, fails=True)
    assert refused.code == 2 and "No word occurs 1,000,000 times" in refused.err
    assert sorted(tmp_path.iterdir()) == before


def test_scores_while_training(sememe, corpus, tmp_path):
    (tmp_path / "pairs.txt").write_text("cat dog 8\ncat field 2\nred blue 9\nold warm 3\n")
    options = ("--evaluate-every", 500, "--data", "pairs.txt", "--epochs", 4)
    sememe(*TRAIN, corpus, "--out", "model", *SMALL[:4], "--workers", 1, *options, "--quiet")
    history = json.loads((tmp_path / "model" / "history.json").read_text())
    scores = [record["score"] for record in history if "score" in record]
    assert len(scores) >= 2 and all(-1 <= score <= 1 for score in scores)


@pytest.fixture
def longer_text(tmp_path: Path) -> Path:
    """Enough text for some seconds of training with one worker."""
    draw = np.random.default_rng(1)
    words = np.array([f"w{index}" for index in range(2_000)])
    lines = [" ".join(words[draw.zipf(1.3, 20) % 2_000]) for _ in range(20_000)]
    path = tmp_path / "longer.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
def test_interrupted_and_resumed(own_cache, longer_text, tmp_path):
    """Ctrl-C ends with 130 and a word; --resume gives the vectors of a run without a stop."""
    options = ["--dim", "64", "--epochs", "30", "--workers", "1", "--language", "none"]
    options += ["--checkpoint-minutes", "0.001"]
    command = [sys.executable, "-m", "sememe.cli", *TRAIN, str(longer_text), *options]

    def run(*more: str) -> subprocess.CompletedProcess:
        return subprocess.run([*command, *more], capture_output=True, text=True, check=True)

    run("--out", str(tmp_path / "whole"))
    started = subprocess.Popen(
        [*command, "--out", str(tmp_path / "cut")], stderr=subprocess.PIPE, text=True
    )
    while started.poll() is None and not (tmp_path / "cut.checkpoints" / "latest.json").exists():
        time.sleep(0.01)
    started.send_signal(signal.SIGINT)
    _, told = started.communicate(timeout=600)
    assert started.returncode == 130 and "--resume" in told and "Traceback" not in told
    run("--out", str(tmp_path / "cut"), "--resume")
    whole, cut = package.load(tmp_path / "whole"), package.load(tmp_path / "cut")
    assert np.array_equal(whole.vectors, cut.vectors)

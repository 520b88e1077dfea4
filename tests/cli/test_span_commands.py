"""Tagging and answers as people type them: files in, words and spans with their places out."""

from __future__ import annotations

import json

import pytest
from untrained import write_bert

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

CONLL = "".join(
    f"the DT O\n{word} NN I-PET\nsat VB O\n\n" for word in ("cat", "dog", "猫", "狗") * 4
)
CONTEXT = "the old dog ran and the cat sat on a warm mat"
QUICK = (
    "--device", "cpu", "--workers", 1, "--batch-size", 8, "--learning-rate", 3e-3, "--epochs", 8,
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of an untrained BERT."""
    texts = [CONTEXT, "猫坐在垫子上,狗在街上跑", "where is the cat"] * 2
    folder = tmp_path_factory.mktemp("models") / "bert"
    return write_bert(folder, texts, vocab_size=220, max_length=32, width=32, initial_std=0.1)


def test_tags_of_files_and_of_running_text(sememe, model, tmp_path):
    (tmp_path / "train.txt").write_text(CONLL, encoding="utf-8")
    ran = sememe(
        "finetune", "tag", model, "--train", "train.txt", "--dev", "train.txt", "--out", "task",
        "--length", 16, *QUICK,
    )  # fmt: skip
    assert ran.code == 0 and "dev: f1 1.0000" in ran.out
    assert "train.txt: 3 columns" in ran.err and "IOB1" in ran.err
    (tmp_path / "new.txt").write_text("the cat sat。\n猫,狗\n", encoding="utf-8")
    lines = sememe("predict", "task", "new.txt").out.split("\n")
    assert (
        lines[:3] == ["the\tO", "cat\tB-PET", "sat\tO"] and lines[4] == "" and lines[5][0] == "猫"
    )
    said = [
        json.loads(line) for line in sememe("predict", "task", "new.txt", "--json").out.splitlines()
    ]
    assert said[0]["spans"][0] | {"probability": 1} == {
        "type": "PET", "text": "cat", "start": 4, "end": 7, "probability": 1,
    }  # fmt: skip
    assert (said[1]["starts"], said[1]["ends"]) == ([0, 1, 2], [1, 2, 3])
    ran = sememe("evaluate", "labels", "task", "train.txt", "--column", "tags=2", fails=True)
    assert ran.code == 2 and "the tag 'DT' is not among those known" in ran.err


def test_answers_of_files(sememe, model, tmp_path):
    rows = [{"question": "where is the cat", "context": CONTEXT, "answer": "on a warm mat"}] * 8
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = sememe(
        "finetune", "answer", model, "--train", "train.jsonl", "--dev", "train.jsonl", "--out",
        "task", "--length", 16, "--stride", 4, *QUICK,
    )  # fmt: skip
    assert ran.code == 0 and "dev: f1 1.0000, exact 1.0000" in ran.out
    (tmp_path / "new.csv").write_text(f"question,context\nwhere is the cat,{CONTEXT}\n")
    assert sememe("predict", "task", "new.csv").out == "on a warm mat\n"
    (said,) = [
        json.loads(line) for line in sememe("predict", "task", "new.csv", "--json").out.splitlines()
    ]
    assert CONTEXT[said["start"] : said["end"]] == said["text"] == "on a warm mat"
    assert {"text", "start", "end", "probability"} == set(said["candidates"][0])
    two = sememe("predict", "task", "new.csv", "-k", 2, "--prob").out
    assert len(two.rstrip("\n").split("\t")) == 2


def test_mistakes_are_named(sememe, model, tmp_path):
    (tmp_path / "bad.jsonl").write_text(
        '{"question": "q", "context": "a b", "answer": "b"}\n'
        '{"question": "q", "context": "a b", "answer": "b", "answer_start": 1}\n'
    )
    command = ("finetune", "answer", model, "--train", "bad.jsonl", "--out", "task", "--length", 16)
    ran = sememe(*command, *QUICK, fails=True)
    assert ran.code == 2 and "bad.jsonl, line 2: the context has ' ' at character 1" in ran.err
    ran = sememe(*command, *QUICK, "--skip-bad", "--dev", "bad.jsonl")
    assert ran.code == 0 and "1 row was left out" in ran.err
    (tmp_path / "bad.txt").write_text("the O\ncat\n")
    ran = sememe(
        "finetune",
        "tag",
        model,
        "--train",
        "bad.txt",
        "--out",
        "t2",
        "--length",
        16,
        *QUICK,
        fails=True,
    )
    assert ran.code == 2 and "bad.txt, line 2: 1 columns, where the first line has 2" in ran.err

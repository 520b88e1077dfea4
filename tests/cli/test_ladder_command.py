"""`sememe ladder` as it is typed: a table, JSON, a report, and one sentence for a mistake."""

from __future__ import annotations

import json
import random

import pytest

FEW = ("--tokens", 8_000, "--workers", 1, "--rows", 24, "--seeds", 1, "--min-count", 1)


@pytest.fixture
def corpus(tmp_path):
    draw = random.Random(3)
    words = [
        "ship",
        "sailor",
        "harbor",
        "wave",
        "storm",
        "captain",
        "judge",
        "lawyer",
        "trial",
        "witness",
        "verdict",
        "jury",
    ]
    texts = [" ".join(draw.choices(words, k=80)) + "." for _ in range(60)]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def test_a_ladder_ends_with_a_table_and_a_report(sememe, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["sememe", "ladder", "a text.txt"])
    result = sememe("ladder", corpus, "--rungs", "onehot,counts,ngram", "--out", "runs/l", *FEW)
    assert "counts (PPMI, SVD)" in result.out and "perplexity" in result.out
    assert "runs/l/report.html" in result.out
    page = (tmp_path / "runs/l/report.html").read_text(encoding="utf-8")
    assert "n-gram" in page and "<script src" not in page
    metrics = json.loads((tmp_path / "runs/l/results.json").read_text(encoding="utf-8"))
    assert [rung["state"] for rung in metrics["rungs"]] == ["done"] * 3
    assert metrics["command"] == "sememe ladder 'a text.txt'" and metrics["seconds"] > 0
    told = sememe("info", "runs/l", "--json").json
    assert told["kind"] == "ladder" and told["rungs"]["counts"] == "done"
    again = sememe(
        "ladder", corpus, "--rungs", "onehot,counts,ngram", "--out", "runs/l", *FEW, "--resume",
        "--json", "--quiet",
    )  # fmt: skip
    same = [(cell["rung"], cell["task"], cell["mean"]) for cell in again.json["cells"]]
    assert same == [(cell["rung"], cell["task"], cell["mean"]) for cell in metrics["cells"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rungs", "word3vec"), "word3vec"),
        (("--budget", "soon"), "budget"),
        (("--task", "classify=only.tsv"), "--task"),
        (("--out", "full"), "full exists and is not a ladder"),
    ],
)
def test_a_mistake_gets_one_sentence(sememe, corpus, tmp_path, options, said):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    result = sememe("ladder", corpus, *options, fails=True)
    assert said in result.err and "Traceback" not in result.err


def test_help_names_every_rung(sememe):
    from sememe.ladder.rungs import SPECS

    told = sememe("ladder", "--help").out
    assert not [name for name in SPECS if name not in told]

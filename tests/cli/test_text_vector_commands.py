"""`sememe evaluate retrieval` and `sememe evaluate sts`: tables, JSON, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sememe.vectors import WordVectors


@pytest.fixture
def files(tmp_path):
    rows = np.array([[1, 0.1], [0.1, 1], [0.9, 0.3]], np.float32)
    for name in ("first", "second"):
        WordVectors(["cat", "car", "dog"], rows).save(tmp_path / name)
    (tmp_path / "set" / "qrels").mkdir(parents=True)
    texts = [{"_id": "d1", "text": "a cat and a dog"}, {"_id": "d2", "text": "a car"}]
    queries = [{"_id": "q1", "text": "dog"}, {"_id": "q2", "text": "car"}]
    for name, content in (("corpus", texts), ("queries", queries)):
        lines = "\n".join(map(json.dumps, content))
        (tmp_path / "set" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "set" / "qrels" / "test.tsv").write_text("q1\td1\t1\nq2\td2\t1\n")
    (tmp_path / "pairs.tsv").write_text("cat\tdog\t5\ncat\tcar\t1\ncar\tdog\t0.5\n")
    return tmp_path


def test_retrieval_of_two_models_beside_bm25(sememe, files):
    ran = sememe("evaluate", "retrieval", "first", "second", "--data", "set", "-q")
    assert "set: 2 queries, 2 documents" in ran.out and "second + BM25" in ran.out
    told = sememe("evaluate", "retrieval", "first", "--data", "set", "--json").json
    assert [one["system"] for one in told["systems"]] == ["BM25", "first", "first + BM25"]
    assert all(one["nDCG@10"]["value"] == 1 for one in told["systems"])
    (alone,) = sememe("evaluate", "retrieval", "--data", "set", "--json").json["systems"]
    assert alone == told["systems"][0]


def test_sts_of_two_models(sememe, files):
    ran = sememe("evaluate", "sts", "first", "second", "--data", "pairs.tsv", "-q")
    assert "pairs.tsv: 3 pairs" in ran.out and "against the first" in ran.out
    told = sememe("evaluate", "sts", "first", "--data", "pairs.tsv", "--json").json
    assert told["scores"][0]["spearman"] == pytest.approx(0.5) and told["num_pairs"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("retrieval", "missing", "--data", "set"), "no model at missing"),
        (("retrieval", "first", "--data", "none"), "no folder none"),
        (("retrieval", "first", "--split", "all"), "no 'all'"),
        (("sts", "first"), "--data must name"),
        (("sts", "first", "--data", "none.tsv"), "none.tsv"),
    ],
)
def test_what_is_refused(sememe, files, arguments, message):
    ran = sememe("evaluate", *arguments, fails=True)
    assert ran.code == 2 and message in " ".join(ran.err.split())
    assert "Traceback" not in ran.err

"""Retrieval: BEIR folders, BM25 and fusion beside every model, and what is refused."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest

from sememe import evaluate_retrieval
from sememe.contract import Model
from sememe.errors import InputError
from sememe.evaluation import retrieval
from sememe.evaluation.retrieval import RetrievalSet, built_in_set, read_beir
from sememe.examples.labelled.rows import LabelledRows, TextRow
from sememe.localization import using
from sememe.search.lexical import BM25
from sememe.text.settings import TextSettings

DOCUMENTS = {
    "d1": ("Cats", "A cat sleeps on the warm mat."),
    "d2": ("", "Dogs chase the red ball."),
    "d3": ("Fish", "Fish swim in cold water."),
}
QUERIES = {"q1": "where does the cat sleep", "q2": "animals in water", "unused": "nothing"}
JUDGMENTS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td3\t2\nq2\td2\t0\n"


def write_beir(folder: Path, documents=DOCUMENTS, queries=QUERIES, judged=JUDGMENTS) -> Path:
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": own, "title": title, "text": text} for own, (title, text) in documents.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    rows = [{"_id": own, "text": text, "metadata": {}} for own, text in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    return folder


class Letters(Model):
    """A model whose vectors count letters; queries need a prompt."""

    kind = "vectors"
    text = TextSettings()

    def __init__(self) -> None:
        self.seen: list[str] = []

    def prompt(self, role: str = "") -> str:
        return f"{role}: "

    def embed(self, texts, **_):
        self.seen += texts
        rows = [
            [text.split(": ", 1)[1].lower().count(chr(97 + n)) for n in range(26)] for text in texts
        ]
        return np.array(rows, np.float32)


def test_a_folder_is_read_with_titles_and_judged_queries_only(tmp_path):
    found = read_beir(write_beir(tmp_path / "pets"))
    assert (found.name, list(found.document_ids), list(found.queries)) == (
        "pets", ["d1", "d2", "d3"], ["q1", "q2"],
    )  # fmt: skip
    texts = ["Cats A cat sleeps on the warm mat.", "Dogs chase the red ball."]
    assert list(found.texts())[:2] == list(found.texts())[:2] == texts
    assert found.judgments == {"q1": {"d1": 1}, "q2": {"d3": 2, "d2": 0}}


def test_compressed_files_and_judgments_without_a_header(tmp_path):
    folder = write_beir(tmp_path / "pets", judged="q1\td1\t1\n")
    plain = (folder / "corpus.jsonl").read_bytes()
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(plain))
    assert read_beir(folder).judgments == {"q1": {"d1": 1}}


def test_bm25_stands_beside_a_model_and_with_it(tmp_path):
    model = Letters()
    result = evaluate_retrieval(model, write_beir(tmp_path / "pets"))
    assert [system.name for system in result.systems] == ["BM25", "vectors 1", "vectors 1 + BM25"]
    assert result["BM25"].value() == 1 and result["BM25"].value("MAP") == 1
    assert {text.split(": ")[0] for text in model.seen} == {"query", "document"}
    told = result.to_dict()
    assert told["num_queries"] == 2 and told["num_documents"] == 3 and len(told["comparisons"]) == 3
    assert told["systems"][0]["nDCG@10"]["value"] == 1
    assert "vectors 1 + BM25" in str(result) and "2 queries, 3 documents" in str(result)
    with using("zh"):
        assert "2 个查询，3 篇文档" in str(result) and "一个种子" in str(result)
    json.dumps(told)


def test_scores_equal_ir_measures_on_the_run_of_bm25():
    peer = pytest.importorskip("ir_measures")
    rng = random.Random(2)
    words = [f"word{number}" for number in range(60)]
    texts = [" ".join(rng.choices(words, k=12)) for _ in range(400)]
    texts[7] = texts[8] = texts[9]  # ties
    queries = {f"q{number}": " ".join(rng.sample(words, 3)) for number in range(40)}
    judged = {
        query: {f"d{rng.randrange(400)}": rng.choice([1, 1, 2, 3]) for _ in range(4)}
        for query in queries
    }
    ids = [f"d{number}" for number in range(400)]
    data = RetrievalSet(
        name="made up", document_ids=ids, queries=queries, judgments=judged, rows=texts
    )
    result = evaluate_retrieval((), data)
    found = BM25.build(texts, TextSettings()).search([*queries.values()], 1_000)
    run = {
        query: {ids[own]: float(score) for own, score in zip(*results, strict=True)}
        for query, results in zip(queries, found, strict=True)
    }
    names = {peer.nDCG @ 10: "nDCG@10", peer.R @ 100: "Recall@100", peer.AP: "MAP"}
    for measure, value in peer.calc_aggregate(list(names), judged, run).items():
        assert result["BM25"].value(names[measure]) == pytest.approx(value, abs=1e-6)


def test_a_document_with_the_id_of_the_query_is_no_result(tmp_path):
    documents = {"q1": ("", "the same cat"), "d1": ("", "another cat")}
    folder = write_beir(tmp_path / "own", documents, {"q1": "the same cat"}, "q1\td1\t1\n")
    assert evaluate_retrieval((), folder)["BM25"].value("MRR@10") == 1


def test_a_query_without_a_vector_finds_nothing_and_leaves_bm25_as_it_is(tmp_path):
    folder = write_beir(
        tmp_path / "pets", queries={"q1": "cat", "q2": "2 red 1"}, judged="q2\td2\t1\n"
    )
    result = evaluate_retrieval(Letters(), folder)
    assert result["vectors 1"].value() > 0
    documents = {"d1": ("", "12 34"), "d2": ("", "many letters")}
    folder = write_beir(tmp_path / "numbers", documents, {"q": "12"}, "q\td1\t1\n")
    result = evaluate_retrieval(Letters(), folder)
    assert result["vectors 1"].value() == 0 and result["vectors 1 + BM25"].value() == 1


def test_chinese_is_detected_and_segmented(tmp_path, monkeypatch):
    documents = {"d1": ("猫", "小猫喜欢在沙发上睡觉。"), "d2": ("", "北京是中国的首都，人口众多。")}
    folder = write_beir(tmp_path / "zh", documents, {"q": "中国首都是哪里"}, "q\td2\t1\n")
    result = evaluate_retrieval((), folder)
    assert result.language == "zh" and result["BM25"].value("MRR@10") == 1
    assert evaluate_retrieval((), folder, language="en").language == "en"


def test_many_vectors_are_kept_in_a_temporary_file(tmp_path, monkeypatch):
    folder = write_beir(tmp_path / "pets")
    before = evaluate_retrieval(Letters(), folder).to_dict()
    monkeypatch.setattr(retrieval, "_MOST_BYTES", 0)
    monkeypatch.setattr(retrieval, "_TEXTS_AT_ONCE", 2)
    assert evaluate_retrieval(Letters(), folder).to_dict() == before


def test_the_built_in_set_asks_for_bodies_by_summaries(monkeypatch):
    rows = [("Sort rows.", "body one"), ("sort rows.", "body two"), ("Find it.", "body three")]
    pairs = LabelledRows(TextRow(text=text, second=second) for text, second in rows)
    monkeypatch.setattr(retrieval, "docstring_pairs", lambda split, limit=None: pairs)
    found = built_in_set()
    assert list(found.queries.values()) == ["Sort rows.", "Find it."]
    assert found.judgments == {"q0": {"d0": 1, "d1": 1}, "q1": {"d2": 1}}
    assert list(found.texts()) == ["body one", "body two", "body three"]


BAD = '{"_id": "d1", "text": "x"}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", None, "no corpus.jsonl"),
        ("queries.jsonl", None, "no queries.jsonl"),
        ("qrels/test.tsv", None, "no test.tsv"),
        ("corpus.jsonl", BAD + "{broken", "line 2"),
        ("corpus.jsonl", '{"_id": "d1"}\n', "needs _id and text"),
        ("corpus.jsonl", '{"_id": "d1", "text": 5}\n', "needs _id and text"),
        ("corpus.jsonl", BAD + BAD, "comes twice"),
        ("corpus.jsonl", BAD.replace("d1", "z"), "none of the documents"),
        ("queries.jsonl", '{"_id": "q1", "text": "x"}\n', "no query 'q2'"),
        ("qrels/test.tsv", "a\tb\tc\nq1\td1\tyes\n", "line 2"),
        ("qrels/test.tsv", "q1\td1\nq2\td2\n", "a judgment is"),
        ("qrels/test.tsv", "q1\td1\t0\n", "no relevant document"),
        ("qrels/test.tsv", "", "no relevant document"),
    ],
)
def test_bad_folders_are_one_sentence(tmp_path, name, content, message):
    folder = write_beir(tmp_path / "pets")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        evaluate_retrieval((), folder)


def test_missing_folders_other_splits_and_twice_the_same_model(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        evaluate_retrieval((), tmp_path / "none")
    folder = write_beir(tmp_path / "pets")
    with pytest.raises(InputError, match=r"has no dev\.tsv; it has test"):
        evaluate_retrieval((), folder, split="dev")
    with pytest.raises(InputError, match="twice"):
        evaluate_retrieval(["a", "a"], folder)

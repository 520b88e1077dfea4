"""`sememe predict --out`: tables with the columns of the file and those of the predictions."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pd = pytest.importorskip("pandas")

WORDS = {
    "good": "fine lovely 好看 精彩",
    "bad": "dull awful 无聊 差劲",
    "odd": "strange queer 奇怪 怪异",
}
# A messy table: quotes, newlines, commas, tabs, formulas, an id, an empty text.
TABLE = [
    {"id": "007", "title": 'the "fine" one, truly', "text": "a fine, lovely film", "label": "bad"},
    {"id": "8", "title": "two\nlines", "text": "", "label": ""},
    {"id": "9", "title": "=1+1", "text": "一部 无聊 的 电影", "label": "good"},
    {"id": "10", "title": "tab\there", "text": "strange\nand queer", "label": "nonsense"},
]


def _table(path: Path, encoding: str = "utf-8") -> Path:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, list(TABLE[0]))
        writer.writeheader()
        writer.writerows(TABLE)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A classifier with three labels."""
    import sememe

    rows = [(f"a {word} film", label) for label, own in WORDS.items() for word in own.split()]
    options = {"preset": "fasttext", "dim": 8, "epochs": 40, "learning_rate": 0.5, "workers": 1}
    folder = tmp_path_factory.mktemp("models") / "classifier"
    sememe.FastTextClassifier(**options).fit(rows * 10, out=folder)
    return folder


def _text(path: Path | str) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def test_a_table_with_all_columns(sememe, model):
    given = _table(Path("new.csv"))
    ran = sememe("predict", model, given, "--out", "p.csv")
    assert "Wrote 4 rows to p.csv" in ran.out and "predicting" in ran.err
    assert "1 cells start with =" in ran.err
    found = _text("p.csv")
    assert list(found) == ["row", *TABLE[0], "prediction", "probability"]
    assert found[list(TABLE[0])].to_dict("records") == TABLE
    assert found["prediction"].tolist() == ["good", "", "bad", "odd"]
    assert found["row"].tolist() == ["1", "2", "3", "4"]
    printed = sememe("predict", model, given).out.split("\n")
    assert [printed[index] for index in (0, 2, 3)] == ["good", "bad", "odd"]


def test_every_format_holds_the_same(sememe, model):
    given = _table(Path("new.csv"))
    for name in ("p.csv.gz", "p.tsv", "p.jsonl", "p.parquet"):
        sememe("predict", model, given, "-o", name, "-k", 2, "--quiet")
    tables = [
        pd.read_csv("p.csv.gz", dtype={"id": str}),
        pd.read_csv("p.tsv", sep="\t", dtype={"id": str}),
        pd.read_json("p.jsonl", lines=True, dtype={"id": str}),
        pd.read_parquet("p.parquet"),
    ]
    for table in tables:
        assert list(table)[-4:] == ["prediction", "probability", "prediction_2", "probability_2"]
        assert table["id"].tolist() == ["007", "8", "9", "10"]
        assert table["prediction"].fillna("").tolist() == ["good", "", "bad", "odd"]
        assert table["probability"].fillna(-1).tolist() == (
            tables[-1]["probability"].fillna(-1).tolist()
        )
    assert sememe("predict", model, given, "-o", "p.jsonl", "--overwrite").out


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.tsv.gz", "p.jsonl", "p.parquet"])
def test_a_written_table_can_be_read_again(sememe, model, name):
    rows = [*TABLE, {"id": "11", "title": "@a", "text": '"so"\r\na fine\tfilm', "label": " "}]
    Path("new.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    sememe("predict", model, "new.jsonl", "--out", name)
    sememe("predict", model, name, "--out", "again.jsonl", "--column", "text=text")
    found = [json.loads(line) for line in Path("again.jsonl").read_text("utf-8").splitlines()]
    assert [{key: row[key] for key in rows[0]} for row in found] == rows
    assert [row["prediction (2)"] for row in found] == ["good", None, "bad", "odd", "good"]
    assert [row["prediction"] or None for row in found] == ["good", None, "bad", "odd", "good"]


def test_formulas_are_escaped_on_request(sememe, model):
    given = _table(Path("new.csv"))
    ran = sememe("predict", model, given, "--out", "p.tsv", "--escape-formulas")
    assert "formulas" not in ran.err
    assert pd.read_csv("p.tsv", sep="\t")["title"].tolist()[2] == "'=1+1"
    ran = sememe("predict", model, given, "--out", "p.jsonl", "--escape-formulas", fails=True)
    assert ran.code == 2 and ".csv or .tsv" in ran.err


def test_a_column_for_the_probability_of_each_label(sememe, model):
    given = _table(Path("new.csv"))
    sememe("predict", model, given, "--out", "p.csv", "-k", -1)
    found = pd.read_csv("p.csv")
    chances = found[[f"p({label})" for label in WORDS]]
    assert chances.sum(axis=1)[[0, 2, 3]].tolist() == pytest.approx([1, 1, 1], abs=1e-4)
    assert (chances.max(axis=1) == found["probability"])[[0, 2, 3]].all()
    assert chances.loc[1].isna().all()
    named = chances.loc[[0, 2, 3]].idxmax(axis=1).tolist()
    assert named == [f"p({label})" for label in found["prediction"][[0, 2, 3]]]


def test_lines_without_columns(sememe, model):
    Path("texts.txt").write_text("a fine film\n\n很 无聊\n", encoding="utf-8")
    sememe("predict", model, "texts.txt", "--out", "p.csv")
    found = _text("p.csv")
    assert found[["row", "text", "prediction"]].values.tolist() == [
        ["1", "a fine film", "good"], ["2", "", ""], ["3", "很 无聊", "bad"],
    ]  # fmt: skip
    sememe("predict", model, "-", "--out", "piped/p.csv", stdin="a dull film\n")
    assert _text("piped/p.csv")["prediction"].tolist() == ["bad"]


def test_a_table_in_another_encoding_without_a_header(sememe, model):
    Path("gb.csv").write_bytes("1,一部 精彩 的 电影\n2,\n3,无聊\n".encode("gb18030"))
    arguments = ("predict", model, "gb.csv", "--out", "p.csv", "--column", "text=2")
    assert "--encoding" in sememe(*arguments, fails=True).err
    sememe(*arguments, "--encoding", "gb18030")
    found = _text("p.csv")
    assert list(found)[:3] == ["row", "1", "2"] and found["2"][0] == "一部 精彩 的 电影"
    assert found["prediction"].tolist() == ["good", "", "bad"]


def test_json_and_parquet_keep_their_fields(sememe, model):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = [{"text": "fine", "by": {"name": "王"}, "n": 2**60, "tags": ["x"], "x": None}]
    Path("in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    sememe("predict", model, "in.jsonl", "--out", "p.jsonl")
    found = json.loads(Path("p.jsonl").read_text(encoding="utf-8"))
    assert {name: found[name] for name in rows[0]} == rows[0] and "by.name" not in found
    schema = pa.schema([("text", pa.string()), ("n", pa.int16()), ("d", pa.decimal128(6, 2))])
    columns = {"text": ["fine", None, "dull"], "n": [1, 2, None], "d": [None, None, 12]}
    pq.write_table(pa.table(columns, schema), "in.parquet")
    sememe("predict", model, "in.parquet", "--out", "p.parquet")
    back = pq.read_table("p.parquet")
    assert back.select(schema.names).schema.equals(schema) and back["d"].to_pylist()[2] == 12
    assert back["prediction"].to_pylist() == ["good", None, "bad"]


def test_names_that_the_file_has_already(sememe, model):
    Path("in.csv").write_text("row,text,prediction\n5,a fine film,mine\n", encoding="utf-8")
    ran = sememe("predict", model, "in.csv", "--out", "p.csv")
    assert "the new one is 'prediction (2)'" in ran.err
    assert _text("p.csv").to_dict("records")[0] | {"probability": ""} == {
        "row": "5", "text": "a fine film", "prediction": "mine", "prediction (2)": "good",
        "probability": "",
    }  # fmt: skip


def test_a_folder_of_files(sememe, model):
    Path("in").mkdir()
    for name, text in (("a", "fine"), ("b", "dull\nawful")):
        Path("in", f"{name}.txt").write_text(f"{text}\n")
    sememe("predict", model, "in", "--out", "p.csv")
    assert _text("p.csv")[["row", "file", "prediction"]].values.tolist() == [
        ["1", "in/a.txt", "good"], ["1", "in/b.txt", "bad"], ["2", "in/b.txt", "bad"],
    ]  # fmt: skip


def test_bad_rows_are_refused_or_skipped(sememe, model):
    Path("in.csv").write_text("text,n\nfine,1\ndull,2,3\nawful,4\n", encoding="utf-8")
    ran = sememe("predict", model, "in.csv", "--out", "p.csv", fails=True)
    assert ran.code == 2 and "in.csv, line 3: 3 columns" in ran.err and not Path("p.csv").exists()
    ran = sememe("predict", model, "in.csv", "--out", "p.csv", "--skip-bad")
    assert "1 bad rows" in ran.err
    assert _text("p.csv")["prediction"].tolist() == ["good", "", "bad"]
    assert sememe("predict", model, "in.csv", "--skip-bad").out == "good\n\nbad\n"


def test_what_is_refused(sememe, model):
    Path("in.txt").write_text("fine\n")
    Path("there.csv").write_text("mine")
    for arguments, reason in (
        (("--out", "there.csv"), "--overwrite"),
        (("--out", "p.xlsx"), ".parquet"),
        (("--out", "p.csv", "--json"), "choose one"),
        (("--out", "p.csv", "-k", 0), "k must be"),
    ):
        ran = sememe("predict", model, "in.txt", *arguments, fails=True)
        assert ran.code == 2 and reason in ran.err
    Path("empty.txt").write_text("")
    assert "no rows" in sememe("predict", model, "empty.txt", "--out", "p.csv", fails=True).err
    assert Path("there.csv").read_text() == "mine" and not Path("p.csv").exists()
    assert not list(Path().glob(".new-*"))


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_leaves_the_old_table(model, tmp_path, stop):
    (tmp_path / "p.csv").write_text("old")
    (tmp_path / "in.txt").write_bytes(b"a fine film\n" * 4_000_000)
    command = [sys.executable, "-m", "sememe.cli", "predict", model, "in.txt", "-o", "p.csv"]
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}}
    with subprocess.Popen([*command, "--overwrite"], **options) as process:
        begun, has_written = time.monotonic(), False
        while not has_written and process.poll() is None and time.monotonic() - begun < 600:
            scratch = [*tmp_path.glob(".new-*")]
            has_written = any(path.stat().st_size > 100_000 for path in scratch)
            time.sleep(0.01)
        process.send_signal(stop)
        code = process.wait(600)
    assert has_written and (tmp_path / "p.csv").read_text() == "old"
    if stop == signal.SIGINT:
        assert code == 130 and {path.name for path in tmp_path.iterdir()} == {"p.csv", "in.txt"}
    (tmp_path / "in.txt").write_text("fine\n")
    subprocess.run([*command, "--overwrite"], check=True, **options)
    assert {path.name for path in tmp_path.iterdir()} == {"p.csv", "in.txt"}
    assert _text(tmp_path / "p.csv")["prediction"].tolist() == ["good"]

"""`sememe embed`: files or texts in; npy, safetensors or tables out, or lines on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

TABLE = 'id,body,n\na1,"the king, and\nthe QUEEN",1\nb2,国王 和 女王,2\nc3,,3\n'


@pytest.fixture
def vectors(toy_vectors):
    """What the rows of the table give."""
    pairs = (("king", "queen"), ("国王", "女王"))
    means = [(toy_vectors[one] + toy_vectors[other]) / 2 for one, other in pairs]
    return np.array([*means, np.zeros(8)], np.float32)


def test_texts_of_the_command_line(sememe, vector_file, toy_vectors):
    ran = sememe("embed", vector_file, "the king", "QUEEN", "--out", "v.npy")
    assert "2 texts of the command line" in ran.err and "Wrote 2 rows × 8 to v.npy" in ran.out
    np.testing.assert_allclose(np.load("v.npy"), toy_vectors[["king", "queen"]], atol=1e-6)
    lines = sememe("embed", vector_file, "the king", "国王", "--language", "zh").out.splitlines()
    number, values = lines[1].split("\t")
    assert number == "2" and np.float32(values.split()) == pytest.approx(toy_vectors["国王"])
    (row,) = map(json.loads, sememe("embed", vector_file, "king", "--json").out.splitlines())
    assert (row["row"], row["text"], len(row["vector"])) == (1, "king", 8)
    (line,) = sememe("embed", vector_file, "A king .", "--pool", "words").out.splitlines()
    assert line.startswith("1\tking\t2\t6\t")


def test_a_file_of_that_name_is_read(sememe, vector_file):
    Path("king").write_text("queen\nman\n")
    ran = sememe("embed", vector_file, "king", "--out", "v.npy")
    assert "Reading king" in ran.err and len(np.load("v.npy")) == 2
    Path("other.txt").write_text("woman\n")
    sememe("embed", vector_file, "king", "other.txt", "--out", "v.csv")
    assert pd.read_csv("v.csv")[["row", "file", "text"]].values.tolist() == [
        [1, "king", "queen"], [2, "king", "man"], [1, "other.txt", "woman"],
    ]  # fmt: skip
    sememe("embed", vector_file, "*.tx[t]", "--out", "one.npy")  # a pattern; toy.txt is one, too
    assert len(np.load("one.npy")) > 1


def test_what_is_neither_file_nor_text(sememe, vector_file):
    for name in ("missing.txt", "folder/missing", "news.csv.gz"):
        ran = sememe("embed", vector_file, name, "--out", "v.npy", fails=True)
        assert ran.code == 2 and f"no file or folder {name}" in ran.err
    Path("there.txt").write_text("king\n")
    ran = sememe("embed", vector_file, "there.txt", "a king", "--out", "v.npy", fails=True)
    assert ran.code == 2 and "not both" in ran.err
    for name in ("v.txt", "v", "v.parquet.gz"):
        ran = sememe("embed", vector_file, "king", "--out", name, fails=True)
        assert ran.code == 2 and ".npy" in ran.err
    assert "no text" in sememe("embed", vector_file, " ", "--out", "v.csv", fails=True).err
    assert not Path("v.csv").exists()


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "jsonl", "parquet", "npy", "safetensors"])
def test_every_format_has_the_same_vectors(sememe, vector_file, vectors, ending):
    Path("in.csv").write_text(TABLE, encoding="utf-8")
    name = f"v.{ending}"
    arguments = ("embed", vector_file, "in.csv", "--column", "text=body", "--language", "zh")
    assert "rows × 8" in sememe(*arguments, "--out", name).out
    if ending == "npy":
        found = np.load(name)
    elif ending == "safetensors":
        safetensors = pytest.importorskip("safetensors.numpy")
        tensors = safetensors.load_file(name)
        found = tensors["vectors"]
        assert tensors["text"].tolist() == [0, 1, 2] and len(tensors) == 2
    else:
        table = {
            "csv": pd.read_csv,
            "tsv.gz": lambda path: pd.read_csv(path, sep="\t"),
            "jsonl": lambda path: pd.read_json(path, lines=True),
            "parquet": pd.read_parquet,
        }[ending](name)
        assert table["id"].tolist() == ["a1", "b2", "c3"] and table["row"].tolist() == [1, 2, 3]
        assert table["body"].tolist()[:2] == ["the king, and\nthe QUEEN", "国王 和 女王"]
        columns = [f"v{n}" for n in range(1, 9)]
        wide = columns[0] in table
        found = table[columns].to_numpy() if wide else np.stack([*map(np.array, table["vector"])])
    np.testing.assert_allclose(found.astype(np.float32), vectors, atol=1e-6)
    refused = sememe(*arguments, "--out", name, fails=True)
    assert refused.code == 2 and "--overwrite" in refused.err


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "safetensors"])
def test_words_have_their_places(sememe, vector_file, toy_vectors, ending):
    Path("in.csv").write_text(TABLE, encoding="utf-8")
    sememe(
        "embed", vector_file, "in.csv", "--column", "text=body", "--language", "zh", "--pool",
        "words", "--out", f"w.{ending}",
    )  # fmt: skip
    expected = [
        (1, "king", 4, 8), (1, "queen", 18, 23), (2, "国王", 0, 2), (2, "女王", 5, 7),
    ]  # fmt: skip
    if ending == "safetensors":
        tensors = pytest.importorskip("safetensors.numpy").load_file("w.safetensors")
        places = zip(*(tensors[name].tolist() for name in ("text", "start", "end")), strict=True)
        assert [*places] == [(row - 1, start, end) for row, _, start, end in expected]
        return
    if ending == "npy":
        table = pd.read_csv("w.tsv", sep="\t")
        table["row"] = table["text"] + 1
    else:
        table = (pd.read_csv if ending == "csv" else pd.read_parquet)(f"w.{ending}")
        assert "body" not in table and table["id"].tolist() == ["a1", "a1", "b2", "b2"]
    rows = table[["row", "word", "start", "end"]].values.tolist()
    assert [tuple(row) for row in rows] == expected


def test_columns_that_the_file_has_already(sememe, vector_file):
    Path("in.csv").write_text("text,v1,word\nking,x,y\n")
    sememe("embed", vector_file, "in.csv", "--out", "v.csv")
    assert list(pd.read_csv("v.csv"))[:6] == ["row", "text", "v1", "word", "v1 (2)", "v2"]


def test_bad_rows_and_numbers_are_refused(sememe, vector_file):
    Path("in.csv").write_text("text,n\nking,1\nqueen,2,3\n")
    ran = sememe("embed", vector_file, "in.csv", "--out", "v.csv", fails=True)
    assert ran.code == 2 and "in.csv, line 3: 3 columns" in ran.err and not Path("v.csv").exists()
    Path("in.jsonl").write_text('{"text": 5}\n')
    ran = sememe("embed", vector_file, "in.jsonl", "--out", "v.csv", fails=True)
    assert ran.code == 2 and "in.jsonl, line 1: the text is of type int" in ran.err
    Path("ids.csv").write_text("text\n" + "".join(f"A-{n}\n" for n in range(9)))
    assert "looks like ids" in sememe("embed", vector_file, "ids.csv", "--out", "v.npy").err

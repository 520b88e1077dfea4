"""Labelled texts: the official layouts of data sets, guessed columns, bad rows named by line."""

from __future__ import annotations

import gzip
import json
import lzma

import pytest

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.rows import TextRow
from sememe.examples.labelled.texts import read_texts, sorted_labels


def _write(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode())
    return path


def _read(path, kind, **options):
    notes = []
    rows = read_texts(path, kind=kind, on_note=notes.append, **options)
    return rows, " ".join(notes)


def test_cola_has_no_names_and_an_empty_column(tmp_path):
    path = _write(
        tmp_path, "train.tsv",
        'gj04\t1\t\tHe said "go.\ngj04\t0\t*\tHe said going.\nbc01\t1\t\tA 7" disk.\n',
    )  # fmt: skip
    rows, notes = _read(path, "classify")
    assert [(row.text, row.label) for row in rows] == [
        ('He said "go.', "1"), ("He said going.", "0"), ('A 7" disk.', "1"),
    ]  # fmt: skip
    assert rows.columns == {"text": "4", "label": "2"}
    assert "text = 4 (“He said" in notes and "label = 2 (“1”, “0”) (no header row" in notes
    assert rows[1].source == f"{path}, line 2"


def test_names_are_known_and_said_aloud(tmp_path):
    path = _write(tmp_path, "dev.tsv", "index\tquestion\tsentence\tlabel\n7\tWho?\tJim did.\tyes\n")
    rows, notes = _read(path, "pairs")
    assert rows[0] == TextRow(
        text="Who?", second="Jim did.", label="yes", source=f"{path}, line 2", id="7"
    )
    assert "text = “question” (“Who?”), second = “sentence” (“Jim did.”), label = “label”" in notes


def test_mrpc_starts_with_a_byte_order_mark_and_quotes_are_characters(tmp_path):
    head = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    path = _write(tmp_path, "dev.tsv", head + '1\t10\t11\t" Yes , he said .\tHe said yes .\n')
    rows, _ = _read(path, "pairs")
    assert (rows[0].text, rows[0].second, rows[0].label) == (
        '" Yes , he said .', "He said yes .", "1",
    )  # fmt: skip


def test_scores_with_a_decimal_comma(tmp_path):
    path = _write(tmp_path, "a.csv", "Kommentar;Note\nganz gut;2,5\nschlecht, leider;-4,75\n")
    assert [row.score for row in read_texts(path, kind="regress")] == [2.5, -4.75]


def test_stsb_and_scores_without_names(tmp_path):
    named = _write(
        tmp_path, "a.tsv", "index\tgenre\tsentence1\tsentence2\tscore\n0\tx\ta\tb\t4.75\n"
    )
    rows, _ = _read(named, "regress")
    assert (rows[0].text, rows[0].second, rows[0].score) == ("a", "b", 4.75)
    bare = _write(tmp_path, "b.tsv", "one two three\tthree four\t0.5\nfive six\tseven\t-1e-3\n")
    rows, _ = _read(bare, "regress")
    assert [(row.second, row.score) for row in rows] == [("three four", 0.5), ("seven", -0.001)]
    single = _write(tmp_path, "c.tsv", "a long text indeed\tx\t3\nanother long text\ty\t4\n")
    assert _read(single, "regress")[0][1] == TextRow(
        text="another long text", score=4.0, source=f"{single}, line 2"
    )


def test_labels_that_nobody_agreed_on_are_left_out_aloud(tmp_path):
    lines = [
        {"sentence1": "甲", "sentence2": "乙", "label": "-", "id": 1},
        {"sentence1": "丙", "sentence2": "丁", "label": "neutral", "id": 2},
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    rows, notes = _read(_write(tmp_path, "dev.json", text), "pairs")
    assert [row.label for row in rows] == ["neutral"] and rows.num_skipped == 0
    assert "“-”" in notes and "1 " in notes
    assert [row.label for row in _read(tmp_path / "dev.json", "pairs", labelled=False)[0]] == [
        None, "neutral",
    ]  # fmt: skip


def test_swag_race_and_story_cloze(tmp_path):
    swag = _write(
        tmp_path, "swag.csv",
        ',video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n'
        '0,v,1,x,"She opens the door, slowly.",She,gold,runs.,sits.,"flies, then lands.",eats.,2\n',
    )  # fmt: skip
    (row,), _ = _read(swag, "choose")
    assert (row.text, row.second, row.label) == ("She opens the door, slowly.", "She", "2")
    assert row.choices == ("runs.", "sits.", "flies, then lands.", "eats.")
    article = {
        "article": "It rained.", "id": "m1.txt", "answers": ["B", "A"],
        "questions": ["What fell?", "And then?"],
        "options": [["Snow", "Rain"], ["Sun", "Wind", "Ice"]],
    }  # fmt: skip
    race = _write(tmp_path, "1.txt", json.dumps(article))
    rows, _ = _read(race, "choose")
    assert [(row.second, row.choices, row.label, row.id) for row in rows] == [
        ("What fell?", ("Snow", "Rain"), "1", "m1.txt-0"),
        ("And then?", ("Sun", "Wind", "Ice"), "0", "m1.txt-1"),
    ]
    cloze = _write(
        tmp_path, "cloze.csv",
        "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
        "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding\n"
        "a-1,One.,Two.,Three.,Four.,Good end.,Bad end.,1\n",
    )  # fmt: skip
    (row,), notes = _read(cloze, "choose")
    assert (row.text, row.choices, row.label, row.id) == (
        "One. Two. Three. Four.", ("Good end.", "Bad end."), "0", "a-1",
    )  # fmt: skip
    assert "counted from 1" in notes


def test_files_of_choices_are_counted_together(tmp_path):
    lines = ["text\tending0\tending1\tending2\tlabel", "One.\ta\tb\tc\t1"]
    short = _write(tmp_path, "short.tsv", "\n".join(lines) + "\n")
    long = _write(tmp_path, "long.tsv", "\n".join([*lines, "Two.\td\te\tf\t3"]) + "\n")
    rows, notes = _read([short, long], "choose")
    assert [row.label for row in rows] == ["0", "0", "2"] and "counted from 1" in notes
    rows, notes = _read(short, "choose")
    assert [row.label for row in rows] == ["1"] and "taken as counted from 0" in notes


def test_trees_and_label_lines(tmp_path):
    trees = _write(tmp_path, "dev.txt", "(3 (2 It) (4 (2 works) (2 -LRB-)))\n(0 (1 A\\/B))\n")
    rows, _ = _read(trees, "classify")
    assert [(row.text, row.label) for row in rows] == [("It works (", "3"), ("A/B", "0")]
    broken = _write(tmp_path, "broken.txt", "(3 (2 It) (4 works))\n(3 (2 It)\n")
    with pytest.raises(InputError, match="line 2: not one tree"):
        _read(broken, "classify")
    marked = _write(tmp_path, "train.txt", "__label__news 北京 消息\n__label__sport a goal\n")
    assert [(row.text, row.label) for row in _read(marked, "classify")[0]] == [
        ("北京 消息", "news"), ("a goal", "sport"),
    ]  # fmt: skip


def test_long_csv_parquet_and_compression(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    text = 'title;text;label\nt1;"two\nlines; one cell";好\nt2;b;坏\n'
    rows, _ = _read(_write(tmp_path, "a.csv", text), "classify")
    assert [(row.text, row.label, row.source[-6:]) for row in rows] == [
        ("two\nlines; one cell", "好", "line 2"), ("b", "坏", "line 4"),
    ]  # fmt: skip
    pq.write_table(
        pa.table({"review": ["fine", "bad"], "inner": [{"label": 1}, {"label": 0}]}),
        tmp_path / "a.parquet",
    )
    rows, _ = _read(tmp_path / "a.parquet", "classify", columns={"label": "inner.label"})
    assert [(row.text, row.label) for row in rows] == [("fine", "1"), ("bad", "0")]
    for pack, ending in ((gzip.compress, "gz"), (lzma.compress, "xz")):
        path = tmp_path / f"a.tsv.{ending}"
        path.write_bytes(pack(b"sentence\tlabel\nfine\t1\n"))
        assert _read(path, "classify")[0][0].label == "1"


def test_columns_by_name_by_number_and_joined(tmp_path):
    path = _write(tmp_path, "a.csv", "3,Title one,Body one\n1,Title two,Body two is long\n")
    rows, _ = _read(path, "classify", columns={"text": "2+3", "label": "1"})
    assert [(row.text, row.label) for row in rows] == [
        ("Title one Body one", "3"), ("Title two Body two is long", "1"),
    ]  # fmt: skip
    named = _write(tmp_path, "b.csv", "Mine,Yours\na b,x\n")
    rows, _ = _read(named, "classify", columns={"text": "Mine", "label": "yours"})
    assert (rows[0].text, rows[0].label) == ("a b", "x")
    with pytest.raises(InputError, match="no column 'Theirs'; its columns are 'Mine', 'Yours'"):
        _read(named, "classify", columns={"text": "Mine", "label": "Theirs"})
    with pytest.raises(OptionError, match="have no part 'second'"):
        _read(named, "classify", columns={"second": "Mine"})


def test_rows_of_one_language_are_chosen(tmp_path):
    path = _write(
        tmp_path, "xnli.tsv",
        "language\tgold_label\tsentence1\tsentence2\nar\tneutral\ta\tb\nzh\tentailment\t甲\t乙\n",
    )  # fmt: skip
    rows, _ = _read(path, "pairs", where={"language": "zh"})
    assert [(row.text, row.label) for row in rows] == [("甲", "entailment")]
    with pytest.raises(InputError, match="no column 'lang'"):
        _read(path, "pairs", where={"lang": "zh"})


BAD = [
    (
        "sentence\tlabel\nfine\t1\nfine\n",
        "line 3: 1 columns, where the first line has 2",
        "classify",
    ),
    ("sentence\tlabel\nfine\t1\nfine\t1\t2\n", "line 3: 3 columns", "classify"),
    ("sentence\tlabel\nfine\t1\n \t1\n", "line 3: the text is empty", "classify"),
    ("sentence\tlabel\nfine\t1\nfine\t\n", "line 3: the label is empty", "classify"),
    ("sentence\tlabel\nfine\t1\nfine\t5\n", "line 3: the label '5' is not among", "classify"),
    ("sentence1\tsentence2\tlabel\na\tb\t1\na\t\t1\n", "line 3: the second text is empty", "pairs"),
    ("sentence1\tsentence2\tscore\na\tb\t1\na\tb\thigh\n", "line 3: the score is not", "regress"),
    ("sentence1\tsentence2\tscore\na\tb\t1\na\tb\t1,234\n", "line 3: the score is not", "regress"),
    ("sentence1\tsentence2\tscore\na\tb\t1\na\tb\t\n", "line 3: the score is empty", "regress"),
]


@pytest.mark.parametrize(("text", "message", "kind"), BAD)
def test_bad_rows_are_named_or_counted(tmp_path, text, message, kind):
    path = _write(tmp_path, "a.tsv", text)
    with pytest.raises(InputError, match=f"a.tsv, {message}"):
        _read(path, kind, labels_known=["0", "1"])
    rows, notes = _read(path, kind, labels_known=["0", "1"], skip_bad=True)
    assert len(rows) == rows.num_skipped == 1
    assert "1 row was left out" in notes


def test_bad_json_bad_choices_and_nothing_at_all(tmp_path):
    path = _write(tmp_path, "a.jsonl", '{"text": "a", "label": 1}\n{"text": "b"\n[1]\n')
    with pytest.raises(InputError, match=r"a\.jsonl, line 2: not JSON"):
        _read(path, "classify")
    assert _read(path, "classify", skip_bad=True)[0].num_skipped == 2
    wrong = _write(tmp_path, "b.jsonl", '{"context": "a", "options": ["x", "y"], "answer": "E"}\n')
    with pytest.raises(InputError, match="the answer 'E' is none of the 2 choices"):
        _read(wrong, "choose")
    with pytest.raises(InputError, match="holds no rows"):
        _read(_write(tmp_path, "empty.tsv", ""), "classify")
    with pytest.raises(InputError, match="all 1 are bad"):
        _read(_write(tmp_path, "c.tsv", "text\tlabel\n\t1\n"), "classify", skip_bad=True)
    with pytest.raises(InputError, match=r"no column for the label.*one column.*Write a tab"):
        _read(_write(tmp_path, "d.txt", "just a line\nand another\n"), "classify")
    gap = _write(tmp_path, "gap.tsv", "好\t很好的酒店\n\t服务一般的店\n坏\t房间太小了\n")
    with pytest.raises(InputError, match=r"gap\.tsv, line 2"):
        _read(gap, "classify")
    with pytest.raises(InputError, match=r"'text \(1\)'.*'text \(2\)'"):
        _read(_write(tmp_path, "e.csv", "text,text\na,b\n"), "classify")
    with pytest.raises(InputError, match="There is no file"):
        _read(tmp_path / "none.tsv", "classify")


def test_python_lists():
    assert read_texts([("a", 1), ("b", 0)], kind="classify")[0] == TextRow(
        text="a", label="1", source="row 0"
    )
    assert (
        read_texts([{"premise": "a", "hypothesis": "b", "label": "x"}], kind="pairs")[0].second
        == "b"
    )
    assert [row.score for row in read_texts([("a", "b", 0.5)], kind="regress")] == [0.5]
    (row,) = read_texts([("ctx", ["x", "y"], 1)], kind="choose")
    assert (row.choices, row.label, row.second) == (("x", "y"), "1", None)
    (row,) = read_texts([("ctx", "q?", ["x", "y"], "y")], kind="choose")
    assert (row.second, row.label) == ("q?", "1")
    assert [row.text for row in read_texts(["一", "b"], kind="classify", labelled=False)] == [
        "一",
        "b",
    ]
    rows = read_texts([TextRow("a", label="9")], kind="classify")
    assert read_texts(rows, kind="classify") == rows
    with pytest.raises(InputError, match="'9' is not among those known: 1"):
        read_texts(rows, kind="classify", labels_known=["1"])
    with pytest.raises(InputError, match=r"Row 0 is not \(text, label\)"):
        read_texts([("a", "b", "c")], kind="classify")
    with pytest.raises(InputError, match="holds no rows"):
        read_texts([], kind="classify")


def test_an_empty_cell_of_a_frame_is_no_label():
    rows = [{"text": "a", "label": "x"}, {"text": "b", "label": float("nan")}]
    with pytest.raises(InputError, match="row 1: the label is empty"):
        read_texts(rows, kind="classify")
    assert read_texts(rows, kind="classify", skip_bad=True).num_skipped == 1


def test_labels_are_sorted_by_value_where_they_are_numbers():
    assert sorted_labels(["10", "9", "-1", "9"]) == ["-1", "9", "10"]
    assert sorted_labels(["10", "9", "x"]) == ["10", "9", "x"]


def test_choices_that_are_numbers_may_be_written_out(tmp_path):
    sums = tmp_path / "sums.jsonl"
    rows = [("1 + 1", ["3", "2", "1", "0"], "2"), ("2 + 2", ["5", "4", "3", "1"], "4")]
    written = [{"text": text, "choices": list(own), "label": label} for text, own, label in rows]
    sums.write_text("\n".join(map(json.dumps, written)) + "\n")
    found, notes = _read(sums, "choose")
    assert [row.label for row in found] == ["1", "1"] and "written out" in notes
    # One that is none of its choices says that all are counted.
    written.append({"text": "3 + 3", "choices": ["6", "7"], "label": "0"})
    written[1]["label"] = "1"
    sums.write_text("\n".join(map(json.dumps, written)) + "\n")
    found, notes = _read(sums, "choose")
    assert [row.label for row in found] == ["2", "1", "0"] and "written out" not in notes
    rows = read_texts([("加", ["十", "12"], "12"), ("减", ["一", "2"], "一")], kind="choose")
    assert [row.label for row in rows] == ["1", "0"]


MESSY = {
    "excel.csv": "\ufeffsep=;\r\ntext;label\r\ngood film;a\r\n;\r\n  \r\nbad, film;b\r\n;;;\r\n",
    "mac.csv": 'text,label\rgood film,a\r,\r"bad, film",b\r',
    "bars.csv": "text|label\ngood film|a\n|\nbad, film|b\n",
    "windows.csv": 'text,label\r\r\ngood film,a\r\r\n,\r\r\n"bad, film",b\r\r\n',
    "quoted.tsv": '"text"\t"label"\r\ngood film\ta\r\n\t\r\nbad, film\tb\r\n',
    "plain.tsv": "text\tlabel\r\ngood film\ta\n\t\nbad, film\tb",
}


@pytest.mark.parametrize("name", MESSY)
def test_files_as_spreadsheets_leave_them(tmp_path, name):
    (tmp_path / name).write_text(MESSY[name], encoding="utf-8", newline="")
    notes = []
    rows = read_texts(tmp_path / name, kind="classify", on_note=notes.append)
    assert [(row.text, row.label) for row in rows] == [("good film", "a"), ("bad, film", "b")]
    assert rows.num_skipped == (2 if name == "excel.csv" else 1) and "left out" in notes[-1]


def test_which_tsv_files_have_quoted_cells(tmp_path):
    def read(text):
        (tmp_path / "a.tsv").write_text(text, encoding="utf-8", newline="")
        return [(row.text, row.label) for row in read_texts(tmp_path / "a.tsv", kind="classify")]

    # By pandas; then as GLUE has them.
    assert read('text\tlabel\n"say ""hi""\n\tnow"\ta\nno\tb\n') == [
        ('say "hi"\n\tnow', "a"),
        ("no", "b"),
    ]
    for cell in ('"hi', '"hi" he said', 'he said "hi"', '"hi"', '"', '"a ""b"" c'):
        assert read(f"text\tlabel\n{cell}\ta\nno\tb\n") == [(cell, "a"), ("no", "b")]
    # A quoted cell does not end within the rows that are looked at, or just before their end.
    for num_lines in (300, 197, 198, 199):
        lines = "\n".join(["a line"] * num_lines)
        text = f'"text"\t"label"\n"{lines}\n"\ta\nno\tb\nnone\ta\n'
        assert read(text) == [(lines, "a"), ("no", "b"), ("none", "a")]

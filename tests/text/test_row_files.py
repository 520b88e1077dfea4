"""json lines, csv, tsv and parquet: columns by name, errors with file and line."""

import json
import sys
import warnings
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sememe.errors import InputError, MissingExtraError
from sememe.examples.labelled.texts import read_texts
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.text.words import decode_documents

ROWS = [
    {"id": 1, "text": "One two.\nThree", "kind": "a", "meta": {"body": "deep"}},
    {"id": 2, "text": "", "kind": "none", "meta": {"body": "er"}},
    {"id": 3, "text": 'say "hi", 北京', "kind": "b", "meta": {"body": "water"}},
]
EXPECTED = [[["one", "two"], ["three"]], [["say", "hi", "北", "京"]]]


def write(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


def as_json(path):
    return write(path / "a.jsonl", "\n\n".join(json.dumps(row) for row in ROWS))


def as_csv(path):
    lines = ['id,text,kind\r\n1,"One two.\nThree",a\r\n2,,none\r\n3,"say ""hi"", 北京",b\r\n']
    return write(path / "a.csv", "".join(lines))


def as_parquet(path):
    pq.write_table(pa.Table.from_pylist(ROWS), path / "a.parquet", row_group_size=2)
    return path / "a.parquet"


@pytest.mark.parametrize("make", [as_json, as_csv, as_parquet])
def test_texts_and_labels(tmp_path, make):
    settings = TextSettings(columns={"label": "kind"})
    records = list(stream.segment(make(tmp_path), settings, workers=1))
    assert [d for record in records for d in decode_documents(record.data)] == EXPECTED
    # The document without a word goes, and its label with it.
    assert [label for record in records for label in record.labels] == ["a", "b"]


def test_tabs_and_plain_quotes(tmp_path, words_of):
    path = write(tmp_path / "a.tsv", 'text\tn\n"Hello\t1\nit"s "fine"\t2\n')
    assert words_of(path) == [[["hello"]], [["it", "s", "fine"]]]


@pytest.mark.parametrize("make", [as_json, as_parquet])
def test_dotted_names(tmp_path, words_of, make):
    assert words_of(make(tmp_path), columns={"text": "meta.body"}) == [
        [["deep"]],
        [["er"]],
        [["water"]],
    ]


@pytest.mark.parametrize("make", [as_json, as_csv, as_parquet])
def test_a_missing_column_is_named_beside_those_there(tmp_path, words_of, make):
    with pytest.raises(InputError, match=r"a\.\w+.* no (field|column) 'body'.*'text'"):
        words_of(make(tmp_path), columns={"text": "body"})


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{bad", "line 2: not JSON"),
        ("[1]", "line 2: not an object"),
        ("[" * 100_000, "line 2: not JSON"),
        ('{"text": ' + "9" * 5_000 + "}", "line 2: not JSON"),
        ('{"text": 5}', "line 2: 'text' holds int"),
        ('{"other": "x"}', "line 2: there is no field 'text'; it has 'other'"),
    ],
)
def test_wrong_json_is_named_by_line(tmp_path, words_of, line, part):
    path = write(tmp_path / "a.jsonl", f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(InputError, match=rf"a\.jsonl, {part}"):
        words_of(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[\n" * 100_000])
@pytest.mark.parametrize("name", ["deep.json", "deep.jsonl"])
def test_json_that_nests_too_deep_is_refused(tmp_path, words_of, name, text):
    with pytest.raises(InputError, match=name):
        words_of(write(tmp_path / name, text))
    with pytest.raises(InputError, match=name):
        read_texts(tmp_path / name, kind="classify")


def test_null_is_an_empty_document(tmp_path, words_of):
    path = write(tmp_path / "a.jsonl", '{"text": null}\n{"text": "x"}\n')
    assert words_of(path) == [[["x"]]]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("n,text\n1,a\n2\n", "line 3: 1 columns, where the first line has 2"),
        ("text,label\na,x\nb, and c,y\n", "line 3: 3 columns.*must be in quotes"),
        ('text\n"a"b\n', "line 2: "),
        ('text\n"open\n', "line 2: unexpected end of data"),
    ],
)
def test_wrong_csv_is_named_by_line(tmp_path, words_of, text, part):
    with pytest.raises(InputError, match=rf"a\.csv, {part}"):
        words_of(write(tmp_path / "a.csv", text))


def test_a_field_may_be_long(tmp_path, words_of):
    path = write(tmp_path / "a.csv", "text\n" + "word " * 100_000 + "\n")
    assert len(words_of(path)[0][0]) == 100_000


def test_parquet_of_many_rows_keeps_order_and_sizes(tmp_path):
    texts = [f"row{i} " * (i % 50) for i in range(20_000)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    sizes = []
    records = stream.segment(
        tmp_path / "a.parquet", TextSettings(), workers=2, on_bytes=sizes.append
    )
    found = [document[0] for record in records for document in decode_documents(record.data)]
    assert found == [text.split() for text in texts if text]
    assert 0 < sum(sizes) <= (tmp_path / "a.parquet").stat().st_size


def test_dictionary_encoded_and_null_columns(tmp_path, words_of):
    column = pa.array(["a b", None, "c"]).dictionary_encode()
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    assert words_of(tmp_path / "a.parquet") == [[["a", "b"]], [["c"]]]


def test_wrong_parquet_is_named(tmp_path, words_of):
    write(tmp_path / "a.parquet", "no parquet at all")
    with pytest.raises(InputError, match=r"Cannot read .*a\.parquet as parquet: "):
        words_of(tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": [1, 2]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: column 'text' holds int64, not text"):
        words_of(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"Cannot read .*/none.parquet|no file"):
        words_of(tmp_path / "none.parquet")


def test_a_table_without_names_is_not_printed_whole(tmp_path, words_of):
    (tmp_path / "a.tsv").write_text(f"1\t{'房间太小' * 50}\n", "utf-8")
    with pytest.raises(InputError, match=r"a\.tsv has no column 'text', and its first line is no"):
        words_of(tmp_path / "a.tsv", language="zh")


@pytest.mark.parametrize("mark", [";", "\t"])
def test_csv_as_spreadsheets_write_it(tmp_path, words_of, mark):
    content = f'\r\nid{mark}text\r\n1{mark}"a{mark} b"\r\n2{mark}c\r\n'
    path = write(tmp_path / "a.csv", content)
    assert words_of(path) == [[["a", "b"]], [["c"]]]


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("has_names", [True, False])
def test_commas_in_texts_do_not_separate_cells_of_another_separator(
    tmp_path, words_of, mark, has_names
):
    texts = ['"the first\nspans lines, with a comma"', "the next, too", '"a third"']
    rows = [mark.join(("Subject, short", "Team"))] * has_names + [f"{t}{mark}IT" for t in texts]
    column = "Subject, short" if has_names else "1"
    found = words_of(write(tmp_path / "a.csv", "\n".join(rows)), columns={"text": column})
    assert len(found) == 3 and found[1] == [["the", "next", "too"]]


def test_separators_after_the_last_column_are_no_cells(tmp_path, words_of):
    path = write(tmp_path / "a.csv", "text,label\na b,x,\nc,y,,\n")
    assert words_of(path, columns={"label": "label"}) == [[["a", "b"]], [["c"]]]


def test_a_text_may_be_the_name_of_the_only_column(tmp_path, words_of):
    assert words_of(write(tmp_path / "a.csv", "text\nwords\ntext\n")) == [[["words"]], [["text"]]]


@pytest.mark.parametrize("named", ["2", "Body Text", "body_text"])
def test_names_above_numbered_columns_are_no_document(tmp_path, words_of, named):
    rows = "".join(f"{10 + n},some words,{'ab'[n % 2]}\n" for n in range(6))
    path = write(tmp_path / "a.csv", f"Nr,Body Text,Team\n{rows}")
    assert words_of(path, columns={"text": named}) == [[["some", "words"]]] * 6
    bare = write(tmp_path / "b.csv", rows)
    assert words_of(bare, columns={"text": "2"}) == [[["some", "words"]]] * 6


@pytest.mark.parametrize("make", [as_json, as_csv, as_parquet])
def test_several_columns_are_one_text(tmp_path, words_of, make):
    alone = words_of(make(tmp_path))
    joined = words_of(make(tmp_path), columns={"text": "text+Text"})
    assert [list(chain(*found)) for found in joined] == [2 * list(chain(*own)) for own in alone]


def test_labels_of_parquet_are_class_names_and_lists(tmp_path):
    def labels(column, **note):
        schema = pa.schema([("text", pa.string()), ("label", column.type)], note or None)
        pq.write_table(pa.table([["a", "b"], column], schema), tmp_path / "a.parquet")
        settings = TextSettings(columns={"label": "label"})
        return [
            own for batch in stream.read(tmp_path / "a.parquet", settings) for own in batch.labels
        ]

    names = {"info": {"features": {"label": {"names": ["硬件", "账号"], "_type": "ClassLabel"}}}}
    assert labels(pa.array([1, 0]), huggingface=json.dumps(names)) == ["账号", "硬件"]
    assert labels(pa.array([1, 0])) == ["1", "0"]
    assert labels(pa.array([["x", "y"], None])) == ['["x", "y"]', ""]


def test_a_list_of_objects_is_a_corpus(tmp_path, words_of):
    path = write(tmp_path / "a.json", '[{"text": "one"},\n {"text": "two"}]')
    assert words_of(path) == [[["one"]], [["two"]]]


def test_an_object_on_a_single_line_is_a_document(tmp_path, words_of):
    path = write(tmp_path / "a.jsonl", '{"text": "one", "parts": [{"text": "two"}]}\n')
    assert words_of(path) == [[["one"]]]


def test_a_line_in_quotes_is_named_by_its_first_line(tmp_path, words_of):
    path = write(tmp_path / "a.csv", 'text,label\n"a\nb",x\n"c\nd"\n')
    with pytest.raises(InputError, match=r"a\.csv, line 4: 1 columns"):
        words_of(path, columns={"label": "label"})


def test_parquet_without_its_library_names_the_extra(tmp_path, words_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"a\.parquet.*sememe\[parquet\]"):
        words_of(write(tmp_path / "a.parquet", "PAR1"))


def test_a_line_without_end_is_no_row(tmp_path, monkeypatch, words_of):
    monkeypatch.setattr("sememe.text.tables._LONGEST_LINE", 1 << 20)
    with (tmp_path / "a.tsv").open("wb") as file:
        file.write(b"text\tlabel\n")
        file.truncate(1 << 24)  # zeros
    with pytest.raises(InputError, match=r"a\.tsv has a line of 1 MB"):
        words_of(tmp_path / "a.tsv")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("cell", ["{}", "TCK-{}", "2024-03-{} 09:00"])
def test_a_column_of_ids_is_told_of_with_samples(tmp_path, words_of, ending, cell):
    cells, mark = [cell.format(10 + n) for n in range(20)], "\t" if ending == "tsv" else ","
    lines = [f"ref{mark}text", *(f"{own}{mark}the cat of 12 sat" for own in cells)]
    if ending == "jsonl":
        lines = [json.dumps({"ref": own, "text": "the cat of 12 sat"}) for own in cells]
    path = tmp_path / f"a.{ending}"
    path.write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="'ref'") as heard:
        words_of(path, columns={"text": "ref"})
    assert f"“{cells[0]}”" in str(heard[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        words_of(path)


def test_two_columns_of_the_same_name_in_a_parquet_file(tmp_path, words_of):
    table = pa.table([["a text"], ["another"]], names=["text", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="two columns 'text'"):
        words_of(tmp_path / "a.parquet")

"""Cleaning of corpora: formats, rules, order, memory, interruption, and bad input."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import InputError, OptionError, SememeError, WriteError
from sememe.text.cleaning import running

SENTENCE = "the quick brown fox jumps over the lazy dog and then it goes home to sleep"
CHINESE = "我们今天去公园散步，看到了很多美丽的花朵和可爱的小动物，大家都非常开心。"
OTHERS = (
    "a report about the weather in the north of the country during the last week",
    "nobody knew why the old machine had started again after so many silent years",
    "three recipes for soup with beans that my grandmother wrote into her blue notebook",
)


@pytest.fixture
def place(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def removed_by(report: sememe.CleanReport) -> dict[str, tuple[int, int]]:
    """The rows and lines that each rule removed, if any."""
    found = {rule: (count.rows, count.lines) for rule, count in report.rules.items()}
    return {rule: counts for rule, counts in found.items() if any(counts)}


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


# ---- what is removed ----------------------------------------------------------------------------


def test_exact_and_near_duplicates_of_earlier_rows(place):
    rows = [
        SENTENCE,
        OTHERS[0],
        SENTENCE,
        f"{SENTENCE.upper()}!",
        SENTENCE.replace("lazy", "tired"),
    ]
    report = sememe.clean(rows)
    assert removed_by(report) == {"duplicates": (1, 0), "near_duplicates": (1, 0)}
    assert report.is_kept.tolist() == [True, True, False, False, True]
    (sample,) = report.rules["near_duplicates"].samples
    assert (sample.place.line, sample.like.line, sample.similarity) == (3, 0, 1.0)
    loose = sememe.clean(rows, threshold=0.3)
    assert loose.is_kept.tolist() == [True, True, False, False, False]
    assert sememe.clean(rows, duplicates=False, near_duplicates=False).is_kept.all()


def test_a_copy_of_a_near_duplicate_is_like_the_kept_row(place):
    changed = " ".join([SENTENCE] * 5) + " once more"
    report = sememe.clean([" ".join([SENTENCE] * 5), changed, OTHERS[0], changed])
    assert report.is_kept.tolist() == [True, False, True, False]
    (copy,) = report.rules["duplicates"].samples
    assert copy.like.line == 0 and 0.8 < copy.similarity < 1


def test_chinese_is_compared_by_characters(place):
    rows = [CHINESE, CHINESE.replace("，", " "), CHINESE.replace("小动物", "小狗"), OTHERS[0]]
    report = sememe.clean(rows, threshold=0.5)
    assert report.is_kept.tolist() == [True, False, False, True]
    assert sememe.clean(["我在北京大学读书", "我在南京大学读书"]).is_kept.all()


def test_texts_without_words_are_only_equal_or_not(place):
    rows = ["👍👍", "😡😡", "👍👍", "Great 👍", "Great 😡"]
    assert sememe.clean(rows).is_kept.tolist() == [True, True, False, True, True]


def test_broken_characters_are_repaired_or_their_lines_removed(place):
    rows = ["The cafÃ© in the old town", "A lost \ufffd character", OTHERS[0]]
    report = sememe.clean(rows, "out.txt")
    assert removed_by(report) == {"broken": (1, 0)} and report.num_repaired == 1
    assert Path("out.txt").read_text("utf-8") == f"The café in the old town\n{OTHERS[0]}\n"
    assert sememe.clean(rows, broken=False).is_kept.all()


def test_lines_that_are_no_text(place):
    lines = [
        OTHERS[0], "https://example.com/a?b=c", "- www.example.org", "see www.example.org",
        "12", "Page 3 of 10", "第 5 页", "1984 was a year", "<div class='x'>", "&nbsp;",
        "{{cite web|url=x}}", "[[分类:历史]]", "-----", "a <b> tag", "= 1984 =",
    ]  # fmt: skip
    Path("lines.txt").write_text("\n".join(lines), "utf-8")
    report = sememe.clean("lines.txt", "out.txt")
    kept = [OTHERS[0], "see www.example.org", "1984 was a year", "a <b> tag", "= 1984 ="]
    assert Path("out.txt").read_text("utf-8").splitlines() == kept
    expected = {"links": (2, 0), "page_numbers": (3, 0), "markup": (5, 0)}
    assert removed_by(report) == expected
    off = sememe.clean("lines.txt", links=False, page_numbers=False, markup=False, min_length=0)
    assert off.is_kept.all()
    assert sememe.clean(lines).rules["page_numbers"].rows == 0  # a cell may be a number


def test_lines_of_many_documents(place):
    """Menus and footers are removed from documents of several lines; one-line texts stay."""
    Path("pages").mkdir()
    for number in range(12):
        text = f"Home\nAbout us\n\nPage about {number}: {OTHERS[number % 3]}.\n© Someone 2020\n"
        Path(f"pages/{number:02}.txt").write_text(text, "utf-8")
    report = sememe.clean("pages", "out.txt", near_duplicates=False)
    assert removed_by(report) == {"repeated_lines": (0, 36)}
    documents = Path("out.txt").read_text("utf-8").split("\n\n")
    assert documents[0] == f"Page about 0: {OTHERS[0]}." and len(documents) == 13
    (first, *_) = report.rules["repeated_lines"].samples
    assert (first.place.file, first.place.line, first.text) == ("pages/00.txt", 1, "Home")
    assert not removed_by(sememe.clean("pages", repeated_lines=0, near_duplicates=False))
    assert not removed_by(sememe.clean("pages", repeated_lines=13, near_duplicates=False))
    assert sememe.clean(["Thanks"] * 20, duplicates=False, near_duplicates=False).is_kept.all()


def test_text_broken_at_a_fixed_width_keeps_its_sentences(place):
    paragraphs = [
        f"It was a long and rather cold winter in the year of the {number}th\nking as they say in\n"
        for number in range(30)
    ]
    paragraphs += ["They had lived in the house by the river since the year of\n1859.\n"]
    Path("book.txt").write_text("\n".join(paragraphs), "utf-8")
    report = sememe.clean("book.txt", "out.txt", near_duplicates=False, repeated_lines=5)
    assert report.is_kept.all() and not removed_by(report)
    assert Path("out.txt").read_text("utf-8").strip() == "\n".join(paragraphs).strip()


def test_short_long_and_empty_rows(place):
    rows = ["a", "好", "ok", "...", "", " \n ", "x" * 50, OTHERS[0]]
    report = sememe.clean(rows, max_length=80)
    assert removed_by(report) == {"empty": (2, 0), "too_short": (2, 0)}
    report = sememe.clean(rows, max_length=40, min_length=3)
    assert removed_by(report) == {"empty": (2, 0), "too_short": (4, 0), "too_long": (2, 0)}


def test_languages_are_kept(place):
    rows = [
        CHINESE,
        SENTENCE,
        "Das ist ein deutscher Satz über das Wetter in Berlin.",
        "OK",
        "好的",
    ]
    report = sememe.clean(rows, keep_language="zh")
    assert report.is_kept.tolist() == [True, False, False, True, True]
    assert sememe.clean(rows, keep_language="en,zh").is_kept.tolist() == [1, 1, 0, 1, 1]
    with pytest.raises(OptionError, match="'qq'"):
        sememe.clean(rows, keep_language="qq")
    with pytest.raises(OptionError, match="'English'"):
        sememe.clean(rows, keep_language="English")


def test_markup_inside_lines_stays_unless_it_is_to_be_stripped(place):
    rows = ["A <b>bold</b> claim<br/>of &lt;3", OTHERS[0]]
    sememe.clean(rows, "as-is.txt")
    sememe.clean(rows, "stripped.txt", strip_markup=True)
    assert Path("as-is.txt").read_text("utf-8").splitlines()[0] == rows[0]
    assert Path("stripped.txt").read_text("utf-8").splitlines()[0] == "A bold claim of <3"


# ---- formats ------------------------------------------------------------------------------------

ROWS = [
    {"id": 7, "text": SENTENCE, "label": "a", "score": 0.5},
    {"id": 8, "text": SENTENCE, "label": "b", "score": 1.5},
    {"id": 9, "text": 'He said "cafÃ©", and, then\nhe went', "label": "c", "score": None},
    {"id": 10, "text": None, "label": "d", "score": 2.0},
]


def write_csv(path: str, delimiter: str = ",", encoding: str = "utf-8") -> None:
    with Path(path).open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(ROWS)


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_csv_keeps_ids_and_labels(place, delimiter):
    write_csv("in.csv", delimiter)
    report = sememe.clean("in.csv", "out.csv")
    with Path("out.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["label"], row["score"]) for row in rows] == [
        ("7", "a", "0.5"),
        ("9", "c", ""),
    ]
    assert rows[1]["text"] == 'He said "café", and, then\nhe went'
    assert removed_by(report) == {"empty": (1, 0), "duplicates": (1, 0)}
    (sample,) = report.rules["duplicates"].samples
    assert (sample.place.line, sample.like.line) == (3, 2)
    assert sememe.clean("out.csv").is_kept.all()  # what was written can be read


def test_tsv_stays_as_it_was_written(place):
    text = 'id\ttext\n1\t"quoted start and more words\n2\the said "so" and left the room\n'
    Path("in.tsv").write_text(text, "utf-8")
    sememe.clean("in.tsv", "out.tsv")
    assert Path("out.tsv").read_text("utf-8") == text


def test_jsonl_and_nested_texts(place):
    rows = [
        {"id": 1, "doc": {"body": "The cafÃ© there", "n": [1, 2]}},
        {"id": 2, "doc": {"body": "Hi you"}},
    ]
    Path("in.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    report = sememe.clean("in.jsonl", "out.jsonl", columns={"text": "doc.body"})
    found = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    rows[0]["doc"]["body"] = "The café there"
    assert found == rows and report.num_repaired == 1


def test_parquet_keeps_the_types_of_columns(place):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    schema = pa.schema(
        [("id", pa.int32()), ("text", pa.string()), ("label", pa.string()), ("score", pa.float32())]
    )
    pq.write_table(pa.Table.from_pylist(ROWS, schema), "in.parquet")
    sememe.clean("in.parquet", "out.parquet")
    found = pq.read_table("out.parquet")
    assert found.schema.types == schema.types
    assert found.column("id").to_pylist() == [7, 9]
    assert found.column("text")[1].as_py() == 'He said "café", and, then\nhe went'


def test_tables_become_other_tables_or_text(place):
    write_csv("in.csv")
    sememe.clean("in.csv", "out.jsonl")
    assert [json.loads(line)["id"] for line in Path("out.jsonl").read_text().splitlines()] == [
        "7",
        "9",
    ]
    sememe.clean("in.csv", "out.txt.gz")
    with gzip.open("out.txt.gz", "rt", encoding="utf-8") as file:
        assert file.read() == f'{SENTENCE}\nHe said "café", and, then he went\n'
    Path("plain.txt").write_text(f"{SENTENCE}\n", "utf-8")
    sememe.clean("plain.txt", "plain.jsonl")
    assert json.loads(Path("plain.jsonl").read_text("utf-8")) == {"text": SENTENCE}


def test_columns_are_named_or_numbered(place):
    Path("in.csv").write_text(f"1,{OTHERS[0]}\n2,{OTHERS[1]}\n3,{OTHERS[0]}\n", "utf-8")
    with pytest.raises(InputError, match="no column 'text'"):
        sememe.clean("in.csv")
    report = sememe.clean("in.csv", "out.csv", columns={"text": "2"})
    assert (report.num_rows, report.num_kept) == (3, 2)
    assert Path("out.csv").read_text("utf-8-sig").splitlines()[1:] == [
        f"1,{OTHERS[0]}",
        f"2,{OTHERS[1]}",
    ]


def test_data_frames(place):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([*ROWS, {"id": 11, "text": "ok", "label": "e", "score": 1.0}])
    report = sememe.clean(frame["text"])
    assert frame[report.is_kept]["id"].tolist() == [7, 9, 11]
    assert report.rules["duplicates"].samples[0].place.line == 1  # numbered as in Python
    sememe.clean(frame.rename(columns={"text": "body"}), "out.csv", columns={"text": "body"})
    assert pd.read_csv("out.csv")["body"].tolist()[1:] == [
        'He said "café", and, then\nhe went',
        "ok",
    ]


def test_gb18030(place):
    rows = [CHINESE, CHINESE, "第二行是别的内容，和第一行没有关系。"]
    Path("in.txt").write_bytes("\r\n".join(rows).encode("gb18030"))
    with pytest.raises(InputError, match="--encoding gb18030"):
        sememe.clean("in.txt")
    report = sememe.clean("in.txt", "out.txt", encoding="gb18030")
    assert removed_by(report) == {"duplicates": (1, 0)}
    assert Path("out.txt").read_text("utf-8") == f"{rows[0]}\n{rows[2]}\n"
    write_csv("in.csv")
    Path("gb.csv").write_bytes(f"编号,文本\n1,{CHINESE}\n2,{CHINESE}\n".encode("gb18030"))
    sememe.clean("gb.csv", "gb-out.csv", encoding="gb18030", columns={"text": "文本"})
    assert Path("gb-out.csv").read_text("utf-8-sig").splitlines() == ["编号,文本", f"1,{CHINESE}"]


def test_another_encoding_is_noticed(place):
    lines = [f"Ein schöner Satz über Äpfel und Öfen, Nummer {number}" for number in range(10)]
    Path("in.txt").write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.warns(UserWarning, match="encoding"):
        report = sememe.clean("in.txt")
    assert removed_by(report)["broken"] == (10, 0)
    with pytest.raises(InputError, match=r"in\.txt is not UTF-8"):
        sememe.clean("in.txt", errors="strict")
    assert sememe.clean("in.txt", encoding="latin-1", near_duplicates=False).is_kept.all()


def test_documents_of_several_files_and_layouts(place):
    Path("a.txt").write_text(f"{OTHERS[0]}\n{OTHERS[1]}\n{OTHERS[0]}\n", "utf-8")
    Path("b.txt").write_text(f"\n\n{OTHERS[2]}\nsecond line\n\n\n{OTHERS[0]}\n\n", "utf-8")
    report = sememe.clean([Path("a.txt"), Path("b.txt")], "out.txt")
    # Lines of the first file, paragraphs of the second; blank lines are no rows.
    assert report.is_kept.tolist() == [True, True, False, True, False]
    assert Path("out.txt").read_text("utf-8") == "\n".join(
        [*OTHERS[:2], OTHERS[2], "second line", "", ""]
    )
    samples = report.rules["duplicates"].samples
    assert [(str(own.place), str(own.like)) for own in samples] == [
        ("a.txt:3", "a.txt:1"),
        ("b.txt:7", "a.txt:1"),
    ]
    assert sememe.clean("b.txt", layout="file").num_rows == 1
    assert sememe.clean("b.txt", layout="line").num_rows == 3


def test_a_generator_and_compressed_files(place):
    pages = (f"Home\nAbout\n{OTHERS[number % 3]} {number}" for number in range(12))
    assert removed_by(sememe.clean(pages, near_duplicates=False)) == {"repeated_lines": (0, 24)}
    with gzip.open("in.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in (*OTHERS, OTHERS[0]))
    assert sememe.clean("in.jsonl.gz", "out.jsonl.xz").num_kept == 3


def test_what_was_removed_is_written_with_its_reason(place):
    Path("in.txt").write_text(f"{SENTENCE}\nhttp://a.b\n{SENTENCE}!\n\ufffd\n", "utf-8")
    sememe.clean("in.txt", "out.txt", removed="removed.csv")
    with Path("removed.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert rows == [
        ("in.txt", "2", "links", "", "", "", "http://a.b"),
        ("in.txt", "4", "broken", "", "", "", "\ufffd"),
        ("in.txt", "3", "near_duplicates", "in.txt", "1", "1.0", f"{SENTENCE}!"),
    ]


# ---- promises -----------------------------------------------------------------------------------


def messy_rows(num: int) -> list[str]:
    odd = ["cafÃ© number", "http://x.y/", "<br>", "\ufffd", "12", "ok\0ay then it is"]
    return [
        f"{OTHERS[n % 3]} {n % 50} {n % 7}" if n % 4 else f"{odd[n // 4 % 6]} {n % 90}"
        for n in range(num)
    ]


def test_the_result_does_not_depend_on_workers_or_batches(place, monkeypatch):
    """Many batches, read by threads and judged by processes, give the same bytes as one."""
    Path("in.txt").write_text("\n".join(messy_rows(3_000)), "utf-8")
    Path("in.jsonl").write_text(
        "\n".join(json.dumps({"text": row}) for row in messy_rows(3_000)), "utf-8"
    )
    for name in ("in.txt", "in.jsonl"):
        for number, (workers, size) in enumerate([(1, 1 << 21), (3, 1 << 14)]):
            monkeypatch.setattr("sememe.text.cleaning.rows.BATCH_SIZE", size)
            monkeypatch.setattr("sememe.text.sources.BATCH_SIZE", size)
            out = f"{number}-{name}"
            report = sememe.clean(
                name, out, removed=f"{out}.tsv", workers=workers, keep_language="en"
            )
            assert 0 < report.num_kept < 3_000
        for ending in ("", ".tsv"):
            assert Path(f"0-{name}{ending}").read_bytes() == Path(f"1-{name}{ending}").read_bytes()


def test_a_corpus_of_one_text(place):
    Path("in.txt").write_text(f"{SENTENCE}\n" * 50_000, "utf-8")
    report = sememe.clean("in.txt", "out.txt")
    assert (report.num_rows, report.num_kept) == (50_000, 1)
    assert Path("out.txt").read_text("utf-8") == f"{SENTENCE}\n"


def test_huge_lines(place):
    """A line of 40 MB is one row that is too long, and little of it is in memory."""
    with Path("in.txt").open("w") as file:
        file.write(f"{OTHERS[0]}\n")
        for _ in range(40):
            file.write("word " * 200_000)
        file.write(f"\n{OTHERS[1]}\n")
    report = sememe.clean("in.txt", "out.txt", max_length=100_000)
    assert removed_by(report) == {"too_long": (1, 0)}
    assert report.rules["too_long"].samples[0].place.line == 2
    assert Path("out.txt").read_text() == f"{OTHERS[0]}\n{OTHERS[1]}\n"


def test_empty_and_bad_input(place):
    Path("empty.txt").write_text("\n \n")
    Path("bad.jsonl").write_text('{"text": "a good row of text"}\n{"text": 5}\nnot json\n')
    Path("ragged.csv").write_text("text,label\na good row,x\nanother row\n")
    with pytest.raises(InputError, match=r"no row in empty\.txt"):
        sememe.clean("empty.txt", "out.txt")
    with pytest.raises(InputError, match="no row in the iterable"):
        sememe.clean(iter([]))
    with pytest.raises(InputError, match="line 2: 'text' holds int"):
        sememe.clean("bad.jsonl", "out.jsonl")
    with pytest.raises(InputError, match=r"ragged.csv, line 3"):
        sememe.clean("ragged.csv", "out.csv")
    with pytest.raises(InputError, match="nowhere"):
        sememe.clean("nowhere.txt")
    with pytest.raises(InputError, match="of type int"):
        sememe.clean(["text of a row", 5])
    assert leftovers(place) == [] and not Path("out.txt").exists()
    report = sememe.clean("bad.jsonl", "out.jsonl", skip_bad=True)
    assert removed_by(report) == {"invalid": (2, 0)}
    assert [own.place.line for own in report.rules["invalid"].samples] == [2, 3]


def test_bad_options_and_outputs(place):
    Path("in.txt").write_text(f"{SENTENCE}\n")
    Path("there.txt").write_text("precious")
    with pytest.raises(WriteError, match=r"there\.txt exists"):
        sememe.clean("in.txt", "there.txt")
    with pytest.raises(WriteError, match="part of the corpus"):
        sememe.clean("in.txt", "in.txt", overwrite=True)
    with pytest.raises(OptionError, match=r"out\.docx"):
        sememe.clean("in.txt", "out.docx")
    with pytest.raises(OptionError, match=r"--removed .*removed\.txt"):
        sememe.clean("in.txt", removed="removed.txt")
    with pytest.raises(OptionError, match="different names"):
        sememe.clean("in.txt", "a.csv", removed="a.csv")
    for wrong in ({"threshold": 2}, {"shingle_size": 0}, {"shingles": "bytes"}, {"no_such": 1}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            sememe.clean("in.txt", **wrong)
    assert Path("there.txt").read_text() == "precious" and leftovers(place) == []
    sememe.clean("in.txt", "there.txt", overwrite=True)
    assert Path("there.txt").read_text() == f"{SENTENCE}\n"


def test_all_rows_removed_is_told(place):
    with pytest.warns(UserWarning, match="No row was kept"):
        assert sememe.clean(["a", "b"], "out.txt").num_kept == 0
    assert Path("out.txt").read_bytes() == b""


def test_a_failure_in_the_midst_leaves_nothing(place, monkeypatch):
    Path("in.txt").write_text("\n".join(messy_rows(1_000)), "utf-8")
    Path("out.txt").write_text("before")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("_compare", "_items", "_text_of"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(running._Cleaning, name, fail)
            sememe.clean("in.txt", "out.txt", removed="removed.tsv", overwrite=True)
        assert Path("out.txt").read_text() == "before" and not Path("removed.tsv").exists()
        assert leftovers(place) == []


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_command_leaves_the_old_file(place, stop):
    Path("out.txt").write_text("before")
    with Path("in.txt").open("w") as file:
        for number in range(400_000):
            file.write(f"{OTHERS[number % 3]} cafÃ© {number}\n")
    command = [sys.executable, "-m", "sememe.cli", "clean", "in.txt", "--out", "out.txt"]
    command += ["--overwrite", "--removed", "removed.tsv"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("cleaning"):
                break
        process.send_signal(stop)
        _, errors = process.communicate(timeout=600)
    assert Path("out.txt").read_text() == "before" and not Path("removed.tsv").exists()
    if stop == signal.SIGINT:
        assert process.returncode == 130 and "Stopped." in errors and "Traceback" not in errors
    else:  # the next run removes what a killed one leaves
        Path("in.txt").write_text("one fine text\n")
        subprocess.run(command, check=True, capture_output=True)
        assert Path("out.txt").read_text() == "one fine text\n"
    assert leftovers(place) == []


@pytest.mark.slow
def test_memory_grows_by_few_bytes_per_row(place):
    """300,000 more rows of 1.5 KB, 450 MB of text, take less than 150 MB more."""
    program = (
        "import random, resource, sys, sememe\n"
        "draw = random.Random(1)\n"
        "rows = (f'{draw.random()} word ' * 60 for _ in range(int(sys.argv[1])))\n"
        "sememe.clean(rows, 'out.txt', overwrite=True)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )
    small, large = (
        int(subprocess.check_output([sys.executable, "-c", program, num], env=os.environ))
        for num in ("20000", "320000")
    )
    assert large - small < 150, (small, large)


def test_the_report_is_readable(place):
    report = sememe.clean([SENTENCE, SENTENCE, "\ufffd broken"])
    assert "duplicates: 1 rows" in str(report) and "Kept 1 of 3 rows" in report.summary()
    assert "<table>" in report._repr_html_()
    assert json.loads(json.dumps(report.to_dict()))["rules"]["duplicates"]["rows"] == 1
    assert isinstance(report.is_kept, np.ndarray) and issubclass(InputError, SememeError)


def test_columns_are_found_as_by_training(place):
    Path("in.csv").write_text("nr;Kopf;Text\n1;a;one fine text\n2;b;one fine text\n", "utf-8")
    for column in ("text", "3", "Text"):
        sememe.clean(
            "in.csv", "out.csv", removed="removed.jsonl", overwrite=True, columns={"text": column}
        )
        assert Path("out.csv").read_text("utf-8-sig").splitlines() == [
            "nr,Kopf,Text",
            "1,a,one fine text",
        ]
        assert json.loads(Path("removed.jsonl").read_text("utf-8"))["text"] == "one fine text"
    with pytest.raises(InputError, match="one column"):
        sememe.clean("in.csv", columns={"text": "Kopf+Text"})

"""Question files: what is read, what is guessed, and what is refused with its line."""

from __future__ import annotations

import csv
import io
import math
import os
import time
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import InputError
from sememe.evaluation import question_files
from sememe.evaluation.question_files import Kind, WordQuestions


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("love\tsex\t6.77\r\ntiger\tcat\t7.35\r\n", "pairs"),
        ("Word 1,Word 2,Human (mean)\ntiger,cat,7.35\n", "pairs"),
        ("# a comment\nbig large 3\n", "pairs"),
        ("李白\t诗\t9.2\n", "pairs"),
        (": capital\nAthens Greece Oslo Norway\n", "analogies"),
        ("good\tbetter\trough\trougher\r\n", "analogies"),
        (": geography\r\n广东 粤剧 浙江 越剧\r\n", "analogies"),
        ("red green | three\n", "odd"),
        ("colors: red green\nshapes: circle square\n", "groups"),
        (": english\nfast slow\n", "antonyms"),
        ("冷 热\n", "antonyms"),
        ("This is a page of prose about nothing.\nIt has lines.\n", None),
    ],
)
def test_the_kind_is_told_by_content(tmp_path: Path, text: str, kind: str | None) -> None:
    assert question_files.detect_kind(write(tmp_path / "f.txt", text)) == kind


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("tiger\tcat\t7.35\nbook\tpaper\t7.46\n", "column 3"),
        ("tiger,cat,7.35\nbook,paper,7.46\n", "column 3"),
        ("tiger;cat;7.35\nbook;paper;7.46\n", "column 3"),
        ("tiger;cat;7,35\nbook;paper;7,46\n", "column 3"),
        ("tiger|cat|7.35\nbook|paper|7.46\n", "column 3"),
        ("tiger  cat   7.35\n\nbook paper 7.46", "column 3"),
        ("7.35\ttiger\tcat\n7.46\tbook\tpaper\n", "column 1"),
        ("Word 1,Word 2,Human (mean),1,2\ntiger,cat,7.35,9,8\nbook,paper,7.46,6,7\n",
         "“Human (mean)” (column 3)"),
        ("\ufeffw1\tw2\tPOS\tSimLex999\tSD\ntiger\tcat\tN\t7.35\t1\nbook\tpaper\tN\t7.46\t2\n",
         "“SimLex999” (column 4)"),
    ],
)  # fmt: skip
def test_pairs_in_the_shapes_they_come_in(tmp_path: Path, text: str, column: str) -> None:
    path = write(tmp_path / "p.txt", text)
    assert question_files.detect_kind(path) == "pairs"
    content = question_files.read_questions(path, "pairs")
    assert content.rows == [("tiger", "cat"), ("book", "paper")] and content.scores == [7.35, 7.46]
    assert f"score = {column}; first row: tiger | cat | 7" in content.columns


CONTEXT = "the old <b> {} </b> was there, and nobody saw it leave"


@pytest.mark.parametrize("has_id", [True, False])
def test_words_and_score_are_found_between_tags_and_contexts(tmp_path: Path, has_id: bool) -> None:
    """As in SCWS: id, word, tag, word, tag, two contexts, mean rating, ten ratings."""
    rows = [("tiger", "n", "cat", "n"), ("run", "v", "paper", "n"), ("book", "n", "read", "v")]
    ratings = [[9, 8, 7, 10], [1, 0, 2, 0], [6, 7, 5, 7]]
    lines = [
        "\t".join([*([str(number)] if has_id else []), *row, CONTEXT.format(row[0]),
                   CONTEXT.format(row[2]), str(sum(own) / 4), *map(str, own)])
        for number, (row, own) in enumerate(zip(rows, ratings, strict=True), start=1)
    ]  # fmt: skip
    path = write(tmp_path / "scws.txt", "\n".join(lines))
    assert question_files.detect_kind(path) == "pairs"
    content = question_files.read_questions(path, "pairs")
    assert content.rows == [("tiger", "cat"), ("run", "paper"), ("book", "read")]
    assert content.scores == [8.5, 0.75, 6.25]
    first = 2 if has_id else 1
    assert content.columns == (
        f"words = column {first}, column {first + 2}; score = column {first + 6}; "
        "first row: tiger | cat | 8.5"
    )


def test_a_header_names_score_and_words_wherever_they_stand(tmp_path: Path) -> None:
    text = ",similarity,word1,word2,relation\n0,6.81,take,remove,synonyms\n1,4.8,walk,trail,none\n"
    path = write(tmp_path / "simverb.csv", text)
    assert question_files.detect_kind(path) == "pairs"
    content = question_files.read_questions(path, "pairs")
    assert content.rows == [("take", "remove"), ("walk", "trail")]
    assert content.scores == [6.81, 4.8]


def test_words_that_look_like_names_of_columns_are_no_header(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.txt", "w1 w2 8\nword1 word2 5\nscore pos 1\n")
    content = question_files.read_questions(path, "pairs")
    assert content.rows == [("w1", "w2"), ("word1", "word2"), ("score", "pos")]


def test_outliers_in_columns_are_odd_ones_and_no_analogies(tmp_path: Path) -> None:
    text = (
        ",category,outliers,words\n"
        """0,firms,"['chair', 'plant', '']","['Apple', 'Foxconn', ""Levi's""]"\n"""
        """1,cars,"['pineapple']","['Opel', 'Audi']"\n"""
    )
    path = write(tmp_path / "outliers.csv", text)
    assert question_files.detect_kind(path) == "odd"
    content = question_files.read_questions(path, "odd")
    assert content.rows == [
        ("Apple", "Foxconn", "Levi's", "chair"),
        ("Apple", "Foxconn", "Levi's", "plant"),
        ("Opel", "Audi", "pineapple"),
    ]
    path = write(tmp_path / "four.csv", "word1,word2,word3,outlier\nred,green,blue,chair\n")
    assert question_files.detect_kind(path) == "odd"
    assert question_files.read_questions(path, "odd").rows == [("red", "green", "blue", "chair")]
    path = write(tmp_path / "short.csv", "w1,w2,w3,outlier\nred,green,blue,chair\n")
    assert question_files.detect_kind(path) == "odd"
    assert question_files.read_questions(path, "odd").rows == [("red", "green", "blue", "chair")]
    path = write(tmp_path / "cells.csv", 'words,outliers\n"red green, blue","chair tree"\n')
    assert question_files.read_questions(path, "odd").rows == [
        ("red", "green", "blue", odd) for odd in ("chair", "tree")
    ]
    text = "category,word1,word2,word3,outlier\ncolors,red,green,blue,chair\n"
    content = question_files.read_questions(write(tmp_path / "named.csv", text), "odd")
    assert content.rows == [("red", "green", "blue", "chair")]  # a name of the group is no member


def test_four_words_a_line_show_how_they_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "four.csv", "red,green,blue,chair\none,two,three,tree\n")
    assert question_files.detect_kind(path) == "analogies"
    told = question_files.read_questions(path, "analogies").columns
    assert told.endswith("first row: red | green | blue | chair")


def test_analogies_and_groups_in_named_columns(tmp_path: Path) -> None:
    text = ",type,word1,word2,word3,target\n0,gram1,good,better,rough,rougher\n1,0,a,b,c,d\n"
    path = write(tmp_path / "msr.csv", text)
    assert question_files.detect_kind(path) == "analogies"
    content = question_files.read_questions(path, "analogies")
    assert content.rows == [("good", "better", "rough", "rougher"), ("a", "b", "c", "d")]
    assert content.sections == ["gram1", "0"]
    path = write(tmp_path / "short.csv", "w1,w2,w3,w4\ngood,better,rough,rougher\n")
    assert question_files.read_questions(path, "analogies").rows == [content.rows[0]]
    text = ",category,word\n0,colors,red\n1,colors,blue\n2,shapes,circle\n3,shapes,square\n4,,\n"
    path = write(tmp_path / "ap.csv", text)
    assert question_files.detect_kind(path) == "groups"
    content = question_files.read_questions(path, "groups")
    assert (content.sections, content.rows) == (
        ["colors", "shapes"], [("red", "blue"), ("circle", "square")],
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        ",word1,word2,relation\n0,horse,hog,coord\n1,lake,lough,coord\n2,shirt,sea,none\n",
        "horse,hog,coord,WordNet,3a\nlake,lough,mero,WordNet,2b\n",
    ],
)
def test_what_is_no_question_is_refused(tmp_path: Path, text: str) -> None:
    assert question_files.detect_kind(write(tmp_path / "relations.csv", text)) is None


def test_columns_that_may_all_be_words_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "three.csv", "tiger,cat,lion,7.3\nbook,paper,ink,5.1\n")
    assert question_files.detect_kind(path) == "pairs"
    with pytest.raises(InputError, match=r"three\.csv:1: two columns of words .* not 3"):
        question_files.read_questions(path, "pairs")


def test_a_field_without_end_is_refused_in_one_sentence(tmp_path: Path) -> None:
    csv.field_size_limit(1 << 17)  # of the process; readers of documents raise it
    path = write(tmp_path / "long.csv", f'a,"{"x" * 140_000}",1\n')
    with pytest.raises(InputError, match="field larger"):
        question_files.detect_kind(path)


def test_a_rating_that_never_changes_is_not_the_score(tmp_path: Path) -> None:
    path = write(tmp_path / "raters.txt", "4|0|0|1.0|sun|moon\n5|0|0|1.25|cup|tea\n6|0|0|1.5|a|b\n")
    assert question_files.read_questions(path, "pairs").scores == [1.0, 1.25, 1.5]


def test_parts_of_speech_are_taken_off_words_that_all_have_one() -> None:
    content = WordQuestions(["s"], [("sun-n", "sunlight-n"), ("run_VERB", "e-mail/NN")])
    assert content.without_tags().rows == [("sun", "sunlight"), ("run", "e-mail")]
    content = WordQuestions(["s"], [("sun-n", "sunlight"), ("x-news", "a-b")])
    assert content.without_tags() is content


WORDS = st.text("bcdfghklmopqtuxyz", min_size=4, max_size=8)
SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}


@st.composite
def rating_files(draw: st.DrawFn) -> tuple[str, list[frozenset[str]], list[float], bool]:
    """A file of scored pairs whose columns stand in any order: its text, pairs and scores."""
    num = draw(st.integers(3, 24))
    words = draw(st.lists(WORDS, min_size=2 * num, max_size=2 * num, unique=True))
    hundredths = st.lists(st.integers(0, 1000), min_size=num, max_size=num, unique=True)
    scores = [value / 100 for value in draw(hundredths)]
    columns = {"word1": words[:num], "word2": words[num:]}
    mark = SEPARATORS[draw(st.sampled_from(sorted(SEPARATORS)))]
    if draw(st.booleans()):
        columns["id"] = [str(number) for number in range(num)]
    if draw(st.booleans()):
        columns["pos"] = [draw(st.sampled_from("nva")) for _ in range(num)]
    if mark != " " and draw(st.booleans()):
        columns["context"] = [CONTEXT.format(word) for word in words[:num]]
    if draw(st.booleans()):
        raters = [[draw(st.integers(0, 10)) for _ in range(4)] for _ in range(num)]
        scores = [sum(own) / 4 for own in raters]
        columns |= {f"r{i}": [str(own[i]) for own in raters] for i in range(4)}
    columns["score"] = [str(score) for score in scores]
    if mark in ";\t" and draw(st.booleans()):
        columns["score"] = [cell.replace(".", ",") for cell in columns["score"]]
    order = draw(st.permutations(sorted(columns)))
    has_header = draw(st.booleans())
    rows = [*([order] if has_header else []), *zip(*(columns[name] for name in order), strict=True)]
    file = io.StringIO()
    if mark in ",;":
        csv.writer(file, delimiter=mark).writerows(rows)
    else:
        file.write("\n".join(mark.join(row) for row in rows))
    pairs = [frozenset(pair) for pair in zip(words[:num], words[num:], strict=True)]
    return file.getvalue(), pairs, scores, has_header


@settings(max_examples=200, deadline=None)
@given(rating_files())
def test_columns_in_any_order_are_read_rightly_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    made: tuple[str, list[frozenset[str]], list[float], bool],
) -> None:
    text, pairs, scores, has_header = made
    path = write(tmp_path_factory.mktemp("shuffled") / "ratings.txt", text)
    try:
        kind = question_files.detect_kind(path)
        content = question_files.read_questions(path, "pairs")
    except InputError:
        assert not has_header, "a header leaves no doubt"
        return
    assert kind == "pairs"
    assert [frozenset(row) for row in content.rows] == pairs
    assert content.scores == pytest.approx(scores)


CELLS = st.sampled_from(
    [
        "", "cat", "7", "1.5", "nan", "1e999", "[", "['a', 'b']", '"', "n", "x y z w", "word1",
        "outliers", "category", "word", "score", "9" * 5_000, "\x00", ":",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(CELLS, max_size=6), max_size=6),
    st.sampled_from(sorted(SEPARATORS.values())),
    st.sampled_from(get_args(Kind)),
)
def test_any_lines_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], mark: str, kind: Kind
) -> None:
    text = "\n".join(mark.join(row) for row in rows)
    path = write(tmp_path_factory.mktemp("any") / "questions.txt", text)
    for wanted in (None, kind):
        try:
            found = wanted or question_files.detect_kind(path)
            content = question_files.read_questions(path, found) if found else None
        except InputError:
            continue
        if content is not None:
            assert content.rows and all(word for row in content.rows for word in row)
            assert all(map(math.isfinite, content.scores))


def test_very_long_lines_take_no_time(tmp_path: Path) -> None:
    path = write(
        tmp_path / "long.txt", "colors: red " + "7 " * 100_000 + "\nshapes: circle square\n"
    )
    assert question_files.detect_kind(path) == "groups"
    path = write(tmp_path / "numbers.txt", "tiger cat " + "7 " * 100_000 + "\n")
    begun_s = time.thread_time()
    question_files.read_questions(path, "pairs")
    assert time.thread_time() - begun_s < 20


def test_what_is_no_file_or_endless_is_refused(tmp_path: Path) -> None:
    (tmp_path / "endless.txt").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.txt")
    with (tmp_path / "zeros.txt").open("wb") as file:
        file.truncate(1 << 33)
    for name in ("endless.txt", "pipe.txt", "zeros.txt", "."):
        with pytest.raises(InputError, match=r"not a regular file|is larger than|directory"):
            question_files.detect_kind(tmp_path / name)


def test_analogies_without_sections_take_the_files_name(tmp_path: Path) -> None:
    path = write(tmp_path / "msr.txt", "good\tbetter\trough\trougher\r\n")
    content = question_files.read_questions(path, "analogies")
    assert content[:3] == (["msr"], [("good", "better", "rough", "rougher")], ())


def test_the_odd_word_comes_last(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.txt", ": colors\n红 绿 蓝 | 三\n")
    assert question_files.read_questions(path, "odd") == (
        ["colors"], [("红", "绿", "蓝", "三")], (), ""
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        ("pairs", "a b 1\nc d 2\n# x\ne f\n", 4),
        ("pairs", "a\tb\t1\nc\td\tmany\ne\tf\t3\n", 2),
        ("pairs", "a b 1\nc d nan\n", 2),
        ("pairs", "患者 病人\n医生\t护士\t7.5\n", 1),
        ("pairs", "a\tb\t1\n\td\t2\n", 2),
        ("pairs", "just words here\n", 1),
        ("analogies", ": s\na b c d\na b c\n", 3),
        ("odd", "a b | c\na b c\n", 2),
        ("odd", "a b | c d\n", 1),
        ("groups", "x: a b\nx: c d\n", 2),
        ("groups", "x: a\n", 1),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, kind: Kind, text: str, line: int) -> None:
    path = write(tmp_path / "bad.txt", text)
    with pytest.raises(InputError, match=rf"bad\.txt:{line}: "):
        question_files.read_questions(path, kind)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        question_files.read_questions(tmp_path / "missing.txt", "pairs")
    with pytest.raises(InputError, match="empty"):
        question_files.read_questions(write(tmp_path / "empty.txt", "\n# nothing\n"), "pairs")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 bar 3\n")
    with pytest.raises(InputError, match=r"not UTF-8 \(byte 3\)"):
        question_files.read_questions(tmp_path / "latin.txt", "pairs")
    with pytest.raises(InputError, match="no questions"):
        question_files.read_questions(
            write(tmp_path / "names.txt", ": only\n: sections\n"), "analogies"
        )


@pytest.mark.parametrize(
    ("language", "fewest"),
    [
        ("english", {"analogies": 150, "odd": 40, "antonyms": 60, "groups": 100}),
        ("chinese", {"analogies": 150, "odd": 150, "antonyms": 150, "groups": 150}),
    ],
)
def test_the_built_in_files_are_sound(language: str, fewest: dict[str, int]) -> None:
    folder = question_files.BUILT_IN / language
    kinds = {path.stem: question_files.detect_kind(path) for path in folder.iterdir()}
    assert kinds == {name: name for name in fewest}
    rows = {
        kind: question_files.read_questions(folder / f"{kind}.txt", kind).rows
        for kind in get_args(Kind)
        if kind in fewest
    }
    words = [word for row in rows["groups"] for word in row]
    num = {**{kind: len(own) for kind, own in rows.items()}, "groups": len(words)}
    assert all(num[kind] >= fewest[kind] for kind in fewest), num
    assert len(set(words)) == len(words)
    for own in rows.values():
        assert len({frozenset(row) for row in own}) == len({tuple(row) for row in own}) == len(own)
        assert all(len(set(row)) == len(row) for row in own)


def test_the_built_in_chinese_words_are_whole() -> None:
    """Each word is one word of the segmenter, so that a model trained with it can know it."""
    rjieba = pytest.importorskip("rjieba")
    folder = question_files.BUILT_IN / "chinese"
    for path in folder.iterdir():
        content = question_files.read_questions(path, question_files.detect_kind(path))
        assert [word for word in content.words if rjieba.cut(word) != [word]] == []

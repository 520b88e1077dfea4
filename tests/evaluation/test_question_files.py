"""Question files: what is read, what is guessed, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememe.errors import InputError
from sememe.evaluation import files


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
    assert files.detect_kind(write(tmp_path / "f.txt", text)) == kind


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("tiger\tcat\t7.35\nbook\tpaper\t7.46\n", "column 3"),
        ("tiger,cat,7.35\nbook,paper,7.46\n", "column 3"),
        ("tiger;cat;7.35\nbook;paper;7.46\n", "column 3"),
        ("tiger  cat   7.35\n\nbook paper 7.46", "column 3"),
        ("\ufeffw1\tw2\tPOS\tSimLex999\tSD\ntiger\tcat\tN\t7.35\t1\nbook\tpaper\tN\t7.46\t2\n",
         "“SimLex999” (column 4)"),
    ],
)  # fmt: skip
def test_pairs_in_the_shapes_they_come_in(tmp_path: Path, text: str, column: str) -> None:
    content = files.read_pairs(write(tmp_path / "p.txt", text))
    assert content == ([("tiger", "cat"), ("book", "paper")], [7.35, 7.46], column)


def test_analogies_without_sections_take_the_files_name(tmp_path: Path) -> None:
    path = write(tmp_path / "msr.txt", "good\tbetter\trough\trougher\r\n")
    assert files.read_rows(path, 4) == (["msr"], [("good", "better", "rough", "rougher")])


def test_the_odd_word_comes_last(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.txt", ": colors\n红 绿 蓝 | 三\n")
    assert files.read_odd(path) == (["colors"], [("红", "绿", "蓝", "三")])


@pytest.mark.parametrize(
    ("read", "text", "line"),
    [
        (files.read_pairs, "a b 1\nc d 2\n# x\ne f\n", 4),
        (files.read_pairs, "a\tb\t1\nc\td\tmany\ne\tf\t3\n", 2),
        (files.read_pairs, "a b 1\nc d nan\n", 2),
        (files.read_pairs, "患者 病人\n医生\t护士\t7.5\n", 1),
        (files.read_pairs, "a\tb\t1\n\td\t2\n", 2),
        (files.read_pairs, "just words here\n", 1),
        (lambda path: files.read_rows(path, 4), ": s\na b c d\na b c\n", 3),
        (files.read_odd, "a b | c\na b c\n", 2),
        (files.read_odd, "a b | c d\n", 1),
        (files.read_groups, "x: a b\nx: c d\n", 2),
        (files.read_groups, "x: a\n", 1),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, read, text: str, line: int) -> None:  # type: ignore[no-untyped-def]
    path = write(tmp_path / "bad.txt", text)
    with pytest.raises(InputError, match=rf"bad\.txt:{line}: "):
        read(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        files.read_pairs(tmp_path / "missing.txt")
    with pytest.raises(InputError, match="empty"):
        files.read_pairs(write(tmp_path / "empty.txt", "\n# nothing\n"))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 bar 3\n")
    with pytest.raises(InputError, match=r"not UTF-8 \(byte 3\)"):
        files.read_pairs(tmp_path / "latin.txt")
    with pytest.raises(InputError, match="no questions"):
        files.read_rows(write(tmp_path / "names.txt", ": only\n: sections\n"), 4)


def test_the_built_in_files_are_sound() -> None:
    kinds = {path.stem: files.detect_kind(path) for path in files.BUILT_IN.iterdir()}
    assert kinds == {
        "analogies": "analogies", "antonyms": "antonyms", "groups": "groups", "odd": "odd",
    }  # fmt: skip
    analogies = files.read_rows(files.BUILT_IN / "analogies.txt", 4)
    assert len(set(analogies.rows)) == len(analogies.rows) >= 150
    assert all(len(set(row)) == 4 for row in analogies.rows)
    odd = files.read_odd(files.BUILT_IN / "odd.txt")
    assert len(odd.rows) >= 40 and all(len(set(row)) == len(row) for row in odd.rows)
    antonyms = files.read_rows(files.BUILT_IN / "antonyms.txt", 2)
    assert antonyms.sections.count("english") >= 60 and antonyms.sections.count("chinese") >= 30
    assert len({frozenset(row) for row in antonyms.rows}) == len(antonyms.rows)
    groups = [word for row in files.read_groups(files.BUILT_IN / "groups.txt").rows for word in row]
    assert len(set(groups)) == len(groups)

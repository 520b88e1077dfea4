"""Vector files of other tools: what is written is read again, damage gets one clear sentence."""

import bz2
import gzip
import lzma
import os
import struct
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from sememe.errors import ArtifactError, OptionError, SememeError, WriteError
from sememe.vectors import WordVectors, convert, load
from sememe.vectors.formats import read_vectors, rows, write_vectors
from sememe.vectors.formats.fasttext import MAGIC_BYTES, is_fasttext, read_model
from sememe.vectors.formats.files import compression_of
from sememe.vectors.formats.rows import parse_line

FORMATS = ("word2vec", "word2vec-binary", "glove")
SLOW = settings(max_examples=60)

words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\ufeff"), max_size=6
)
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw: st.DrawFn) -> WordVectors:
    chosen = draw(st.lists(words, min_size=1, max_size=8, unique=True))
    dim = draw(st.integers(2, 4))
    row = st.lists(numbers, min_size=dim, max_size=dim)
    rows = draw(st.lists(row, min_size=len(chosen), max_size=len(chosen)))
    return WordVectors(chosen, np.float32(rows))


def same(a: WordVectors, b: WordVectors) -> bool:
    bits_a, bits_b = a.vectors.view(np.int32), b.vectors.view(np.int32)
    return list(a) == list(b) and bits_a.tolist() == bits_b.tolist()


def use_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_SMALL_SIZE", 0)


@pytest.fixture(params=["plain", "compiled"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test of reading runs by plain Python and by compiled code."""
    if request.param == "compiled":
        use_compiled(monkeypatch)
    return request.param


@pytest.mark.parametrize("format", FORMATS)
@given(table=tables())
@SLOW
def test_round_trip_to_the_bit(parser: str, tmp_path: Path, format: str, table) -> None:
    write_vectors(table, tmp_path / "v", format)
    assert same(read_vectors(tmp_path / "v", format=format), table)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("newline", [True, False])
def test_format_is_told_by_content(tmp_path: Path, format: str, newline: bool) -> None:
    table = np.random.default_rng(0).standard_normal((30, 20), np.float32)
    vectors = WordVectors([f"词{index}" for index in range(30)], table)
    write_vectors(vectors, tmp_path / "v", format, newline=newline)
    assert same(load(tmp_path / "v"), vectors)
    assert list(load(tmp_path / "v", limit=7)) == list(vectors)[:7]


@pytest.mark.parametrize("block_size", [64, 1_000])
@pytest.mark.parametrize("format", FORMATS)
def test_blocks_are_joined(monkeypatch, parser, tmp_path, format: str, block_size: int) -> None:
    monkeypatch.setattr(rows, "_BLOCK_SIZE", block_size)
    monkeypatch.setattr("sememe.vectors.formats.files._HEAD_SIZE", 300)
    table = np.random.default_rng(0).standard_normal((300, 5), np.float32)
    vectors = WordVectors([f"w{index}" for index in range(300)], table)
    write_vectors(vectors, tmp_path / "v", format)
    assert same(load(tmp_path / "v"), vectors)


@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
            st.from_regex(r"[+-]?[0-9]{1,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
            numbers.map(lambda number: str(np.float32(number))),
            # The middle between two neighbouring float32, where one digit decides.
            st.integers(2**23, 2**24 - 1).map(lambda whole: f"{whole}.5"),
            st.integers(2**23, 2**24 - 1).map(lambda whole: f"{whole}.50000000001"),
        ),
        min_size=2,
        max_size=2,
    )
)
@SLOW
def test_compiled_numbers_equal_python(tmp_path: Path, fields: list[str]) -> None:
    line = " ".join(["word", *fields])
    (tmp_path / "v").write_text(line + "\n")
    with np.errstate(over="ignore"):
        expected = np.array([float(field) for field in fields]).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        use_compiled(patch)
        if not np.isfinite(expected).all():
            with pytest.raises(ArtifactError, match=r"line 1.*not finite"):
                read_vectors(tmp_path / "v", format="glove")
            return
        found = read_vectors(tmp_path / "v", format="glove").vectors[0]
    assert found.view(np.int32).tolist() == expected.view(np.int32).tolist()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_compressed_by_content(tmp_path: Path, pack) -> None:
    packed = pack("苹果 1 2\npear 3 4\n".encode())
    (tmp_path / "v.txt").write_bytes(packed + pack(b"plum 5 6\n"))
    assert load(tmp_path / "v.txt")["苹果"].tolist() == [1, 2]
    assert load(tmp_path / "v.txt")["plum"].tolist() == [5, 6]
    (tmp_path / "v.txt").write_bytes(packed[: len(packed) - 3])
    with pytest.raises(ArtifactError, match=r"v\.txt"):
        load(tmp_path / "v.txt")


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst"])
def test_compressed_by_ending_when_written(tmp_path: Path, ending: str) -> None:
    vectors = WordVectors(["a", "b"], np.eye(2))
    write_vectors(vectors, tmp_path / f"v.txt.{ending}")
    assert compression_of(tmp_path / f"v.txt.{ending}") == ending
    assert same(load(tmp_path / f"v.txt.{ending}"), vectors)


def test_what_real_files_have(parser: str, tmp_path: Path) -> None:
    """The C tool ends lines with a space, GloVe has words with spaces and odd white space."""
    lines = ["</s> 1 2 ", "at name@domain.com 3 4", "a\u00a0b -.5 +6E1", "\u3000 7 8",
             "x\u0085y 9 1\r", "", ". . . 1 2", "<unk> 1 2", "</s> 0 0", "tab\t1\t2"]  # fmt: skip
    (tmp_path / "v").write_bytes("\n".join(lines).encode())
    vectors = load(tmp_path / "v")
    assert list(vectors) == ["</s>", "at name@domain.com", "a\u00a0b", "\u3000", "x\u0085y",
                             ". . .", "<unk>", "tab"]  # fmt: skip
    assert vectors["a\u00a0b"].tolist() == [-0.5, 60]
    assert vectors["</s>"].tolist() == [1, 2]


def test_byte_order_mark_and_header(parser: str, tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"\xef\xbb\xbf2 2\r\na 1 2\r\nb 3 4\r\n")
    assert load(tmp_path / "v")["b"].tolist() == [3, 4]


BROKEN = {
    "nothing": (b"", "is empty"),
    "blank": (b"\n\n  \n", "is empty"),
    "header alone": (b"3 2\n", "holds no vectors"),
    "no rows stated": (b"0 2\na 1 2\n", "holds no vectors"),
    "prose": (b"It was the best of times,\nit was the worst of times\n", "known format"),
    "picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "known format"),
    "too few rows": (b"3 2\na 1 2\nb 3 4\n", "states 3 words.*ends after 2"),
    "too many rows": (b"1 2\na 1 2\nb 3 4\n", "states 1 words.*more lines"),
    "absurd rows": (b"999999999999999 2\na 1 2\n", "states 999,999,999,999,999 words.*after 1"),
    "absurd width": (b"1 999999999999\na 1 2\n", "states 999,999,999,999 "),
    "other width": (b"1 3\na 1 2\n", "states 3 .*lines have 2"),
    "short line": (b"a 1 2\nb 1\nc 1 2\n", "line 2: it has 1 numbers where 2"),
    "short line after header": (b"3 2\na 1 2\n\nb 1\nc 1 2\n", "line 4: it has 1 numbers where 2"),
    "not a number": (b"a 1 2\nb 1 x2\nc 1 2\n", "line 2: “x2” is not a number"),
    "underscores": (b"a 1 2\nb 1 1_0\nc 1 2\n", "line 2: “1_0” is not a number"),
    "nan": (b"a 1 2\nb 1 nan\n", "line 2: the vector of “b”.*not finite"),
    "overflow": (b"a 1 2\nb 1 1e39\n", "line 2: the vector of “b”.*not finite"),
    "not UTF-8": (b"a 1 2\nb\xff 1 2\n", r"line 2: the word b'b\\xff' is not UTF-8"),
    "binary cut off": (b"2 2\na " + bytes(8) + b"\nb " + bytes(5), "states 2 words.*after 1"),
    "binary too long": (b"1 2\na " + bytes(8) + b"\nb " + bytes(8), "states 1 words.*more bytes"),
    "binary not UTF-8": (b"1 2\n\xffa " + bytes(8), "byte 4: the word"),
    "binary nan": (b"1 2\na " + bytes(4) + b"\0\0\xc0\x7f", "byte 4: the vector of “a”"),
    "absurd binary": (b"999999999 9999\na " + bytes(99), "states 999,999,999 words.*after 0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(parser: str, tmp_path: Path, name: str) -> None:
    content, match = BROKEN[name]
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ArtifactError, match=match) as caught:
        load(tmp_path / "v")
    assert str(tmp_path / "v") in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"3 2\na 1 2\nb 3 4\n", {"a": [1, 2], "b": [3, 4]}),
        (b"1 2\na 1 2\nb 3 4\n", {"a": [1, 2], "b": [3, 4]}),
        (b"a 1 2\nb 1\nc 1 2\n", {"a": [1, 2], "c": [1, 2]}),
        (b"a 1 2\nb nan 1\n", {"a": [1, 2], "b": [0, 1]}),
        (b"a 1 2\nb\xff 1 2\n", {"a": [1, 2], "b\ufffd": [1, 2]}),
        (b"2 2\na " + bytes(8) + b"\nb " + bytes(5), {"a": [0, 0]}),
    ],
)
def test_what_can_be_read_of_broken_files(parser, tmp_path, content: bytes, expected) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.warns(UserWarning, match="v: "):
        vectors = load(tmp_path / "v", errors="replace")
    assert {word: vectors[word].tolist() for word in vectors} == expected


def test_limit_reads_no_further(tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"9 2\na 1 2\nb 3 4\n")
    assert list(load(tmp_path / "v", limit=2)) == ["a", "b"]
    for limit in (0, -1, 2.5, "2"):
        with pytest.raises(OptionError, match="limit"):
            load(tmp_path / "v", limit=limit)


def test_endless_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rows, "_BLOCK_SIZE", 10_000)
    monkeypatch.setattr(rows, "_LONGEST_WORD", 1_000)
    (tmp_path / "v").write_bytes(b"a 1 2\n" * 10 + b"x" * 2_000_000)
    with pytest.raises(ArtifactError, match="line 11 has more than"):
        load(tmp_path / "v")


damage = st.one_of(
    st.binary(max_size=60),
    st.builds(lambda head, tail: head + b"\n" + tail, st.from_regex(rb"[0-9]{1,4} [0-9]{1,3}"),
              st.binary(max_size=80)),
    st.text("ab .-+e0123456789\n\t\r\u3000nif", max_size=80).map(str.encode),
)  # fmt: skip


@given(content=damage, errors=st.sampled_from(["strict", "replace"]))
@settings(SLOW, max_examples=300)
def test_any_bytes_give_vectors_or_our_errors(tmp_path: Path, content: bytes, errors: str) -> None:
    path = tmp_path / "v"
    path.write_bytes(content)
    outcomes = []
    for is_compiled in (False, True):
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")
            if is_compiled:
                use_compiled(patch)
            try:
                vectors = load(path, errors=errors)
                outcomes.append((list(vectors), vectors.vectors.tolist()))
            except SememeError as error:
                outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("format", FORMATS)
def test_words_that_a_format_cannot_keep(tmp_path: Path, format: str) -> None:
    vectors = WordVectors(["new york", "a\nb"], np.eye(2))
    with pytest.raises(OptionError, match="white space"):
        write_vectors(vectors, tmp_path / "v", format)
    assert not list(tmp_path.iterdir())
    write_vectors(vectors, tmp_path / "v", format, space="_")
    assert list(load(tmp_path / "v")) == ["new_york", "a_b"]
    with pytest.raises(OptionError, match="UTF-8"):
        write_vectors(WordVectors(["\ud800"], np.eye(1)), tmp_path / "w", format)
    with pytest.raises(OptionError, match="space must be"):
        write_vectors(vectors, tmp_path / "w", format, space=" ")


def test_a_full_disk_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    (tmp_path / "v").write_text("before")
    monkeypatch.setattr("sememe.vectors.formats.files.text_rows", full)
    with pytest.raises(WriteError, match="disk is full"):
        write_vectors(WordVectors(["a"], np.eye(1)), tmp_path / "v")
    assert [path.name for path in tmp_path.iterdir()] == ["v"]
    assert (tmp_path / "v").read_text() == "before"


def test_convert_there_and_back(tmp_path: Path) -> None:
    table = np.random.default_rng(0).standard_normal((40, 6), np.float32)
    vectors = WordVectors([f"词{index}" for index in range(40)], table)
    vectors.save(tmp_path / "0")
    for step, format in enumerate([*FORMATS, "folder"]):
        convert(tmp_path / f"{step}", tmp_path / f"{step + 1}", format)
    assert same(load(tmp_path / "4"), vectors)
    convert(tmp_path / "4", tmp_path / "few", "glove", limit=3)
    assert len(load(tmp_path / "few")) == 3
    with pytest.raises(OptionError, match="format must be one of"):
        convert(tmp_path / "4", tmp_path / "no", "pickle")
    with pytest.raises(OptionError, match="is a folder"):
        convert(tmp_path / "4", tmp_path / "0", "glove")


def test_a_line_is_parsed_from_its_end() -> None:
    assert parse_line(b"new york 1 2", 2) == (b"new york", [1, 2])
    assert parse_line(b" 1 2", 2) == (b"", [1, 2])
    assert parse_line(b"w 1  2 \r", 2) == (b"w", [1, 2])


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
@pytest.mark.parametrize("open_it", [load, read_vectors, read_model, is_fasttext])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, kind: str, open_it) -> None:
    place = tmp_path / "vectors.bin"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "endless":
        place.symlink_to("/dev/zero")
    else:
        place.mkdir()
    with pytest.raises((ArtifactError, OSError)) as caught:
        open_it(place)
    assert "vectors.bin" in str(caught.value)


HUGE = [
    b"1000000000000 300\nthe 0.5 0.5\n",
    b"1000000000000 1000000\nthe " + bytes(400),
    b"999999999999999 3\nthe 1 2 3\n",
    b"3 999999999999999\nthe 1 2 3\n",
    b"9999999999 1000000 3 6 2 1 < >\n0 1 2 3\n",
    MAGIC_BYTES + struct.pack("<i12id", 12, 2**31 - 1, *[1] * 7, 2**31 - 1, 3, 6, 100, 1e-4),
    MAGIC_BYTES + struct.pack("<i12id", 12, 4, *[1] * 7, 2**31 - 1, 3, 6, 100, 1e-4)
    + struct.pack("<iiiqq", 2**31 - 1, 2**31 - 1, 0, 9, 2**62),
]  # fmt: skip


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("content", HUGE)
def test_a_header_cannot_ask_for_memory(tmp_path: Path, content: bytes, pack) -> None:
    (tmp_path / "v").write_bytes(pack(content))
    tracemalloc.start()
    with pytest.raises(ArtifactError, match="v"):
        load(tmp_path / "v")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 << 20

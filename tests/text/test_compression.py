"""Compressed files are known by their content; damaged ones are named."""

import bz2
import gzip
import lzma

import pytest
import zstandard

from sememe.errors import InputError

PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
TEXT = b"".join(b"line %d\n" % i for i in range(30_000))


@pytest.mark.parametrize("method", PACK)
@pytest.mark.parametrize("name", ["a.txt.{}", "a.txt", "a"])
def test_compression_is_told_by_content(tmp_path, words_of, method, name):
    path = tmp_path / name.format(method)
    path.write_bytes(PACK[method](TEXT))
    found = words_of(path)
    assert len(found) == 30_000
    assert found[-1] == [["line", "29999"]]


@pytest.mark.parametrize("method", PACK)
def test_several_streams_in_one_file(tmp_path, words_of, method):
    path = tmp_path / "a.txt"
    path.write_bytes(PACK[method](b"one\n") + PACK[method](TEXT) + PACK[method](b"end\n"))
    found = words_of(path)
    assert (found[0], found[-1], len(found)) == ([["one"]], [["end"]], 30_002)


@pytest.mark.parametrize("method", PACK)
def test_a_cut_off_stream_is_named(tmp_path, words_of, method):
    path = tmp_path / f"a.txt.{method}"
    path.write_bytes(PACK[method](TEXT)[:-20])
    with pytest.raises(InputError, match=rf"a\.txt\.{method} is truncated"):
        words_of(path)


@pytest.mark.parametrize("method", PACK)
def test_a_damaged_stream_is_named(tmp_path, words_of, method):
    data = bytearray(PACK[method](TEXT))
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(40)
    path = tmp_path / f"a.txt.{method}"
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match=rf"a\.txt\.{method} is (damaged|truncated|not UTF-8)"):
        words_of(path)


@pytest.mark.parametrize("method", PACK)
def test_the_format_is_told_by_the_inner_ending(tmp_path, words_of, method):
    path = tmp_path / f"a.jsonl.{method}"
    path.write_bytes(PACK[method](b'{"text": "one two"}\n'))
    assert words_of(path) == [[["one", "two"]]]
    assert words_of(tmp_path) == [[["one", "two"]]]
    table = tmp_path / f"a.csv.{method}"
    table.write_bytes(PACK[method](b"text\nthree\n"))
    assert words_of(table) == [[["three"]]]

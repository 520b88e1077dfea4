"""Encodings and their marks; a wrong byte is named with its place."""

import warnings

import pytest

from sememe.errors import InputError

TEXT = "Grüße aus Köln.\nÇa va"


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "cp1252"])
def test_encodings_give_the_same_words(tmp_path, words_of, encoding):
    path = write(tmp_path / "a.txt", TEXT.encode(encoding))
    assert words_of(path, encoding=encoding) == [[["grüße", "aus", "köln"]], [["ça", "va"]]]


def test_chinese_encodings(tmp_path, words_of):
    path = write(tmp_path / "a.txt", "我爱北京。".encode("gb18030"))
    assert words_of(path, encoding="gb18030", language="zh") == [[["我", "爱", "北京"]]]


def test_the_mark_of_utf8_is_removed(tmp_path, words_of):
    path = write(tmp_path / "a.txt", b"\xef\xbb\xbfone two")
    assert words_of(path, language="none") == [[["one", "two"]]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_mark_says_the_encoding(tmp_path, words_of, encoding):
    expected = words_of(write(tmp_path / "a.txt", TEXT.encode()))
    path = write(tmp_path / "b.txt", TEXT.encode(encoding))
    assert words_of(path) == words_of(path, errors="replace") == expected
    cut = write(tmp_path / "c.txt", TEXT.encode("utf-16") + b"\0")
    with pytest.raises(InputError, match=r"c\.txt is not utf-16"):
        words_of(cut)


@pytest.mark.parametrize("num_before", [0, 10, 70_000, 3_000_000])
def test_a_wrong_byte_is_named(tmp_path, words_of, num_before):
    path = write(tmp_path / "a.txt", b"abcdefghi\n" * (num_before // 10) + b"\xfcber\n")
    with pytest.raises(
        InputError, match=rf"a\.txt is not UTF-8 at byte {num_before:,} .*--encoding"
    ):
        words_of(path)
    assert words_of(path, errors="replace")[-1] == [["ber"]]


def test_an_offset_counts_the_mark_and_other_encodings(tmp_path, words_of):
    path = write(tmp_path / "a.txt", b"\xef\xbb\xbfab\xff")
    with pytest.raises(InputError, match="byte 5 "):
        words_of(path)
    path = write(tmp_path / "b.txt", "北京".encode("gb18030") + b"\xff\xff")
    with pytest.raises(InputError, match=r"b\.txt is not gb18030 at byte 4 "):
        words_of(path, encoding="gb18030")


def test_utf8_named_otherwise_is_recognised(tmp_path, words_of):
    path = write(tmp_path / "a.txt", "患者需要治疗。".encode())
    with pytest.raises(InputError, match=r"a\.txt is not gb18030.*--encoding utf-8"):
        words_of(path, encoding="gb18030")
    path = write(tmp_path / "b.txt", "患者".encode("gb18030") + b"\xff\xff")
    with pytest.raises(InputError, match="choose its encoding"):
        words_of(path, encoding="gb18030")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "gb18030"])
def test_utf8_that_another_encoding_reads_too_is_told(tmp_path, words_of, encoding):
    path = write(tmp_path / "a.txt", "Größe und für Öl".encode())
    with pytest.warns(UserWarning, match=rf"a\.txt reads as UTF-8, but is read as {encoding}"):
        words_of(path, encoding=encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        words_of(write(tmp_path / "b.txt", b"plain"), encoding=encoding)


def test_a_file_that_replacing_does_not_fix_is_named(tmp_path, words_of):
    stray = write(tmp_path / "a.txt", "患者需要治疗。".encode() * 9 + b"\xff")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        words_of(stray, errors="replace", language="zh")
    with pytest.warns(UserWarning, match=r"b\.txt does not look like UTF-8: \d\d% of it"):
        words_of(
            write(tmp_path / "b.txt", ("患者需要治疗。" * 9 + "ok").encode("gb18030")),
            errors="replace",
            language="none",
        )


def test_a_character_cut_off_at_the_end(tmp_path, words_of):
    path = write(tmp_path / "a.txt", "añ".encode()[:-1])
    with pytest.raises(InputError, match="byte 1 "):
        words_of(path)
    assert words_of(path, errors="replace") == [[["a"]]]


def test_latin1_json_and_csv(tmp_path, words_of):
    path = write(tmp_path / "a.jsonl", '{"text": "Köln"}\n'.encode("latin-1"))
    assert words_of(path, encoding="latin-1") == [[["köln"]]]
    with pytest.raises(InputError, match=r"a\.jsonl is not UTF-8 at byte 11"):
        words_of(path)


@pytest.mark.parametrize("encoding", ["utf-8", "gb2312"])
def test_chinese_in_another_encoding_is_told(tmp_path, words_of, encoding):
    path = write(tmp_path / "a.txt", "数学是研究数量的学科，镕。".encode("gb18030"))
    with pytest.raises(InputError, match=r"it reads as gb18030: try --encoding gb18030"):
        words_of(path, encoding=encoding)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("서울은 대한민국의 수도이며 최대 도시이다. 한강이 도시를 지난다.", "euc-kr"),
        ("東京は日本の首都であり、世界でも人口が多い都市です。", "shift-jis"),
        ("數學是研究數量、結構以及空間等概念的一門學科。", "big5"),
    ],
)
def test_other_asian_encodings_are_not_taken_for_gb18030(tmp_path, words_of, text, encoding):
    path = write(tmp_path / "a.txt", text.encode(encoding))
    with pytest.raises(InputError, match="choose its encoding"):
        words_of(path)


def test_western_text_is_not_taken_for_chinese(tmp_path, words_of):
    path = write(tmp_path / "a.txt", "Un café crème, déjà vu à Zürich.".encode("latin-1"))
    with pytest.raises(InputError, match="cp1252"):
        words_of(path)

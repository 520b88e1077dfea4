"""Character n-grams: kernel against plain Python, and what Facebook's program does with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import OptionError
from sememe.tokens.ngrams import (
    Marks,
    floret_rows,
    floret_rows_of_all,
    hash_bytes,
    murmur_hashes,
    ngram_rows,
    ngram_rows_of,
    split_ngrams,
)
from sememe.tokens.vocabulary import Vocabulary

WORDS = ["the", "苹果", "a", "我", "né", "🙂", "</s>", "", "<", "日本語テキスト", "unbelievably"]


def rows_by_word(words: list[str], minn: int, maxn: int, bucket: int) -> list[list[int]]:
    ends, rows = ngram_rows(Vocabulary.from_words(words), minn, maxn, bucket)
    assert ends.dtype == np.int64
    assert rows.dtype == np.int32
    assert len(rows) == ends[-1]
    return [part.tolist() for part in np.split(rows, ends[:-1])]


def test_ngrams_are_pieces_of_the_word_in_angles() -> None:
    assert split_ngrams("the", 3, 3) == [b"<th", b"the", b"he>"]
    assert split_ngrams("我", 2, 3) == ["<我".encode(), "<我>".encode(), "我>".encode()]
    assert split_ngrams("né", 1, 1) == [b"n", "é".encode()]
    assert split_ngrams("", 1, 2) == [b"<>"]
    assert split_ngrams("ab", 2, 9) == [b"<a", b"<ab", b"<ab>", b"ab", b"ab>", b"b>"]
    assert split_ngrams("</s>", 1, 6) == []
    assert split_ngrams("word", 3, 0) == []


def test_the_hash_takes_bytes_as_signed() -> None:
    # The first two are FNV-1a's published values; the others differ from it above 0x7F.
    assert hash_bytes(b"") == 0x811C9DC5
    assert hash_bytes(b"a") == 0xE40C292C
    assert hash_bytes(b"\xe9") == ((0x811C9DC5 ^ 0xFFFFFFE9) * 0x01000193) % 2**32
    assert hash_bytes("é".encode()) != hash_bytes(b"\x43\x29")


def test_the_kernel_gives_the_rows_of_plain_python() -> None:
    for minn, maxn, bucket in [(3, 6, 2_000_000), (1, 2, 7), (0, 1, 50), (5, 4, 10), (2, 40, 99)]:
        found = rows_by_word(WORDS, minn, maxn, bucket)
        for word_id, word in enumerate(WORDS):
            own = ngram_rows_of(word, len(WORDS), minn, maxn, bucket).tolist()
            assert found[word_id] == [word_id, *own]


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.text(max_size=12), min_size=1, max_size=8, unique=True),
    minn=st.integers(0, 4),
    maxn=st.integers(0, 8),
    bucket=st.integers(1, 2**31 - 10),
)
def test_kernel_and_plain_python_agree(words: list[str], minn: int, maxn: int, bucket: int) -> None:
    found = rows_by_word(words, minn, maxn, bucket)
    for word_id, word in enumerate(words):
        own = ngram_rows_of(word, len(words), minn, maxn, bucket).tolist()
        assert found[word_id] == [word_id, *own]
        assert all(len(words) <= row < len(words) + bucket for row in own)


@pytest.mark.parametrize(("maxn", "bucket"), [(0, 100), (6, 0)])
def test_without_ngrams_a_word_has_its_own_row(maxn: int, bucket: int) -> None:
    assert rows_by_word(WORDS, 3, maxn, bucket) == [[word_id] for word_id in range(len(WORDS))]
    assert len(ngram_rows_of("苹果", 5, 3, maxn, bucket)) == 0


def test_senseless_options_are_refused() -> None:
    vocabulary = Vocabulary.from_words(WORDS)
    with pytest.raises(OptionError, match="0 or more"):
        ngram_rows(vocabulary, -1, 3, 10)
    with pytest.raises(OptionError, match="2³¹"):
        ngram_rows(vocabulary, 3, 6, 2**31 - 1)


def test_murmur_hash_gives_its_published_values() -> None:
    low, high, *_ = murmur_hashes(b"hello", 0)
    assert high << 32 | low == 0xCBD8A7B341BD9B02
    a, b, c, d = murmur_hashes(b"The quick brown fox jumps over the lazy dog", 0)
    assert (b << 32 | a, d << 32 | c) == (0xE34BBC7BBC071B6C, 0x7A433CA9C49A9347)
    assert murmur_hashes(b"", 0) == (0, 0, 0, 0)


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.text(max_size=24), min_size=1, max_size=5),
    minn=st.integers(0, 4),
    maxn=st.integers(0, 8),
    bucket=st.integers(1, 2**31 - 10),
    hash_count=st.integers(1, 4),
    marks=st.sampled_from([Marks(), Marks("【".encode(), "】】".encode())]),
)
def test_rows_of_compact_tables_by_kernel_and_plain_python(
    words: list[str], minn: int, maxn: int, bucket: int, hash_count: int, marks: Marks
) -> None:
    options = (minn, maxn, bucket, hash_count)
    ends, rows = floret_rows_of_all(Vocabulary.from_words(words), *options, marks=marks)
    expected = [floret_rows(word, *options, marks=marks).tolist() for word in words]
    assert [part.tolist() for part in np.split(rows, ends[:-1])] == expected
    assert all(len(part) >= hash_count for part in expected)
    later = floret_rows_of_all(Vocabulary.from_words(words), *options, marks=marks, first=1)
    assert later[1].tolist() == [row for part in expected[1:] for row in part]


def test_a_compact_table_needs_rows_and_one_to_four_hashes() -> None:
    for bucket, hash_count in ((0, 1), (9, 0), (9, 5)):
        with pytest.raises(OptionError, match="1 to 4 hashes"):
            floret_rows("word", 3, 6, bucket, hash_count)

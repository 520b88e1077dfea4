"""The kernels agree with the plain rule on any text, and the rule with what people expect."""

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from sememe.text import characters as ch
from sememe.text.reference import reference_records
from sememe.text.settings import TextSettings
from sememe.text.words import decode_documents, segment_batch

PIECES = [
    "a", "B", "é", "e\u0301", "\u0301", "İ", "Ⱥ", "\u212a", "ß", "Σ", "中", "文", "か", "\u3099",
    "한", "ا", "ש", "\u05f3", "1", "２", "²", "½", "Ⅷ", "👩", "👩\u200d👩", "\ufe0f", "\u200d",
    "\u00ad", "\ufeff", ".", "..", ",", "'", "’", "_", "·", "!", "?", "…", "。", "！", "；", "۔",
    "।", "\n", "\r\n", "\n\n", " ", "  ", "\t", "\u3000", "\u00a0", "\u2009", "\u2028", "\x85",
    "\x1d", "\x1e", "\x1f", "\x00", '"', "“", "”", "(", ")", "«", "-", "—", "/", "Mr", "mr", "No",
    "etc", "e.g.", "U.S.", "J", " The ", " the ", "3.14", "1,000", "don't", "don’t", "Fig",
    "\U0010ffff", "\U00020000", "\ud7ff",
]  # fmt: skip
mixed = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=14).map("".join)
MODES = [
    TextSettings(),
    TextSettings(lowercase=False),
    TextSettings(sentences=False),
    TextSettings(language="none"),
    TextSettings(language="none", lowercase=False),
]


def cut(documents: list[str], chosen: TextSettings) -> bytes:
    encoded = [document.encode() for document in documents]
    ends = np.cumsum([len(document) for document in encoded], dtype=np.int64)
    return segment_batch(b"".join(encoded), ends, None, chosen).data


@pytest.mark.parametrize("chosen", MODES, ids=str)
@given(documents=st.lists(mixed, min_size=1, max_size=4))
@settings(max_examples=250, deadline=None)
def test_kernel_equals_reference(chosen, documents):
    assert cut(documents, chosen) == reference_records(documents, chosen)


@given(data=st.binary(max_size=60))
@example(data=b"\xff" * 1_000)
@example(data="Ⱥ".encode() * 1_000)
@example(data=b"a\n" * 1_000)
@settings(max_examples=200, deadline=None)
def test_kernels_stay_within_bounds_on_any_bytes(data):
    for chosen in (TextSettings(), TextSettings(language="none")):
        ends = np.array([len(data)], np.int64)
        assert len(segment_batch(data, ends, None, chosen).data) <= 2 * len(data) + 19


def words(text: str, **options) -> list[str]:
    documents = decode_documents(cut([text], TextSettings(**options)))
    return [word for document in documents for sentence in document for word in sentence]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop—it's the '90s!", "don't stop it's the 90s"),
        ("don’t", "don't"),
        ("It costs 1,234.50 €, or 3.14%.", "it costs 1,234.50 or 3.14"),
        ("Café naïve ÉCOLE Ωμέγα", "café naïve école ωμέγα"),
        ("cafe\u0301 au lait", "cafe\u0301 au lait"),
        ("self-governed and/or max_len", "self governed and or max_len"),
        ("__init__ _x_ a__b", "init x a b"),
        ("co\u00adoperate 👩\u200d👩 fun", "cooperate fun"),
        ("col·lecció", "col·lecció"),
        ("漢字かな abc", "漢 字 か な abc"),
        ("한국어 문장", "한국어 문장"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("İstanbul", "istanbul"),
        ("a\x1fb\x1ec\x1dd", "a b c d"),
    ],
)
def test_unicode_words(text, expected):
    assert words(text) == expected.split(" ")


def test_case_is_kept_on_request():
    assert words("The İstanbul É", lowercase=False) == ["The", "İstanbul", "É"]
    assert words("The É", language="none", lowercase=False) == ["The", "É"]
    assert words("The É", language="none") == ["the", "é"]


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_whitespace_mode_splits_as_python_does(text):
    assert words(text, language="none", lowercase=False) == text.split()


@given(st.text(st.characters(categories=["Lu", "Ll"]), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_lower_case_agrees_with_python(text):
    ordinary = "".join(char for char in text if char not in "İΣ") or "a"
    assert words(ordinary, language="none") == [ordinary.lower()]


def test_tables_are_the_definition():
    classes, lower = ch.tables()
    for code_point in [*range(0x3100), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0300)]:
        char = chr(code_point)
        assert classes[code_point] == ch.classify(char), unicodedata.name(char, hex(code_point))
        assert lower[code_point] == ord(ch.lower_char(char))


def test_labels_follow_their_documents():
    ends = np.array([2, 4, 6], np.int64)
    records = segment_batch(b"a ! b ", ends, ["first", "empty", "last"], TextSettings())
    assert records.labels == ["first", "last"]
    assert [len(document) for document in decode_documents(records.data)] == [1, 1]

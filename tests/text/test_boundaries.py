"""Where sentences of raw text end: the segmenter's own sentences, with every character kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.text.reference import raw_sentences, unicode_sentences
from sememe.text.settings import TextSettings
from sememe.text.words import sentence_ends

PARTS = [
    *"aB1 .!?\"“”。！\n…'’é中文\u0301()\u00ad—;,\x85\u2028«»",
    "No. 5",
    "Mr. X",
    "e.g. B",
    "...  ",
]
texts = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('He left. "Who?" she asked. (It was late.) Mr. Smith ran...  Then no. 5 came.',
         ["He left.", ' "Who?" she asked.', " (It was late.)", " Mr. Smith ran...",
          "  Then no. 5 came."]),
        ("他说：“好。”然后走了！“你呢？”我问。",
         ["他说：“好。”", "然后走了！", "“你呢？”", "我问。"]),
        ("first\n- second\n\nthird", ["first", "\n- second", "\n\nthird"]),
        ("One… Two!", ["One…", " Two!"]),
        ("***", ["***"]),
        ("", [""]),
    ],
)  # fmt: skip
def test_sentences_keep_every_character(text: str, expected: list[str]) -> None:
    assert raw_sentences(text, TextSettings()) == expected


def test_chinese_and_lines() -> None:
    chinese = TextSettings(language="zh")
    assert raw_sentences("好吗?!好。3.5 元", chinese) == ["好吗?!", "好。", "3.5 元"]
    lines = TextSettings(sentences=False)
    assert raw_sentences("One. Two.\nThree。四", lines) == ["One. Two.", "\nThree。四"]


def ends_of(documents: list[str], own: TextSettings) -> list[int]:
    encoded = [document.encode() for document in documents]
    ends = np.cumsum([len(text) for text in encoded])
    return sentence_ends(b"".join(encoded), ends, own).tolist()


@settings(deadline=None)
@given(
    documents=st.lists(texts, min_size=1, max_size=3),
    language=st.sampled_from(["en", "zh"]),
    sentences=st.booleans(),
)
def test_the_kernel_is_the_reference(documents: list[str], language: str, sentences: bool) -> None:
    own = TextSettings(language=language, sentences=sentences)
    expected, place = [], 0
    for document in documents:
        sizes = [len(part.encode()) for part in raw_sentences(document, own)]
        expected += (place + np.cumsum(sizes[:-1], dtype=int)).tolist()
        place += sum(sizes)
    assert ends_of(documents, own) == expected


@settings(deadline=None)
@given(text=texts)
def test_the_words_of_each_sentence_are_those_of_the_segmenter(text: str) -> None:
    own = TextSettings(lowercase=False)
    parts = [unicode_sentences(part, own) for part in raw_sentences(text, own)]
    words = [[word for sentence in part for word in sentence] for part in parts]
    assert [part for part in words if part] == unicode_sentences(text, own)
    assert "".join(raw_sentences(text, own)) == text


def test_white_space_mode_ends_sentences_at_newlines() -> None:
    assert ends_of(["a b\nc\n", "d"], TextSettings(language="none")) == [3, 5]

"""Our tokenizers and those of transformers: the same files give the same ids and places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

CORPUS = [
    "The strawberries were playing in the flightless Café, and Zoë's berries played 3.14 times.",
    "我喜欢红色的苹果。北京大学在中国的北京！“好吗？”他说：hello world。",
    "Naïve İstanbul: ﬁne, ΣΑΣ straße… 😀 👩‍👩‍👧 a\u0301b\u00adc\u200d 한국 の",
] * 9
KINDS = [
    ("wordpiece", {}, {}),
    ("wordpiece", {"accents": "keep"}, {}),
    ("wordpiece", {}, {"lowercase": False}),
    ("wordpiece", {"accents": "strip"}, {"lowercase": False}),
    ("bpe", {}, {}),
]
PARTS = [
    *"aBé1 .!?\"“”。\n…'’中文国\u0301()\u00ad—;,\t\r\x0b\x1c\u00a0\u3000\u2028😀ﬁİΣß\u200dの", "  ",
    "the ", "[MASK] ", "[SEP]", "<|endoftext|>", "'s ", " Hello", "北京", "\x00", "berries", "Zoë",
]  # fmt: skip


@pytest.fixture(
    scope="module", params=range(len(KINDS)), ids=lambda n: "-".join(map(str, KINDS[n]))
)
def pair(request, tmp_path_factory):
    """Our tokenizer, and theirs from the files that ours has written."""
    kind, options, text = KINDS[request.param]
    own = SubwordTokenizer.train(
        CORPUS, kind=kind, vocab_size=420, text=TextSettings(**text), **options
    )
    folder = tmp_path_factory.mktemp("tokenizer")
    own.save(folder, max_length=128)
    return own, transformers.AutoTokenizer.from_pretrained(folder)


def assert_same(own: SubwordTokenizer, other, text: str) -> None:
    theirs = other(text, add_special_tokens=False, return_offsets_mapping=True)
    ours = own.encode(text)
    assert ours.ids.tolist() == theirs["input_ids"]
    places = zip(ours.starts.tolist(), ours.ends.tolist(), strict=True)
    assert list(places) == [tuple(place) for place in theirs["offset_mapping"]]


@settings(deadline=None)
@given(text=st.lists(st.sampled_from(PARTS), max_size=25).map("".join))
def test_equal_ids_and_places(pair, text):
    assert_same(*pair, text)


def test_what_is_known_of_the_tokenizer_is_equal(pair):
    own, other = pair
    assert other.is_fast and len(other) == own.vocab_size
    assert other.model_max_length == 128
    assert set(other.all_special_ids) == own.special_ids
    if own.kind == "bpe":
        assert other.eos_token_id == own.end_id
        return
    ids = (other.pad_token_id, other.unk_token_id, other.cls_token_id, other.sep_token_id)
    assert (*ids, other.mask_token_id) == (0, 100, 101, 102, 103)
    row = other("the", "berries")
    assert row["input_ids"][0] == own.cls_id and row["input_ids"].count(own.sep_id) == 2
    assert row["token_type_ids"][-1] == 1


def test_decoding_is_equal(pair):
    own, other = pair
    for text in ("the strawberries were playing", "berries"):
        ids = own.encode(text).ids.tolist()
        assert own.decode(ids) == other.decode(ids)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_what_transformers_saves_is_read(tmp_path: Path, kind: str) -> None:
    own = SubwordTokenizer.train(CORPUS, kind=kind, vocab_size=420)
    own.save(tmp_path / "ours")
    other = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    other.save_pretrained(tmp_path / "theirs")
    again = SubwordTokenizer.load(tmp_path / "theirs")
    assert again.special_ids == own.special_ids
    for text in CORPUS[:3]:
        assert again.encode(text).ids.tolist() == own.encode(text).ids.tolist()
        assert_same(again, other, text)

"""Small tokenizers made by hand, and text that is hard to cut."""

from __future__ import annotations

from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from sememe.tokens.subwords.engines import END, bpe_engine, wordpiece_engine
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.tokens.subwords.training import FIRST

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["straw", "##berries", "flight", "##less", "playing", "the", "cafe", "##ing", "hello"]
CHARACTERS = "北京大学在中国的我喜欢红色苹果"
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "t"), ("h", "e"), ("Ġt", "he")]


def wordpiece(**options: bool) -> SubwordTokenizer:
    """A WordPiece vocabulary with every letter, some words and some Chinese characters."""
    options = {"lowercase": True} | options
    capitals = [] if options["lowercase"] else [*LETTERS.upper()]
    pieces = [*LETTERS, *capitals, *"0123456789"]
    pieces += [f"##{char}" for char in f"{LETTERS}0123456789"]
    marks = [*"!\"#$%&'()*+,-./:;<=>?@[]^_{|}~", *"。，！？“”", "é", "##é"]
    tokens = dict.fromkeys([*FIRST, *pieces, *marks, *WORDS, *CHARACTERS])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return SubwordTokenizer(wordpiece_engine(vocabulary, **options))


def bpe() -> SubwordTokenizer:
    """A byte-level vocabulary with a few merges."""
    merges = list(dict.fromkeys(MERGES))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, *(first + second for first, second in merges), END]
    return SubwordTokenizer(bpe_engine({token: n for n, token in enumerate(tokens)}, merges, END))


# Blanks of every kind, marks that end sentences, characters that are cleaned away or taken apart.
HARD = [
    *"aBé1 .!?\"“”。！\n…'’中文国\u0301()\u00ad—;,\t\r\x0b\x1c\x1d\x1e\x1f\u00a0\u3000\u2028",
    *"😀ﬁİΣß\u200dの", "  ", "\n\n", "the ", "[MASK] ", "'s ", " hello", "##ing", "北京大学", "豈",
    "\u2f00", "𠀀", "\x00", "\x7f", "\ufffd", "\ufeff", "3.14", "Mr. X", "No. 5", "𝒜",
    "👩‍👩‍👧", "한국", "don't", "x5-%", "'re2",
]  # fmt: skip
hard_texts = st.lists(st.sampled_from(HARD), max_size=25).map("".join)

"""Which characters are Chinese, by the one rule that every room uses."""

from __future__ import annotations

import re

import pytest

from sememe.text import characters as ch


@pytest.mark.parametrize("char", ["猫", "㐂", "龜", "\uf900", "𠮷", "\U0003134a", "\u9fff"])
def test_chinese_characters_are_told_by_one_rule(char: str) -> None:
    assert ch.is_han(char) and ch.has_ideograph(f"a {char}")
    assert ch.is_mostly_chinese([char, f"{char}a", "a"])
    assert re.fullmatch(f"[{ch.HAN}]", char)


@pytest.mark.parametrize("char", ["a", "カ", "ひ", "한", "。", "é", "　"])
def test_other_characters_are_not_chinese(char: str) -> None:
    assert not ch.is_han(char) and not re.match(f"[{ch.HAN}]", char)
    assert not ch.is_mostly_chinese(["猫", char])  # half is not most
    assert ch.has_ideograph(char) == (char in "カひ")


def test_an_empty_word_is_not_chinese() -> None:
    assert not ch.is_mostly_chinese([]) and not ch.is_mostly_chinese(["", "猫"])

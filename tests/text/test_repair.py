"""Broken characters: what is certain is repaired, what is lost is told, everything else stays."""

from __future__ import annotations

import pytest

from sememe.text.cleaning.lines import split, stripped
from sememe.text.cleaning.repair import repair
from sememe.text.cleaning.worker import Worker, Workers

CHINESE = "我们的祖国是花园，花园的花朵真鲜艳。a和b"


def is_marked(line: str) -> bool:
    """Whether the kernel would have the line repaired at all."""
    import numpy as np

    from sememe.text.cleaning.kernels import SUSPECT

    data = line.encode()
    return bool(split(data, np.array([len(data)])).flags[0] & SUSPECT)


@pytest.mark.parametrize(
    ("broken", "repaired"),
    [
        ("Ã©tÃ© in the cafÃ©", "été in the café"),
        ("RÃ©sumÃ© of the â€œbestâ€\x9d", "Résumé of the “best”"),
        ("\x93Hello\x94, it\x92s me", "“Hello”, it’s me"),
        ("565 Â°C", "565 °C"),
        ("РџСЂРёРІРµС‚ РјРёСЂ", "Привет мир"),
        ("ä¸\xadå›½", "中国"),
        (CHINESE.encode().decode("latin-1"), CHINESE),
        (CHINESE.encode("gb18030").decode("latin-1"), CHINESE),
        ("关于我们".encode().decode("gb18030"), "关于我们"),
        ("ring\x07 the bell\0 again, and again,\x0band", "ring the bell again, and again, and"),
        ("\ufefftext", "text"),
    ],
)  # fmt: skip
def test_certain_repairs(broken, repaired):
    assert is_marked(broken) and repair(broken) == repaired


@pytest.mark.parametrize("lost", ["caf\ufffd", "锟斤拷锟斤拷", "ï¿½ lost", "\0\1\2\3 x", "Ç‚ƒÇ‚ƒ"])
def test_lost_characters_are_told(lost):
    assert is_marked(lost) and repair(lost) is None


@pytest.mark.parametrize(
    "fine",
    [
        "LE CAFÉ” et « à la carte »", "MENÜ“, „SPASS“, ÄÖÜß äöüß", "naïve Ünï l’été",
        "ÀÁÂÃÄÅ àáâãäåæçèéêë", "Привет, её “ёлка”… и №5", "中华人民共和国成立了",
        "後來我們說著說著",
        "Łódź, Český Krumlov, Győr", "Ελλάδα «…»", "الكتاب", "हिन्दी", "emoji 👨‍👩‍👧 é", "a\tb",
    ],
)  # fmt: skip
def test_right_text_stays(fine):
    assert repair(fine) == fine


def test_tags_and_entities_are_removed_but_not_comparisons():
    assert stripped("A <b>bold</b> claim<br />of &lt;3 &amp; more") == "A bold claim of <3 & more"
    assert stripped("if a <b and c> d then <p class='x'>end</p>") == "if a <b and c> d then  end "


def test_many_lines_are_repaired_by_processes():
    lines = [f"cafÃ© {number}" for number in range(200)]
    expected = [f"café {number}" for number in range(200)]
    with Workers([], 2) as workers:
        assert workers.ask("repair", lines) == expected == workers.ask("repair", lines)


def test_languages():
    worker = Worker(["zh"])
    assert worker.may_be_kept("今天天气很好，我们去公园玩吧。")
    assert not worker.may_be_kept("This is surely an English sentence.")
    assert worker.may_be_kept("OK!") and worker.may_be_kept("12345678901234567890")
    assert not Worker(["en"]).may_be_kept("今天天气很好，我们去公园玩吧。")
    assert not Worker(["en"]).may_be_kept("Das ist ein deutscher Satz über das Wetter in Berlin.")
    assert Worker(["de", "en"]).may_be_kept("Das ist ein deutscher Satz über das Wetter.")
    assert Worker(["no"]).may_be_kept("Eg veit ikkje kva dette er, men det er nynorsk skrift.")

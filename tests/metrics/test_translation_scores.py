"""BLEU and chrF: known values, signatures, Chinese."""

import math

import pytest

from sememe.errors import InputError
from sememe.metrics.translation import bleu, chrf, cutting_for

pytest.importorskip("sacrebleu")


def test_known_values():
    same = ["the cat sat on the mat .", "a dog ran"]
    assert bleu(same, same).value == pytest.approx(100)
    assert chrf(same, same).value == pytest.approx(100)
    # Precisions 5/6, 3/5, 1/4 and a smoothed 1/6; the lengths are equal.
    found = bleu(["the cat sat on a mat"], ["the cat is on a mat"])
    assert found.value == pytest.approx(100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25)
    assert found.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


def test_an_interval_over_the_texts():
    right, wrong = "a dog ran over the mat", "seven birds sing in old trees"
    for score in (bleu, chrf):
        found = score([right, right, right, wrong] * 10, [right] * 40)
        low, high = found.interval
        assert 0 < low < found.value < high < 100 and high - low > 10, found
        assert score([right] * 4, [right] * 4).interval == pytest.approx((100, 100))
        assert math.isnan(score([right], [right]).interval.low)
        assert "bs:" not in found.signature


def test_case():
    assert bleu(["The Cat Sat Down"], ["the cat sat down"]).value == 0
    lower = bleu(["The Cat Sat Down"], ["the cat sat down"], lowercase=True)
    assert lower.value == pytest.approx(100) and "case:lc" in lower.signature


def test_chinese_is_cut_into_characters():
    found = bleu(["那只狗在公园里跑。"], ["那只狗在公园里跑。"])
    assert found.value == pytest.approx(100) and "tok:zh" in found.signature
    assert cutting_for(["He said 你好 to everybody in the room."]) == "13a"
    assert cutting_for(["他说了OK。"], "char") == "char"


def test_unequal_numbers():
    with pytest.raises(InputError, match="2 translations, 1 references"):
        bleu(["a", "b"], ["a"])
    with pytest.raises(InputError, match="0 translations"):
        chrf([], [])

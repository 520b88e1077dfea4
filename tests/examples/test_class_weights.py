"""Weights of classes: balanced as scikit-learn has it, by name, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.errors import OptionError
from sememe.examples.labelled.class_weights import as_option, class_weights, parse_weights


def test_balanced_weights_equal_scikit_learns() -> None:
    sklearn = pytest.importorskip("sklearn.utils.class_weight")
    gold = ["好"] * 7 + ["差"] * 2 + ["中"]
    labels = ["差", "好", "中"]
    ours = class_weights("balanced", labels, [2, 7, 1], 10, is_one=True)
    theirs = sklearn.compute_class_weight("balanced", classes=np.array(labels), y=gold)
    assert ours == pytest.approx(theirs.tolist())
    assert np.mean([dict(zip(labels, ours, strict=True))[one] for one in gold]) == pytest.approx(1)


def test_labels_that_no_row_or_every_row_has_weigh_one() -> None:
    assert class_weights("balanced", ["a", "b", "c"], [3, 0, 1], 4, is_one=True) == [2 / 3, 1, 2]
    assert class_weights("balanced", ["a", "b", "c"], [4, 0, 1], 4, is_one=False) == [1, 1, 3]
    assert class_weights("none", ["a", "b"], [1, 9], 10, is_one=True) == [1, 1]


def test_weights_by_name() -> None:
    assert parse_weights("spam=5, ham = 0.5") == {"spam": 5, "ham": 0.5}
    assert parse_weights("Paris, France=2,a=b=3") == {"Paris, France": 2, "a=b": 3}
    assert parse_weights(as_option({"体育": 2, "x y": 1e-3})) == {"体育": 2, "x y": 1e-3}
    assert as_option({}) == "none" and as_option("balanced") == "balanced"
    assert class_weights("体育=2", ["体育", "财经"], [1, 1], 2, is_one=True) == [2, 1]


@pytest.mark.parametrize(
    "wrong", ["", "heavy", "a=", "a=x", "a=0", "a=-1", "a=inf", "a=1,a=2", "="]
)
def test_other_weights_are_refused(wrong: str) -> None:
    with pytest.raises(OptionError, match="class_weights"):
        parse_weights(wrong)


def test_an_unknown_label_is_named_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"'spm'.*ham, spam"):
        class_weights("spm=2", ["ham", "spam"], [1, 1], 2, is_one=True)

"""Several labels in a cell: which separator is believed, and which is not."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.examples.labelled.label_options import LISTS
from sememe.examples.labelled.label_sets import (
    choose_separator,
    labels_in,
    separator_in,
    separator_note,
)


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["a;b", "a", "b", "c;a"], ";"),
        (["sport|health", "health", "sport | travel", "travel"], "|"),
        (["a, b", "b, c", "c"], ","),
        (["体育、娱乐", "娱乐", "体育、财经", "财经"], "、"),
        (["体育，娱乐", "娱乐", "体育"], "，"),
        (["a;b;", "b", "a"], ";"),  # one more at the end
        ([["a", "b"], ["a"], []], LISTS),
        ([["a"], ["b"]], ""),  # lists of one are one label each
        (["['a', 'b']", '["b"]', "[]"], LISTS),  # written out, as pandas does
        ([np.array(["a", "b"]), {"b"}], LISTS),
        (["good", "bad", "good"], ""),
        (["Paris, France", "Berlin, Germany", "Rome, Italy"], ""),
        (["news, sport", "news, culture", "news, weather"], ""),  # a label and its part
        (["C, C++", "Java", "C"], ""),
        (["1,5", "2,5", "1,0", "2,0"], ""),  # decimals
        (["|a", "|b", "|", "|a"], ""),  # nothing between
        ([], ""),
        ([None, float("nan"), ""], ""),
        (["[broken", "a]", "[1"], ""),
    ],
)
def test_a_separator_is_believed_if_the_names_come_again(cells, separator):
    assert separator_in(cells) == separator


def test_known_labels_decide():
    known = ["Paris, France", "Berlin, Germany", "a"]
    assert separator_in(["Paris, France", "a"], known) == ""
    assert separator_in(["a|b", "b"], ["a", "b"]) == "|"
    assert separator_in(["a|b", "c"], ["a", "b"]) == "|"  # the unknown one is refused later
    assert separator_in(["a|x"], ["a", "b"]) == ""


def test_labels_of_a_cell():
    assert labels_in(" a ; b;a; ", ";") == ("a", "b")
    assert labels_in("a;b", "") == labels_in("a;b", LISTS) == ("a;b",)
    assert labels_in(["b", " a", None, 3, True], ";") == ("b", "a", "3", "true")
    assert labels_in("['体育', '财经']", LISTS) == ("体育", "财经")
    assert labels_in({"y", "x"}, LISTS) == ("x", "y")
    for nothing in (None, float("nan"), "", " ", "[]", []):
        assert labels_in(nothing, ";") == ()
    deep = "[" * 5_000 + "]" * 5_000
    assert labels_in(deep, LISTS) == (deep,)


def test_a_wanted_separator_gives_way_to_one_that_finds_known_labels():
    assert choose_separator(["a;b"], "none") == "" and choose_separator(["a;b"], "/") == "/"
    assert choose_separator(["a;b", "a"], ";", ["a", "b"]) == ";"
    assert choose_separator(["a|b", "a"], ";", ["a", "b"]) == "|"
    assert choose_separator(["a", "b"], ";", ["a", "b"]) == ";"
    assert choose_separator(["x y"], ";", ["a", "b"]) == ";"
    assert choose_separator([["a", "b"]], "auto", ["a", "b"]) == LISTS


def test_the_number_of_labels_is_told():
    told = separator_note("评论.csv", "、", [("a", "b"), (), ("a",)])
    assert "评论.csv: several labels per row, separated by “、”: 1.0 labels per row" in told
    assert "none in 1 rows" in told and "--label-separator none" in told
    assert "lists: 1.5 labels per row;" in separator_note("x", LISTS, [("a", "b"), ("c",)])

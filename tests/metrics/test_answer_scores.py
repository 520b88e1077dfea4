"""SQuAD's and CMRC's scorers, rule by rule."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from sememe.metrics import (
    best_threshold,
    mean_answer_score,
    normalize_answer,
    score_answer,
    score_answer_or_none,
    score_chinese_answer,
)
from sememe.metrics.answers import cut_mixed, longest_run


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Cat", "cat"),
        ("a cat an apple the end", "cat apple end"),
        ("  two\t spaces \n", "two spaces"),
        ("U.S.", "us"),  # punctuation goes, not to a space
        ("well-known", "wellknown"),
        ("a-b", "ab"),  # punctuation goes before articles: this a is none any more
        ("A.", ""),  # and this one is
        ("(the)", ""),
        ("the's", "thes"),
        ("theory", "theory"),
        ("an's hour", "ans hour"),
        ("“the” end", "“ ” end"),  # curly quotes are no ASCII punctuation, but a word ends there
        ("the—end", "—end"),
        ("$5.50", "550"),
        ("ÀÉ", "àé"),
        ("the_end", "theend"),
        ("云中", "云中"),
        ("the云", "the云"),  # Chinese characters are letters: no word ends there
    ],
)
def test_normalisation(text: str, normal: str) -> None:
    assert normalize_answer(text) == normal


def test_the_best_gold_answer_counts_for_each_figure_by_itself() -> None:
    assert score_answer("within a cloud", ["within a cloud", "cloud"]) == (1, 1)
    score = score_answer("the big cloud", ["cloud", "a very big cloud"])
    assert score.exact == 0 and score.f1 == pytest.approx(0.8)
    # Words count as often as they stand on both sides.
    assert score_answer("new new york", ["new york"]).f1 == pytest.approx(2 * (2 / 3) / (5 / 3))


def test_version_one_gives_empty_answers_an_exact_match_and_no_f1() -> None:
    assert score_answer("the", ["a"]) == (1, 0)
    assert score_answer("", ["cloud"]) == (0, 0)
    with pytest.raises(ValueError, match="version 2"):
        score_answer("cloud", [])


def test_version_two_knows_no_answer() -> None:
    assert score_answer_or_none("", []) == (1, 1)
    assert score_answer_or_none("the", []) == (1, 1)  # nothing is left of it
    assert score_answer_or_none("cloud", []) == (0, 0)
    assert score_answer_or_none("", ["cloud"]) == (0, 0)
    # A gold answer that normalises to nothing is not among the answers.
    assert score_answer_or_none("", ["the", "cloud"]) == (0, 0)
    assert score_answer_or_none("", ["the"]) == (1, 1)


@given(st.lists(st.text("ab the.-", max_size=8), min_size=1, max_size=3), st.text("ab the.-"))
def test_both_versions_agree_where_something_is_left(answers: list[str], predicted: str) -> None:
    if normalize_answer(predicted) and all(map(normalize_answer, answers)):
        assert score_answer(predicted, answers) == score_answer_or_none(predicted, answers)


def test_the_mean_of_nothing_is_unknown() -> None:
    assert all(map(math.isnan, mean_answer_score([])))
    assert mean_answer_score([score_answer("a b", ["b"]), score_answer("x", ["b"])]) == (0.5, 0.5)


def _tried(scores, no_answer, has_answer, is_empty):
    """The best mean by trying every cut of the questions in order."""
    order = sorted(range(len(scores)), key=lambda index: no_answer[index])
    best = -1.0
    for cut in range(len(order) + 1):
        total = 0.0
        for place, index in enumerate(order):
            if place < cut:  # answered
                total += scores[index] if has_answer[index] else float(is_empty[index])
            else:
                total += not has_answer[index]
        best = max(best, total / len(scores))
    return best


SCORES = st.sampled_from([0.0, 0.4, 1.0])


@given(
    st.lists(
        st.tuples(SCORES, st.integers(-2, 2), st.booleans(), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_the_best_threshold_is_the_best_of_all(rows) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    assert best_threshold(*columns).score == pytest.approx(_tried(*columns))


def test_a_threshold_is_the_score_of_the_last_question_that_is_answered() -> None:
    found = best_threshold([1, 1, 0], [-3.0, 0.5, 2.0], [True, True, False], [False] * 3)
    assert found == (1.0, 0.5)
    with pytest.raises(ValueError, match="NaN"):
        best_threshold([1.0], [math.nan], [True], [False])


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("范廷颂枢机", ["范", "廷", "颂", "枢", "机"]),
        ("《红楼梦》。", ["红", "楼", "梦"]),
        ("iPhone 4S手机", ["iphone", "4s", "手", "机"]),
        ("3.14，1,000米", ["3.141,000", "米"]),  # dropped marks leave no gap
        ("100%的人", ["100", "%", "的", "人"]),
        ("他（John）说“好”", ["他", "john", "说", "好"]),
        ("a,b(c)", ["a", ",", "b", "(", "c", ")"]),
        ("don't stop.", ["do", "n't", "stop", "."]),
        ('"r. d. duvauceli"', ["``", "r.", "d.", "duvauceli", "''"]),
        ("一……二", ["一", "……", "二"]),  # the ellipsis of the official list is never found
        ("john's cannot", ["john", "'s", "can", "not"]),
        ("㐀𠀀", ["㐀𠀀"]),  # outside the range of characters that the script knows
        ("", []),
    ],
)
def test_mixed_text_is_cut(text: str, pieces: list[str]) -> None:
    assert cut_mixed(text) == pieces


def test_the_chinese_scorer_counts_the_longest_run() -> None:
    assert score_chinese_answer("《红楼梦》", ["红楼梦"]) == (1, 1)
    score = score_chinese_answer("在1963年", ["1963年"])
    assert score.exact == 0 and score.f1 == pytest.approx(0.8)
    # Shared characters in another order make no run: SQuAD's F1 would be 1 here.
    assert score_chinese_answer("天上", ["上天"]).f1 == pytest.approx(0.5)
    assert score_chinese_answer("", ["上天"]) == (0, 0)
    assert score_chinese_answer("ABC公司", ["abc公司"]) == (1, 1)
    with pytest.raises(ValueError, match="none"):
        score_chinese_answer("x", [])


@given(st.lists(st.sampled_from("ab语"), max_size=9), st.lists(st.sampled_from("ab语"), max_size=9))
def test_the_longest_run_is_the_longest(first: list[str], second: list[str]) -> None:
    a, b = "".join(first), "".join(second)
    runs = [
        end - start
        for start in range(len(a) + 1)
        for end in range(start, len(a) + 1)
        if a[start:end] in b
    ]
    assert longest_run(first, second) == max(runs)

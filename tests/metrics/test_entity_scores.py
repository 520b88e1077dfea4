"""Entity F1 against seqeval, and conlleval's way with invalid tags."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, strategies as st

from sememe.metrics import entities, score_entities

seqeval = pytest.importorskip("seqeval.metrics")

SCHEMES = {
    "iob": ["O", "B-PER", "I-PER", "B-地点", "I-地点"],
    "bioes": ["O", "B-PER", "I-PER", "E-PER", "S-PER", "B-地点", "E-地点", "S-地点"],
}


def sentences(tags: list[str]):
    pair = st.tuples(st.sampled_from(tags), st.sampled_from(tags))
    return st.lists(st.lists(pair, min_size=1, max_size=8), min_size=1, max_size=5)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_scores_equal_seqevals(scheme: str) -> None:
    @given(sentences(SCHEMES[scheme]))
    def check(rows) -> None:
        gold = [[first for first, _ in row] for row in rows]
        predicted = [[second for _, second in row] for row in rows]
        ours = score_entities(gold, predicted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = (
                seqeval.classification_report(gold, predicted, output_dict=True)
                if (ours.types)
                else {}
            )
            overall = [
                getattr(seqeval, f"{name}_score")(gold, predicted)
                for name in ("precision", "recall", "f1")
            ] if ours.types else [0, 0, 0]  # fmt: skip
            assert ours.tag_accuracy == pytest.approx(seqeval.accuracy_score(gold, predicted))
        assert (ours.overall.precision, ours.overall.recall, ours.overall.f1) == pytest.approx(
            tuple(overall)
        )
        for one in ours.types:
            theirs = report[one.label]
            assert one.precision == pytest.approx(theirs["precision"])
            assert one.recall == pytest.approx(theirs["recall"])
            assert one.f1 == pytest.approx(theirs["f1-score"])
            assert one.num_true == theirs["support"]

    check()


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("I-A I-A O", [("A", 0, 2)]),  # IOB1
        ("I-A B-A I-A", [("A", 0, 1), ("A", 1, 3)]),  # IOB1's only use of B-
        ("O I-A", [("A", 1, 2)]),  # invalid in IOB2: begins all the same
        ("B-A I-B I-A", [("A", 0, 1), ("B", 1, 2), ("A", 2, 3)]),  # another type begins
        ("B-A B-A", [("A", 0, 1), ("A", 1, 2)]),
        ("S-A S-A B-A E-A", [("A", 0, 1), ("A", 1, 2), ("A", 2, 4)]),
        ("E-A E-A", [("A", 0, 1), ("A", 1, 2)]),
        ("B-A-B I-A-B", [("A-B", 0, 2)]),  # types may hold hyphens
        ("O O", []),
        ("", []),
    ],
)
def test_entities_of_tags(tags: str, found: list[tuple[str, int, int]]) -> None:
    assert entities(tags.split()) == found


def test_entities_do_not_cross_sentences() -> None:
    scores = score_entities([["B-A"], ["I-A"]], [["B-A"], ["I-A"]])
    assert (scores.overall.num_true, scores.overall.num_right, scores.overall.f1) == (2, 2, 1)


def test_a_type_or_an_end_that_differs_is_wrong() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"]]
    scores = score_entities(gold, [["B-PER", "O", "O", "B-ORG"]])
    assert (scores.overall.num_right, scores.overall.num_true, scores.overall.num_predicted) == (
        0,
        2,
        2,
    )
    assert [one.label for one in scores.types] == ["LOC", "ORG", "PER"]
    assert scores.overall.f1 == 0 and scores.tag_accuracy == 0.5


def test_nothing_scores_nothing_and_bad_tags_are_refused() -> None:
    assert score_entities([], []).overall.f1 == 0
    with pytest.raises(ValueError, match="sentence 0: 1 gold tags and 2"):
        score_entities([["O"]], [["O", "O"]])
    with pytest.raises(ValueError, match="2 sentences"):
        score_entities([["O"], ["O"]], [["O"]])
    for bad in ("PER", "X-PER", "B", ""):
        with pytest.raises(ValueError, match="not a tag"):
            entities([bad])

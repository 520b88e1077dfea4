"""Our evaluators against gensim's own, question by question, on small random vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.evaluation import evaluate_analogies, evaluate_pairs
from sememe.evaluation.offsets import best_words
from sememe.vectors import WordVectors

keyedvectors = pytest.importorskip("gensim.models.keyedvectors")

# Few stems in many spellings: variants of the inputs crowd the top of the list.
STEMS = ["king", "queen", "man", "woman", "straße", "北京"]
SPELLINGS = sorted({w for s in STEMS for w in (s, s.upper(), s.title(), s[0] + s[1:].upper())})


def both(words: list[str], dim: int, seed: int) -> tuple[WordVectors, object]:
    vectors = np.random.default_rng(seed).normal(size=(len(words), dim)).astype(np.float32)
    theirs = keyedvectors.KeyedVectors(dim)
    theirs.add_vectors(words, vectors)
    return WordVectors(words, vectors), theirs


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], int, int, list[list[str]]]:
    others = [f"word{i}" for i in range(draw(st.integers(0, 6)))]
    words = draw(st.permutations(SPELLINGS + others))
    words = words[draw(st.integers(0, len(words) - 4)) :]
    asked = st.lists(st.sampled_from([*SPELLINGS, *others, "unknown"]), min_size=4, max_size=4)
    questions = draw(st.lists(asked, min_size=1, max_size=12))
    return words, draw(st.integers(0, 99)), draw(st.integers(1, 30)), questions


@settings(max_examples=150, deadline=None)
@given(case=cases(), fold=st.booleans(), unknown=st.booleans())
def test_analogies(tmp_path_factory, case, fold: bool, unknown: bool) -> None:  # type: ignore[no-untyped-def]
    words, seed, restrict, questions = case
    ours, theirs = both(words, 3, seed)
    path = tmp_path_factory.mktemp("analogies") / "questions.txt"
    half = len(questions) // 2
    lines = [
        ": family", *map(" ".join, questions[:half]), ": gram1-x", *map(" ".join, questions[half:]),
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    expected, sections = theirs.evaluate_word_analogies(
        str(path), restrict_vocab=restrict, case_insensitive=fold, dummy4unknown=unknown
    )
    score = evaluate_analogies(
        ours, path, restrict_vocab=restrict, case="fold" if fold else "exact", count_unknown=unknown
    )
    total = sections[-1]
    num = len(total["correct"]) + len(total["incorrect"])
    assert score.details["num_correct"] == len(total["correct"])
    assert score.value == pytest.approx(expected) if num else np.isnan(score.value)
    by_name = {part.name: part for part in score.sections}
    for section in sections[:-1]:
        if section["section"] in by_name:
            part = by_name[section["section"]]
            assert part.num_correct == len(section["correct"])
            assert part.num_asked == len(section["correct"]) + len(section["incorrect"])


def test_product_answers_are_those_of_most_similar_cosmul() -> None:
    words = [f"w{i}" for i in range(500)]
    ours, theirs = both(words, 20, 4)
    questions = np.random.default_rng(5).integers(0, 500, (60, 3))
    answers = best_words(ours.vectors, questions, method="mul")
    for (a, b, c), answer in zip(questions, answers, strict=True):
        best = theirs.most_similar_cosmul(  # type: ignore[attr-defined]
            positive=[words[b], words[c]], negative=[words[a]], topn=1
        )
        assert best[0][0] == words[answer]


@pytest.mark.parametrize("restrict", [40, 55, 300_000])
@pytest.mark.parametrize("unknown", [False, True])
def test_pairs(tmp_path: Path, restrict: int, unknown: bool) -> None:
    names = [f"name{i}" for i in range(40)]
    ours, theirs = both(["the", *SPELLINGS, *names], 8, 2)
    random = np.random.default_rng(8)
    # One side spellings, the other names: no word meets itself, where rounding alone ranks.
    rows = [
        (random.choice([*SPELLINGS, "QUEEN", "nowhere"]), random.choice(names), f"{score:.3f}")
        for score in random.random(80)
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")
    pearson, spearman, oov = theirs.evaluate_word_pairs(  # type: ignore[attr-defined]
        str(path), restrict_vocab=restrict, dummy4unknown=unknown
    )
    score = evaluate_pairs(ours, path, case="fold", restrict_vocab=restrict, count_unknown=unknown)
    assert score.value == pytest.approx(spearman[0], abs=1e-4)
    assert score.details["pearson"] == pytest.approx(pearson[0], abs=1e-5)
    assert 100 * (1 - score.coverage) == pytest.approx(oov)

"""The figures of rows must add up to the score of the set, for every metric."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from sememe.errors import InputError, OptionError
from sememe.evaluation.comparing import compare_files, compare_predictions
from sememe.metrics.by_name import METRICS, score_all

RANDOM = np.random.default_rng(11)


def labels(num: int = 60) -> list[str]:
    return [str(label) for label in RANDOM.integers(0, 3, num)]


def tags(num: int = 40) -> list[list[str]]:
    known = ["O", "O", "B-PER", "I-PER", "B-LOC"]
    return [[known[i] for i in RANDOM.integers(0, 5, 6)] for _ in range(num)]


def answers(num: int = 30) -> list[list[str]]:
    words = ["the cat", "red cat", "红色的猫", "red", "猫 cat"]
    return [[words[i] for i in RANDOM.integers(0, 5, 2)] for _ in range(num)]


def sample(metric: str):
    if metric in ("pearson", "spearman"):
        gold = RANDOM.normal(size=50)
        return gold, gold + RANDOM.normal(size=50), gold + RANDOM.normal(size=50)
    if metric.startswith("entity"):
        return tags(), tags(), tags()
    if metric.startswith(("squad", "cmrc")):
        gold = answers()
        return gold, [row[0] for row in answers()], [row[1] for row in gold]
    return labels(), labels(), labels()


@pytest.mark.parametrize("metric", METRICS)
def test_rows_add_up_to_the_score(metric: str) -> None:
    gold, first, second = sample(metric)
    found = compare_predictions(list(gold), first, second, metric=metric, num_resamples=50)
    for said, score in ((first, found.bootstrap.first), (second, found.bootstrap.second)):
        assert score == pytest.approx(score_all([metric], gold, said, "1")[metric])
    assert found.bootstrap.difference == pytest.approx(
        found.bootstrap.second - found.bootstrap.first
    )
    low, high = found.bootstrap.interval
    assert low <= found.bootstrap.difference <= high
    assert (found.mcnemar is not None) == (
        metric in ("accuracy", "squad_exact", "squad2_exact", "cmrc_exact")
    )
    json.dumps(found.to_dict())


def test_the_verdict_says_whether_the_difference_is_real() -> None:
    gold = ["1"] * 400
    worse = ["1"] * 300 + ["0"] * 100
    better = ["1"] * 380 + ["0"] * 20
    found = compare_predictions(gold, worse, better, metric="accuracy", names=("old", "new"))
    assert found.is_real and found.verdict == (
        "The difference is real: new is better by 20.00 (p < 0.001)."
    )
    turned = compare_predictions(gold, better, worse, metric="accuracy", names=("new", "old"))
    assert "new is better by 20.00" in turned.verdict
    almost = [*better[:-1], "1"]
    found = compare_predictions(gold, better, almost, metric="accuracy", test="mcnemar")
    assert not found.is_real and found.p_value == 1
    assert "not significant" in found.verdict and "400 rows" in found.verdict


def test_a_score_that_is_not_defined_is_no_difference() -> None:
    found = compare_predictions([1.0, 2.0, 3.0], [1.0] * 3, [1.0, 2.0, 3.0], metric="pearson")
    assert math.isnan(found.bootstrap.difference) and not found.is_real
    assert "cannot be compared" in found.verdict


def write(path, rows) -> None:
    found = ({"id": i, "gold": g, "predicted": p} for i, g, p in rows)
    lines = [json.dumps(row, ensure_ascii=False) for row in found]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_files_of_predictions_are_compared(tmp_path) -> None:
    write(tmp_path / "a.jsonl", [("1", "x", "x"), ("2", "y", "x"), ("3", "y", "y")])
    write(tmp_path / "b.jsonl", [("1", "x", "x"), ("2", "y", "y"), ("3", "y", "y")])
    found = compare_files(tmp_path / "a.jsonl", tmp_path / "b.jsonl", metric="")
    assert (found.metric, found.first, found.num_rows) == ("accuracy", "a.jsonl", 3)
    assert found.bootstrap.difference == pytest.approx(1 / 3) and not found.is_real
    write(tmp_path / "tags.jsonl", [("1", ["O", "B-地点"], ["O", "B-地点"])])
    found = compare_files(tmp_path / "tags.jsonl", tmp_path / "tags.jsonl", metric="")
    assert found.metric == "entity_f1"
    write(tmp_path / "answers.jsonl", [("1", ["a b"], "b"), ("2", [], "")])
    found = compare_files(tmp_path / "answers.jsonl", tmp_path / "answers.jsonl", metric="")
    assert found.metric == "squad2_f1"
    write(tmp_path / "answers.jsonl", [("1", ["北京"], "在北京"), ("2", ["牛奶"], "奶")])
    found = compare_files(tmp_path / "answers.jsonl", tmp_path / "answers.jsonl", metric="")
    assert found.metric == "cmrc_f1"
    write(tmp_path / "odd.jsonl", [("1", "x", "a\u2028b"), ("2", "y\x85z", "y")])
    assert compare_files(tmp_path / "odd.jsonl", tmp_path / "odd.jsonl", metric="").num_rows == 2


def test_a_choice_is_compared_by_its_number() -> None:
    from sememe.examples.labelled.rows import TextRow
    from sememe.metrics.by_name import gold_of, said_of
    from sememe.tasks.texts import Choice

    rows = [TextRow("it", choices=("a", "b"), label=label) for label in ("1", "0")]
    said = said_of("choose", [Choice(1, "b", (0.1, 0.9)), Choice(1, "b", (0.2, 0.8))])
    assert score_all(["accuracy"], gold_of("choose", rows), said) == {"accuracy": 0.5}


def test_what_cannot_be_compared_is_refused(tmp_path) -> None:
    write(tmp_path / "a.jsonl", [("1", "x", "x"), ("2", "y", "x")])
    write(tmp_path / "b.jsonl", [("2", "y", "x"), ("1", "x", "x")])
    with pytest.raises(InputError, match="other rows"):
        compare_files(tmp_path / "a.jsonl", tmp_path / "b.jsonl", metric="accuracy")
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(InputError, match=r"bad\.jsonl:1"):
        compare_files(tmp_path / "a.jsonl", tmp_path / "bad.jsonl", metric="")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="no predictions"):
        compare_files(tmp_path / "empty.jsonl", tmp_path / "bad.jsonl", metric="")
    with pytest.raises(InputError, match="Cannot read"):
        compare_files(tmp_path / "none.jsonl", tmp_path / "bad.jsonl", metric="")
    with pytest.raises(OptionError, match="metric must be one of"):
        compare_predictions(["1"], ["1"], ["1"], metric="bleu")
    with pytest.raises(OptionError, match="right or wrong"):
        compare_predictions(["1"], ["1"], ["1"], metric="matthews", test="mcnemar")
    with pytest.raises(InputError, match="cannot be scored by pearson"):
        compare_predictions(["x", "y"], ["1", "2"], ["1", "2"], metric="pearson")

"""Files of predictions, results and senses that are damaged or of other types: one clean error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import InputError, SememeError
from sememe.evaluation import suites
from sememe.evaluation.comparing import compare_files
from sememe.evaluation.outcomes import benchmark_table, read_outcomes
from sememe.evaluation.senses import read_senses

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
OFTEN = settings(max_examples=150)


@OFTEN
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4))
def test_predictions_of_any_type_are_compared_or_refused(
    tmp_path: Path, rows: list[tuple[Any, Any]]
) -> None:
    lines = [
        json.dumps({"id": number, "gold": gold, "predicted": said})
        for number, (gold, said) in enumerate(rows)
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        found = compare_files(path, path, metric="", num_resamples=20)
    except SememeError:
        return
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.verdict


NOT_FINITE = '{"id": 1, "gold": NaN, "predicted": false}'


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"id": ' + "9" * 5_000 + "}", "nothing", "[]", NOT_FINITE]
)
def test_lines_that_are_no_predictions_are_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "said.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match=r"said\.jsonl:1: "):
        compare_files(path, path, metric="")


def outcome() -> dict[str, Any]:
    return {
        "benchmark": "RTE",
        "title": "entailment",
        "model": "ours",
        "seeds": [1],
        "num_train": 9,
        "seconds": 1.5,
        "options": {},
        "files": {},
        "parts": {
            "dev": {
                "metrics": {"accuracy": {"by_seed": [0.5]}},
                "num_rows": 40,
                "num_skipped": 0,
            }
        },
    }


@OFTEN
@given(st.data())
def test_results_with_a_wrong_value_are_shown_or_refused(data: st.DataObject) -> None:
    content: Any = outcome()
    place, wrong = content, data.draw(VALUES)
    while True:
        name = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[name], dict) or not place[name] or data.draw(st.booleans()):
            break
        place = place[name]
    place[name] = wrong
    try:
        str(benchmark_table(read_outcomes(content)))
    except SememeError:
        pass


def test_results_of_few_rows_are_marked() -> None:
    content = outcome()
    assert "*" not in str(benchmark_table(read_outcomes(content)))
    content["parts"]["dev"]["num_rows"] = 29
    (few,) = read_outcomes(content)
    assert "*50.0" in str(benchmark_table([few])) and "fewer than 30" in str(benchmark_table([few]))
    assert few.to_dict()["parts"]["dev"]["few_questions"]


@pytest.mark.parametrize(
    "text",
    [
        "bank\triver\t" + "9" * 5_000 + "\t" + "9" * 5_000 + "\tWe sat on the bank.",
        "bank\triver\t²\t5\tWe sat on the bank.",
        "bank\triver\tWe sat on the [[bank]] of a [[river]].",
        "bank\t\tWe sat on the [[bank]].",
    ],
)
def test_lines_of_senses_that_are_damaged_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "senses.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"senses\.tsv:1: "):
        read_senses(path)


def test_what_is_no_file_of_senses_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    for path in (tmp_path / "pipe.tsv", tmp_path, tmp_path / "none.tsv"):
        with pytest.raises(InputError, match="There is no file"):
            read_senses(path)


def test_a_score_that_is_not_defined_is_said_and_none_at_all_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = outcome() | {"benchmark": "STS-B"}
    part = content["parts"]["dev"]
    part["metrics"] = {"spearman": {"by_seed": [None]}, "pearson": {"by_seed": [0.4]}}
    (half,) = read_outcomes(content)
    assert "spearman on dev is not defined" in str(benchmark_table([half]))
    assert "pearson" not in " ".join(half.to_dict()["notes"])
    part["metrics"]["pearson"] = {"by_seed": [None]}
    (nothing,) = read_outcomes(content)
    for name in ("train", "dev"):
        (tmp_path / "STS-B").mkdir(exist_ok=True)
        (tmp_path / "STS-B" / f"{name}.tsv").write_text("sentence1\tsentence2\tscore\n")
    monkeypatch.setattr(suites, "task_kinds", lambda model: ())
    monkeypatch.setattr(suites, "run_benchmark", lambda *arguments, **options: half)
    assert suites.evaluate_glue("model", tmp_path, only=["STS-B"]).outcomes == [half]
    monkeypatch.setattr(suites, "run_benchmark", lambda *arguments, **options: nothing)
    with pytest.raises(InputError, match="spearman on dev is not defined"):
        suites.evaluate_glue("model", tmp_path, only=["STS-B"])

"""Rows of benchmarks as metrics take them: what is right, what was said, one value a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sememe.errors import InputError
from sememe.evaluation.benchmarks import Benchmark, Kind
from sememe.evaluation.finding import Found
from sememe.examples.labelled import Rows, TextRow
from sememe.metrics import score_answer_or_none

_TEXT_KINDS = ("classify", "pairs", "regress", "choose")


def read_rows(
    benchmark: Benchmark,
    found: Found,
    *,
    labelled: bool = True,
    is_learned: bool = False,
    skip_bad: bool = False,
    on_note: Callable[[str], None] = lambda _: None,
) -> Rows[Any]:
    """Read the files of one part of a benchmark as its task takes rows.

    Answers that are to be learned need their place in the context; to score, their texts will do.
    """
    more: dict[str, Any] = {"skip_bad": skip_bad, "on_note": on_note}
    paths = [str(path) for path in found.paths]
    if benchmark.kind in _TEXT_KINDS:
        from sememe.examples.labelled import read_texts

        rows = read_texts(
            paths, kind=benchmark.kind, columns=dict(found.files.columns),  # type: ignore[arg-type]
            where=dict(found.files.where), labelled=labelled, **more,
        )  # fmt: skip
        return replace(rows, rows=[_spelled(row, benchmark.spellings) for row in rows])
    if benchmark.kind == "tag":
        from sememe.examples.labelled import read_tags

        return read_tags(paths, labelled=labelled, **more)
    from sememe.examples.labelled import read_answers

    return read_answers(paths, spans="nearest" if is_learned else "texts", **more)


def _spelled(row: TextRow, spellings: Mapping[str, str]) -> TextRow:
    if row.label is None or row.label not in spellings:
        return row
    return replace(row, label=spellings[row.label])


def gold_of(kind: Kind, rows: Sequence[Any]) -> list[Any]:
    """What is right in each row: a label, a score, tags, or the texts of all answers."""
    if kind in ("classify", "pairs", "choose"):
        return [row.label for row in rows]
    if kind == "regress":
        return [row.score for row in rows]
    if kind == "tag":
        return [list(row.tags) for row in rows]
    return [[answer.text for answer in row.answers] for row in rows]


def said_of(kind: Kind, predictions: Sequence[Any]) -> list[Any]:
    """What was predicted for each row, in the form of `gold_of`; an answer is its text."""
    take: Callable[[Any], Any] = {
        "classify": lambda one: one.label,
        "pairs": lambda one: one.label,
        "choose": lambda one: str(one.number),
        "regress": lambda one: float(one.score),
        "tag": lambda one: list(one.tags),
        "answer": lambda one: one.text,
    }[kind]
    return [take(one) for one in predictions]


def check_answerable(benchmark: Benchmark, rows: Sequence[Any]) -> None:
    """Refuse questions without an answer where the official scorer knows none."""
    if benchmark.kind != "answer" or benchmark.main_metric.startswith("squad2"):
        return
    for row in rows:
        if not row.answers:
            raise InputError(
                f"{row.source}: the question {row.id} has no answer, which {benchmark.name} does "
                "not know; such files are scored as squad2.0."
            )


def best_thresholds(gold: Sequence[Sequence[str]], predictions: Sequence[Any]) -> dict[str, float]:
    """The best scores that another no-answer threshold would have given (SQuAD 2.0's script)."""
    from sememe.tasks.answer import best_threshold

    scores = [
        score_answer_or_none(one.best_text, own) for one, own in zip(predictions, gold, strict=True)
    ]
    found: dict[str, float] = {}
    for figure in ("exact", "f1"):
        figures = [getattr(score, figure) for score in scores]
        best = best_threshold(predictions, figures, [bool(own) for own in gold])
        found |= {f"best_{figure}": best.score, f"best_{figure}_threshold": best.threshold}
    return found

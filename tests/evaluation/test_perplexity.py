"""Perplexity of a text: what is no number is refused, not printed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sememe.errors import ArtifactError, InputError
from sememe.evaluation import evaluate_perplexity, perplexity as module
from sememe.metrics.perplexity import TextScore


class Scored:
    """A language model that gives every text the same score."""

    def __init__(self, score: TextScore) -> None:
        self.score = score

    def require(self, capability: str) -> None:
        assert capability == "score"

    def evaluate(self, corpus: Any, **_: Any) -> TextScore:
        return self.score


@pytest.mark.parametrize(
    ("log10", "num_words", "error"),
    [(math.nan, 12, ArtifactError), (-math.inf, 12, ArtifactError), (0.0, 0, InputError)],
)
def test_what_is_no_number_is_refused(
    monkeypatch: pytest.MonkeyPatch, log10: float, num_words: int, error: type[Exception]
) -> None:
    monkeypatch.setattr(module, "opened", lambda model, **_: model)
    with pytest.raises(error, match=r"no probability|no words"):
        evaluate_perplexity(Scored(TextScore(log10, num_words, 0.0, 0)), "text.txt")


def test_a_finite_score_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "opened", lambda model, **_: model)
    found = evaluate_perplexity(Scored(TextScore(-20.0, 10, -2.0, 1)), "text.txt")
    assert found.perplexity == pytest.approx(100) and found.known_perplexity == pytest.approx(100)

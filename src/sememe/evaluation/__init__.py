"""Benchmarks: models and question files in, scores with intervals and coverage out."""

from sememe.evaluation.analogies import evaluate_analogies
from sememe.evaluation.antonyms import evaluate_antonyms
from sememe.evaluation.groups import evaluate_groups, evaluate_odd
from sememe.evaluation.pairs import evaluate_pairs
from sememe.evaluation.results import Score, WordsResult
from sememe.evaluation.words import evaluate_words

__all__ = [
    "Score",
    "WordsResult",
    "evaluate_analogies",
    "evaluate_antonyms",
    "evaluate_groups",
    "evaluate_odd",
    "evaluate_pairs",
    "evaluate_words",
]

"""Benchmarks: models and question files in, scores with intervals and coverage out."""

from sememe.evaluation.analogies import evaluate_analogies
from sememe.evaluation.antonyms import evaluate_antonyms
from sememe.evaluation.comparing import Comparison, compare_predictions, compare_tasks
from sememe.evaluation.families import (
    FamilyResult,
    evaluate_glue,
    evaluate_ner,
    evaluate_squad,
    evaluate_texts,
)
from sememe.evaluation.features import FeaturesResult, compare_features
from sememe.evaluation.glue import GLUEResult
from sememe.evaluation.groups import evaluate_groups, evaluate_odd
from sememe.evaluation.outcomes import Outcome
from sememe.evaluation.pairs import evaluate_pairs
from sememe.evaluation.preparing import RunSettings
from sememe.evaluation.results import Score, WordsResult
from sememe.evaluation.words import evaluate_words

__all__ = [
    "Comparison",
    "FamilyResult",
    "FeaturesResult",
    "GLUEResult",
    "Outcome",
    "RunSettings",
    "Score",
    "WordsResult",
    "compare_features",
    "compare_predictions",
    "compare_tasks",
    "evaluate_analogies",
    "evaluate_antonyms",
    "evaluate_glue",
    "evaluate_groups",
    "evaluate_ner",
    "evaluate_odd",
    "evaluate_pairs",
    "evaluate_squad",
    "evaluate_texts",
    "evaluate_words",
]

"""Benchmarks: models and question files in, scores with intervals and coverage out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.machine import lazily

if TYPE_CHECKING:
    from sememe.evaluation.comparing import Comparison, compare_predictions, compare_tasks
    from sememe.evaluation.features import FeaturesResult, compare_features
    from sememe.evaluation.induction import InductionResult, evaluate_induction
    from sememe.evaluation.outcomes import Outcome
    from sememe.evaluation.perplexity import evaluate_perplexity
    from sememe.evaluation.prompting import PromptResult, evaluate_prompts
    from sememe.evaluation.results import Score, WordsResult
    from sememe.evaluation.retrieval import RetrievalResult, RetrievalSet, evaluate_retrieval
    from sememe.evaluation.rows import RunSettings
    from sememe.evaluation.senses import SensesResult, evaluate_senses
    from sememe.evaluation.sts import STSResult, evaluate_sts
    from sememe.evaluation.suites import (
        FamilyResult,
        GLUEResult,
        evaluate_glue,
        evaluate_ner,
        evaluate_squad,
        evaluate_texts,
    )
    from sememe.evaluation.words import (
        evaluate_analogies,
        evaluate_antonyms,
        evaluate_groups,
        evaluate_odd,
        evaluate_pairs,
        evaluate_words,
    )

# A name is imported when it is first used: the command line starts without NumPy.
_HOMES = {
    "Comparison": "comparing",
    "FamilyResult": "suites",
    "FeaturesResult": "features",
    "GLUEResult": "suites",
    "InductionResult": "induction",
    "Outcome": "outcomes",
    "PromptResult": "prompting",
    "RetrievalResult": "retrieval",
    "RetrievalSet": "retrieval",
    "RunSettings": "rows",
    "STSResult": "sts",
    "Score": "results",
    "SensesResult": "senses",
    "WordsResult": "results",
    "compare_features": "features",
    "compare_predictions": "comparing",
    "compare_tasks": "comparing",
    "evaluate_analogies": "words",
    "evaluate_antonyms": "words",
    "evaluate_glue": "suites",
    "evaluate_groups": "words",
    "evaluate_induction": "induction",
    "evaluate_ner": "suites",
    "evaluate_odd": "words",
    "evaluate_pairs": "words",
    "evaluate_perplexity": "perplexity",
    "evaluate_prompts": "prompting",
    "evaluate_retrieval": "retrieval",
    "evaluate_senses": "senses",
    "evaluate_squad": "suites",
    "evaluate_sts": "sts",
    "evaluate_texts": "suites",
    "evaluate_words": "words",
}

__all__ = [
    "Comparison",
    "FamilyResult",
    "FeaturesResult",
    "GLUEResult",
    "InductionResult",
    "Outcome",
    "PromptResult",
    "RetrievalResult",
    "RetrievalSet",
    "RunSettings",
    "STSResult",
    "Score",
    "SensesResult",
    "WordsResult",
    "compare_features",
    "compare_predictions",
    "compare_tasks",
    "evaluate_analogies",
    "evaluate_antonyms",
    "evaluate_glue",
    "evaluate_groups",
    "evaluate_induction",
    "evaluate_ner",
    "evaluate_odd",
    "evaluate_pairs",
    "evaluate_perplexity",
    "evaluate_prompts",
    "evaluate_retrieval",
    "evaluate_senses",
    "evaluate_squad",
    "evaluate_sts",
    "evaluate_texts",
    "evaluate_words",
]

__getattr__ = lazily(__name__, _HOMES)

"""Benchmarks: models and question files in, scores with intervals and coverage out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

if TYPE_CHECKING:
    from sememe.evaluation.analogies import evaluate_analogies as evaluate_analogies
    from sememe.evaluation.antonyms import evaluate_antonyms as evaluate_antonyms
    from sememe.evaluation.comparing import Comparison as Comparison
    from sememe.evaluation.comparing import compare_predictions as compare_predictions
    from sememe.evaluation.comparing import compare_tasks as compare_tasks
    from sememe.evaluation.families import FamilyResult as FamilyResult
    from sememe.evaluation.families import evaluate_glue as evaluate_glue
    from sememe.evaluation.families import evaluate_ner as evaluate_ner
    from sememe.evaluation.families import evaluate_squad as evaluate_squad
    from sememe.evaluation.families import evaluate_texts as evaluate_texts
    from sememe.evaluation.features import FeaturesResult as FeaturesResult
    from sememe.evaluation.features import compare_features as compare_features
    from sememe.evaluation.glue import GLUEResult as GLUEResult
    from sememe.evaluation.groups import evaluate_groups as evaluate_groups
    from sememe.evaluation.groups import evaluate_odd as evaluate_odd
    from sememe.evaluation.outcomes import Outcome as Outcome
    from sememe.evaluation.pairs import evaluate_pairs as evaluate_pairs
    from sememe.evaluation.perplexity import evaluate_perplexity as evaluate_perplexity
    from sememe.evaluation.preparing import RunSettings as RunSettings
    from sememe.evaluation.results import Score as Score
    from sememe.evaluation.results import WordsResult as WordsResult
    from sememe.evaluation.senses import SensesResult as SensesResult
    from sememe.evaluation.senses import evaluate_senses as evaluate_senses
    from sememe.evaluation.words import evaluate_words as evaluate_words

# A name is imported when it is first used: the command line starts without NumPy.
_HOMES = {
    "Comparison": "comparing",
    "FamilyResult": "families",
    "FeaturesResult": "features",
    "GLUEResult": "glue",
    "Outcome": "outcomes",
    "RunSettings": "preparing",
    "Score": "results",
    "SensesResult": "senses",
    "WordsResult": "results",
    "compare_features": "features",
    "compare_predictions": "comparing",
    "compare_tasks": "comparing",
    "evaluate_analogies": "analogies",
    "evaluate_antonyms": "antonyms",
    "evaluate_glue": "families",
    "evaluate_groups": "groups",
    "evaluate_ner": "families",
    "evaluate_odd": "groups",
    "evaluate_pairs": "pairs",
    "evaluate_perplexity": "perplexity",
    "evaluate_senses": "senses",
    "evaluate_squad": "families",
    "evaluate_texts": "families",
    "evaluate_words": "words",
}

__all__ = [
    "Comparison",
    "FamilyResult",
    "FeaturesResult",
    "GLUEResult",
    "Outcome",
    "RunSettings",
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
    "evaluate_ner",
    "evaluate_odd",
    "evaluate_pairs",
    "evaluate_perplexity",
    "evaluate_senses",
    "evaluate_squad",
    "evaluate_texts",
    "evaluate_words",
]

__getattr__ = lazily(__name__, _HOMES)

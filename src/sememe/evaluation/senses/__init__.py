"""Ambiguous words in sentences: a model in, how well it separates their senses out."""

from sememe.evaluation.senses.evaluating import (
    BUILT_IN,
    SETS,
    Occurrence,
    SenseSet,
    evaluate_senses,
    find_sets,
    read_senses,
)
from sememe.evaluation.senses.results import SenseScore, SensesResult, sense_tables

__all__ = [
    "BUILT_IN",
    "SETS",
    "Occurrence",
    "SenseScore",
    "SenseSet",
    "SensesResult",
    "evaluate_senses",
    "find_sets",
    "read_senses",
    "sense_tables",
]

"""Ambiguous words in sentences: a model in, how well it keeps their meanings apart out."""

from sememe.evaluation.senses.evaluating import evaluate_senses
from sememe.evaluation.senses.files import BUILT_IN, Occurrence, SenseSet, read_senses
from sememe.evaluation.senses.results import SenseScore, SensesResult, sense_tables

__all__ = [
    "BUILT_IN",
    "Occurrence",
    "SenseScore",
    "SenseSet",
    "SensesResult",
    "evaluate_senses",
    "read_senses",
    "sense_tables",
]

"""Scores as pure functions: arrays in, numbers out."""

from sememe.metrics.analogies import SectionScore, is_syntactic, score_sections, total_score
from sememe.metrics.correlation import pearson, spearman
from sememe.metrics.intervals import Interval, proportion_interval, spearman_interval

__all__ = [
    "Interval",
    "SectionScore",
    "is_syntactic",
    "pearson",
    "proportion_interval",
    "score_sections",
    "spearman",
    "spearman_interval",
    "total_score",
]

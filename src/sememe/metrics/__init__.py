"""Scores as pure functions: arrays in, numbers out."""

from sememe.metrics.analogies import SectionScore, is_syntactic, score_sections, total_score
from sememe.metrics.answers import (
    AnswerScore,
    Threshold,
    best_threshold,
    mean_answer_score,
    normalize_answer,
    score_answer,
    score_answer_or_none,
)
from sememe.metrics.chinese_answers import are_chinese, score_chinese_answer
from sememe.metrics.classification import (
    ClassScore,
    Confusion,
    accuracy,
    binary_f1,
    class_scores,
    confusion_matrix,
    f1,
    matthews,
)
from sememe.metrics.comparison import (
    McNemar,
    PairedBootstrap,
    Spread,
    error_reduction,
    mcnemar,
    paired_bootstrap,
    spread,
)
from sememe.metrics.correlation import pearson, spearman
from sememe.metrics.entities import EntityScore, EntityScores, entities, score_entities
from sememe.metrics.intervals import (
    Interval,
    mean_interval,
    proportion_interval,
    spearman_interval,
)
from sememe.metrics.separation import Separation, separation

__all__ = [
    "AnswerScore",
    "ClassScore",
    "Confusion",
    "EntityScore",
    "EntityScores",
    "Interval",
    "McNemar",
    "PairedBootstrap",
    "SectionScore",
    "Separation",
    "Spread",
    "Threshold",
    "accuracy",
    "are_chinese",
    "best_threshold",
    "binary_f1",
    "class_scores",
    "confusion_matrix",
    "entities",
    "error_reduction",
    "f1",
    "is_syntactic",
    "matthews",
    "mcnemar",
    "mean_answer_score",
    "mean_interval",
    "normalize_answer",
    "paired_bootstrap",
    "pearson",
    "proportion_interval",
    "score_answer",
    "score_answer_or_none",
    "score_chinese_answer",
    "score_entities",
    "score_sections",
    "separation",
    "spearman",
    "spearman_interval",
    "spread",
    "total_score",
]

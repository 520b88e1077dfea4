"""Benchmarks as data: which files, columns, task, metrics and published rows each has."""

from sememe.evaluation.benchmarks.catalogue import SETS, xnli
from sememe.evaluation.benchmarks.describing import Benchmark, Files, Kind, Places
from sememe.evaluation.benchmarks.glue import GLUE
from sememe.evaluation.benchmarks.published import Published
from sememe.evaluation.benchmarks.spans import ANSWER_SETS, TAG_SETS

__all__ = [
    "ANSWER_SETS",
    "GLUE",
    "SETS",
    "TAG_SETS",
    "Benchmark",
    "Files",
    "Kind",
    "Places",
    "Published",
    "xnli",
]

"""Benchmarks as data: which files, columns, task, metrics and published rows each has."""

from sememe.evaluation.benchmarks.catalogue import ANSWER_SETS, GLUE, SETS, TAG_SETS, xnli
from sememe.evaluation.benchmarks.description import Benchmark, Files, Kind, Places
from sememe.evaluation.benchmarks.published import Published

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

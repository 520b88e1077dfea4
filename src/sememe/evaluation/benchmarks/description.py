"""What a benchmark is: its files, columns, task, metrics and published rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sememe.evaluation.benchmarks.published import Published

Kind = Literal["classify", "pairs", "regress", "choose", "tag", "answer"]


@dataclass(frozen=True)
class Files:
    """Where rows may be: a path pattern, without case and compression endings.

    `columns` names the columns of such a file, `where` selects its rows; `is_many` takes every
    matching file, not only the first.
    """

    pattern: str
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    is_many: bool = False


Places = tuple[Files, ...]  # the first existing one is used


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A set of files with a task; `parts` are scored, and tables show the first metric."""

    name: str
    title: str
    kind: Kind
    train: Places
    parts: Mapping[str, Places]
    metrics: tuple[str, ...]
    published: tuple[Published, ...] = ()
    # The part that may choose the best epoch, if another one is scored as well.
    chooses: str = ""
    # Test sets without labels, by the names of their submission files.
    unlabelled: Mapping[str, Places] = field(default_factory=dict)
    # The class whose F1 counts.
    positive: str = ""
    # Other spellings of labels in some of the files.
    spellings: Mapping[str, str] = field(default_factory=dict)
    # Options of fine-tuning that this set needs, such as longer rows.
    options: Mapping[str, object] = field(default_factory=dict)
    # The published row from which gains are computed.
    baseline: str = ""

    @property
    def main_metric(self) -> str:
        """The metric that tables and gains use."""
        return self.metrics[0]


def by_name(*found: Benchmark) -> dict[str, Benchmark]:
    """Benchmarks by their names, in the given order."""
    return {benchmark.name: benchmark for benchmark in found}

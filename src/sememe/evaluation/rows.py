"""The rows of benchmarks: found in a folder, read, and prepared for training and scoring."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import InputError
from sememe.evaluation.benchmarks import Benchmark, Files, Places
from sememe.examples.labelled.answers import read_answers
from sememe.examples.labelled.rows import LabelledRows
from sememe.examples.labelled.tags import read_tags
from sememe.examples.labelled.texts import read_texts
from sememe.metrics import best_threshold, score_answer_or_none
from sememe.progress import Reporter
from sememe.randomness import random_order
from sememe.text.tables import open_tables

_DEEPEST = 4


class FoundFiles(NamedTuple):
    """Existing files, and how their rows are read."""

    paths: list[Path]
    files: Files


class Holdings(NamedTuple):
    """The files of one benchmark in a folder."""

    benchmark: Benchmark
    train: FoundFiles | None
    parts: dict[str, FoundFiles]
    unlabelled: dict[str, FoundFiles]

    @property
    def missing(self) -> list[str]:
        """The official files that are missing, by their first names."""
        places = [] if self.train else [self.benchmark.train]
        places += [own for part, own in self.benchmark.parts.items() if part not in self.parts]
        return [own[0].pattern for own in places]


class DataFolder:
    """The files below a folder, by their paths without case and compression endings."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(f"{self.folder} is not a folder; give the folder of the data sets.")
        self._paths: dict[str, Path] = {}
        self._values_of = lru_cache(_values_of)
        root = self.folder.resolve()
        for place, folders, names in os.walk(root):
            here = Path(place)
            depth = len(here.relative_to(root).parts)
            folders[:] = sorted(name for name in folders if name[0] != "." and depth < _DEEPEST)
            for name in sorted(names):
                if name[0] != ".":
                    key = "/".join([root.name, *(here / name).relative_to(root).parts])
                    self._paths.setdefault(
                        re.sub(r"\.(gz|bz2|xz|zst)$", "", key.lower()), here / name
                    )

    def find(self, places: Places) -> FoundFiles | None:
        """The first existing file of the candidates."""
        for files in places:
            pattern = files.pattern.lower()
            paths = [
                path for key, path in self._paths.items() if fnmatchcase(f"/{key}", f"*/{pattern}")
            ]
            if paths:
                return FoundFiles(paths if files.is_many else paths[:1], files)
        return None

    def _holds(self, found: FoundFiles) -> bool:
        """Whether the selected rows are in a file of several kinds, such as languages."""
        return all(
            any(value in self._values_of(path, column) for path in found.paths)
            for column, value in found.files.where.items()
        )

    def holdings(self, benchmark: Benchmark) -> Holdings:
        """The existing files of a benchmark."""

        def found(places: Mapping[str, Places]) -> dict[str, FoundFiles]:
            pairs = {name: self.find(own) for name, own in places.items()}
            return {name: own for name, own in pairs.items() if own and self._holds(own)}

        return Holdings(
            benchmark, self.find(benchmark.train), found(benchmark.parts),
            found(benchmark.unlabelled),
        )  # fmt: skip


def _values_of(path: Path, column: str) -> set[str]:
    tables = open_tables([str(path)], encoding="utf-8", is_header=lambda *_: True)
    return {str(record.cells.get(column, "")) for table in tables for record in table.records}


_TEXT_KINDS = ("classify", "pairs", "regress", "choose")


def read_rows(
    benchmark: Benchmark,
    found: FoundFiles,
    *,
    labelled: bool = True,
    is_learned: bool = False,
    skip_bad: bool = False,
    on_note: Callable[[str], None] = lambda _: None,
) -> LabelledRows[Any]:
    """Read the files of one part of a benchmark as rows of its task.

    Training answers need their position in the context; for scoring, their texts are enough.
    """
    more: dict[str, Any] = {"skip_bad": skip_bad, "on_note": on_note}
    paths = [str(path) for path in found.paths]
    if benchmark.kind in _TEXT_KINDS:
        rows = read_texts(
            paths, kind=benchmark.kind, columns=dict(found.files.columns),  # type: ignore[arg-type]
            where=dict(found.files.where), labelled=labelled, **more,
        )  # fmt: skip
        spelled = benchmark.spellings
        if spelled:
            rows[:] = [replace(row, label=spelled.get(str(row.label), row.label)) for row in rows]
        return rows
    if benchmark.kind == "tag":
        return read_tags(paths, labelled=labelled, **more)
    return read_answers(paths, spans="nearest" if is_learned else "texts", **more)


def check_answerable(benchmark: Benchmark, rows: Sequence[Any]) -> None:
    """Raise an error for questions without an answer if the official scorer has none."""
    if benchmark.kind != "answer" or benchmark.main_metric.startswith("squad2"):
        return
    for row in rows:
        if not row.answers:
            raise InputError(
                f"{row.source}: the question {row.id} has no answer, which {benchmark.name} does "
                "not know; such files are scored as squad2.0."
            )


def best_thresholds(gold: Sequence[Sequence[str]], predictions: Sequence[Any]) -> dict[str, float]:
    """The best scores over all no-answer thresholds (SQuAD 2.0's script)."""
    scores = [
        score_answer_or_none(one.best_text, own) for one, own in zip(predictions, gold, strict=True)
    ]
    found: dict[str, float] = {}
    for metric in ("exact", "f1"):
        values = [getattr(score, metric) for score in scores]
        best = best_threshold(
            values,
            [one.no_answer for one in predictions],
            has_answer=[bool(own) for own in gold],
            is_empty=[not one.best_text for one in predictions],
        )
        found |= {f"best_{metric}": best.score, f"best_{metric}_threshold": best.threshold}
    return found


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a benchmark is run; `options` are the user's options for fine-tuning."""

    seeds: tuple[int, ...] = (1,)
    options: Mapping[str, Any] = field(default_factory=dict)
    # Training files instead of the official ones, and the maximum number of their rows.
    train: tuple[Path, ...] = ()
    max_train: int = 0
    # Whether the scored dev rows may choose the best epoch if there is no other set.
    choose_on_dev: bool = False
    recipe: str = ""  # small-data: options are searched on held-out training rows, once per set
    skip_bad: bool = False
    baselines: bool = True  # whether baselines are scored on the same rows
    # A folder for each seed's record: a stopped run continues after the last one.
    out: Path | None = None


class BenchmarkRows(NamedTuple):
    """The rows of a benchmark."""

    train: LabelledRows[Any] | None
    parts: dict[str, LabelledRows[Any]]
    unlabelled: dict[str, LabelledRows[Any]]
    files: dict[str, list[str]]
    # The training rows, which baselines learn from also if the model is fine-tuned already.
    learnable: LabelledRows[Any] | None = None


def prepare(
    holdings: Holdings, settings: RunSettings, *, needs_training: bool, reporter: Reporter
) -> BenchmarkRows:
    """Read the existing files; raise an error if the benchmark cannot be run with them."""
    benchmark = holdings.benchmark
    source = holdings.train
    if settings.train:
        source = FoundFiles(list(settings.train), _form_of(holdings, settings.train))
    if needs_training and source is None:
        raise InputError(
            f"There is nothing to learn {benchmark.name} from: {benchmark.train[0].pattern} is "
            "missing; name other files with --train, or give a model that was fine-tuned."
        )
    learned = {path.resolve() for path in source.paths} if source and needs_training else set()
    parts = {
        part: found
        for part, found in holdings.parts.items()
        if not learned & {path.resolve() for path in found.paths}
    }
    if not parts:
        raise InputError(
            f"There are no rows to score {benchmark.name} on: "
            f"{next(iter(benchmark.parts.values()))[0].pattern} is missing."
        )

    def read(found: FoundFiles, **how: bool) -> LabelledRows[Any]:
        return read_rows(benchmark, found, skip_bad=settings.skip_bad, on_note=reporter.note, **how)

    taken = {path.resolve() for found in parts.values() for path in found.paths}
    is_apart = source is not None and not taken & {path.resolve() for path in source.paths}
    train = None
    if source is not None and (needs_training or (settings.baselines and is_apart)):
        train = _limited(read(source, is_learned=needs_training), settings.max_train)
    rows = {part: read(found) for part, found in parts.items()}
    for own_rows in rows.values():
        check_answerable(benchmark, own_rows)
    return BenchmarkRows(
        train if needs_training else None,
        rows,
        # Test sets are predicted only if there is a folder for the predictions.
        {name: read(found, labelled=False) for name, found in holdings.unlabelled.items()}
        if settings.out is not None
        else {},
        {
            name: [path.name for path in found.paths[:3]]
            for name, found in {
                **({"train": source} if learned and source else {}),
                **parts,
            }.items()
        },
        train if settings.baselines else None,
    )


def _form_of(holdings: Holdings, paths: Sequence[Path]) -> Files:
    """The columns of files that the user gives to learn from: known if they are a part's own."""
    wanted = {path.resolve() for path in paths}
    for part in holdings.parts.values():
        if wanted <= {path.resolve() for path in part.paths}:
            return part.files
    return Files("")


def _limited(rows: LabelledRows[Any], most: int) -> LabelledRows[Any]:
    """Some of the rows, always the same, evenly spread over the file."""
    if not most or len(rows) <= most:
        return rows
    chosen = sorted(random_order(len(rows), 1)[:most].tolist())
    rows[:] = [rows[index] for index in chosen]
    return rows

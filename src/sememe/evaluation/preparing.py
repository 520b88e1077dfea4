"""The rows of a benchmark, ready to be learned and scored: what a folder holds in, rows out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import InputError
from sememe.evaluation.benchmarks import Files
from sememe.evaluation.finding import Found, Holdings
from sememe.evaluation.rows import check_answerable, read_rows
from sememe.examples.labelled import Rows
from sememe.progress import Reporter


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a benchmark is run; `options` are those of fine-tuning that the user chose."""

    seeds: tuple[int, ...] = (1,)
    options: Mapping[str, Any] = field(default_factory=dict)
    # Files to learn from in place of the official ones, and at most how many of their rows.
    train: tuple[Path, ...] = ()
    max_train: int = 0
    # Whether the scored dev rows may choose the best epoch where there is no other set.
    choose_on_dev: bool = False
    skip_bad: bool = False
    # A folder for what each seed gave: a stopped run goes on behind the last one.
    out: Path | None = None


class Prepared(NamedTuple):
    """The rows of a benchmark."""

    train: Rows[Any] | None
    parts: dict[str, Rows[Any]]
    unlabelled: dict[str, Rows[Any]]
    files: dict[str, list[str]]


def prepare(
    holdings: Holdings, settings: RunSettings, *, needs_training: bool, reporter: Reporter
) -> Prepared:
    """Read the files that are there; refuse a benchmark that cannot be run with them."""
    benchmark = holdings.benchmark
    source = holdings.train
    if settings.train:
        source = Found(list(settings.train), _form_of(holdings, settings.train))
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

    def read(found: Found, **how: bool) -> Rows[Any]:
        return read_rows(benchmark, found, skip_bad=settings.skip_bad, on_note=reporter.note, **how)

    train = read(source, is_learned=True) if source and needs_training else None
    rows = {part: read(found) for part, found in parts.items()}
    for own_rows in rows.values():
        check_answerable(benchmark, own_rows)
    return Prepared(
        _limited(train, settings.max_train) if train is not None else None,
        rows,
        # Answers to test sets are only written where there is a place for them.
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
    )


def _form_of(holdings: Holdings, paths: Sequence[Path]) -> Files:
    """The columns of files that the user gives to learn from: known if they are a part's own."""
    wanted = {path.resolve() for path in paths}
    for part in holdings.parts.values():
        if wanted <= {path.resolve() for path in part.paths}:
            return part.files
    return Files("")


def _limited(rows: Rows[Any], most: int) -> Rows[Any]:
    """Some of the rows, the same ones always, spread over the whole file."""
    if not most or len(rows) <= most:
        return rows
    from sememe.examples.shuffles import random_order

    chosen = sorted(random_order(len(rows), 1)[:most].tolist())
    return replace(rows, rows=[rows.rows[index] for index in chosen])

"""The four tasks by name and split: `docstring_rows("packages", "dev")`.

Rows come in an order that looks random, so that the first thousand are a fair sample of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sememe.errors import InputError, OptionError
from sememe.examples.docstrings import records
from sememe.examples.docstrings.leakage import without_repeats
from sememe.examples.docstrings.packages import classes, package_rows
from sememe.examples.docstrings.parameters import answer_rows, passages, tag_rows
from sememe.examples.docstrings.records import SPLITS, Docstring, OnFile, Split, draw
from sememe.examples.docstrings.summaries import summary_rows
from sememe.examples.labelled.rows import Rows

# The name of each task, and the kind of rows that it has.
NAMES = {"packages": "classify", "summaries": "pairs", "parameters": "tag", "types": "answer"}


def docstring_rows(
    name: str,
    split: Split = "train",
    *,
    limit: int | None = None,
    packages: Sequence[str] | None = None,
    on_file: OnFile | None = None,
) -> Rows[Any]:
    """The rows of a task made of the built-in corpus, or of some of its packages.

    Modules are in one split only, and rows that repeat training rows are left out of the others.
    """
    if name not in NAMES:
        raise OptionError(f"The built-in tasks are {', '.join(NAMES)}; there is no {name!r}.")
    if split not in SPLITS:
        raise OptionError(f"The splits are {', '.join(SPLITS)}; there is no {split!r}.")
    if limit is not None and limit < 1:
        raise OptionError(f"limit must be at least 1, not {limit}.")
    docstrings = _collected(None if packages is None else tuple(packages), on_file)
    rows = _made(name, docstrings, "train")
    if split != "train":
        rows = without_repeats(_made(name, docstrings, split), rows, _text)
    if not rows:
        raise InputError(f"The packages hold no docstrings for the {split} rows of {name}.")
    rows.sort(key=lambda row: draw(_text(row)))
    return Rows(rows[:limit])


def docstring_texts(
    split: Split = "train", *, packages: Sequence[str] | None = None, on_file: OnFile | None = None
) -> list[str]:
    """The prose of the docstrings of a split, to pre-train on text that no held-out row is from."""
    docstrings = _collected(None if packages is None else tuple(packages), on_file)
    return [docstring.text for docstring in docstrings if docstring.split == split]


@lru_cache(maxsize=1)
def _collected(packages: tuple[str, ...] | None, on_file: OnFile | None) -> list[Docstring]:
    return records.collect(packages, on_file)


def _made(name: str, docstrings: list[Docstring], split: Split) -> list[Any]:
    own = [docstring for docstring in docstrings if docstring.split == split]
    if name == "packages":
        trained = (docstring for docstring in docstrings if docstring.split == "train")
        return package_rows(own, classes(trained))
    if name == "summaries":
        return summary_rows(own)
    found = passages(own)
    return list(tag_rows(found)) if name == "parameters" else list(answer_rows(found))


def _text(row: Any) -> str:
    """What two rows must not share: all that a model sees of them."""
    parts = (getattr(row, part, None) for part in ("text", "second", "question", "context"))
    return "\n".join(part for part in parts if part)

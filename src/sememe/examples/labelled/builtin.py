"""Rows by name instead of by path: `builtin:packages`, `builtin:packages:dev`, `…:train:1000`."""

from __future__ import annotations

from typing import Any

from sememe.errors import InputError
from sememe.examples.labelled.rows import Note

PREFIX = "builtin:"
_SPLITS = ("train", "dev", "test")


def opened(data: Any, kind: str, on_note: Note) -> Any:
    """The rows that `data` names, where it names built-in ones; anything else as it is."""
    name = data[0] if isinstance(data, (list, tuple)) and len(data) == 1 else data
    if not isinstance(name, str) or not name.startswith(PREFIX):
        return data
    from sememe.examples.docstrings import NAMES, docstring_rows

    task, _, rest = name.removeprefix(PREFIX).partition(":")
    split, _, limit = rest.partition(":")
    is_known = task in NAMES and (split or "train") in _SPLITS
    if not is_known or (limit and not limit.isdecimal()):
        raise InputError(
            f"There are no rows {name}: there are {', '.join(PREFIX + own for own in NAMES)}, with "
            ":train (the default), :dev or :test behind, and perhaps :1000 for so many of them."
        )
    if NAMES[task] != kind:
        others = [f"{PREFIX}{own} is" for own, others in NAMES.items() if others == kind]
        advice = f"; {others[0]}" if others else ""
        raise InputError(f"{PREFIX}{task} is for {NAMES[task]}, not for {kind}{advice}.")
    on_note(f"{name}: made of the docstrings of the installed packages.")
    return docstring_rows(task, split or "train", limit=int(limit) if limit else None)  # type: ignore[arg-type]

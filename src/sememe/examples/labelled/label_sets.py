"""Several labels in one cell: how they are separated, and which they are.

A cell holds a list (JSON, parquet, Python), a list written out (`["a", "b"]`), or names with a
separator between them: `a;b`, `a|b`, `a, b`, `甲、乙`. A separator is believed if most of the names
between which it stands occur in other cells too: `Paris, France` is one label, `sport, health` next
to `health` is two.
"""

import ast
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sememe.examples.labelled.label_options import AUTO, LISTS, NONE
from sememe.text.headers import as_text, is_number

_LONGEST = 10_000  # characters of a list that is written out
_SEPARATORS = (";", "|", ",", "；", "，", "、")


def separator_in(cells: Sequence[Any], known: Collection[str] = ()) -> str:
    """The separator of the labels in a column's cells, `list` for lists, "" if each has one label.

    With `known` labels it is the separator that finds them in most cells.
    """
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    lists = [own for cell in cells if (own := _as_list(cell)) is not None]
    if lists and len(lists) >= len(texts):
        return LISTS if any(len(own) != 1 for own in lists) else ""
    num_cells = Counter(text.strip() for text in texts)
    fitting = {
        mark: sum(num for cell, num in num_cells.items() if mark in cell)
        for mark in _SEPARATORS
        if _fits(mark, num_cells, known)
    }
    return max(fitting, key=lambda mark: fitting[mark], default="")


def choose_separator(cells: Sequence[Any], asked: str, known: Collection[str] = ()) -> str:
    """The separator of a column's cells if `asked` is wanted; "" for one label per cell.

    Another one is taken if it finds the `known` labels and the wanted one does not.
    """
    if asked == NONE:
        return ""
    if asked != AUTO and not known:
        return asked
    is_known = asked != AUTO and all({*labels_in(cell, asked)} <= {*known} for cell in cells)
    found = asked if is_known else separator_in(cells, known)
    return found or ("" if asked == AUTO else asked)


def _fits(mark: str, cells: Collection[str], known: Collection[str]) -> bool:
    """Whether a mark separates labels in these distinct cells."""
    joined = [cell for cell in cells if mark in cell and cell not in known]
    parts = [own for cell in joined if (own := {*labels_in(cell, mark)})]
    if not joined or len(parts) < len(joined):
        return False
    if known:
        return 2 * sum(own <= {*known} for own in parts) >= len(parts)
    if mark in ",，" and all(is_number(cell.replace(mark, ".")) for cell in joined):
        return False  # decimals
    num_cells = Counter(part for cell in cells for part in {*labels_in(cell, mark)})
    names = {part for own in parts for part in own}
    return 2 * sum(num_cells[name] > 1 for name in names) > len(names)


def labels_in(cell: Any, separator: str) -> tuple[str, ...]:
    """The labels of a cell, each once, in their order."""
    own = _as_list(cell)
    if own is None:
        text = as_text(cell)
        own = text.split(separator) if separator not in ("", LISTS) else [text]
    return tuple(dict.fromkeys(filter(None, map(as_text, own))))


def _as_list(cell: Any) -> list[Any] | None:
    """The items of a cell that is a list, or a list written out; None for any other cell."""
    if hasattr(cell, "tolist"):  # an array
        cell = cell.tolist()
    if isinstance(cell, (set, frozenset)):
        return sorted(cell, key=str)
    if isinstance(cell, (list, tuple)):
        return list(cell)
    text = cell.strip() if isinstance(cell, str) else ""
    if not (text.startswith("[") and text.endswith("]")) or len(text) > _LONGEST:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            own = read(text)
            return own if isinstance(own, list) else None
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def separator_note(name: str, separator: str, label_sets: Iterable[Collection[str]]) -> str:
    """A note that says how several labels are separated in a table, and how many there are."""
    told = "lists" if separator == LISTS else f"separated by “{separator}”"
    return (
        f"{name}: several labels per row, {told}: {_counted(label_sets)}; "
        "--label-separator none reads one."
    )


def _counted(label_sets: Iterable[Collection[str]]) -> str:
    sizes = Counter(map(len, label_sets))
    total, num = sum(size * count for size, count in sizes.items()), sizes.total()
    told = f"{total / num:.1f} labels per row" if num else "no rows"
    return told + (f", none in {sizes[0]:,} rows" if sizes[0] else "")

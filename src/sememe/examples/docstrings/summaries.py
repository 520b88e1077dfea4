"""Does this summary belong to this body? Half of the bodies are of another docstring.

The other one is of the same package and the same split, so that the vocabulary of a package tells
nothing; and each body is used once, so that no text tells by itself whether it belongs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from sememe.examples.docstrings.records import Docstring, draw
from sememe.examples.labelled.rows import TextRow

YES, NO = "same", "other"
_FEWEST_WORDS = (4, 12)  # of a summary, of a body
_MOST_WORDS = 32
# A first line such as "nbdtrik(y, n, p, out=None)" is a signature and no summary.
_SIGNATURE = re.compile(r"[\w.]+\(")


def summary_rows(docstrings: Iterable[Docstring]) -> list[TextRow]:
    """Pairs of a summary and a body, labelled `same` or `other`."""
    groups: dict[tuple[str, str], list[Docstring]] = defaultdict(list)
    for docstring in docstrings:
        if _is_usable(docstring):
            groups[docstring.package, docstring.split].append(docstring)
    rows: list[TextRow] = []
    for group in groups.values():
        group.sort(key=lambda docstring: draw(docstring.text))
        half = len(group) // 2
        rows += [_row(own, own, YES) for own in group[:half]]
        others = group[half:]
        if len(others) > 1:
            rows += [
                _row(own, other, NO)
                for own, other in zip(others, others[1:] + others[:1], strict=True)
            ]
    return rows


def _is_usable(docstring: Docstring) -> bool:
    sizes = (len(part.split()) for part in (docstring.summary, docstring.body))
    is_long = all(size >= fewest for size, fewest in zip(sizes, _FEWEST_WORDS, strict=True))
    return is_long and not _SIGNATURE.match(docstring.summary)


def _row(own: Docstring, other: Docstring, label: str) -> TextRow:
    return TextRow(
        text=_cut(own.summary),
        second=_cut(other.body),
        label=label,
        source=f"{own.package} {own.module}",
    )


def _cut(text: str) -> str:
    return " ".join(text.split()[:_MOST_WORDS])

"""Which package wrote this docstring? Names of packages are hidden; equally many rows of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from sememe.examples.docstrings.records import Docstring, draw
from sememe.examples.labelled.rows import TextRow
from sememe.text import library

_FEWEST_WORDS, _MOST_WORDS = 8, 48
_FEWEST_ROWS = 500  # a package with fewer docstrings to learn from is too small to be a class
# Names that are English words, and what packages are called beside their names.
_WORDS = ("rich", "click", "regex", "typer", "tokenizers")
_ALIASES = ("np", "mpl", "plt", "pyplot", "pylab", "nx", "jinja", "sp")
_NAMES = [own for own in (library.STANDARD, *library.PACKAGES) if own not in _WORDS]
_GIVEAWAY = re.compile(rf"{'|'.join(_NAMES)}|\b(?:{'|'.join(_WORDS + _ALIASES)})\b", re.IGNORECASE)


def hide_names(text: str) -> str:
    """Take out every word that holds the name of a package."""
    if not _GIVEAWAY.search(text):
        return text
    return " ".join(word for word in text.split() if not _GIVEAWAY.search(word))


def classes(trained: Iterable[Docstring]) -> frozenset[str]:
    """The packages with enough docstrings to learn from."""
    found = Counter(docstring.package for docstring in trained if _text(docstring.text))
    return frozenset(package for package, count in found.items() if count >= _FEWEST_ROWS)


def package_rows(docstrings: Iterable[Docstring], labels: frozenset[str]) -> list[TextRow]:
    """Docstrings with their package as label, as many of each package as the smallest has."""
    by_package: dict[str, list[TextRow]] = {label: [] for label in sorted(labels)}
    for docstring in docstrings:
        if docstring.package in labels and (text := _text(docstring.text)):
            source = f"{docstring.package} {docstring.module}"
            row = TextRow(text=text, label=docstring.package, source=source)
            by_package[docstring.package].append(row)
    num_each = min(map(len, by_package.values()), default=0)
    return [row for rows in by_package.values() for row in sorted(rows, key=_order)[:num_each]]


@lru_cache(maxsize=1 << 17)  # the rows of every split ask for those that are trained on again
def _text(prose: str) -> str:
    """The first words of a docstring, names hidden; nothing where they are too few."""
    words = " ".join(prose.split(maxsplit=2 * _MOST_WORDS)[: 2 * _MOST_WORDS])
    kept = hide_names(words).split()[:_MOST_WORDS]
    return " ".join(kept) if len(kept) >= _FEWEST_WORDS else ""


def _order(row: TextRow) -> int:
    return draw(row.text)

"""The cells that a written table repeats from its input: number, file, and columns of each row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sememe.text.sources import Source


class RowCells:
    """The cells of one row after the other, with its number and, of several files, its file."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._has_files, self._file, self._number = len(sources) > 1, "", 0

    def of(
        self, cells: Mapping[str, Any], file: str, without: Collection[str] = ()
    ) -> dict[str, Any]:
        """The cells of the next row; a file without names has a text, or numbered columns."""
        from sememe.text.tables import unflat

        self._number = self._number + 1 if file == self._file else 1
        self._file = file
        own = {name: cell for name, cell in unflat(cells).items() if name not in without}
        if [*own] == ["1"] == [*cells]:
            own = {"text": own["1"]}
        return {"row": self._number} | ({"file": file} if self._has_files else {}) | own


def expected_rows(sources: Sequence[Source]) -> int | None:
    """About how many rows the files have, for progress; None if one is a pipe."""
    from sememe.text.tables import num_rows

    counts = [num_rows(source) for source in sources]
    return None if not counts or None in counts else sum(filter(None, counts))

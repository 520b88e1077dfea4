"""What happens to a bad row: an error that names its place, or one more that is left out."""

from __future__ import annotations

from collections.abc import Mapping

from sememe.errors import InputError
from sememe.examples.labelled.rows import Note, Row, Rows


class BadRowError(InputError):
    """A row that cannot be used; `found` says where it stands and what is wrong with it."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"{found}. Mend it, or leave such rows out with --skip-bad (skip_bad=True)."
        )
        self.found = found


class Sieve:
    """Refuses bad rows, or counts them; keeps what was said."""

    def __init__(self, skip_bad: bool, on_note: Note) -> None:
        self.skip_bad, self._on_note = skip_bad, on_note
        self.num_skipped = 0
        self._notes: list[str] = []
        self._first = ""

    def say(self, note: str) -> None:
        """Tell the user, and keep it."""
        self._notes.append(note)
        self._on_note(note)

    def refuse(self, where: str, problem: str) -> None:
        """Stop at a bad row, or count it."""
        if not self.skip_bad:
            raise BadRowError(f"{where}: {problem}")
        self.num_skipped += 1
        self._first = self._first or f"{where}: {problem}"

    def rows_of(self, rows: list[Row], columns: Mapping[str, str]) -> Rows[Row]:
        """The rows that passed, with their story; none at all is an error."""
        if not rows:
            reason = f"; all {self.num_skipped:,} are bad ({self._first})" if self._first else ""
            raise InputError(f"The labelled data holds no rows{reason}.")
        if self.num_skipped:
            self.say(f"{self.num_skipped:,} bad rows were left out; the first: {self._first}.")
        return Rows(rows, dict(columns), self.num_skipped, tuple(self._notes))

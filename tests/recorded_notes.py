"""A reporter that keeps what it is told."""

from __future__ import annotations

from sememe.progress import Reporter


class Notes(Reporter):
    """Keeps the lines that were said; `part in notes` if one of them holds it."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)

    def __contains__(self, part: str) -> bool:
        return any(part in line for line in self.lines)

"""What notebooks show: small tables and progress bars as HTML; tables as aligned text."""

import sys
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any


def html_table(header: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """An HTML table; mappings become lines of `name: value`, floats have four digits."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    names = "".join(f"<th>{escape(name)}</th>" for name in header)
    head = f"<thead><tr>{names}</tr></thead>" if names else ""
    lines = ("".join(f"<td>{_cell(value)}</td>" for value in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{title}{head}<tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return "<br>".join(f"{escape(str(name))}: {_cell(own)}" for name, own in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else escape(str(value))


def cell_width(text: str) -> int:
    """Terminal columns that the text takes: two for a Chinese character."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def aligned(lines: Sequence[Sequence[str]], num_left: int = 1) -> list[str]:
    """Cells as columns of text; the first `num_left` are left-aligned, the others right-aligned."""
    widths = [max(map(cell_width, column)) for column in zip(*lines, strict=True)]
    text = []
    for line in lines:
        spaces = [
            " " * (width - cell_width(cell)) for cell, width in zip(line, widths, strict=True)
        ]
        cells = [
            cell + space if column < num_left else space + cell
            for column, (cell, space) in enumerate(zip(line, spaces, strict=True))
        ]
        text.append("  ".join(cells).rstrip())
    return text


def in_notebook() -> bool:
    """Whether the program runs in a Jupyter kernel, which shows HTML."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class NotebookBars:
    """Progress bars in the output of a notebook's cell, with the methods of rich's Progress.

    One HTML output is replaced in place, which needs no widgets.
    """

    def __init__(self) -> None:
        self._bars: dict[int, dict[str, Any]] = {}
        self._num = 0
        self._html: Any = None  # IPython's
        self._handle: Any = None

    def start(self) -> None:
        """Begin an output below the cell."""
        from IPython.display import HTML, display

        self._html = HTML
        self._handle = display(HTML(""), display_id=True)

    def stop(self) -> None:
        """Leave nothing behind: what remains is printed."""
        self._bars.clear()
        self.refresh()

    def add_task(self, description: str, **fields: Any) -> int:
        """Add a bar; returns its number."""
        self._num += 1
        self._bars[self._num] = {"description": description, "completed": 0, **fields}
        return self._num

    def update(self, bar: int, **fields: Any) -> None:
        """Change a bar; it is drawn by `refresh`."""
        self._bars[bar] |= fields

    def remove_task(self, bar: int) -> None:
        """Remove a bar."""
        del self._bars[bar]
        self.refresh()

    def refresh(self) -> None:
        """Draw all bars."""
        rows = [
            f"<div>{escape(own['description'])} {_bar(own)} "
            f"<small>{escape(own.get('status') or '')}</small></div>"
            for own in list(self._bars.values())
        ]
        self._handle.update(self._html("".join(rows)))


def _bar(own: dict[str, Any]) -> str:
    """A progress element; without a known end it moves by itself."""
    label = escape(own["description"], quote=True)
    if not own.get("total"):
        return f'<progress aria-label="{label}"></progress>'
    share = min(1.0, own["completed"] / own["total"])
    return f'<progress aria-label="{label}" max="1" value="{share:.4f}"></progress> {share:.0%}'

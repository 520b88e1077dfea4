"""Small tables: rows in; escaped HTML for notebooks, or aligned text out."""

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

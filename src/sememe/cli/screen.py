"""What a command prints: tables on a terminal, tab-separated lines in a pipe, JSON on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def examples(*lines: str) -> str:
    """Write the examples below a command's help; each keeps its line."""
    shown = (f"  {line}".replace("[", r"\[") for line in lines)
    return "\n".join(["[bold]Examples[/bold]", *shown])


def console() -> Console:
    """The terminal, or whatever standard output is at the moment."""
    from rich.console import Console

    return Console(highlight=False)


def print_json(content: Any) -> None:
    """Print one JSON value; where the terminal knows ASCII only, so does the JSON."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    text = json.dumps(content, ensure_ascii=not encoding.startswith("utf"), indent=2)
    typer.echo(text)


def remark(text: str, quiet: bool) -> None:
    """Print a word beside the results: what was saved where, what to try; --quiet leaves it out."""
    if not quiet:
        typer.echo(text)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str = "",
    *,
    always_headed: bool = False,
) -> None:
    """Print rows as people read them on a terminal, and as programs read them in a pipe.

    A pipe gets the headings too where nothing else tells its columns apart (`always_headed`).
    """
    cells = [[_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for row in [headings, *cells] if always_headed else cells:
            typer.echo("\t".join(row))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index == 0 else "right")
    for row in cells:
        table.add_row(*map(Text, row))
    console().print(table)


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)

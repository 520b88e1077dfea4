"""The colors of the report, light and dark, and the style of its charts."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from sememe.plots.style import BLUE, FAINT, INK, PAPER, RED

Theme = Literal["auto", "light", "dark"]

# `soft` is for small text: plots.style.FAINT stands out too little from paper to be read.
LIGHT = {
    "paper": PAPER, "card": "#ffffff", "ink": INK, "soft": "#61616c", "faint": FAINT,
    "line": "#e3e3e0", "shade": "#f3f3ef",
    "blue": BLUE, "red": RED, "ochre": "#8f6a0a", "green": "#2f7d57", "violet": "#7a55a3",
    "slate": "#5c6370",
}  # fmt: skip
DARK = {
    "paper": "#16171b", "card": "#1c1d22", "ink": "#e6e6e3", "soft": "#a3a4ae", "faint": "#7d7e89",
    "line": "#33343b", "shade": "#24252b",
    "blue": "#79b0ee", "red": "#ee8b74", "ochre": "#d8b152", "green": "#6cc196",
    "violet": "#b996e0", "slate": "#a9b0bd",
}  # fmt: skip

FAMILIES = {
    "counts": ("Counts", "square", "slate"),
    "static": ("Static vectors", "circle", "blue"),
    "language model": ("Language models", "triangle", "ochre"),
    "contextual": ("Contextual models", "diamond", "red"),
}

# Groups of words and senses take these in turn; each color has its own mark, too.
SERIES = ("blue", "red", "green", "ochre", "violet", "slate")
MARKS = ("circle", "diamond", "square", "triangle", "cross", "ring")


def family_look(family: str) -> tuple[str, str, str]:
    """The title of a family, its mark and its color; one we do not know has its own."""
    return FAMILIES.get(family, (family.capitalize(), "ring", "violet"))


def colors(theme: Theme) -> str:
    """The colors as CSS variables; "auto" follows what the reader's screen prefers."""
    if theme != "auto":
        return _variables(LIGHT if theme == "light" else DARK, theme)
    dark = _variables(DARK, "dark")
    # Paper is light whatever the screen is.
    return (
        f"{_variables(LIGHT, 'light')}\n@media screen and (prefers-color-scheme: dark) {{{dark}}}"
    )


def _variables(values: dict[str, str], scheme: str) -> str:
    lines = "".join(f"--{name}:{value};" for name, value in values.items())
    return f":root{{color-scheme:{scheme};{lines}}}"


def template(name: str) -> str:
    """Read one of the files beside this module."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

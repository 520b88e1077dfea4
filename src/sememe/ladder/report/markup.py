"""HTML and SVG as text in which nothing from a corpus can be taken for markup."""

from __future__ import annotations

import html
import re

# Neither HTML nor XML may hold these; a lone surrogate cannot even be written as UTF-8.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

_EMPTY = {"br", "hr", "meta", "input", "col"}


class Markup(str):
    """Text that is markup already; every other string is escaped where it enters."""

    __slots__ = ()


Child = str | int | float | None


def clean(text: str) -> str:
    """Replace characters that no page may hold, and give a direction mark no power beyond it."""
    text = _FORBIDDEN.sub("\ufffd", text)
    return re.sub("[\u202a-\u202e\u2066-\u2069]", "", text)


def escaped(value: Child) -> Markup:
    """Give markup for a child: as it is where it is markup, escaped where it is text."""
    if value is None:
        return Markup("")
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(clean(str(value))))


def join(*children: Child, by: str = "") -> Markup:
    """Put children one after another."""
    return Markup(by.join(escaped(child) for child in children))


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """Build one element; `class_` is class, `font_size` font-size, None and False are left out."""
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        attribute = attribute if attribute != "viewbox" else "viewBox"
        text = _number(value) if isinstance(value, float) else clean(str(value))
        words.append(attribute if value is True else f'{attribute}="{html.escape(text)}"')
    opening = " ".join(words)
    if name in _EMPTY:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(*children)}</{name}>")


def _number(value: float) -> str:
    """A coordinate: two digits after the point are finer than any screen."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value == value else "0"

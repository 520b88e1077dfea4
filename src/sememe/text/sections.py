"""The parameters that a docstring describes: names, types, and what they are for.

The three usual ways of writing parameters down are read: numpydoc's underlined sections, Google's
indented ones, and the fields of Sphinx.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

from sememe.text.prose import plain, prose


class Parameter(NamedTuple):
    """A parameter (or several that share a line), its type ("" if none is told), what it is for."""

    names: tuple[str, ...]
    type: str
    text: str


_TITLES = frozenset(
    ["parameters", "other parameters", "args", "arguments", "keyword arguments", "keyword args"]
)
_RULE = re.compile(r"[-=~]{3,}$")
_NAME = r"\*{0,2}[A-Za-z_]\w*"
_NAMES = rf"{_NAME}(?: *, *{_NAME})*"
_NUMPYDOC = re.compile(rf"`*({_NAMES})`*(?: *:(?: +(.*))?)?$")
_GOOGLE = re.compile(rf"(?:[-*] +)?`*({_NAMES})`*(?: *\(((?:[^()]|\([^()]*\))*)\))? *: *(?!:)(.*)$")
_FIELD = re.compile(rf":(?:param|parameter|arg|argument|key|keyword) +(?:(.+?) +)?({_NAME}) *: *")
_TYPE_FIELD = re.compile(rf":type +({_NAME}) *: *")
# What follows a type on its line and is not the type: "int, optional", "float (default 1.0)".
_REMARK = re.compile(
    r"[\s,;(.]*\b(optional|default(s|ed)?|keyword[- ]only|positional[- ]only|required)\b.*$", re.I
)


def parameters(docstring: str) -> list[Parameter]:
    """The parameters that a docstring describes, in its order; none if it has no such section."""
    lines = inspect.cleandoc(docstring).split("\n")
    found = list(_fields(lines))
    for title, block in _blocks(lines):
        found += _numpydoc(block) if title == "underlined" else _google(block)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The sections that hold parameters: ("underlined" or "indented", their lines)."""
    for index, line in enumerate(lines):
        title = line.strip().lower()
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        if title in _TITLES and _RULE.match(following):
            yield "underlined", _until_rule(lines[index + 2 :])
        elif title.endswith(":") and title[:-1] in _TITLES:
            yield "indented", _deeper(lines[index + 1 :], _indent(line))


def _until_rule(lines: list[str]) -> list[str]:
    """The lines of an underlined section: the next one starts a line above its own rule."""
    for index, line in enumerate(lines):
        if index and _RULE.match(line.strip()) and lines[index - 1].strip():
            return lines[: index - 1]
    return lines


def _deeper(lines: list[str], indent: int) -> list[str]:
    """The lines that belong to a title of this indentation, or a list right below it."""
    kept: list[str] = []
    for line in lines:
        if line.strip() and _indent(line) <= indent and not line.lstrip().startswith(("- ", "* ")):
            break
        kept.append(line)
    return kept


def _entries(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines at the lowest indentation, each with the lines below it."""
    filled = [_indent(line) for line in lines if line.strip()]
    lowest = min(filled, default=0)
    head: str | None = None
    below: list[str] = []
    for line in lines:
        if line.strip() and _indent(line) == lowest:
            if head is not None:
                yield head, below
            head, below = line.strip(), []
        else:
            below.append(line)
    if head is not None:
        yield head, below


def _numpydoc(lines: list[str]) -> Iterator[Parameter]:
    for head, below in _entries(lines):
        if match := _NUMPYDOC.match(head):
            yield _parameter(match[1], match[2] or "", "\n".join(below))


def _google(lines: list[str]) -> Iterator[Parameter]:
    for head, below in _entries(lines):
        if match := _GOOGLE.match(head):
            text = "\n".join([match[3], *map(str.strip, below)])
            yield _parameter(match[1], match[2] or "", text)


def _fields(lines: list[str]) -> Iterator[Parameter]:
    """The parameters of Sphinx's fields; a type may stand in a field of its own."""
    types: dict[str, str] = {}
    found: list[tuple[str, str, str]] = []
    for head, below in _entries(lines):
        rest = "\n".join(map(str.strip, below)).split("\n\n")[0]
        if match := _TYPE_FIELD.match(head):
            types[match[1]] = f"{head[match.end() :]} {rest}"
        elif match := _FIELD.match(head):
            found.append((match[2], match[1] or "", f"{head[match.end() :]}\n{rest}"))
    for name, type_, text in found:
        yield _parameter(name, type_ or types.get(name, ""), text)


def _parameter(names: str, type_: str, text: str) -> Parameter:
    named = tuple(name.strip().lstrip("*") for name in names.split(","))
    return Parameter(named, _REMARK.sub("", plain(type_)).strip(" ,;:.~"), prose(text))

"""Prose and parameters of docstrings: reStructuredText or Markdown in, plain sentences out.

Doctests, code blocks, tables, formulas, addresses and section titles are dropped; the words of
markup are kept. Parameters are read in the styles of numpydoc, Google and Sphinx.
"""

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

_CODE = """
code code-block sourcecode math plot ipython testcode testsetup testoutput doctest image figure
toctree autosummary parsed-literal highlight literalinclude raw graphviz inheritance-diagram
currentmodule module automodule autoclass autofunction automethod table list-table csv-table
include index only tabularcolumns
"""
_CODE_DIRECTIVES = frozenset(_CODE.split())
_TITLES = """
parameters returns return yields yield receives raises warns warnings notes note references
examples example attributes methods args arguments kwargs inputs outputs shape usage input output
"""
_SECTIONS = frozenset(_TITLES.split()) | {
    "other parameters", "see also", "keyword arguments", "keyword args",
}  # fmt: skip

_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}$")
_TABLE_BORDER = re.compile(r"(=+ +=[= ]*|-+ +-[- ]*|\+[-=+]+\+?)$")
_DIRECTIVE = re.compile(r"\.\. +([\w-]+):: *(.*)$")
_TARGET = re.compile(r"\.\. +(_[^:]*:|\|[^|]*\|).*$")
_FOOTNOTE = re.compile(r"\.\. +\[[^\]]*\] *")
_BULLET = re.compile(r"([-*+•]|\(?\d+[.)]|#\.) +")
_FIELD = re.compile(
    r":(param|parameter|type|arg|keyword|raises?|returns?|rtype|ivar|var|cvar)\b ?([^:]*):"
)
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r":math:`[^`]*`|\$\$?[^$\n]+\$\$?"), " "),
    (re.compile(r":[\w:+.-]+:`!?~(?:[\w.]*\.)?([^`]*)`"), r"\1"),
    (re.compile(r":[\w:+.-]+:`([^`<]*?)\s*<[^`>]*>`"), r"\1"),
    (re.compile(r":[\w:+.-]+:`!?([^`]*)`"), r"\1"),
    (re.compile(r"`([^`<]*?)\s*<[^`>]*>`_*"), r"\1"),
    (re.compile(r"\[[#*]?\w*\]_"), " "),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"(https?|ftp)://\S+|www\.\S+"), " "),
    (re.compile(r"`+([^`]*)`+_*"), r"\1"),
    (re.compile(r"\*{1,2}(\w[^*]*)\*{1,2}"), r"\1"),
    (re.compile(r"\\[A-Za-z]+|[\\{}|]"), " "),
)
# What no paragraph that one of these changes is without; most have none of it.
_MARKUP = re.compile(r"[`$\[*\\{}|]|://|www\.")
_SPACES = re.compile(r"\s+")
_NO_LETTER = re.compile(r"[\W\d_]")
_SHARE_OF_LETTERS = 0.72


def prose(docstring: str) -> str:
    """The prose of `docstring`, one paragraph, item or title per line; empty if there is none."""
    lines = _without_code(inspect.cleandoc(docstring).split("\n"))
    paragraphs = (plain(paragraph) for paragraph in _paragraphs(_without_tables(lines)))
    return "\n".join(paragraph for paragraph in paragraphs if _is_prose(paragraph))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_code(lines: list[str]) -> list[str]:
    """Drop doctests, fenced, literal and code blocks; turn other directives into text."""
    kept: list[str] = []
    skipped_indent = -1  # lines indented deeper than this belong to a block that goes
    in_fence = in_doctest = False
    for line in lines:
        text = line.strip()
        if text.startswith(("```", "~~~")) and not text.strip("`~ ").count(" "):
            in_fence = not in_fence
            continue
        if not text:
            in_doctest = False
            kept.append("")
            continue
        if text.startswith((">>>", "In [")):
            in_doctest = True
        if in_fence or in_doctest or (skipped_indent >= 0 and _indent(line) > skipped_indent):
            continue
        skipped_indent = -1
        directive = _DIRECTIVE.match(text)
        if directive:
            if directive[1] in _CODE_DIRECTIVES:
                skipped_indent = _indent(line)
            elif not directive[2][:1].isdigit():
                kept.append(" " * _indent(line) + directive[2])
            continue
        if text.startswith(".. ") and not _FOOTNOTE.match(text):
            if not _TARGET.match(text):
                skipped_indent = _indent(line)
            continue
        if text.endswith("::"):
            skipped_indent = _indent(line)
            line = line.rstrip(": ")
        kept.append(line)
    return kept


def _without_tables(lines: list[str]) -> list[str]:
    """Drop tables, underlines and the names of the usual sections."""
    kept: list[str] = []
    in_table = False
    for line in lines:
        text = line.strip()
        if not text:
            in_table = False
        elif _TABLE_BORDER.match(text):
            in_table = True
            continue
        elif _UNDERLINE.match(text):
            if kept and kept[-1].strip().lower() in _SECTIONS:
                kept.pop()
            kept.append("")
            continue
        if in_table or text.startswith(("|", "+-", "+=")):
            continue
        if text.endswith(":") and text[:-1].lower() in _SECTIONS:
            text = line = ""
        kept.append(line)
    return kept


def _paragraphs(lines: list[str]) -> list[str]:
    """Join the lines of each paragraph; a bullet, a field or another indentation starts one."""
    result: list[list[str]] = [[]]
    indent = 0
    for line in lines:
        text = line.strip()
        bullet = _BULLET.match(text)
        field = _FIELD.match(text)
        is_new = not text or bullet or field or _indent(line) != indent
        if is_new and result[-1]:
            result.append([])
        indent = _indent(line) + (bullet.end() if bullet else 0)
        if field:
            text = f"{field[2]} {text[field.end() :]}"
        elif bullet:
            text = text[bullet.end() :]
        if text:
            result[-1].append(text)
    return [" ".join(paragraph) for paragraph in result if paragraph]


def plain(text: str) -> str:
    """One paragraph without markup; the words of links, roles and emphasis are kept."""
    text = _FOOTNOTE.sub("", text)
    if _MARKUP.search(text):
        for pattern, replacement in _INLINE:
            text = pattern.sub(replacement, text)
    return _SPACES.sub(" ", text).strip()


def _is_prose(text: str) -> bool:
    """Whether `text` is mostly letters, and so neither a formula nor code without a mark."""
    num_letters = len(_NO_LETTER.sub("", text)) + text.count(" ")
    return num_letters > _SHARE_OF_LETTERS * len(text) and len(text) > 2


class Parameter(NamedTuple):
    """A parameter (or several that share a line), its type (or ""), and its description."""

    names: tuple[str, ...]
    type: str
    text: str


_PARAMETER_TITLES = frozenset(
    ["parameters", "other parameters", "args", "arguments", "keyword arguments", "keyword args"]
)
_RULE = re.compile(r"[-=~]{3,}$")
_NAME = r"\*{0,2}[A-Za-z_]\w*"
_NAMES = rf"{_NAME}(?: *, *{_NAME})*"
_NUMPYDOC = re.compile(rf"`*({_NAMES})`*(?: *:(?: +(.*))?)?$")
_GOOGLE = re.compile(rf"(?:[-*] +)?`*({_NAMES})`*(?: *\(((?:[^()]|\([^()]*\))*)\))? *: *(?!:)(.*)$")
_PARAMETER_FIELD = re.compile(
    rf":(?:param|parameter|arg|argument|key|keyword) +(?:(.+?) +)?({_NAME}) *: *"
)
_TYPE_FIELD = re.compile(rf":type +({_NAME}) *: *")
# What follows a type on its line and is not the type: "int, optional", "float (default 1.0)".
_REMARK = re.compile(
    r"[\s,;(.]*\b(optional|default(s|ed)?|keyword[- ]only|positional[- ]only|required)\b.*$", re.I
)


def parameters(docstring: str) -> list[Parameter]:
    """The parameters that a docstring describes, in order; none without such a section."""
    lines = inspect.cleandoc(docstring).split("\n")
    found = list(_fields(lines))
    for title, block in _blocks(lines):
        found += _numpydoc(block) if title == "underlined" else _google(block)
    return found


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The sections that hold parameters: ("underlined" or "indented", their lines)."""
    for index, line in enumerate(lines):
        title = line.strip().lower()
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        if title in _PARAMETER_TITLES and _RULE.match(following):
            yield "underlined", _until_rule(lines[index + 2 :])
        elif title.endswith(":") and title[:-1] in _PARAMETER_TITLES:
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
    """The parameters of Sphinx's fields; a type may be in a field of its own."""
    types: dict[str, str] = {}
    found: list[tuple[str, str, str]] = []
    for head, below in _entries(lines):
        rest = "\n".join(map(str.strip, below)).split("\n\n")[0]
        if match := _TYPE_FIELD.match(head):
            types[match[1]] = f"{head[match.end() :]} {rest}"
        elif match := _PARAMETER_FIELD.match(head):
            found.append((match[2], match[1] or "", f"{head[match.end() :]}\n{rest}"))
    for name, type_, text in found:
        yield _parameter(name, type_ or types.get(name, ""), text)


def _parameter(names: str, type_: str, text: str) -> Parameter:
    named = tuple(name.strip().lstrip("*") for name in names.split(","))
    return Parameter(named, _REMARK.sub("", plain(type_)).strip(" ,;:.~"), prose(text))

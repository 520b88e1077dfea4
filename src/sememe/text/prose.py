"""The prose of a docstring: reStructuredText or Markdown in, plain sentences out.

Doctests, literal and code blocks, tables, formulas, addresses, underlines and the names of the
usual sections go; of markup the words inside stay. The lines of a paragraph are joined to one.
"""

from __future__ import annotations

import inspect
import re

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
    """The prose of `docstring`, a paragraph, item or title a line; empty if there is none."""
    lines = _without_code(inspect.cleandoc(docstring).split("\n"))
    paragraphs = (plain(paragraph) for paragraph in _paragraphs(_without_tables(lines)))
    return "\n".join(paragraph for paragraph in paragraphs if _is_prose(paragraph))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_code(lines: list[str]) -> list[str]:
    """Leave out doctests, fenced, literal and code blocks; turn other directives into text."""
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
    """Leave out tables, underlines and the names of the usual sections."""
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
    """One paragraph without markup: the words of links, roles and emphasis stay."""
    text = _FOOTNOTE.sub("", text)
    if _MARKUP.search(text):
        for pattern, replacement in _INLINE:
            text = pattern.sub(replacement, text)
    return _SPACES.sub(" ", text).strip()


def _is_prose(text: str) -> bool:
    """Whether `text` is mostly letters, and so neither a formula nor code without a mark."""
    num_letters = len(_NO_LETTER.sub("", text)) + text.count(" ")
    return num_letters > _SHARE_OF_LETTERS * len(text) and len(text) > 2

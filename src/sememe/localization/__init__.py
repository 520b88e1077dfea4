"""The language of the interface: English in the code, Chinese from a catalogue.

A line of `zh/*.tsv` is an English text, a tab and its Chinese; `{names}` stand for values. A text
without a line stays English. Two functions use the catalogue:

    say("{num:,} words", num=5)     fills a template of templates.tsv (the report, results)
    translate("5 words in a.txt")   finds the template of a finished text (an error, a note) in
                                    messages.tsv or help.tsv

Errors are raised and results are saved in English, whatever the language, for programs that read
them; only what a person reads is translated, at the place where it is printed.
"""

from __future__ import annotations

import locale
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.resources import files
from itertools import count
from typing import Any, Literal, NamedTuple, get_args

Language = Literal["en", "zh"]
VARIABLE = "SEMEME_LANG"  # of the environment, so that worker processes follow

_PLACE = re.compile(r"\{(~?\w+)(?:[:!][^{}]*)?\}")
_COUNT = re.compile(r"([\d.]+) ([kMGT])")  # as progress.format_count writes it
_VALUES = {"word": r"\S+", "count": r"[\d.,]+(?: [kMGT])?"}  # of {name:word}, {name:count}
_LEVELS = 5  # of messages in messages
_LETTER = re.compile("[^\\W\\d_]")
# A space separates Chinese from Latin letters or digits, but not from its marks.
_SPACED = re.compile(r"( ?)\{(~?\w+)(?:[:!]([^{}]*))?\}( ?)")
_WIDE = re.compile("[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef“”…]")
# The sizes by which large numbers are written.
SCALES: dict[Language, tuple[tuple[float, str], ...]] = {
    "en": ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")),
    "zh": ((1e12, "万亿"), (1e8, "亿"), (1e4, "万")),
}


def current() -> Language:
    """The language in use."""
    return "zh" if os.environ.get(VARIABLE) == "zh" else "en"


def preferred() -> Language:
    """The language of the user's locale, if the program speaks it and the terminal can show it."""
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    name = next(filter(None, names), None) or locale.getlocale()[0] or ""
    if not name.lower().startswith(("zh", "chinese")):
        return "en"
    try:
        "中".encode(sys.stdout.encoding or "ascii")
    except (UnicodeError, LookupError):
        return "en"
    return "zh"


@contextmanager
def using(language: str) -> Iterator[None]:
    """Speak a language for a while; an unknown one is English."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = language if language in get_args(Language) else "en"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


@cache
def catalogue(language: Language, *names: str) -> dict[str, str]:
    """The English texts of these files with their translations."""
    if language == "en":
        return {}
    paths = [files(__package__) / language / f"{name}.tsv" for name in names]
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return dict(line.split("\t") for line in lines if line and not line.startswith("#"))


def say(template: str, /, **values: Any) -> str:
    """Fill a template with values, in the language in use."""
    known = catalogue(current(), "templates").get(template)
    if known is None:
        return template.format(**values)
    return _filled(known, lambda place: place[0].strip(" ").format(**values))


class _Pattern(NamedTuple):
    """A template to recognise: the size of its text, the longest part, and what to do with it."""

    size: int
    longest: str
    expression: str
    translation: str


@cache
def _patterns(language: Language) -> list[_Pattern]:
    """The templates with values, those with the most text of their own first."""
    found = []
    for line in catalogue(language, "messages", "help").items():
        template, translation = map(_numbered, line)
        texts = _PLACE.split(template)[::2]
        if len(texts) > 1 and _LETTER.search("".join(texts)):
            # Each part ends before the next value of any text. Once it fits, it is not tried at
            # other places (?>): the time would grow with a power of the length of the text.
            parts = [re.escape(texts[0])]
            for place, text in zip(_PLACE.finditer(template), texts[1:], strict=True):
                kind = place[0].rstrip("}").partition(":")[2]
                value = f"(?P<_{place[1].strip('~')}>{_VALUES.get(kind, '.*?')})"
                if kind not in _VALUES:
                    parts.append("")
                parts[-1] += value + re.escape(text)
            expression = "".join(f"(?>{part})" for part in parts[:-1]) + parts[-1]
            longest = max(texts, key=len)
            found.append(_Pattern(sum(map(len, texts)), longest, expression, translation))
    return sorted(found, key=lambda pattern: -pattern.size)


def _numbered(text: str) -> str:
    """A template whose values have no names, as {1}, {2} …"""
    numbers = count(1)
    return re.sub(r"\{\}", lambda _: f"{{{next(numbers)}}}", text)


def translate(text: str, levels: int = _LEVELS) -> str:
    """Translate a finished message, found by its template; one without a line stays as it is.

    Values are `{names}`, or `{}` if their order is the same in Chinese; `{name:word}` has no space,
    `{name:count}` is a number.
    A part that is a message too is marked in the catalogue: `{~reason}` is translated, `{reason}`
    is not. The parts of a list are separated as `{names:、}` says, and translated as `{~names:、}`.
    Messages in messages are translated `levels` deep.
    """
    if not levels:
        return text
    language = current()
    if (known := catalogue(language, "templates", "messages", "help").get(text)) is not None:
        return known
    for pattern in _patterns(language):
        if pattern.longest in text and (found := re.fullmatch(pattern.expression, text, re.DOTALL)):
            return _filled(pattern.translation, partial(_part, found, levels - 1))
    return text


def translations(texts: Iterable[str]) -> dict[str, str]:
    """Each text with its translation."""
    return {text: translate(text) for text in texts}


def _part(found: re.Match[str], levels: int, place: re.Match[str]) -> str:
    """The value of a message at a place of its translation."""
    given = found[f"_{place[2].strip('~')}"]
    parts = given.split(", ") if place[3] else [given]
    if place[2].startswith("~"):
        parts = [translate(part, levels) for part in parts]
    return (place[3] or "").join(map(_scaled, parts))


def _scaled(text: str) -> str:
    """A large number in the sizes of the language in use: 521 k is 52.1 万."""
    if not (found := _COUNT.fullmatch(text)):
        return text
    sizes = {mark: size for size, mark in SCALES["en"]}
    number = float(found[1]) * sizes[found[2]]
    scale, mark = next(((s, m) for s, m in SCALES[current()] if number >= s), (1.0, ""))
    return f"{float(f'{number / scale:.3g}'):,g} {mark}".strip()


def _filled(template: str, value_at: Callable[[re.Match[str]], str]) -> str:
    """Fill a Chinese template; a space beside a value that is Chinese there is dropped."""

    def spaced(place: re.Match[str]) -> str:
        value = value_at(place)
        before = "" if not value or _WIDE.match(value[0]) else place[1]
        after = "" if not value or _WIDE.match(value[-1]) else place[4]
        return before + value + after

    return _SPACED.sub(spaced, template)

"""Judge the lines of a batch of documents: which are removed, and which are repaired.

A kernel looks at every line and marks the few that need a closer look in Python. A line that
continues a long line before it, in text broken at a fixed width, is never judged alone: "1859." may
end a sentence there.
"""

import html
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from sememe.text.cleaning.config import CleanConfig
from sememe.text.cleaning.fingerprints import character_tables
from sememe.text.cleaning.report import (
    BROKEN,
    LINKS,
    MARKUP,
    PAGE_NUMBERS,
    REPEATED_LINES,
    TOO_LONG,
)
from sememe.text.cleaning.worker import Workers

_ENCODINGS = (
    "latin-1", "cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1257", "iso8859-2",
    "mac_roman", "cp437",
)  # fmt: skip
_LONGEST_REPEATED = 300  # bytes
_URL = r"(?:(?:https?|ftp)://[!-~]+|www\.[!-~]+)"
_LINKS = re.compile(rf"[\W_]*{_URL}(?:[\s,;|·•-]+{_URL})*[\W_]*")
_AROUND = r"[\s\-–—.·•|*()\[\]<>~_]*"
_PAGE_NUMBER = re.compile(
    rf"{_AROUND}(?:(?:page|pages|pg|p|pp|seite|s|página|pagina|pág|стр|страница|第)\W{{0,2}})?"
    rf"\d{{1,5}}(?:\s*(?:of|/|von|de|sur|di|из|\||-|–|共|，共)\s*\d{{1,5}})?\s*(?:页|頁)?{_AROUND}",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"<!--(?:(?!<!--).)*?-->|</?[A-Za-z][^<>]*>|<![A-Za-z][^<>]*>|&(?:#\d+|#x[\da-fA-F]+|[A-Za-z]\w*);"
    r"|\{\{[^{}]*\}\}|\[\[[^\[\]|]*:[^\[\]]*\]\]"
)
_INLINE = "a|abbr|b|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strong|sub|sup|tt|u|var"
_BLOCK = (
    "article|aside|blockquote|body|br|button|center|dd|div|dl|dt|footer|form|h[1-6]|head"
    "|header|hr|html|iframe|img|input|label|li|link|main|meta|nav|ol|option|p|pre|script|section"
    "|select|style|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul|video"
)
_ATTRIBUTES = r"""(?:\s+[\w:-]+=(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+))*"""
_INLINE_TAG, _BLOCK_TAG = (
    re.compile(rf"</?(?:{names}){_ATTRIBUTES}\s*/?>|<!--(?:(?!<!--).)*?-->", re.IGNORECASE)
    for names in (_INLINE, _BLOCK)
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[\da-fA-F]{1,6}|[A-Za-z]\w{1,30});")
_WORD = re.compile(r"[^\W_]")


class Lines(NamedTuple):
    """The lines of a batch: bounds with and without newlines, documents, what `look` found."""

    starts: np.ndarray
    ends: np.ndarray
    stops: np.ndarray
    documents: np.ndarray
    flags: np.ndarray
    widths: np.ndarray
    sizes: np.ndarray

    @property
    def is_blank(self) -> np.ndarray:
        """Whether a line holds white space only."""
        return self.widths < 0

    @property
    def is_alone(self) -> np.ndarray:
        """Whether a line stands by itself, because the one before it is complete."""
        from sememe.text.cleaning.kernels import OPEN

        is_open = (self.flags[:-1] & OPEN > 0) & ~self.is_blank[:-1]
        is_open &= self.documents[1:] == self.documents[:-1]
        return np.concatenate(([True], ~is_open))[: len(self.starts)]

    def num_filled(self, num_documents: int) -> np.ndarray:
        """The number of lines of each document that are not blank."""
        return np.bincount(self.documents[~self.is_blank], minlength=num_documents)


@cache
def suspect_table() -> np.ndarray:
    """For each code point below 2^16, in which wrongly read encodings it may stand for a byte."""
    from sememe.text.cleaning import kernels

    table = np.zeros(0x10000, np.uint32)
    for place, encoding in enumerate(_ENCODINGS):
        for byte in range(0x80, 0xF0):
            char = bytes([byte]).decode(encoding, "ignore") or chr(byte)
            # In Mac Roman later lead bytes are quotes, which French has before accents.
            is_lead = 0xC2 <= byte < 0xE0 and (encoding != "mac_roman" or byte < 0xC4)
            group = 2 if byte < 0xC0 else 0 if is_lead else 1 if byte >= 0xE0 else None
            if group is not None:
                table[ord(char)] |= 1 << (group * kernels.NUM_ENCODINGS + place)
    for lead in range(0xE4, 0xEA):  # of Chinese characters in UTF-8, here read in GB18030
        for later in range(0x80, 0xC0):
            if len(char := bytes([lead, later]).decode("gb18030", "ignore")) == 1:
                table[ord(char)] |= kernels.GARBLED_HAN
    controls = [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0xFEFF, 0xFFFD, ord("锟")]
    table[controls] |= np.uint32(kernels.ALWAYS)
    return table


def split(text: bytes, ends: np.ndarray) -> Lines:
    """Find the lines of the documents of `text` that end at `ends`, and look at each."""
    from sememe.text.cleaning import kernels

    data = np.frombuffer(text, np.uint8)
    line_ends = np.union1d(np.flatnonzero(data == 10) + 1, ends[np.diff(ends, prepend=0) > 0])
    starts = np.concatenate(([0], line_ends[:-1]))[: len(line_ends)]
    stops = line_ends - (data[line_ends - 1] == 10)
    num = len(starts)
    flags, widths, sizes = np.empty(num, np.uint8), np.empty(num, np.int64), np.empty(num, np.int64)
    classes, _ = character_tables()
    kernels.look(data, starts, stops, classes, suspect_table(), flags, widths, sizes)
    documents = np.searchsorted(ends, line_ends)
    return Lines(starts, line_ends, stops, documents, flags, widths, sizes)


def line_hashes(text: bytes, lines: Lines, num_documents: int) -> np.ndarray:
    """A hash of each line that could be boilerplate, otherwise 0: short, not alone in its text."""
    from sememe.text.cleaning import kernels

    hashes = np.empty(len(lines.starts), np.uint64)
    kernels.hash_parts(np.frombuffer(text, np.uint8), lines.starts, lines.stops, hashes)
    is_short = lines.stops - lines.starts <= _LONGEST_REPEATED
    has_others = lines.num_filled(num_documents)[lines.documents] > 1
    hashes[~(is_short & has_others & lines.is_alone & ~lines.is_blank)] = 0
    return hashes


class LineCounts:
    """Lossy counts of lines: in how many documents each is, at most; never too many.

    When the table is full, the rarest lines are dropped, and counted from 0 if they come again
    (Manku and Motwani 2002), so that memory is bounded.
    """

    def __init__(self, num_slots: int = 1 << 16, most_slots: int = 1 << 22) -> None:
        self._most_slots, self._num_documents = most_slots, 0
        self._make(num_slots)

    def _make(self, num_slots: int) -> None:
        self._keys = np.zeros(num_slots, np.uint64)
        self._counts = np.zeros(num_slots, np.uint32)
        self._last = np.zeros(num_slots, np.int64)
        self._num_used = 0

    def add(self, hashes: np.ndarray, documents: np.ndarray, num_documents: int) -> None:
        """Count the lines of a batch; `documents` are their documents in it."""
        from sememe.text.cleaning import kernels

        numbered, line = documents + self._num_documents, 0
        while line < len(hashes):
            line, self._num_used = kernels.count_lines(
                hashes, numbered, line, self._keys, self._counts, self._last, self._num_used
            )
            if line < len(hashes):
                self._make_room()
        self._num_documents += num_documents

    def _make_room(self) -> None:
        from sememe.text.cleaning import kernels

        old = self._keys, self._counts, self._last
        num_slots, least = min(2 * len(self._keys), self._most_slots), 1
        if num_slots == len(self._keys):
            while (self._counts >= least).sum() > num_slots // 2:
                least += 1
        self._make(num_slots)
        self._num_used = kernels.move_counts(*old, least, self._keys, self._counts, self._last)

    def repeated(self, least: int) -> np.ndarray:
        """The hashes, in rising order, of lines in at least this many documents."""
        return np.sort(self._keys[self._counts >= least])


class Verdict(NamedTuple):
    """The rule that removes each line (0: none), and the new text of repaired ones."""

    rules: np.ndarray
    repaired: dict[int, bytes]


def judge(
    text: bytes,
    lines: Lines,
    num_documents: int,
    *,
    is_cells: bool,
    repeated: np.ndarray,
    config: CleanConfig,
    workers: Workers,
) -> Verdict:
    """Judge each line by itself; with `is_cells` a single line is the whole text of a cell."""
    from sememe.text.cleaning import kernels

    rules = np.zeros(len(lines.starts), np.uint8)
    repaired: dict[int, bytes] = {}

    def text_of(line: int) -> str:
        return (repaired.get(line) or text[lines.starts[line] : lines.stops[line]]).decode()

    if config.max_length:
        rules[lines.sizes > config.max_length] = TOO_LONG
    if len(repeated):
        hashes = line_hashes(text, lines, num_documents)
        rules[np.isin(hashes, repeated) & (rules == 0)] = REPEATED_LINES
    if config.broken:
        suspects = np.flatnonzero((lines.flags & kernels.SUSPECT > 0) & (rules == 0)).tolist()
        answers = workers.ask("repair", before := [text_of(line) for line in suspects])
        for line, old, new in zip(suspects, before, answers, strict=True):
            if new is None:
                rules[line] = BROKEN
            elif new != old:
                repaired[line] = new.encode()
    if config.strip_markup:
        marked = np.flatnonzero((lines.flags & kernels.MARKUP > 0) & (rules == 0))
        for line in marked.tolist():
            if (new := stripped(old := text_of(line))) != old:
                repaired[line] = new.encode()
    is_only = is_cells & (lines.num_filled(num_documents)[lines.documents] == 1)
    _judge_alone(rules, lines, is_only, text_of, config)
    return Verdict(rules, {line: new for line, new in repaired.items() if not rules[line]})


def _judge_alone(
    rules: np.ndarray,
    lines: Lines,
    is_only: np.ndarray,
    text_of: Callable[[int], str],
    config: CleanConfig,
) -> None:
    """Judge lines that stand by themselves; `is_only` are those that are all of a cell."""
    from sememe.text.cleaning import kernels

    is_alone = lines.is_alone & ~lines.is_blank

    def remove(rule: int, is_candidate: np.ndarray, is_meant: Callable[[str], bool]) -> None:
        for line in np.flatnonzero(is_candidate & is_alone & (rules == 0)).tolist():
            if is_meant(text_of(line).strip()):
                rules[line] = rule

    if config.links:
        remove(LINKS, lines.flags & kernels.LINK > 0, lambda line: bool(_LINKS.fullmatch(line)))
    if config.page_numbers:
        is_candidate = (lines.flags & kernels.NUMBERED > 0) & ~is_only
        remove(PAGE_NUMBERS, is_candidate, lambda line: bool(_PAGE_NUMBER.fullmatch(line)))
    if config.markup:
        rules[is_alone & (lines.widths == 0) & ~is_only & (rules == 0)] = MARKUP
        is_candidate = lines.flags & kernels.MARKUP > 0
        remove(MARKUP, is_candidate, lambda line: not _WORD.search(_MARKUP.sub("", line)))


def stripped(line: str) -> str:
    """A line without HTML tags, and with characters for its entities."""
    text = _BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", line))
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text)

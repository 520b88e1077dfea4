"""Chinese word segmentation by rjieba, in separate processes, because it holds the GIL.

The processes run this module as their program; a frame of text is answered by a frame of words.

Sentences end at 。！？!?；… and newlines. Tokens without a letter, digit or ideograph are dropped.
With `lowercase`, Latin words are lower-cased and full-width letters and digits (Ａ１) become plain
ones (a1) before segmentation, because rjieba would split them; otherwise text is unchanged.
"""

from __future__ import annotations

import re
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import InputError
from sememe.text.sources import read_utf8
from sememe.text.worker_processes import WorkerProcesses, serve

if TYPE_CHECKING:
    import numpy as np

    from sememe.text.settings import TextSettings
    from sememe.text.words import Records

# Below this size a process is not worth its start of 0.3 s.
_SMALL_SIZE = 1 << 18

_FULL_WIDTH = re.compile("[０-９Ａ-Ｚａ-ｚ]")
_TO_PLAIN = {code: code - 0xFEE0 for code in range(0xFF10, 0xFF5B) if chr(code).isalnum()}

_MANY_DIGITS = 10
DictionaryEntry = tuple[str, int | None, str | None]


def read_dictionary(path: str | Path) -> list[DictionaryEntry]:
    """Read a dictionary in jieba's format: one `word [frequency [tag]]` per line."""
    lines = enumerate(read_utf8(path).split("\n"), 1)
    return [
        _entry(line.split(), f"{path}, line {number:,}") for number, line in lines if line.strip()
    ]


def _entry(parts: list[str], where: str) -> DictionaryEntry:
    word, *others = parts
    frequency: int | None = None
    if others and others[0].isascii() and others[0].isdigit() and len(others[0]) < _MANY_DIGITS:
        frequency = int(others.pop(0))
    if len(others) > 1 or (others and not others[0].isalpha()):
        raise InputError(
            f"{where}: {' '.join(parts)!r} is not `word [frequency [tag]]` "
            f"(the frequency a whole number below 10^{_MANY_DIGITS - 1}, the tag letters)."
        )
    return word, frequency, others[0] if others else None


class Cutter:
    """rjieba with the user's words, in this process."""

    def __init__(self, entries: list[DictionaryEntry]) -> None:
        import rjieba

        # The module's own is loaded once; words are never added to it, because others may use it.
        self._jieba = rjieba.Jieba() if entries else rjieba
        for word, frequency, tag in entries:
            self._jieba.add_word(word, frequency, tag)

    def cut(self, text: bytes) -> bytes:
        """The tokens of `text`, including white space and punctuation, joined by 0x1F."""
        return "\x1f".join(self._jieba.cut(text.decode())).encode()


def _entries_for(settings: TextSettings) -> list[DictionaryEntry]:
    """The user's words, also as they are in text whose full-width letters became plain ones."""
    entries = read_dictionary(settings.dictionary) if settings.dictionary else []
    plain = [(narrow(word), frequency, tag) for word, frequency, tag in entries]
    return entries + [new for new, old in zip(plain, entries, strict=True) if new != old]


class ChineseSegmenter(AbstractContextManager["ChineseSegmenter"]):
    """Segments batches of documents; several threads may call it, each with its own process."""

    def __init__(self, settings: TextSettings, workers: int) -> None:
        self._settings, self._num_workers = settings, workers
        self._entries = _entries_for(settings)
        self._processes = WorkerProcesses(
            "sememe.text.chinese", "segments Chinese text", self._entries
        )
        self._lock = threading.Lock()
        self._own: Cutter | None = None

    def __exit__(self, *details: Any) -> None:
        self._processes.__exit__(*details)

    def _cut(self, text: bytes) -> bytes:
        if self._num_workers == 1 or len(text) < _SMALL_SIZE or not sys.executable:
            with self._lock:
                self._own = self._own or Cutter(self._entries)
            return self._own.cut(text)
        answer: bytes = self._processes.ask(text)
        return answer

    def segment(self, text: bytes, ends: np.ndarray, labels: list[str] | None) -> Records:
        """Segment the documents of `text` that end at `ends`; those without a word are dropped."""
        from sememe.text.words import select_tokens  # needs NumPy, which a worker starts without

        joined = _joined(text, ends)
        if self._settings.lowercase:
            joined = _plain_width(joined)
        return select_tokens(self._cut(joined), len(ends), labels, self._settings)

    def word_starts(self, text: bytes, ends: np.ndarray) -> np.ndarray:
        """The rising offsets in `text` at which rjieba's words, and what is between them, start."""
        import numpy as np

        tokens = np.frombuffer(self._cut(_joined(text, ends)), np.uint8)
        places = np.flatnonzero(tokens == 0x1F)
        starts = np.concatenate(([0], places + 1 - np.arange(1, len(places) + 1)))
        separators = ends[:-1] + np.arange(len(ends) - 1)
        return starts - np.searchsorted(separators, starts)


_SEPARATORS_TO_SPACES = bytes.maketrans(b"\x1d\x1e\x1f", b"   ")


def _joined(text: bytes, ends: np.ndarray) -> bytes:
    """The documents, separated by a character that rjieba does not change."""
    clean = text.translate(_SEPARATORS_TO_SPACES)
    starts = [0, *ends[:-1].tolist()]
    parts = [clean[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]
    return b"\x1d".join(parts)


def _plain_width(text: bytes) -> bytes:
    if b"\xef\xbc" not in text and b"\xef\xbd" not in text:
        return text
    return _FULL_WIDTH.sub(lambda found: narrow(found[0]), text.decode()).encode()


def narrow(word: str) -> str:
    """A word with plain letters and digits for full-width ones."""
    return word.translate(_TO_PLAIN)


if __name__ == "__main__":
    serve(lambda entries: Cutter(entries).cut)

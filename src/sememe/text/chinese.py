"""Chinese words by rjieba, in processes of its own: it holds the GIL while it cuts.

A worker is `python -m sememe.text.chinese`: frames of text come in over its standard input and
frames of words go out; it ends when the pipe closes, so it cannot outlive its parent. Processes of
`multiprocessing` would import the user's script again and break one without a main guard.

Sentences end at 。！？!?；… and newlines. Tokens without a letter, digit or ideograph go.
With `lowercase`, Latin words are lowered and full-width letters and digits (Ａ１) become plain
ones (a1) before they are cut, because rjieba would take them apart; otherwise text stays as it is.
"""

from __future__ import annotations

import json
import os
import queue
import re
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sememe.errors import InputError, SememeError

if TYPE_CHECKING:
    import numpy as np

    from sememe.text.records import Records
    from sememe.text.settings import TextSettings

# Below this a process is not worth its start of 0.3 s.
_SMALL_SIZE = 1 << 18
_FRAME = struct.Struct("<BQ")
_GOOD, _FAILED = 0, 1

_FULL_WIDTH = re.compile("[０-９Ａ-Ｚａ-ｚ]")
_TO_PLAIN = {code: code - 0xFEE0 for code in range(0xFF10, 0xFF5B) if chr(code).isalnum()}

DictionaryEntry = tuple[str, int | None, str | None]


def read_dictionary(path: str | Path) -> list[DictionaryEntry]:
    """Read a dictionary in jieba's form: `word [frequency [tag]]` a line."""
    try:
        content = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError(f"Cannot read the dictionary {path}: {error.strerror}.") from error
    entries: list[DictionaryEntry] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            parts = line.decode().split()
        except UnicodeDecodeError:
            raise InputError(f"{path}, line {number:,}: the dictionary is not UTF-8.") from None
        if parts:
            entries.append(_entry(parts, f"{path}, line {number:,}"))
    return entries


def _entry(parts: list[str], where: str) -> DictionaryEntry:
    word, *others = parts
    frequency: int | None = None
    if others and others[0].isascii() and others[0].isdigit():
        frequency = int(others.pop(0))
    if len(others) > 1 or (others and not others[0].isalpha()):
        raise InputError(
            f"{where}: {' '.join(parts)!r} is not `word [frequency [tag]]` "
            "(the frequency a whole number, the tag letters)."
        )
    return word, frequency, others[0] if others else None


class Cutter:
    """rjieba with the user's words, in this process."""

    def __init__(self, entries: list[DictionaryEntry]) -> None:
        import rjieba

        # The module's own is loaded once; words are never added to it, others may use it too.
        self._jieba = rjieba.Jieba() if entries else rjieba
        for word, frequency, tag in entries:
            self._jieba.add_word(word, frequency, tag)

    def cut(self, text: bytes) -> bytes:
        """The tokens of `text`, white space and punctuation among them, joined by 0x1F."""
        return "\x1f".join(self._jieba.cut(text.decode())).encode()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Cut frame after frame until `requests` ends; the first frame holds the user's words."""
    cutter: Cutter | None = None
    while len(head := requests.read(_FRAME.size)) == _FRAME.size:
        size = _FRAME.unpack(head)[1]
        content = requests.read(size)
        if len(content) < size:  # the parent was killed while it wrote
            return
        status = _GOOD
        try:
            if cutter is None:
                cutter = Cutter([tuple(entry) for entry in json.loads(content)])
                answer = b""
            else:
                answer = cutter.cut(content)
        except Exception as error:
            status, answer = _FAILED, f"{type(error).__name__}: {error}".encode()
        answers.write(_FRAME.pack(status, len(answer)) + answer)
        answers.flush()


class _Worker:
    """The parent's end of one process."""

    def __init__(self, entries: list[DictionaryEntry]) -> None:
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        # -P: a file of the user's working folder must not shadow a module.
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "sememe.text.chinese"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            )
        except OSError as error:
            raise SememeError(
                f"A process that cuts Chinese words cannot be started ({error.strerror}); "
                "run again with one worker."
            ) from error
        self._ask(json.dumps(entries).encode())

    def _ask(self, content: bytes) -> bytes:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(_FRAME.pack(_GOOD, len(content)))
            self._process.stdin.write(content)
            self._process.stdin.flush()
            head = self._process.stdout.read(_FRAME.size)
            status, size = _FRAME.unpack(head)
            answer = self._process.stdout.read(size)
        except (OSError, struct.error, ValueError):
            code = self._process.wait()
            raise SememeError(
                f"A process that cuts Chinese words ended with code {code}, perhaps for want of "
                "memory; run again with fewer workers."
            ) from None
        if status == _FAILED:
            raise SememeError(f"Chinese words could not be cut: {answer.decode()}.")
        return answer

    cut = _ask

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass
        self._process.stdout.close()
        self._process.wait()


def _entries_for(settings: TextSettings) -> list[DictionaryEntry]:
    """The user's words, also as they stand in text whose full-width letters became plain ones."""
    entries = read_dictionary(settings.dictionary) if settings.dictionary else []
    plain = [(narrow(word), frequency, tag) for word, frequency, tag in entries]
    return entries + [new for new, old in zip(plain, entries, strict=True) if new != old]


class ChineseSegmenter:
    """Cuts batches of documents; several threads may call it, each then has a process."""

    def __init__(self, settings: TextSettings, workers: int) -> None:
        self._settings, self._num_workers = settings, workers
        self._entries = _entries_for(settings)
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._started: list[_Worker] = []
        self._lock = threading.Lock()
        self._own: Cutter | None = None

    def __enter__(self) -> ChineseSegmenter:
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in self._started:
            worker.close()

    def _cut(self, text: bytes) -> bytes:
        if self._num_workers == 1 or len(text) < _SMALL_SIZE or not sys.executable:
            with self._lock:
                self._own = self._own or Cutter(self._entries)
            return self._own.cut(text)
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker(self._entries)
            self._started.append(worker)
        answer = worker.cut(text)
        self._idle.put(worker)
        return answer

    def segment(self, text: bytes, ends: np.ndarray, labels: list[str] | None) -> Records:
        """Cut the documents of `text` that end at `ends`; those without a word go."""
        from sememe.text.words import select_tokens

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
    """The documents, told apart by a character that rjieba leaves alone."""
    clean = text.translate(_SEPARATORS_TO_SPACES)
    starts = [0, *ends[:-1].tolist()]
    parts = [clean[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]
    return b"\x1d".join(parts)


def _plain_width(text: bytes) -> bytes:
    if b"\xef\xbc" not in text and b"\xef\xbd" not in text:
        return text
    decoded = text.decode()
    if not _FULL_WIDTH.search(decoded):
        return text
    return _FULL_WIDTH.sub(lambda found: chr(_TO_PLAIN[ord(found[0])]), decoded).encode()


def narrow(word: str) -> str:
    """A word with plain letters and digits for full-width ones."""
    return word.translate(_TO_PLAIN)


def reference_sentences(document: str, settings: TextSettings) -> list[list[str]]:
    """Cut one document plainly: split first, then cut each piece, then look at each word."""
    import rjieba

    if settings.lowercase:
        document = _FULL_WIDTH.sub(lambda found: chr(_TO_PLAIN[ord(found[0])]), document)
    marks = (
        "[。！？；｡।॥۔։።!?…‽؟\n\x85\u2028\u2029]" if settings.sentences else "[\n\x85\u2028\u2029]"
    )
    pieces = [_joined_letters(rjieba.cut(piece)) for piece in re.split(marks, document)]
    lower = str.lower if settings.lowercase else str
    result = [[lower(word) for word in words if _is_word(word)] for words in pieces]
    return [sentence for sentence in result if sentence]


def _is_word(token: str) -> bool:
    return any(char.isalnum() for char in token)


def _joined_letters(tokens: list[str]) -> list[str]:
    result = [""]
    for token in tokens:
        last, first = result[-1][-1:], token[0]
        is_foreign = not (last + first).isascii()
        if is_foreign and _is_alphabetic(last) and _is_alphabetic(first) and _is_word(token):
            result[-1] += token
        else:
            result.append(token)
    return result


def _is_alphabetic(char: str) -> bool:
    from sememe.text import characters as ch

    return bool(char) and ch.classify(char) & ch.CLASS_MASK in (ch.LETTER, ch.DIGIT)


if __name__ == "__main__":
    import signal

    # Ctrl-C reaches every process of the terminal; the parent decides when we stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:  # the parent was killed; nobody waits for the answer
        os._exit(1)

"""The uses of a word: a text or a sense set in; sentences with the place of the word out.

The text is read once, up to a limit, and searched as bytes. A hit counts where the word begins and
ends like words of its sentence; rjieba segments Chinese.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import cache, cached_property
from pathlib import Path
from sys import getsizeof
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.evaluation.senses import SETS, find_sets
from sememe.examples.running_words import places_in
from sememe.explore.jobs import Recent
from sememe.text import documents, library
from sememe.text.characters import is_han, is_mostly_chinese
from sememe.text.documents import DocumentBatch
from sememe.text.settings import BUILT_IN, TextSettings
from sememe.text.sources import find_sources
from sememe.text.words import sentence_ends

MOST_BYTES = 64 << 20  # of the text that is searched
MOST_HITS = 2_000  # that are looked at, spread over the text
_AROUND = 600  # bytes to each side of a hit, in which its sentence is looked for
_LOOKED_AT = 100_000  # bytes that tell the language
_MOST_KEPT_BYTES = 50_000_000  # of the uses that are kept
_USE_BYTES = 500  # of a use without its texts
LONGEST = 400  # characters of a sentence; longer ones are cut around the word


class Use(NamedTuple):
    """A word in a sentence, characters `start` to `end`, and the text around the sentence."""

    sentence: str
    start: int
    end: int
    document: int
    group: str = ""  # the label or file of its document, or its sense
    before: str = ""
    after: str = ""


class Found(NamedTuple):
    """Uses spread evenly over the text, and how many there are."""

    uses: list[Use]
    num_found: int  # among the hits that were looked at
    num_hits: int
    num_checked: int
    is_part: bool  # only inside longer words


class UsesText:
    """The text in which uses are found; read at the first search."""

    def __init__(self, path: str | Path | None) -> None:
        """Take files, a folder, or None for the built-in corpus; what is not there is refused."""
        self.name = BUILT_IN if path is None else str(path)
        self._sources = None if path is None else find_sources(path)
        self._batches: list[DocumentBatch] | None = None
        self._found = Recent[Found](_MOST_KEPT_BYTES)
        self._lock = threading.Lock()
        self.num_bytes = self.num_documents = 0
        self.is_whole = True

    def _read(self) -> Generator[DocumentBatch, None, None]:
        if self._sources is None:
            for batch in library.read():  # labels are a package and a module
                yield batch._replace(labels=[label.split()[0] for label in batch.labels or ()])
            return
        for source in self._sources:
            for batch in documents.read([source], TextSettings()):
                # One of several files: its name tells its documents apart.
                is_one = len(self._sources) > 1
                labels = [source.open().file_name] * len(batch.ends) if is_one else batch.labels
                yield batch._replace(labels=labels)

    def batches(self) -> list[DocumentBatch]:
        """The documents of the text up to the limit."""
        with self._lock:
            if self._batches is None:
                found: list[DocumentBatch] = []
                # A text that cannot be read to its end is read again from its start.
                self.num_bytes, self.num_documents = 0, 0
                with closing(self._read()) as reading:
                    for batch in reading:
                        found.append(batch)
                        self.num_bytes += len(batch.text)
                        self.num_documents += len(batch.ends)
                        if self.num_bytes >= MOST_BYTES:
                            self.is_whole = False
                            break
                self._batches = found
            return self._batches

    @cached_property
    def is_chinese(self) -> bool:
        """Whether most words of its beginning are Chinese."""
        first = next(iter(self.batches()), None)
        sample = "" if first is None else first.text[:_LOOKED_AT].decode("utf-8", "ignore")
        return is_mostly_chinese([char for char in sample if char.isalpha()])

    def find(self, word: str, num: int, most_hits: int = MOST_HITS) -> Found:
        """The uses of a word. One in lower case is found in any case, another as it is written."""
        key = (word, num, most_hits)
        if (found := self._found.get(key)) is None:
            found = self._search(word, num, most_hits)
            texts = [text for use in found.uses for text in (use.sentence, use.before, use.after)]
            num_bytes = sum(map(getsizeof, texts)) + _USE_BYTES * (1 + len(found.uses))
            self._found.put(key, found, num_bytes)
        return found

    def _search(self, word: str, num: int, most_hits: int) -> Found:
        hits = np.concatenate(
            [
                _hits(index, batch.text, form)
                for index, batch in enumerate(self.batches())
                for form in _forms(word)
            ]
            or [np.empty((0, 3), np.int64)]
        )
        hits = hits[np.lexsort((hits[:, 1], hits[:, 0]))]
        checked = spread(hits.tolist(), most_hits)
        settings = settings_for(word)
        uses = list(self._uses(checked, settings))
        is_use = are_words(uses, settings)
        found = [own for own, is_one in zip(uses, is_use, strict=True) if is_one]
        is_part = not found and settings.mode == "chinese"
        # Chinese words may only occur inside longer ones.
        shown = uses if is_part else found
        kept = list({(own.sentence, own.start): own for own in shown}.values())
        return Found(spread(kept, num), len(kept), len(hits), len(checked), is_part and bool(kept))

    def _uses(self, hits: Sequence[Sequence[int]], settings: TextSettings) -> Iterator[Use]:
        """Each hit in its sentence."""
        numbers = np.cumsum([0] + [len(batch.ends) for batch in self.batches()])
        windows = []
        for index, start, size in hits:
            batch = self.batches()[index]
            document = int(np.searchsorted(batch.ends, start, "right"))
            first = int(batch.ends[document - 1]) if document else 0
            left, right = max(first, start - _AROUND), start + size + _AROUND
            window = batch.text[left : min(int(batch.ends[document]), right)]
            label = batch.labels[document] if batch.labels else ""
            windows.append((window, start - left, size, int(numbers[index]) + document, label))
        text = b"".join(window for window, *_ in windows)
        ends = np.cumsum([len(window) for window, *_ in windows], dtype=np.int64)
        cuts = sentence_ends(text, ends, settings)
        for (window, place, size, document, label), end in zip(windows, ends.tolist(), strict=True):
            start = end - len(window)
            near = cuts[np.searchsorted(cuts, start) : np.searchsorted(cuts, end)] - start
            yield _use(window, place, size, near.tolist(), document, label)


def _forms(word: str) -> list[bytes]:
    forms = (word,) if word != word.lower() else (word, word[:1].upper() + word[1:], word.upper())
    return [form.encode("utf-8", "replace") for form in dict.fromkeys(forms)]


def _hits(index: int, text: bytes, form: bytes) -> np.ndarray:
    """The batch, start and size of each place of a form in a text."""

    def starts() -> Iterator[int]:
        place = text.find(form)
        while place >= 0:
            yield place
            place = text.find(form, place + len(form))

    found = np.fromiter(starts(), np.int64)
    return np.stack([np.full_like(found, index), found, np.full_like(found, len(form))], 1)


def spread(items: list[Any], num: int) -> list[Any]:
    """At most `num` items, evenly spread over all."""
    if len(items) <= num:
        return items
    return [items[index] for index in np.linspace(0, len(items) - 1, num).astype(int)]


def _use(window: bytes, place: int, size: int, cuts: list[int], document: int, label: str) -> Use:
    first = max((cut for cut in cuts if cut <= place), default=0)
    last = min((cut for cut in cuts if cut >= place + size), default=len(window))
    decoded = [
        _plain(part)
        for part in (
            window[:first], window[first:place], window[place : place + size],
            window[place + size : last], window[last:],
        )
    ]  # fmt: skip
    before, left, word, right, after = decoded
    left = left.lstrip() if len(left) <= LONGEST // 2 else "…" + left[-LONGEST // 2 :]
    right = right.rstrip() if len(right) <= LONGEST // 2 else right[: LONGEST // 2] + "…"
    return Use(
        left + word + right, len(left), len(left) + len(word), document, label,
        before.strip()[-LONGEST:], after.strip()[:LONGEST],
    )  # fmt: skip


def _plain(part: bytes) -> str:
    """A part of a text in one line; a window may begin inside a character."""
    return " ".join(f"|{part.decode('utf-8', 'ignore')}|".split())[1:-1]


def settings_for(word: str) -> TextSettings:
    """How sentences with a word are segmented."""
    return TextSettings(language="zh" if any(map(is_han, word)) else "en")


def are_words(uses: Sequence[Use], settings: TextSettings) -> list[bool]:
    """Whether each use begins and ends where words of its sentence do."""
    sentences = [own.sentence for own in uses]
    return [
        any(start == own.start for start, _ in places) and any(end == own.end for _, end in places)
        for own, places in zip(uses, places_in(sentences, settings), strict=True)
    ]


def locate(word: str, sentence: str) -> Use:
    """The first use of a word in a sentence of one's own."""
    text, found = " ".join(sentence.split()), []
    small, low = text.lower(), word.lower()
    place = small.find(low) if len(small) == len(text) else text.find(word)
    while place >= 0:
        found.append(Use(text, place, place + len(word), -1))
        place = small.find(low, place + 1)
    if not found:
        raise InputError(f"The sentence does not contain “{word}”.")
    is_use = are_words(found, settings_for(word))
    return next((own for own, is_one in zip(found, is_use, strict=True) if is_one), found[0])


# ---- words whose senses are known ---------------------------------------------------------------


@cache
def known_senses() -> dict[str, dict[str, list[Use]]]:
    """The words of the built-in sense sets: uses by word and set, with the sense as group."""
    found: dict[str, dict[str, list[Use]]] = {}
    for name, own in zip(SETS, find_sets(None), strict=True):
        for number, one in enumerate(own.occurrences):
            use = Use(one.sentence, one.start, one.end, number, one.sense)
            found.setdefault(one.word, {}).setdefault(name, []).append(use)
    return found


def of_set(word: str, name: str) -> list[Use]:
    """The uses of a word in a sense set."""
    if name not in (sets := known_senses().get(word, {})):
        known = ", ".join(sets) or "none"
        raise OptionError(f"“{word}” is not in the sense set {name}; sets that have it: {known}.")
    return sets[name]

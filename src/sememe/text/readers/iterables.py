"""Python iterables: documents as str, or sentences that are lists of words already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sememe.errors import InputError
from sememe.text.readers.batches import BATCH_SIZE

_FORBIDDEN = str.maketrans("", "", "\x1d\x1e\x1f")


def encoded_documents(items: Iterable[Any], errors: str) -> Iterator[tuple[bytes, None]]:
    """Write each str as UTF-8; the second of each pair is the place of a label."""
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise InputError(
                f"Item {index} of the iterable is {kind_of(item)}; all must be str as the first."
            )
        try:
            yield item.encode("utf-8", errors), None
        except UnicodeEncodeError as error:
            raise InputError(
                f"Document {index} of the iterable cannot be written as UTF-8 at character "
                f"{error.start} ({error.reason}); errors='replace' reads on."
            ) from None


def kind_of(item: Any) -> str:
    """How a wrong item is named in a message."""
    return f"of type {type(item).__name__}"


def joined_sentences(items: Iterable[Any]) -> Iterator[bytes]:
    """Write lists of words as record bytes, each list one sentence and one document."""
    parts: list[str] = []
    size = 0
    for index, item in enumerate(items):
        if isinstance(item, (str, bytes)) or not isinstance(item, Iterable):
            raise InputError(
                f"Item {index} of the iterable is {kind_of(item)}; each must be a list of str."
            )
        words = list(item)
        try:
            sentence = "\x1f".join(words)
        except TypeError:
            wrong = next(word for word in words if not isinstance(word, str))
            raise InputError(
                f"Sentence {index} of the iterable holds a word {kind_of(wrong)}: {wrong!r}; "
                "words must be str."
            ) from None
        # A separator inside a word, or an empty word, shows in the counts; both are rare.
        if sentence.count("\x1f") != len(words) - 1 or "\x1e" in sentence or "\x1d" in sentence:
            words = [word.translate(_FORBIDDEN) for word in words]
            sentence = "\x1f".join(words)
        if "" in words:
            sentence = "\x1f".join(word for word in words if word)
        if sentence:
            parts.append(f"{sentence}\x1f\x1e\x1d")
            size += len(sentence)
        if size >= BATCH_SIZE // 2:
            yield _encoded(parts)
            parts, size = [], 0
    if parts:
        yield _encoded(parts)


def _encoded(parts: list[str]) -> bytes:
    return "".join(parts).encode("utf-8", "surrogatepass")

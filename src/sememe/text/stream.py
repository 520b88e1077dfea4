"""From a corpus to sentences of words, over every core: what the rest of the program calls.

Files are read in one thread and cut in others (kernels release the GIL; Chinese is cut in processes
of its own); a short queue between them bounds the memory, and the order of documents is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sememe.cores import available_cores
from sememe.errors import InputError
from sememe.text import documents
from sememe.text.readers.batches import Batch, from_rows
from sememe.text.readers.iterables import encoded_documents, joined_sentences, kind_of
from sememe.text.records import Records
from sememe.text.settings import TextSettings
from sememe.text.threads import each_batch, read_ahead
from sememe.text.words import segment_batch

# Raised when a rule of segmentation changes, so that nothing made by the old one is reused.
RULES_VERSION = 1


class Kept:
    """A text that is kept as batches; spooling has one."""

    num_bytes: int

    def batches(self) -> Iterator[Batch]:
        """The documents, from the first on."""
        raise NotImplementedError


def segment(
    corpus: Any,
    settings: TextSettings,
    *,
    workers: int = 0,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[Records]:
    """Cut a corpus into sentences of words, in its own order and in bounded memory.

    `corpus` is one or several paths, folders or globs, "-" for standard input, None for the
    built-in corpus, an iterable of str (documents), or an iterable of lists of str (sentences that
    are cut already: their words are taken as they are, each list one document). `on_bytes` hears
    how many bytes of the input each step took.
    """
    if corpus is None:
        from sememe.text import library

        return _cut(library.read(), settings, workers or available_cores(), on_bytes)
    names = _as_names(corpus)
    if names is None:
        records = _from_iterable(_checked(corpus), settings, workers, on_bytes)
        return _not_empty(records, "the iterable")
    sources = documents.find_sources(names)
    records = _from_files(sources, settings, workers, on_bytes)
    return _not_empty(records, ", ".join(map(str, names)))


def read(corpus: Any, settings: TextSettings) -> Iterator[Batch]:
    """Read the documents of a corpus as they are; lists of words are joined by spaces."""
    if corpus is None:
        from sememe.text import library

        return library.read()
    if isinstance(corpus, Kept):
        return corpus.batches()
    names = _as_names(corpus)
    if names is None:
        return _read_iterable(_checked(corpus), settings)
    return _read_files(documents.find_sources(names), settings)


def _checked(corpus: Any) -> Iterable[Any]:
    if not isinstance(corpus, Iterable) or isinstance(corpus, Mapping):
        raise InputError(f"A corpus is a path or an iterable; this one is {kind_of(corpus)}.")
    return corpus


def _as_names(corpus: Any) -> list[str | Path] | None:
    """The names that `corpus` consists of, or None where it is an iterable of text.

    A str or Path is a name, and so is every item of a list of Path. A list of str holds documents
    when its first item is no existing path and reads like text: white space or 。！？ in it.
    """
    if isinstance(corpus, (str, Path)):
        return [corpus]
    if not isinstance(corpus, (list, tuple)) or not corpus:
        return None
    if not all(isinstance(item, (str, Path)) for item in corpus):
        return None
    first = corpus[0]
    if isinstance(first, str) and (len(first) > 255 or any(map(_is_of_prose, first))):
        try:
            if not Path(first).exists() and not any(isinstance(item, Path) for item in corpus):
                return None
        except (OSError, ValueError):  # too long for a name, or a NUL in it
            return None
    return list(corpus)


def _is_of_prose(char: str) -> bool:
    return char.isspace() or char in "。！？，"


def total_bytes(corpus: Any) -> int | None:
    """What `on_bytes` will add up to; None where that is not known beforehand."""
    if corpus is None:
        from sememe.text import library

        return library.size()
    if isinstance(corpus, Kept):
        return corpus.num_bytes
    names = _as_names(corpus)
    if names is None:
        return None
    sources = documents.find_sources(names)
    paths = [source.path for source in sources]
    if any(not isinstance(path, Path) or not path.is_file() for path in paths):
        return None
    return sum(path.stat().st_size for path in paths if isinstance(path, Path))


def reads_once(corpus: Any) -> bool:
    """Whether a second reading would find nothing: a pipe or standard input, a generator."""
    if corpus is None or isinstance(corpus, Kept):
        return False
    names = _as_names(corpus)
    if names is None:
        return isinstance(corpus, Iterator)
    sources = documents.find_sources(names)
    return not all(isinstance(own.path, Path) and own.path.is_file() for own in sources)


def _from_files(
    sources: list[documents.FoundSource],
    settings: TextSettings,
    workers: int,
    on_bytes: Callable[[int], None] | None,
) -> Iterator[Records]:
    with closing(_read_files(sources, settings)) as batches:
        yield from _cut(batches, settings, workers or available_cores(), on_bytes)


def _read_files(
    sources: list[documents.FoundSource], settings: TextSettings
) -> Generator[Batch, None, None]:
    with closing(read_ahead(documents.read(sources, settings))) as batches:
        yield from batches


def _cut(
    batches: Iterable[Batch],
    settings: TextSettings,
    workers: int,
    on_bytes: Callable[[int], None] | None,
) -> Iterator[Records]:
    with segmenter(settings, workers) as cut:
        yield from each_batch(batches, cut, workers, on_bytes)


@contextmanager
def segmenter(settings: TextSettings, workers: int) -> Iterator[Callable[[Batch], Records]]:
    """Give the function that cuts one batch; Chinese is cut in `workers` processes."""
    if settings.mode != "chinese":
        yield lambda batch: segment_batch(batch.text, batch.ends, batch.labels, settings)
        return
    from sememe.text.chinese import ChineseSegmenter

    with ChineseSegmenter(settings, workers) as chinese:
        yield lambda batch: chinese.segment(batch.text, batch.ends, batch.labels)


def _from_iterable(
    corpus: Iterable[Any],
    settings: TextSettings,
    workers: int,
    on_bytes: Callable[[int], None] | None,
) -> Iterator[Records]:
    first, items = _first_of(corpus)
    if first is None:
        return
    if isinstance(first, str):
        batches = _read_documents(items, settings)
        yield from _cut(batches, settings, workers or available_cores(), on_bytes)
        return
    for data in joined_sentences(items):
        yield Records(data, None)
        if on_bytes is not None:
            on_bytes(len(data))


def _first_of(corpus: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    # Read in the caller's own thread: a database cursor, say, may not move to another.
    items = iter(corpus)
    first = next(items, None)
    return first, chain([] if first is None else [first], items)


def _read_documents(items: Iterable[str], settings: TextSettings) -> Iterator[Batch]:
    for batch in from_rows(encoded_documents(items, settings.errors), has_labels=False):
        yield batch._replace(num_bytes=len(batch.text))


def _read_iterable(corpus: Iterable[Any], settings: TextSettings) -> Iterator[Batch]:
    first, items = _first_of(corpus)
    if first is None or isinstance(first, str):
        yield from _read_documents(items, settings)
        return
    for record in joined_sentences(items):
        # A lone surrogate can stand in a str but not in UTF-8.
        data = record.decode("utf-8", "surrogatepass").encode("utf-8", "replace")
        parts = [part.replace(b"\x1f", b" ") for part in data.split(b"\x1f\x1e\x1d")[:-1]]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        yield Batch(b"".join(parts), ends, None, len(data))


def _not_empty(records: Iterator[Records], corpus: Any) -> Iterator[Records]:
    """Pass on records that hold something; refuse a corpus in which none does."""
    has_words = False
    for record in records:
        if record.data:
            has_words = True
            yield record
    if not has_words:
        raise InputError(f"There is no word in {corpus}: nothing to read.")


def fingerprint(corpus: Any, settings: TextSettings) -> dict[str, Any] | None:
    """What identifies the words that `segment` gives; None for pipes and iterables.

    A file is known by its path, size and time of change.
    """
    import unicodedata

    result: dict[str, Any] = {
        "rules": RULES_VERSION,
        "unicode": unicodedata.unidata_version,
        "settings": settings.to_dict(),
    }
    if settings.mode == "chinese":
        from importlib.metadata import version

        result["rjieba"] = version("rjieba")
        if settings.dictionary:
            # 2: full-width letters of its words are matched.
            result["dictionary"] = {"rules": 2, **_stamp(Path(settings.dictionary))}
    if corpus is None:
        from sememe.text import library

        return result | {"library": library.versions()}
    names = _as_names(corpus)
    if names is None:
        return None
    sources = documents.find_sources(names)
    paths = [Path(source.path) for source in sources if source.path != documents.STDIN]
    if len(paths) < len(sources) or not all(path.is_file() for path in paths):
        return None  # a pipe gives its text once
    return result | {"files": [_stamp(path) for path in paths]}


def _stamp(path: Path) -> dict[str, Any]:
    try:
        stat = path.stat()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return {"path": str(path.resolve()), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}

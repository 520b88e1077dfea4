"""From a corpus to sentences of words, on all cores: the functions that other rooms call.

Files are read in one thread and segmented in others (kernels release the GIL; Chinese is segmented
in separate processes). Python iterables of documents or of tokenized sentences are read the same
way.
"""

import queue
import threading
import unicodedata
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from importlib.metadata import version
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from sememe.errors import InputError
from sememe.frames import SeriesTexts, is_frame, is_series
from sememe.machine import available_cores, cache_dir, in_order
from sememe.storage.folder import scratch_mark, write_file
from sememe.storage.remote import RemoteFile
from sememe.text import documents, library
from sememe.text.chinese import ChineseSegmenter
from sememe.text.documents import DocumentBatch, from_rows
from sememe.text.settings import BUILT_IN, TextSettings
from sememe.text.sources import (
    BATCH_SIZE,
    STDIN,
    TABLE_ENDINGS,
    FoundSource,
    exists,
    find_sources,
    format_ending,
    gathered,
)
from sememe.text.words import Records, decode_documents, segment_batch

# Increased when a segmentation rule changes, so that old results are not reused.
RULES_VERSION = 2  # 2: where documents of more than 8 MB are cut


def segment(
    corpus: Any,
    settings: TextSettings,
    *,
    workers: int = 0,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[Records]:
    """Segment a corpus into sentences of words, in its own order and in bounded memory.

    `corpus` is one or several paths, folders or globs, "-" for standard input, None for the
    built-in corpus, an iterable of str (documents), or an iterable of lists of str (tokenized
    sentences: their words are used unchanged, each list one document); a Series or a DataFrame of
    pandas or polars, whose text is in the column that the settings name. `on_bytes` is called with
    the number of input bytes of each step.
    """
    workers = workers or available_cores()
    if corpus is None:
        return _cut(library.read(), settings, workers, on_bytes)
    if is_frame(corpus):
        records = _cut(documents.read_frame(corpus, settings), settings, workers, on_bytes)
        return _not_empty(records, "the frame")
    names = as_names(corpus)
    if names is None:
        records = _from_iterable(as_items(corpus), settings, workers, on_bytes)
        return _not_empty(records, "the iterable")
    records = _cut(_read_files(names, settings), settings, workers, on_bytes)
    return _not_empty(records, ", ".join(map(str, names)))


def read_shard(
    settings: TextSettings, shard: Sequence[FoundSource]
) -> Generator[DocumentBatch, None, None]:
    """Read the documents of a part of a corpus, see text.shards."""
    return read_ahead(documents.read(shard, settings))


def segment_shard(
    settings: TextSettings, shard: Sequence[FoundSource], workers: int
) -> Iterator[Records]:
    """Segment a part of a corpus, see text.shards; it may be without words."""
    with closing(_cut(read_shard(settings, shard), settings, workers, None)) as records:  # type: ignore[type-var]
        yield from (record for record in records if record.data)


def read(corpus: Any, settings: TextSettings) -> Iterator[DocumentBatch]:
    """Read the documents of a corpus unchanged; lists of words are joined by spaces."""
    if corpus is None:
        return library.read()
    if isinstance(corpus, Spool):
        return corpus.batches()
    if is_frame(corpus):
        return documents.read_frame(corpus, settings)
    names = as_names(corpus)
    if names is None:
        return _read_iterable(as_items(corpus), settings)
    return _read_files(names, settings)


class Spool:
    """A text that can be read only once (a pipe, a generator), saved to disk to be read again.

    The file is removed with this object.
    """

    def __init__(
        self, corpus: Any, settings: TextSettings, on_bytes: Callable[[int], None] | None = None
    ) -> None:
        # A name of a token store for one process: what a killed one leaves is cleared with those.
        self.path = cache_dir() / "stores" / f"temporary-{scratch_mark()}.text"
        self._ends: list[np.ndarray] = []
        self.num_bytes = 0
        batches: Any = read(corpus, settings)
        with write_file(self.path) as scratch, scratch.open("wb") as file, closing(batches):
            for batch in batches:
                file.write(batch.text)
                self._ends.append(np.asarray(batch.ends, np.int64))
                self.num_bytes += len(batch.text)
                if on_bytes is not None:
                    on_bytes(batch.num_bytes)
        weakref.finalize(self, Path.unlink, self.path, missing_ok=True)

    def batches(self) -> Iterator[DocumentBatch]:
        """The documents as they were read."""
        with self.path.open("rb") as file:
            for ends in self._ends:
                text = file.read(int(ends[-1]) if len(ends) else 0)
                yield DocumentBatch(text, ends, None, len(text))


def as_items(corpus: Any) -> Iterable[Any]:
    """The items of a corpus that names no files."""
    if not isinstance(corpus, Iterable) or isinstance(corpus, Mapping):
        raise InputError(f"A corpus is a path or an iterable; this one is {kind_of(corpus)}.")
    return SeriesTexts(corpus) if is_series(corpus) else corpus


def as_names(corpus: Any) -> list[str | Path] | None:
    """The names in `corpus`, or None if it is an iterable of text.

    A str or Path is a name, and so is every item of a list of Path. A list of str holds documents
    if its first item is not an existing path and looks like text, with white space or 。！？, or if
    most of its items do.
    """
    if isinstance(corpus, (str, Path)):
        return [corpus]
    if not isinstance(corpus, (list, tuple)) or not corpus:
        return None
    if not all(isinstance(item, (str, Path)) for item in corpus):
        return None
    first, has_path = corpus[0], any(isinstance(item, Path) for item in corpus)
    sample = corpus[:_NUM_READ]
    reads_like_text = _is_text(first) or 2 * sum(map(_is_text, sample)) > len(sample)
    is_text = reads_like_text and not has_path and not exists(first)
    return None if is_text else list(corpus)


def _is_text(item: Any) -> bool:
    return len(str(item)) > 255 or any(char.isspace() or char in "。！？，" for char in str(item))


_MOST_NAMES = 10
_TEXTS_AT_ONCE = 1_024
_NUM_READ = 100  # items of a list that show whether it holds texts


def source_names(corpus: Any) -> list[str]:
    """The names of files or folders without the path to them, or a description; at most ten."""
    if corpus is None:
        return [BUILT_IN]
    names = as_names(corpus)
    if names is None:
        return ["given in Python"]
    told = [
        "standard input" if name == STDIN else Path(name).absolute().name or str(name)
        for name in names
    ]
    more = len(told) - _MOST_NAMES
    return told if more <= 0 else [*told[:_MOST_NAMES], f"and {more:,} more"]


def total_bytes(corpus: Any) -> int | None:
    """The total of `on_bytes`; None if unknown in advance."""
    if corpus is None:
        return library.size()
    if isinstance(corpus, Spool):
        return corpus.num_bytes
    files = _files_of(corpus)
    return None if files is None else sum(path.stat().st_size for path in files)


def reads_once(corpus: Any) -> bool:
    """Whether a second reading would find nothing: a pipe, standard input, a generator."""
    if corpus is None or isinstance(corpus, Spool):
        return False
    return isinstance(corpus, Iterator) if as_names(corpus) is None else not _files_of(corpus)


def _files_of(corpus: Any) -> list[Path | RemoteFile] | None:
    """The files of a corpus; None for iterables, and where a pipe gives its text once."""
    names = as_names(corpus)
    if names is None:
        return None
    found = find_sources(names)
    paths = [own.path for own in found if not isinstance(own.path, str)]
    is_whole = STDIN not in names and all(path.is_file() for path in paths)
    return paths if is_whole else None


def _read_files(
    names: list[str | Path], settings: TextSettings
) -> Generator[DocumentBatch, None, None]:
    return read_ahead(documents.read(find_sources(names), settings))


def _cut(
    batches: Generator[DocumentBatch, None, None],
    settings: TextSettings,
    workers: int,
    on_bytes: Callable[[int], None] | None,
) -> Iterator[Records]:
    with closing(batches), segmenter(settings, workers) as cut:
        yield from each_batch(batches, cut, workers, on_bytes)


@contextmanager
def segmenter(settings: TextSettings, workers: int) -> Iterator[Callable[[DocumentBatch], Records]]:
    """Yield the function that segments one batch; Chinese uses `workers` processes."""
    if settings.mode != "chinese":
        yield lambda batch: segment_batch(batch.text, batch.ends, batch.labels, settings)
        return

    with ChineseSegmenter(settings, workers) as chinese:
        yield lambda batch: chinese.segment(batch.text, batch.ends, batch.labels)


def cut_texts(texts: Iterable[str], settings: TextSettings) -> Iterator[list[list[str]]]:
    """The sentences of words of each text, empty ones included."""
    remaining = iter(texts)
    with segmenter(settings, 1) as cut:
        while some := list(islice(remaining, _TEXTS_AT_ONCE)):
            data = [text.encode("utf-8", "replace") for text in some]
            ends = np.fromiter(accumulate(map(len, data)), np.int64, len(data))
            # A batch drops texts without words: the label of a text is its index.
            names = [str(index) for index in range(len(some))]
            records = cut(DocumentBatch(b"".join(data), ends, names))
            kept = dict(zip(records.labels or (), decode_documents(records.data), strict=True))
            yield from (kept.get(name, []) for name in names)


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
        yield from _cut(_read_documents(items, settings), settings, workers, on_bytes)
        return
    for data in joined_sentences(items):
        yield Records(data, None)
        if on_bytes is not None:
            on_bytes(len(data))


def _first_of(corpus: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    # Read in the caller's own thread: a database cursor, for example, may not move to another.
    items = iter(corpus)
    first = next(items, None)
    return first, chain([] if first is None else [first], items)


def _read_documents(
    items: Iterable[str], settings: TextSettings
) -> Generator[DocumentBatch, None, None]:
    for batch in from_rows(encoded_documents(items, settings.errors), has_labels=False):
        yield batch._replace(num_bytes=len(batch.text))


def _read_iterable(corpus: Iterable[Any], settings: TextSettings) -> Iterator[DocumentBatch]:
    first, items = _first_of(corpus)
    if first is None or isinstance(first, str):
        yield from _read_documents(items, settings)
        return
    for record in joined_sentences(items):
        # A lone surrogate can be in a str but not in UTF-8.
        data = record.decode("utf-8", "surrogatepass").encode("utf-8", "replace")
        parts = [part.replace(b"\x1f", b" ") for part in data.split(b"\x1f\x1e\x1d")[:-1]]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        yield DocumentBatch(b"".join(parts), ends, None, len(data))


def _not_empty(records: Iterator[Records], corpus: Any) -> Iterator[Records]:
    """Pass on records with content; raise an error for a corpus without any."""
    has_words = False
    for record in records:
        if record.data:
            has_words = True
            yield record
    if not has_words:
        raise InputError(f"There is no word in {corpus}: nothing to read.")


def fingerprint(corpus: Any, settings: TextSettings) -> dict[str, Any] | None:
    """What identifies the result of `segment`; None for pipes and iterables.

    A file is identified by its path, size and modification time.
    """
    result: dict[str, Any] = {
        "rules": RULES_VERSION,
        "unicode": unicodedata.unidata_version,
        "settings": settings.to_dict(),
    }
    if settings.mode == "chinese":
        result["rjieba"] = version("rjieba")
        if settings.dictionary:
            # 2: full-width letters of its words are matched.
            result["dictionary"] = {"rules": 2, **_stamp(Path(settings.dictionary))}
    if corpus is None:
        return result | {"library": library.versions()}
    files = _files_of(corpus)
    if files is None:
        return None
    if any(format_ending(path) in TABLE_ENDINGS for path in files):
        result["tables"] = 3  # 2: the separator fits most rows; 3: tsv files may have quoted cells
    return result | {"files": [_stamp(path) for path in files]}


def _stamp(path: Path | RemoteFile) -> dict[str, Any]:
    if isinstance(path, RemoteFile):
        return path.stamp()
    try:
        stat = path.stat()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return {"path": str(path.resolve()), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


# ---- Python iterables ---------------------------------------------------------------------

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
                f"{error.start} ({error.reason}); errors='replace' replaces such characters."
            ) from None


def kind_of(item: Any) -> str:
    """The name of a wrong item in a message."""
    return f"of type {type(item).__name__}"


def joined_sentences(items: Iterable[Any]) -> Iterator[bytes]:
    """Write lists of words as record bytes, each list one sentence and one document."""
    for parts in gathered(map(_sentence, enumerate(items)), BATCH_SIZE // 2, len):
        yield "".join(parts).encode("utf-8", "surrogatepass")


def _sentence(numbered: tuple[int, Any]) -> str:
    index, item = numbered
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
    is_odd = sentence.count("\x1f") != len(words) - 1 or "" in words
    if is_odd or "\x1e" in sentence or "\x1d" in sentence:
        sentence = "\x1f".join(filter(None, (word.translate(_FORBIDDEN) for word in words)))
    return f"{sentence}\x1f\x1e\x1d" if sentence else ""


# ---- threads ------------------------------------------------------------------------------


class _Sized(Protocol):
    """A batch of anything that knows how many bytes of input it took."""

    @property
    def num_bytes(self) -> int: ...


Batch = TypeVar("Batch", bound=_Sized)
Result = TypeVar("Result")


def read_ahead(
    batches: Generator[Batch, None, None], size: int = 2
) -> Generator[Batch, None, None]:
    """Read in a separate thread, at most `size` batches ahead."""
    line: queue.Queue[Batch | BaseException | None] = queue.Queue(size)
    is_closed = threading.Event()

    def put(item: Batch | BaseException | None) -> bool:
        while not is_closed.is_set():
            try:
                line.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            with closing(batches):
                for batch in batches:
                    if not put(batch):
                        return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=work, name="sememe-reader", daemon=True)
    thread.start()
    try:
        while (item := line.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_closed.set()


def each_batch(
    batches: Iterable[Batch],
    work: Callable[[Batch], Result],
    workers: int,
    on_bytes: Callable[[int], None] | None,
) -> Generator[Result, None, None]:
    """Apply `work` to batches in `workers` threads; yield results in order, few at a time."""

    def finish(batch: Batch) -> tuple[Result, int]:
        return work(batch), batch.num_bytes

    with ThreadPoolExecutor(workers) as pool:
        for result, num_bytes in in_order(pool, finish, batches, workers):
            if on_bytes is not None:
                on_bytes(num_bytes)
            yield result

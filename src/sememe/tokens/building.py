"""Write a token store in two passes: count words and assign ids, then write the text as ids."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.executor import Executor, Threads
from sememe.machine import available_cores
from sememe.storage import folder as storage
from sememe.storage.folder import write_errors, write_folder, write_json
from sememe.storage.tensors import write_tensors
from sememe.text.settings import TextSettings
from sememe.text.shards import Shard, shard_bytes
from sememe.text.stream import segment_shard
from sememe.text.words import Records
from sememe.tokens import kernels
from sememe.tokens.counting import Content, Merged, Worker, content_of, merge, tally
from sememe.tokens.store import MappedStore, TokenStore, file_checksum
from sememe.tokens.vocabulary import Vocabulary

_MIN_MEMORY = 1 << 16


class Labels:
    """The labels of the records so far: distinct names, and one number per document."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._by_batch: list[np.ndarray | None] = []

    def watch(self, records: Iterable[Records]) -> Iterator[Records]:
        """Pass `records` on, keeping their labels."""
        for record in records:
            self.add(record.labels)
            yield record

    def add(self, labels: list[str] | None) -> None:
        """Keep the labels of the next batch."""
        own = None
        if labels is not None:
            numbers = [self._ids.setdefault(name, len(self._ids)) for name in labels]
            own = np.array(numbers, np.uint32)
        self._by_batch.append(own)

    def follow(self, later: Labels) -> None:
        """Keep the labels of the batches that come after these."""
        names = list(later._ids)
        own_ids = np.array(
            [self._ids.setdefault(name, len(self._ids)) for name in names], np.uint32
        )
        self._by_batch += [None if own is None else own_ids[own] for own in later._by_batch]

    @property
    def num_batches(self) -> int:
        """How many batches these are the labels of."""
        return len(self._by_batch)

    def resolve(self, num_documents: list[int]) -> tuple[list[str], np.ndarray] | None:
        """The names and each document's number; a batch without labels gets the empty one."""
        if not self._ids:
            return None
        numbers = []
        for own, num in zip(self._by_batch, num_documents, strict=True):
            if own is None:
                own = np.full(num, self._ids.setdefault("", len(self._ids)), np.uint32)
            if len(own) != num:
                raise ValueError(f"a batch has {num} documents and {len(own)} labels")
            numbers.append(own)
        return list(self._ids), np.concatenate(numbers)


class Run(NamedTuple):
    """The position of a run of numbered words in its worker's files, and in the store."""

    batch: int
    worker: int
    generation: int
    ids: slice
    sentences: slice
    documents: slice


def write_store(
    path: Path,
    records: Iterable[Records],
    min_count: int,
    workers: int,
    memory: int,
    fingerprint: dict[str, Any] | None,
) -> None:
    """Write the store of `records` to `path`, whose lock must be held."""
    _check_options(min_count, workers, memory)
    workers = workers or available_cores()
    with scratch_folder(path, TokenStore) as scratch:
        labels = Labels()
        found = tally(labels.watch(records), scratch, workers=workers, memory=memory, keep_ids=True)
        counted = CountedText(found, labels)
        _write_counted(path, counted, min_count, memory, Threads(workers), fingerprint)


def write_store_in_shards(
    path: Path,
    shards: list[Shard],
    settings: TextSettings,
    min_count: int,
    memory: int,
    fingerprint: dict[str, Any] | None,
    executor: Executor,
    on_bytes: Callable[[int], None],
) -> None:
    """Write the same store as `write_store`, each shard of the text in a task of its own."""
    _check_options(min_count, 0, memory)
    with scratch_folder(path, TokenStore) as scratch:
        read = partial(segment_shard, settings)
        counted = count_shards(
            shards, read, scratch, executor, memory, keep_ids=True, on_bytes=on_bytes
        )
        _write_counted(path, counted, min_count, memory, executor, fingerprint)


class CountedText(NamedTuple):
    """The counted words of a text, numbered if it is written, and the labels of its documents."""

    workers: list[Worker]
    labels: Labels


@dataclass(frozen=True)
class CountTask:
    """How the words of each shard are counted; they go to files in a new folder of `scratch`."""

    read: Callable[[Shard, int], Iterator[Records]]  # the records of a shard, with some cores
    scratch: Path
    cores: int
    memory: int
    keep_ids: bool

    def __call__(self, shard: Shard) -> CountedText:
        """Count the words of a shard."""
        # A task that is repeated must not meet what another one left, or still writes.
        with write_errors(self.scratch):
            folder = Path(mkdtemp(prefix="shard", dir=self.scratch))
        labels = Labels()
        with closing(self.read(shard, self.cores)) as records:  # type: ignore[type-var]
            found = tally(
                labels.watch(records),
                folder,
                workers=self.cores,
                memory=self.memory,
                keep_ids=self.keep_ids,
            )
        for worker in found:
            worker.detach()
        return CountedText(found, labels)


def count_shards(
    shards: list[Shard],
    read: Callable[[Shard, int], Iterator[Records]],
    scratch: Path,
    executor: Executor,
    memory: int,
    *,
    keep_ids: bool,
    on_bytes: Callable[[int], None],
) -> CountedText:
    """Count the words of each shard in a task of its own."""
    each = executor.memory or memory // executor.num_tasks
    task = CountTask(read, scratch, executor.cores, max(each, _MIN_MEMORY), keep_ids)
    found: list[Worker] = []
    labels = Labels()
    for shard, own in zip(shards, executor.map(task, shards), strict=True):
        for worker in own.workers:
            worker.follow(labels.num_batches)
        labels.follow(own.labels)
        found += own.workers
        on_bytes(shard_bytes(shard))
    return CountedText(found, labels)


def _check_options(min_count: int, workers: int, memory: int) -> None:
    if min_count < 1 or workers < 0 or memory < _MIN_MEMORY:
        raise OptionError(
            f"min_count must be at least 1, workers at least 0 and memory at least {_MIN_MEMORY:,} "
            f"bytes, not {min_count}, {workers} and {memory}."
        )


def _write_counted(
    path: Path,
    counted: CountedText,
    min_count: int,
    memory: int,
    executor: Executor,
    fingerprint: dict[str, Any] | None,
) -> None:
    """Merge the counts, give every word its id and write the store."""
    found = counted.workers
    merged = merge(found, min_count=min_count, memory=memory, executor=executor)
    _check_words(merged, min_count)
    with write_folder(path, checksums=False) as folder:
        files = _write_arrays(folder, found, merged, counted.labels, executor)
        facts = {
            "min_count": min_count,
            "num_distinct": merged.num_distinct,
            "content": f"{content_of(found).rolled:016x}",
            "fingerprint": fingerprint,
        }
        write_manifest(folder, merged.vocabulary, files, facts)


@contextmanager
def scratch_folder(path: Path, kind: type[MappedStore]) -> Iterator[Path]:
    """Yield a scratch folder for building a store, next to `path`; removed at the end.

    Raises an error if something other than a store of this kind would be replaced.
    """
    names = {child.name for child in path.iterdir()} if path.is_dir() else set()
    if (path.exists() and not path.is_dir()) or names - kind.file_names:
        raise OptionError(
            f"{path} holds something else than a {kind.noun}: choose another place for it."
        )
    with storage.scratch_folder(path.parent, f".{path.name}.scratch") as scratch:
        yield scratch


def _check_words(merged: Merged, min_count: int) -> None:
    if not merged.num_distinct:
        raise InputError("The corpus has no words: it is empty or holds punctuation alone.")
    if not len(merged.vocabulary):
        raise InputError(
            f"No word occurs {min_count:,} times: the most frequent one of "
            f"{merged.num_distinct:,} occurs {merged.highest_count:,} times. "
            f"Give more text or a lower --min-count."
        )


def write_manifest(
    folder: Path, vocabulary: Vocabulary, files: dict[str, dict[str, Any]], facts: dict[str, Any]
) -> None:
    """Finish a store in `folder`: write the vocabulary, then the manifest of all files."""
    path = folder / "vocabulary.safetensors"
    write_tensors(path, vocabulary.to_tensors())
    files[path.name] = {"size": path.stat().st_size, "hash": file_checksum(path)}
    TokenStore.seal(folder, files, {"num_words": len(vocabulary), **facts})


def _runs(found: list[Worker]) -> list[Run]:
    """Every run in the order of the text, with its position in its worker's files."""
    runs = []
    for number, worker in enumerate(found):
        places = [0, 0, 0]
        for piece in worker.pieces:
            sizes = (piece.num_ids, piece.num_sentences, piece.num_documents)
            slices = [slice(start, start + size) for start, size in zip(places, sizes, strict=True)]
            places = [part.stop for part in slices]
            runs.append(Run(piece.batch, number, piece.generation, *slices))
    # The sort is stable: the parts of a batch, all one worker's, keep their order.
    return sorted(runs, key=lambda run: run.batch)


def _write_arrays(
    folder: Path, found: list[Worker], merged: Merged, labels: Labels, executor: Executor
) -> dict[str, dict[str, Any]]:
    runs = _runs(found)
    files = {"ids.bin": _write_ids(folder, found, merged, runs, executor)}
    for index, name in enumerate(("sentences", "documents"), start=1):
        paths = [worker.paths[index] for worker in found]
        sizes = (_read_slice(paths[run.worker], getattr(run, name)) for run in runs)
        files[f"{name[:-1]}_ends.bin"] = write_ends(folder / f"{name[:-1]}_ends.bin", sizes)
    num_documents = [0] * (runs[-1].batch + 1)
    for run in runs:
        num_documents[run.batch] += run.documents.stop - run.documents.start
    resolved = labels.resolve(num_documents)
    if resolved is not None:
        files |= write_labels(folder, *resolved)
    return files


def _read_slice(path: Path, part: slice) -> np.ndarray:
    return np.fromfile(path, np.uint32, part.stop - part.start, offset=4 * part.start)


class NumberFile(AbstractContextManager["NumberFile"]):
    """An array that is written part by part, and its manifest entry."""

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        self._dtype, self._rolled, self._num = dtype, np.uint64(0), 0
        self._file = path.open("wb")

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def add(self, numbers: np.ndarray) -> None:
        """Write the next numbers."""
        self._rolled = np.uint64(kernels.roll(numbers.astype(np.int64, copy=False), self._rolled))
        self._file.write(numbers.astype(self._dtype, copy=False).data)
        self._num += len(numbers)

    def entry(self) -> dict[str, Any]:
        """The manifest entry of the file."""
        size = self._num * self._dtype.itemsize
        return {"dtype": self._dtype.str, "size": size, "hash": f"{int(self._rolled):016x}"}


class EndsFile(NumberFile):
    """The running total of sizes that are given part by part."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, np.dtype("<i8"))
        self._total = 0

    def add(self, numbers: np.ndarray) -> None:
        """Write the ends of parts with the next sizes."""
        ends = np.cumsum(numbers, dtype=np.int64)
        ends += self._total
        self._total = int(ends[-1]) if len(ends) else self._total
        super().add(ends)


def write_ends(path: Path, sizes: Iterable[np.ndarray]) -> dict[str, Any]:
    """Write the running total of all `sizes` and return the entry of the manifest."""
    with EndsFile(path) as file:
        for part in sizes:
            file.add(part)
    return file.entry()


def write_labels(folder: Path, names: list[str], numbers: np.ndarray) -> dict[str, dict[str, Any]]:
    """Write each document's label and return the entries of the manifest."""
    with NumberFile(folder / "label_ids.bin", np.dtype("<u4")) as file:
        file.add(numbers)
    path = folder / "labels.json"
    write_json(path, names)
    return {
        "label_ids.bin": file.entry(),
        "labels.json": {"size": path.stat().st_size, "hash": file_checksum(path)},
    }


def id_dtype(num_words: int) -> np.dtype:
    """The type of ids for `num_words` words and the unknown one."""
    return np.dtype("<u2" if num_words < 65_535 else "<u4")


class GivenIds(NamedTuple):
    """Where the runs of one generation are, and where their ids go in the store."""

    mapping: Callable[[], np.ndarray]
    source: Path
    runs: list[slice]
    starts: list[int]


def _give_ids(path: Path, dtype: np.dtype, own: GivenIds) -> list[int]:
    """Write the ids of some runs to their places in the file `path`; the hash of each."""
    mapping, rolled = own.mapping().astype(dtype), []
    with path.open("r+b", buffering=0) as out:
        for run, start in zip(own.runs, own.starts, strict=True):
            ids = _read_slice(own.source, run)
            new_ids = np.empty(len(ids), dtype)
            rolled.append(int(kernels.translate(ids, mapping, new_ids)))
            _write_at(out.fileno(), new_ids, start * dtype.itemsize)
    return rolled


def _write_ids(
    folder: Path, found: list[Worker], merged: Merged, runs: list[Run], executor: Executor
) -> dict[str, Any]:
    """Give every word its id, one task per generation; positions are known in advance."""
    path, dtype = folder / "ids.bin", id_dtype(len(merged.vocabulary))
    sizes = [run.ids.stop - run.ids.start for run in runs]
    starts = list(accumulate(sizes, initial=0))
    groups: dict[tuple[int, int], list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault((run.worker, run.generation), []).append(index)
    given = (
        GivenIds(
            merged.mapping(worker, generation),
            found[worker].paths[0],
            [runs[index].ids for index in own],
            [starts[index] for index in own],
        )
        for (worker, generation), own in groups.items()
    )
    path.touch()
    rolled = [0] * len(runs)
    results = executor.map(partial(_give_ids, path, dtype), given)
    for own, hashes in zip(groups.values(), results, strict=True):
        for index, value in zip(own, hashes, strict=True):
            rolled[index] = value
    content = Content()
    for size, part in zip(sizes, rolled, strict=True):
        content = content.then(part, size)
    size = starts[-1] * dtype.itemsize
    return {"dtype": dtype.str, "size": size, "hash": f"{content.rolled:016x}"}


def _write_at(descriptor: int, array: np.ndarray, offset: int) -> None:
    rest = array.data.cast("B")
    while rest:  # the system may take less than it was given
        done = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[done:], offset + done

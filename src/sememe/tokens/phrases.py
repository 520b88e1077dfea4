"""Phrases: words that occur together more often than chance become one, new york → new_york.

The score of a pair is (count(a b) - min_count) / (count(a) · count(b)) · N, with N the number of
words in the corpus (Mikolov et al. 2013b, 4). A store comes in; a store with joined words goes out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.executor import Threads, cluster
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import write_errors, write_folder
from sememe.tokens import caching, kernels
from sememe.tokens.building import (
    NumberFile,
    id_dtype,
    scratch_folder,
    write_ends,
    write_labels,
    write_manifest,
)
from sememe.tokens.counting import DEFAULT_MEMORY, ids_of, rank_words
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary

_JOINT = "_"
_BLOCK = 1 << 20
SHARD_TOKENS = 1 << 24


class PhrasePairs(NamedTuple):
    """Pairs of word ids that score above the threshold, by falling score, ties by ids."""

    first: np.ndarray
    second: np.ndarray
    counts: np.ndarray
    scores: np.ndarray

    def words(self, vocabulary: Vocabulary) -> list[str]:
        """The joined word of every pair."""
        ids = zip(self.first.tolist(), self.second.tolist(), strict=True)
        return [f"{vocabulary[first]}{_JOINT}{vocabulary[second]}" for first, second in ids]


def find_phrases(
    store: TokenStore,
    *,
    min_count: int = 5,
    threshold: float = 100.0,
    passes: int = 1,
    workers: int = 0,
    memory: int = DEFAULT_MEMORY,
    path: str | Path | None = None,
    progress: Reporter = SILENT,
) -> TokenStore:
    """Return the store of the same text with its phrases joined, building it if needed.

    It is saved next to `store` unless `path` gives another path for the last pass.
    """

    _check(min_count, threshold, passes)
    for index in range(passes):
        source = store
        options = {"min_count": min_count, "threshold": float(threshold)}
        fingerprint = {"from": _identity(source), "phrases": options}
        place = source.path.with_name(f"{source.path.name}-{caching.key_of(fingerprint)[:8]}")
        if path is not None and index == passes - 1:
            place = Path(path).absolute()

        def make(source: TokenStore = source, place: Path = place, own: Any = fingerprint) -> None:
            pairs = score_pairs(
                source, min_count=min_count, threshold=threshold, workers=workers, memory=memory
            )
            join_phrases(source, pairs, place, own)

        store = caching.reuse(TokenStore, place, fingerprint, lambda _: "", make, progress.note)
        if source.is_temporary and place.parent == source.path.parent:
            caching.remove_with(store)
    return store


def _check(min_count: int, threshold: float, passes: int) -> None:
    if min_count < 0 or not 0 <= threshold < math.inf or not 1 <= passes <= 10:
        raise OptionError(
            "Phrases need a min_count and a threshold of at least 0 and 1 to 10 passes, not "
            f"{min_count}, {threshold} and {passes}."
        )


def _identity(store: TokenStore) -> dict[str, Any]:
    """What the joined text depends on: the text itself and the words that have ids."""
    return {
        "content": store.manifest["content"],
        "ids": store.manifest["files"]["ids.bin"]["hash"],
        "vocabulary": store.manifest["files"]["vocabulary.safetensors"]["hash"],
        "min_count": store.min_count,
        "fingerprint": store.fingerprint,
    }


def score_pairs(
    store: TokenStore,
    *,
    min_count: int = 5,
    threshold: float = 100.0,
    workers: int = 0,
    memory: int = DEFAULT_MEMORY,
) -> PhrasePairs:
    """Count every pair exactly and keep those that score above `threshold`.

    Each task counts the pairs of one part of all hashes; a part with too many for its memory is
    split in two, which costs another pass over the ids.
    """
    executor = cluster() or Threads(workers)
    num_parts = executor.num_tasks
    exponent = max(((executor.memory or memory // num_parts) // 16).bit_length() - 1, 6)
    exponent = min(exponent, (2 * store.num_tokens).bit_length())  # no more pairs than words
    # Only a pair that occurs more than min_count times scores above 0, so both words must.
    num_words = int(np.searchsorted(-np.asarray(store.vocabulary.counts), -min_count))
    task = _CountTask(store.path, num_words, num_parts, 1 << exponent, min_count)
    parts = [part for found in executor.map(task, range(num_parts)) for part in found]
    keys = np.concatenate([keys for keys, _ in parts])
    counts = np.concatenate([counts for _, counts in parts])
    return _score(store, keys, counts, min_count, threshold)


@dataclass(frozen=True)
class _CountTask:
    """How the pairs of one part of all hashes are counted; every task reads all ids."""

    store: Path
    num_words: int
    num_parts: int
    num_slots: int
    min_count: int

    def __call__(self, part: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Keys and counts of the pairs above `min_count`."""
        return self._count(TokenStore.open(self.store), part, self.num_parts)

    def _count(
        self, store: TokenStore, part: int, num_parts: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        keys, counts = np.zeros(self.num_slots, np.uint64), np.zeros(self.num_slots, np.int64)
        held, num_pairs = kernels.NO_WORD, 0
        for ids, ends in store.blocks(_BLOCK):
            held, num_pairs = kernels.count_pairs(
                ids, ends, np.uint64(held), np.uint64(self.num_words), np.uint64(num_parts),
                np.uint64(part), keys, counts, num_pairs,
            )  # fmt: skip
            if num_pairs < 0:  # the table is full
                del keys, counts
                halves = (2 * part, 2 * part + 1)
                return [own for half in halves for own in self._count(store, half, 2 * num_parts)]
        kept = np.flatnonzero(counts > self.min_count)
        return [(keys[kept], counts[kept])]


def _score(
    store: TokenStore, keys: np.ndarray, counts: np.ndarray, min_count: int, threshold: float
) -> PhrasePairs:
    first = (keys >> np.uint64(32)).astype(np.int64)
    second = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64) - 1
    own = np.asarray(store.vocabulary.counts)
    scores = (counts - min_count) / own[first] / own[second] * store.num_tokens
    order = np.lexsort((second, first, -scores))
    order = order[scores[order] > threshold]
    return PhrasePairs(first[order], second[order], counts[order], scores[order])


def join_phrases(
    store: TokenStore, pairs: PhrasePairs, path: Path, fingerprint: dict[str, Any] | None
) -> None:
    """Write to `path`, whose lock must be held, the store in which `pairs` are single words."""
    with (
        scratch_folder(path, TokenStore) as scratch,
        write_folder(path, checksums=False) as folder,
    ):
        names, numbers = _number(store.vocabulary, pairs)
        # Words keep their ids here, the unknown one too; joined words come after it.
        counts = np.zeros(len(store.vocabulary) + 1 + len(names), np.int64)
        task = _JoinTask(store.path, pairs, numbers, len(counts), scratch)
        joined = []
        for own in (cluster() or Threads()).map(task, store.sentence_shards(SHARD_TOKENS)):
            joined.append(own.folder)
            counts += own.counts
        unknown = len(store.vocabulary)
        num_distinct = int(np.count_nonzero(np.delete(counts, unknown)))
        vocabulary, mapping = _choose(store, names, counts)
        files = {
            "ids.bin": _write_ids(
                folder / "ids.bin", _read_all(joined, "ids"), mapping, len(vocabulary)
            ),
            "sentence_ends.bin": write_ends(
                folder / "sentence_ends.bin", _read_all(joined, "sizes")
            ),
            "document_ends.bin": write_ends(folder / "document_ends.bin", _document_sizes(store)),
        }
        if store.labels is not None and store.label_ids is not None:
            files |= write_labels(folder, store.labels, np.array(store.label_ids))
        facts = {
            "min_count": store.min_count,
            "num_distinct": num_distinct,
            "content": store.manifest["content"],
            "num_phrases": len(names),
            "fingerprint": fingerprint,
        }
        write_manifest(folder, vocabulary, files, facts)


def _number(vocabulary: Vocabulary, pairs: PhrasePairs) -> tuple[list[str], np.ndarray]:
    """The new words, and the id of every pair's joined word.

    One word may come from several pairs (a_b + c, a + b_c), or be in the text already.
    """
    new: dict[str, int] = {}
    numbers = []
    for word in pairs.words(vocabulary):
        known = vocabulary.find(word)
        numbers.append(
            known if known >= 0 else new.setdefault(word, len(vocabulary) + 1 + len(new))
        )
    return list(new), np.array(numbers, np.uint32)


class _Joined(NamedTuple):
    """Joined ids and sizes of sentences, in the files of a folder, and how often each id occurs."""

    folder: Path
    counts: np.ndarray


@dataclass(frozen=True)
class _JoinTask:
    """How the pairs of some sentences are joined, into files in a new folder of `scratch`."""

    store: Path
    pairs: PhrasePairs
    numbers: np.ndarray
    num_ids: int
    scratch: Path

    def __call__(self, sentences: range) -> _Joined:
        """Join the pairs of some sentences."""
        # A task that is repeated must not meet what another one left, or still writes.
        with write_errors(self.scratch):
            folder = Path(mkdtemp(prefix="joined", dir=self.scratch))
        counts = np.zeros(self.num_ids, np.int64)
        num_slots = 1 << max(2 * len(self.numbers), 8).bit_length()
        slot_keys, slot_ids = np.zeros(num_slots, np.uint64), np.zeros(num_slots, np.uint32)
        first = self.pairs.first.astype(np.uint64) << np.uint64(32)
        keys = first | (self.pairs.second + 1).astype(np.uint64)
        kernels.fill(keys, self.numbers, slot_keys, slot_ids)
        held, size = kernels.NO_WORD, 0
        out = np.empty(_BLOCK + 1, np.uint32)
        with (folder / "ids").open("wb") as ids_file, (folder / "sizes").open("wb") as sizes_file:
            for ids, ends in TokenStore.open(self.store).blocks(_BLOCK, sentences):
                sizes = np.empty(len(ends), np.uint32)
                held, size, num_out = kernels.join_pairs(
                    ids, ends, np.uint64(held), size, slot_keys, slot_ids, out, sizes, counts
                )
                ids_file.write(out[:num_out].data)
                sizes_file.write(sizes.data)
        return _Joined(folder, counts)


def _choose(
    store: TokenStore, names: list[str], counts: np.ndarray
) -> tuple[Vocabulary, np.ndarray]:
    """The new vocabulary, and the new id of every number used in joining."""
    old_words = store.vocabulary.to_records()
    new_words = "".join(f"{name}\x1f" for name in names).encode("utf-8", "surrogatepass")
    # The unknown word is between old and new ones as an empty word that nothing keeps.
    words = np.concatenate((old_words, np.frombuffer(b"\x1f" + new_words, np.uint8)))
    ends = np.flatnonzero(words == 0x1F) + 1
    is_kept = counts >= store.min_count
    is_kept[len(store.vocabulary)] = False
    kept = np.flatnonzero(is_kept).astype(np.uint32)
    if not len(kept):
        raise InputError("No word is frequent enough once phrases are joined.")
    chosen = np.empty(len(words), np.uint8)
    size = kernels.gather(words, ends, kept, chosen)
    vocabulary, ranks = rank_words(chosen[:size], counts[kept])
    places = np.full(len(counts), len(ranks), np.uint32)
    places[kept] = np.arange(len(kept), dtype=np.uint32)
    return vocabulary, ids_of(places, ranks)


def _write_ids(
    path: Path, parts: Iterator[np.ndarray], mapping: np.ndarray, num_words: int
) -> dict[str, Any]:
    dtype = id_dtype(num_words)
    mapping = mapping.astype(dtype)
    with NumberFile(path, dtype) as file:
        for ids in parts:
            file.add(mapping[ids])
    return file.entry()


def _read_all(folders: list[Path], name: str) -> Iterator[np.ndarray]:
    """The numbers in the files of that name, one after the other."""
    return chain.from_iterable(_read_blocks(folder / name) for folder in folders)


def _read_blocks(path: Path) -> Iterator[np.ndarray]:
    with path.open("rb") as file:
        while block := file.read(4 * _BLOCK):
            yield np.frombuffer(bytearray(block), np.uint32)


def _document_sizes(store: TokenStore) -> Iterator[np.ndarray]:
    ends, previous = store.document_ends, 0
    for start in range(0, len(ends), _BLOCK):
        part = np.array(ends[start : start + _BLOCK])
        yield np.diff(part, prepend=previous)
        previous = int(part[-1])

"""Phrases: neighbours that meet more often than chance become one word, new york → new_york.

The score of a pair is (count(a b) - min_count) / (count(a) · count(b)) · N, where N is the number
of words in the text (Mikolov et al. 2013b, section 4, with the factor of the released
word2phrase program; its own threshold is 100). Pairs never reach over the end of a sentence nor
over a word that is too rare to have an id. Every pass makes a store of its own beside the one it
started from, so a second pass can find new_york_times.
"""

from __future__ import annotations

import math
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.cores import available_cores
from sememe.errors import OptionError
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import write_folder
from sememe.tokens.store import DEFAULT_MEMORY, TokenStore
from sememe.tokens.vocabulary import Vocabulary

_JOINT = "_"
_BLOCK = 1 << 20


class Pairs(NamedTuple):
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
    """Give the store of the same text with its phrases joined, making it where there is none yet.

    It is kept beside `store` unless `path` says another place for the last pass.
    """
    from sememe.tokens import caching

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

        store = caching.reuse_or_make(place, fingerprint, source.min_count, make, progress.note)
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
) -> Pairs:
    """Count every pair exactly and keep those that score above `threshold`.

    Each thread counts the pairs of one part of all hashes; a part with too many for its share of
    the memory is cut in two, which costs another reading of the ids.
    """
    workers = workers or available_cores()
    exponent = max((memory // workers // 16).bit_length() - 1, 6)
    exponent = min(exponent, (2 * store.num_tokens).bit_length())  # no more pairs than words
    # Only a pair that occurs more than min_count times scores above 0, so both words must.
    num_words = int(np.searchsorted(-np.asarray(store.vocabulary.counts), -min_count))

    def count(part: int, num_parts: int) -> list[tuple[np.ndarray, np.ndarray]]:
        found = _count_part(store, num_words, part, num_parts, 1 << exponent, min_count)
        if found is not None:
            return [found]
        return count(2 * part, 2 * num_parts) + count(2 * part + 1, 2 * num_parts)

    with ThreadPoolExecutor(workers) as pool:
        found = [pool.submit(count, part, workers) for part in range(workers)]
        parts = [part for future in found for part in future.result()]
    keys = np.concatenate([keys for keys, _ in parts])
    counts = np.concatenate([counts for _, counts in parts])
    return _score(store, keys, counts, min_count, threshold)


def _count_part(
    store: TokenStore, num_words: int, part: int, num_parts: int, num_slots: int, min_count: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Keys and counts of the pairs in one part above `min_count`; None when the table is full."""
    from sememe.tokens import phrase_kernels as kernels

    keys, counts = np.zeros(num_slots, np.uint64), np.zeros(num_slots, np.int64)
    held, num_pairs = kernels.NO_WORD, 0
    for ids, ends in store.blocks(_BLOCK):
        held, num_pairs = kernels.count_pairs(
            ids, ends, np.uint64(held), np.uint64(num_words), np.uint64(num_parts),
            np.uint64(part), keys, counts, num_pairs,
        )  # fmt: skip
        if num_pairs < 0:
            return None
    kept = np.flatnonzero(counts > min_count)
    return keys[kept], counts[kept]


def _score(
    store: TokenStore, keys: np.ndarray, counts: np.ndarray, min_count: int, threshold: float
) -> Pairs:
    first = (keys >> np.uint64(32)).astype(np.int64)
    second = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64) - 1
    own = np.asarray(store.vocabulary.counts)
    scores = (counts - min_count) / own[first] / own[second] * store.num_tokens
    order = np.lexsort((second, first, -scores))
    order = order[scores[order] > threshold]
    return Pairs(first[order], second[order], counts[order], scores[order])


def join_phrases(
    store: TokenStore, pairs: Pairs, path: Path, fingerprint: dict[str, Any] | None
) -> None:
    """Write to `path`, whose lock must be held, the store in which `pairs` are single words."""
    from sememe.tokens.building import refuse_other_folders
    from sememe.tokens.joining import write_joined
    from sememe.tokens.locking import remove_leftovers

    refuse_other_folders(path, TokenStore)
    remove_leftovers(path)
    scratch = path.with_name(f".{path.name}.scratch-{uuid.uuid4().hex[:8]}")
    try:
        with write_folder(path) as folder:
            scratch.mkdir()
            write_joined(folder, scratch, store, pairs, fingerprint)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

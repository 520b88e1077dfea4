"""Write a text again with some pairs of neighbours joined: a store and pairs in, files out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError
from sememe.tokens import kernels, phrase_kernels
from sememe.tokens.building import id_dtype, write_ends, write_labels, write_manifest
from sememe.tokens.merging import ids_of, rank_words
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from sememe.tokens.phrases import Pairs

_BLOCK = 1 << 20


def write_joined(
    folder: Path,
    scratch: Path,
    store: TokenStore,
    pairs: Pairs,
    fingerprint: dict[str, Any] | None,
) -> None:
    """Fill `folder` with the store in which `pairs` are single words."""
    names, numbers = _number(store.vocabulary, pairs)
    # Words keep their ids here, the unknown one too; joined words come after it.
    counts = np.zeros(len(store.vocabulary) + 1 + len(names), np.int64)
    _join(store, pairs, numbers, scratch, counts)
    unknown = len(store.vocabulary)
    num_distinct = int(np.count_nonzero(np.delete(counts, unknown)))
    vocabulary, mapping = _choose(store, names, counts)
    files = {
        "ids.bin": _write_ids(folder / "ids.bin", scratch / "ids", mapping, len(vocabulary)),
        "sentence_ends.bin": write_ends(
            folder / "sentence_ends.bin", _read_blocks(scratch / "sizes")
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


def _number(vocabulary: Vocabulary, pairs: Pairs) -> tuple[list[str], np.ndarray]:
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


def _join(
    store: TokenStore, pairs: Pairs, numbers: np.ndarray, scratch: Path, counts: np.ndarray
) -> None:
    """Write joined ids and sizes of sentences to scratch files, and count every id."""
    num_slots = 1 << max(2 * len(numbers), 8).bit_length()
    slot_keys, slot_ids = np.zeros(num_slots, np.uint64), np.zeros(num_slots, np.uint32)
    keys = (pairs.first.astype(np.uint64) << np.uint64(32)) | (pairs.second + 1).astype(np.uint64)
    phrase_kernels.fill(keys, numbers, slot_keys, slot_ids)
    held, size = phrase_kernels.NO_WORD, 0
    out = np.empty(_BLOCK + 1, np.uint32)
    with (scratch / "ids").open("wb") as ids_file, (scratch / "sizes").open("wb") as sizes_file:
        for ids, ends in store.blocks(_BLOCK):
            sizes = np.empty(len(ends), np.uint32)
            held, size, num_out = phrase_kernels.join_pairs(
                ids, ends, np.uint64(held), size, slot_keys, slot_ids, out, sizes, counts
            )
            ids_file.write(out[:num_out].data)
            sizes_file.write(sizes.data)


def _choose(
    store: TokenStore, names: list[str], counts: np.ndarray
) -> tuple[Vocabulary, np.ndarray]:
    """The new vocabulary, and the id in it of every number the joining used."""
    old_words = store.vocabulary.to_records()
    new_words = "".join(f"{name}\x1f" for name in names).encode("utf-8", "surrogatepass")
    # The unknown word stands between old and new ones as an empty word that nothing keeps.
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


def _write_ids(path: Path, source: Path, mapping: np.ndarray, num_words: int) -> dict[str, Any]:
    dtype = id_dtype(num_words)
    mapping, rolled, num = mapping.astype(dtype), np.uint64(0), 0
    with path.open("wb") as file:
        for ids in _read_blocks(source):
            out = np.empty(len(ids), dtype)
            kernels.translate(ids, mapping, out)
            rolled = np.uint64(kernels.roll(out.astype(np.int64), rolled))
            file.write(out.data)
            num += len(out)
    return {"dtype": dtype.str, "size": num * dtype.itemsize, "hash": f"{int(rolled):016x}"}


def _read_blocks(path: Path):  # type: ignore[no-untyped-def]
    with path.open("rb") as file:
        while block := file.read(4 * _BLOCK):
            yield np.frombuffer(bytearray(block), np.uint32)


def _document_sizes(store: TokenStore):  # type: ignore[no-untyped-def]
    ends, previous = store.document_ends, 0
    for start in range(0, len(ends), _BLOCK):
        part = np.array(ends[start : start + _BLOCK])
        yield np.diff(part, prepend=previous)
        previous = int(part[-1])

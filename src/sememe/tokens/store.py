"""The token store: a text as memory-mapped word ids, written once and read by every epoch.

A folder of flat little-endian arrays beside a manifest:
  ids.bin             uint16 or uint32; an id of len(vocabulary) is any word below min_count
  sentence_ends.bin   int64 offsets into ids
  document_ends.bin   int64 offsets into sentence_ends
  label_ids.bin       uint32 for each document, with labels.json, where the text has labels
  vocabulary.safetensors
  sememe.json         format, sizes, checksums, settings and the fingerprint of the text
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import MANIFEST, read_json
from sememe.storage.tensors import read_tensors
from sememe.text.records import Records
from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary

FORMAT = 1
DEFAULT_MEMORY = 512 << 20
_BLOCK = 1 << 20


def manifest_checksum(manifest: dict[str, Any]) -> str:
    """A hash of everything in the manifest but the hash itself."""
    content = {key: value for key, value in manifest.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def file_checksum(path: Path) -> str:
    """A hash of the whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


class TokenStore:
    """A text as ids, with the ends of its sentences and documents; open it or build it."""

    def __init__(self, path: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.path, self.manifest = path, manifest
        self.is_temporary = False
        self.vocabulary = Vocabulary.from_tensors(read_tensors(path / "vocabulary.safetensors"))
        self.ids = arrays["ids.bin"]
        self.sentence_ends = arrays["sentence_ends.bin"]
        self.document_ends = arrays["document_ends.bin"]
        self.label_ids = arrays.get("label_ids.bin")
        self.labels: list[str] | None = None
        if self.label_ids is not None:
            self.labels = read_json(path / "labels.json")

    @property
    def min_count(self) -> int:
        """The fewest occurrences that give a word an id of its own."""
        return int(self.manifest["min_count"])

    @property
    def num_tokens(self) -> int:
        """Words of the text, those below min_count included."""
        return int(self.manifest["num_tokens"])

    @property
    def fingerprint(self) -> dict[str, Any] | None:
        """What identifies the text and the settings it was cut with, where that is known."""
        return self.manifest["fingerprint"]

    def blocks(self, size: int = _BLOCK) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the ids in blocks of `size` as uint32, with the ends of sentences in each.

        They are read, not mapped: pages of a map would count as memory of this process.
        """
        dtype, num_read = self.ids.dtype, 0
        for start in range(0, self.num_tokens, size):
            num = min(size, self.num_tokens - start)
            ids = np.fromfile(self.path / "ids.bin", dtype, num, offset=start * dtype.itemsize)
            last = num_read + int(
                np.searchsorted(self.sentence_ends[num_read:], start + num, "right")
            )
            ends = np.fromfile(
                self.path / "sentence_ends.bin", np.int64, last - num_read, offset=8 * num_read
            )
            num_read = last
            yield ids.astype(np.uint32, copy=False), ends - start

    def __repr__(self) -> str:
        return (
            f"TokenStore({str(self.path)!r}: {self.num_tokens:,} words, "
            f"{len(self.vocabulary):,} of them distinct, min_count {self.min_count})"
        )

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> TokenStore:
        """Map the store at `path`; `verify` also reads every byte against its checksum."""
        path = Path(path)
        manifest = _read_manifest(path)
        try:
            store = cls(path, manifest, _map_arrays(path, manifest))
            _check_fit(store)
        except (KeyError, TypeError, AttributeError) as error:
            raise _broken(path, f"its manifest lacks {error}") from error
        except (OSError, ValueError) as error:
            raise _broken(path, str(error)) from error
        if verify:
            _verify(store)
        return store

    @classmethod
    def build(
        cls,
        path: str | Path,
        records: Iterable[Records],
        *,
        min_count: int = 1,
        workers: int = 0,
        memory: int = DEFAULT_MEMORY,
        fingerprint: dict[str, Any] | None = None,
        note: Callable[[str], None] = SILENT.note,
    ) -> TokenStore:
        """Write the store of `records` to `path`, replacing one that is there.

        Counting takes about `memory` bytes whatever the text; what passes that goes to scratch
        files beside `path`, and the vocabulary itself comes on top.
        """
        from sememe.tokens.building import build_store
        from sememe.tokens.locking import locked

        path = Path(path).absolute()
        with locked(path, note):
            build_store(path, records, min_count, workers, memory, fingerprint)
            return cls.open(path)


def open_or_build(
    corpus: Any,
    settings: TextSettings,
    *,
    min_count: int,
    workers: int = 0,
    path: str | Path | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Reporter = SILENT,
) -> TokenStore:
    """Open the token store of `corpus`, building it where there is none that can serve.

    `corpus` is all that text.stream.segment takes, or a store. Without `path` the store of files
    and of the built-in corpus is kept in the user's cache, that of anything else (standard input,
    iterables) only as long as the store is in use. A store serves if its text and settings are the
    same and its min_count is not higher; `progress` hears why another one is built again.
    """
    from sememe.tokens import caching

    if isinstance(corpus, TokenStore):
        return caching.check_min_count(corpus, min_count)
    place = None if path is None else Path(path)
    return caching.build_from_text(corpus, settings, place, min_count, workers, memory, progress)


def _broken(path: Path, what: str) -> ArtifactError:
    return ArtifactError(
        f"The token store {path} cannot be used: {what}. Delete it and build it again."
    )


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise ArtifactError(f"There is no token store at {path}.")
    manifest = read_json(path / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("kind") != "tokens":
        raise ArtifactError(f"{path} is not a token store: its {MANIFEST} says another kind.")
    if manifest.get("format") != FORMAT:
        raise _broken(path, f"its format is {manifest.get('format')}, this version reads {FORMAT}")
    if manifest.get("checksum") != manifest_checksum(manifest):
        raise _broken(path, f"its {MANIFEST} was changed after it was written")
    return manifest


def _map_arrays(path: Path, manifest: dict[str, Any]) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for name, entry in manifest["files"].items():
        file = path / name
        if not file.is_file():
            raise _broken(path, f"{name} is missing")
        if file.stat().st_size != entry["size"]:
            raise _broken(
                path, f"{name} has {file.stat().st_size:,} bytes instead of {entry['size']:,}"
            )
        if "dtype" in entry:
            arrays[name] = np.memmap(file, np.dtype(entry["dtype"]), "r")
        elif file_checksum(file) != entry["hash"]:
            raise _broken(path, f"{name} was changed after it was written")
    return arrays


def _check_fit(store: TokenStore) -> None:
    expected = {
        "words": (len(store.vocabulary), store.manifest["num_words"]),
        "ids": (len(store.ids), store.num_tokens),
        "sentence ends": (int(store.sentence_ends[-1]), len(store.ids)),
        "document ends": (int(store.document_ends[-1]), len(store.sentence_ends)),
    }
    for what, (found, right) in expected.items():
        if found != right:
            raise _broken(store.path, f"its {what} do not fit ({found:,} instead of {right:,})")
    if store.label_ids is not None and len(store.label_ids) != len(store.document_ends):
        raise _broken(store.path, "its labels do not fit its documents")


def _verify(store: TokenStore) -> None:
    from sememe.tokens.kernels import roll

    for name, entry in store.manifest["files"].items():
        if "dtype" not in entry:
            continue  # compared whenever a store is opened
        rolled = np.uint64(0)
        with (store.path / name).open("rb") as file:  # not mapped, as in `blocks`
            while len(numbers := np.fromfile(file, np.dtype(entry["dtype"]), _BLOCK)):
                rolled = np.uint64(roll(numbers.astype(np.int64), rolled))
        if f"{int(rolled):016x}" != entry["hash"]:
            raise _broken(store.path, f"{name} was changed after it was written")

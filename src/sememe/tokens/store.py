"""The token store: a corpus as memory-mapped word ids, written once and read by every epoch.

A folder of flat little-endian arrays with a manifest: ids.bin (uint16 or uint32), sentence_ends.bin
and document_ends.bin (int64), and vocabulary.safetensors. An id of len(vocabulary) is any word
below min_count. Held-out documents are chosen by a hash of their index.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.randomness import GOLDEN, mix, stream_key
from sememe.storage.folder import MANIFEST, read_json, write_json
from sememe.storage.tensors import read_tensors
from sememe.text.stream import source_names
from sememe.tokens.kernels import roll
from sememe.tokens.vocabulary import Vocabulary


def is_held_out(documents: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """Whether each of the documents with these indices is held out from training."""
    if not 0 <= share < 1:
        raise OptionError(f"validation_share must be in [0, 1), not {share}.")
    # A document's draw is the number of a stream that its index shifts: one to one.
    with np.errstate(over="ignore"):  # a single document makes NumPy warn
        mixed = mix((np.asarray(documents, np.uint64) ^ np.uint64(stream_key(seed))) + GOLDEN)
    return (mixed >> np.uint64(11)) * 2.0**-53 < share


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


class MappedStore:
    """A text as ids, with the ends of its sentences and documents."""

    kind: ClassVar[str]
    format: ClassVar[int]
    noun: ClassVar[str]
    file_names: ClassVar[frozenset[str]] = frozenset(
        ["ids.bin", "sentence_ends.bin", "document_ends.bin", "label_ids.bin", "labels.json",
         MANIFEST]
    )  # fmt: skip

    def __init__(self, path: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.path, self.manifest = path, manifest
        self.is_temporary = False
        self.names = self._source_names()  # of the text, for the cards of its models
        self.ids = arrays["ids.bin"]
        self.sentence_ends = arrays["sentence_ends.bin"]
        self.document_ends = arrays["document_ends.bin"]
        self.label_ids = arrays.get("label_ids.bin")
        self.labels: list[str] | None = None
        if self.label_ids is not None:
            self.labels = read_json(path / "labels.json")

    @property
    def num_tokens(self) -> int:
        """How many ids the text has."""
        return int(self.manifest["num_tokens"])

    @property
    def sizes(self) -> dict[str, int]:
        """How many documents, sentences and tokens the text has."""
        return {
            "documents": len(self.document_ends),
            "sentences": len(self.sentence_ends),
            "tokens": self.num_tokens,
        }

    def _source_names(self) -> list[str]:
        known = self.fingerprint or {}
        return source_names(
            None if "library" in known else [Path(own["path"]) for own in known.get("files", ())]
        )

    @property
    def fingerprint(self) -> dict[str, Any] | None:
        """What identifies the text and its settings, if known."""
        return self.manifest["fingerprint"]

    def blocks(
        self, size: int = _BLOCK, sentences: range | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the ids in blocks of `size` as uint32, with the sentence ends in each.

        With `sentences` only theirs. They are read, not memory-mapped: mapped pages would count as
        this process's memory.
        """
        sentences = range(len(self.sentence_ends)) if sentences is None else sentences
        tokens = self.tokens_of(sentences)
        dtype, num_read = self.ids.dtype, sentences.start
        for start in range(tokens.start, tokens.stop, size):
            num = min(size, tokens.stop - start)
            ids = np.fromfile(self.path / "ids.bin", dtype, num, offset=start * dtype.itemsize)
            later_ends = self.sentence_ends[num_read : sentences.stop]
            last = num_read + int(np.searchsorted(later_ends, start + num, "right"))
            ends = np.fromfile(
                self.path / "sentence_ends.bin", np.int64, last - num_read, offset=8 * num_read
            )
            num_read = last
            yield ids.astype(np.uint32, copy=False), ends - start

    def tokens_of(self, sentences: range) -> range:
        """The places of the ids of consecutive sentences."""
        start, stop = (
            int(self.sentence_ends[num - 1]) if num else 0
            for num in (sentences.start, sentences.stop)
        )
        return range(start, stop)

    def sentence_shards(self, num_tokens: int) -> list[range]:
        """All sentences in consecutive runs of about `num_tokens` ids."""
        wanted = np.arange(num_tokens, self.num_tokens, num_tokens)
        # A sentence belongs where it starts, so that no run has much more than its share.
        cuts = np.unique(np.searchsorted(self.sentence_ends, wanted, "left") + 1)
        bounds = [0, *cuts[cuts < len(self.sentence_ends)].tolist(), len(self.sentence_ends)]
        return [range(start, stop) for start, stop in pairwise(bounds)]

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> Self:
        """Memory-map the store at `path`; `verify` also checks every byte against its checksum."""
        path = Path(path)
        manifest = cls._read_manifest(path)
        try:
            store = cls(path, manifest, cls._map_arrays(path, manifest))
            store._check_fit()
        except (KeyError, TypeError, AttributeError) as error:
            raise cls._broken(path, f"its manifest lacks {error}") from error
        except (OSError, ValueError) as error:
            raise cls._broken(path, str(error)) from error
        return store.verified() if verify else store

    @classmethod
    def seal(cls, folder: Path, files: dict[str, dict[str, Any]], facts: dict[str, Any]) -> None:
        """Finish a store in `folder`: write the manifest of all its files."""
        ids = files["ids.bin"]
        manifest: dict[str, Any] = {
            "kind": cls.kind,
            "format": cls.format,
            "version": version("sememe"),
            "offsets": "int64",
            "dtype": ids["dtype"],
            "num_tokens": ids["size"] // np.dtype(ids["dtype"]).itemsize,
            "num_sentences": files["sentence_ends.bin"]["size"] // 8,
            "num_documents": files["document_ends.bin"]["size"] // 8,
            **facts,
            "files": files,
        }
        manifest["checksum"] = manifest_checksum(manifest)
        write_json(folder / MANIFEST, manifest)

    @classmethod
    def _broken(cls, path: Path, what: str) -> ArtifactError:
        return ArtifactError(
            f"The {cls.noun} {path} cannot be used: {what}. Delete it and build it again."
        )

    @classmethod
    def _read_manifest(cls, path: Path) -> dict[str, Any]:
        if not path.is_dir():
            raise ArtifactError(f"There is no {cls.noun} at {path}.")
        manifest = read_json(path / MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("kind") != cls.kind:
            raise ArtifactError(f"{path} is not a {cls.noun}: its {MANIFEST} says another kind.")
        if manifest.get("format") != cls.format:
            raise cls._broken(
                path, f"its format is {manifest.get('format')}, this version reads {cls.format}"
            )
        if manifest.get("checksum") != manifest_checksum(manifest):
            raise cls._broken(path, f"its {MANIFEST} was changed after it was written")
        return manifest

    @classmethod
    def _map_arrays(cls, path: Path, manifest: dict[str, Any]) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        for name, entry in manifest["files"].items():
            file = path / name
            if not file.is_file():
                raise cls._broken(path, f"{name} is missing")
            if file.stat().st_size != entry["size"]:
                raise cls._broken(
                    path, f"{name} has {file.stat().st_size:,} bytes instead of {entry['size']:,}"
                )
            if "dtype" in entry:
                if np.dtype(entry["dtype"]).kind not in "iu":
                    raise cls._broken(path, f"{name} cannot be of type {entry['dtype']}")
                arrays[name] = np.memmap(file, np.dtype(entry["dtype"]), "r")
            elif file_checksum(file) != entry["hash"]:
                raise cls._broken(path, f"{name} was changed after it was written")
        return arrays

    def _sizes(self) -> dict[str, tuple[int, int]]:
        """Pairs that must be equal in an intact store: name, found value, right value."""
        return {
            "ids": (len(self.ids), self.num_tokens),
            "sentence ends": (int(self.sentence_ends[-1]), len(self.ids)),
            "document ends": (int(self.document_ends[-1]), len(self.sentence_ends)),
        }

    def _check_fit(self) -> None:
        for what, (found, right) in self._sizes().items():
            if found != right:
                raise self._broken(
                    self.path, f"its {what} do not fit ({found:,} instead of {right:,})"
                )
        if self.label_ids is not None and len(self.label_ids) != len(self.document_ends):
            raise self._broken(self.path, "its labels do not fit its documents")

    def verified(self) -> Self:
        """Give the store back if every byte is as it was written: kernels follow what it holds."""
        for name, entry in self.manifest["files"].items():
            if "dtype" not in entry:
                continue  # compared whenever a store is opened
            rolled = np.uint64(0)
            with (self.path / name).open("rb") as file:  # not mapped, as in `blocks`
                while len(numbers := np.fromfile(file, np.dtype(entry["dtype"]), _BLOCK)):
                    rolled = np.uint64(roll(numbers.astype(np.int64), rolled))
            if f"{int(rolled):016x}" != entry["hash"]:
                raise self._broken(self.path, f"{name} was changed after it was written")
        return self


class TokenStore(MappedStore):
    """A text as word ids, with the ends of its sentences and documents."""

    kind = "tokens"
    format = 1
    noun = "token store"
    file_names = MappedStore.file_names | {"vocabulary.safetensors"}

    def __init__(self, path: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super().__init__(path, manifest, arrays)
        words = path / "vocabulary.safetensors"
        self.vocabulary = Vocabulary.from_tensors(read_tensors(words), words)

    @property
    def min_count(self) -> int:
        """The minimum count for a word to have an id."""
        return int(self.manifest["min_count"])

    def _sizes(self) -> dict[str, tuple[int, int]]:
        return {"words": (len(self.vocabulary), self.manifest["num_words"]), **super()._sizes()}

    def __repr__(self) -> str:
        return (
            f"TokenStore({str(self.path)!r}: {self.num_tokens:,} words, "
            f"{len(self.vocabulary):,} of them distinct, min_count {self.min_count})"
        )


def names_of(data: Any) -> list[str]:
    """The names of what a model is trained on, without their folders, for its card."""
    if isinstance(data, MappedStore):
        return data.names
    if isinstance(data, Mapping):  # a corpus for each language
        return [f"{key}: {name}" for key, own in data.items() for name in names_of(own)]
    if isinstance(data, tuple) and any(isinstance(own, str | Path) for own in data):
        return [name for own in data if own is not None for name in names_of(own)]
    return source_names(data)

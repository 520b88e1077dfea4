"""The docstrings of the built-in corpus with their parts, each once, split by module.

Reading the sources takes half a minute, so that what was read is kept in the cache folder.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from sememe.errors import ArtifactError, InputError, WriteError
from sememe.storage.folder import read_json, write_file
from sememe.storage.places import cache_dir
from sememe.text import library
from sememe.text.prose import prose
from sememe.text.sections import Parameter, parameters

Split = Literal["train", "dev", "test"]
SPLITS = ("train", "dev", "test")

# Raised when other parts are taken from the same docstrings.
_RULES_VERSION = 1
_HELD_OUT = {"dev": 10, "test": 10}  # of 100 modules
OnFile = Callable[[int, int], None]


class Docstring(NamedTuple):
    """One docstring: who wrote it, its prose (a paragraph a line), what parameters it tells of."""

    package: str
    module: str
    text: str
    parameters: tuple[Parameter, ...]

    @property
    def split(self) -> Split:
        """The split of its module: docstrings of one module resemble each other."""
        return split_of(self.module)

    @property
    def summary(self) -> str:
        """The first paragraph."""
        return self.text.partition("\n")[0]

    @property
    def body(self) -> str:
        """All that follows the summary, as one paragraph."""
        return self.text.partition("\n")[2].replace("\n", " ")


def draw(text: str) -> int:
    """A number that looks random and depends on `text` alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def split_of(module: str) -> Split:
    """The split of a module, by its name alone."""
    place = draw(module) % 100
    if place < _HELD_OUT["test"]:
        return "test"
    return "dev" if place < _HELD_OUT["test"] + _HELD_OUT["dev"] else "train"


def collect(
    packages: Sequence[str] | None = None, on_file: OnFile | None = None
) -> list[Docstring]:
    """Every docstring of the corpus, or of some packages; from the cache, or read now."""
    path = _cache_path(packages)
    if path.exists():
        try:
            return [_restored(kept) for kept in read_json(path)]
        except (ArtifactError, TypeError, ValueError):
            pass  # a damaged copy is made again
    found = _read(packages, on_file)
    if not found:
        raise InputError("The built-in corpus is empty: no source of the packages could be read.")
    try:
        with write_file(path) as scratch:
            scratch.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    except WriteError:
        pass  # without a cache it is only slower
    return found


def _read(packages: Sequence[str] | None, on_file: OnFile | None) -> list[Docstring]:
    found: dict[str, Docstring] = {}
    was_enabled = gc.isenabled()
    gc.disable()  # syntax trees have no cycles; the collector would walk them again and again
    try:
        for docstring, label in library.sources(packages, on_file):
            package, _, module = label.partition(" ")
            # Surrogates in other people's strings could not be written to a file.
            docstring = docstring.encode("utf-8", "replace").decode("utf-8")
            text = prose(docstring)
            if len(text) >= library.SHORTEST_DOCUMENT and text not in found:
                found[text] = Docstring(package, module, text, tuple(parameters(docstring)))
    finally:
        if was_enabled:
            gc.enable()
    return list(found.values())


def _restored(kept: list) -> Docstring:
    package, module, text, described = kept
    own = tuple(Parameter(tuple(names), type_, about) for names, type_, about in described)
    return Docstring(package, module, text, own)


def _cache_path(packages: Sequence[str] | None) -> Path:
    told = {**library.versions(), "parts": str(_RULES_VERSION), "only": ",".join(packages or ())}
    key = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=8)
    return cache_dir() / "library" / f"{key.hexdigest()}-docstrings.json"

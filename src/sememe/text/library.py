"""The built-in corpus: the prose in the docstrings of Python and of the packages we depend on.

A document is a docstring, its label "package module.path". The list of packages is fixed, so that
the same versions give the same text everywhere; missing packages are skipped. Sources are parsed,
never imported. The text is built once and cached by its versions.
"""

import ast
import gc
import hashlib
import json
import os
import platform
import sysconfig
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, InputError, WriteError
from sememe.machine import cache_dir, installed_versions
from sememe.storage.folder import write_file
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.docstrings import prose
from sememe.text.documents import DocumentBatch
from sememe.text.sources import BATCH_SIZE

STANDARD = "python"
PACKAGES = (
    "numpy", "scipy", "matplotlib", "numba", "torch", "sympy", "networkx", "jinja2", "fsspec",
    "rich", "typer", "click", "pyarrow", "platformdirs", "regex", "tokenizers", "safetensors",
)  # fmt: skip
# Packages of the extra `neural` whose docstrings are half of the text.
_LARGEST = ("torch", "sympy", "networkx")
# Increased when other text is taken from the same sources.
_RULES_VERSION = 2
_SKIPPED = frozenset(
    [
        "tests", "test", "idle_test", "__pycache__", "site-packages", "dist-packages", "_vendor",
        "turtledemo", "ensurepip",
    ]
)  # fmt: skip
SHORTEST_DOCUMENT = 20  # characters

Document = tuple[str, str]  # text, label


def versions() -> dict[str, str]:
    """The installed packages of the list and their versions, Python among them."""
    found = {STANDARD: platform.python_version(), "rules": str(_RULES_VERSION)}
    return found | installed_versions(filter(_folder, PACKAGES))


def lacking() -> str:
    """The sentence for a smaller corpus: which large packages are missing; else empty."""
    if not (missing := [name for name in _LARGEST if _folder(name) is None]):
        return ""
    return (
        "The built-in corpus is smaller here, without the docstrings of "
        f"{', '.join(missing)}: pip install 'sememe[neural]' adds them."
    )


def _folder(package: str) -> Path | None:
    if package == STANDARD:
        return Path(sysconfig.get_path("stdlib"))
    spec = util.find_spec(package)  # finds a top-level package without importing it
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _files(package: str) -> list[Path]:
    folder = _folder(package)
    if folder is None:
        return []
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        found += [Path(place, name) for name in names if name.endswith(".py")]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def _module(package: str, path: Path, folder: Path) -> str:
    parts = list(path.relative_to(folder).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(([] if package == STANDARD else [package]) + parts)


def docstrings(source: bytes) -> Iterator[str]:
    """The docstrings of a module, its classes, functions and `add_newdoc` calls, in order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return
    yield from _docstrings_of(tree)


def _docstrings_of(node: Any) -> Iterator[str]:
    for index, statement in enumerate(node.body):
        if isinstance(statement, ast.Expr):
            value = statement.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                # A string after the first statement is not a docstring but an attribute's.
                if index == 0 or isinstance(node, (ast.Module, ast.ClassDef)):
                    yield value.value
            elif isinstance(value, ast.Call) and _adds_documentation(value.func):
                yield from _long_strings(value)
        elif isinstance(statement, ast.Assign) and _holds_topics(statement):
            yield from _long_strings(statement.value)
        elif hasattr(statement, "body"):
            yield from _docstrings_of(statement)
            for name in ("orelse", "finalbody"):
                if rest := getattr(statement, name, None):
                    yield from _docstrings_of(ast.Module(rest, []))


def _adds_documentation(function: ast.expr) -> bool:
    name = str(getattr(function, "id", "") or getattr(function, "attr", ""))
    return "add_newdoc" in name or "add_docstr" in name


def _holds_topics(statement: ast.Assign) -> bool:
    """Whether this is the language reference that `help()` shows (pydoc_data.topics)."""
    return getattr(statement.targets[0], "id", "") == "topics" and isinstance(
        statement.value, ast.Dict
    )


def _long_strings(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            yield node.value


def sources(
    packages: Sequence[str] | None = None, on_file: Callable[[int, int], None] | None = None
) -> Iterator[Document]:
    """Yield every docstring as written, with its label, in a fixed order.

    `on_file` is called with the number of files read so far, and of all.
    """
    wanted = (STANDARD, *PACKAGES) if packages is None else packages
    folders = {package: folder for package in wanted if (folder := _folder(package))}
    files = [(package, path) for package in folders for path in _files(package)]
    for index, (package, path) in enumerate(files):
        label = f"{package} {_module(package, path, folders[package])}"
        try:
            source = path.read_bytes()
        except OSError:
            continue
        yield from ((docstring, label) for docstring in docstrings(source))
        if on_file is not None:
            on_file(index + 1, len(files))


def documents(on_file: Callable[[int, int], None] | None = None) -> Iterator[Document]:
    """Read every source file; yield each distinct docstring with prose once, in a fixed order."""
    seen: set[bytes] = set()
    for docstring, label in sources(on_file=on_file):
        text = prose(docstring)
        key = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
        if len(text) >= SHORTEST_DOCUMENT and key not in seen:
            seen.add(key)
            yield text, label


@contextmanager
def collector_off() -> Iterator[None]:
    """Syntax trees have no cycles; the garbage collector would traverse them repeatedly."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _build(on_file: Callable[[int, int], None] | None) -> dict[str, np.ndarray]:
    texts: list[bytes] = []
    label_ids: list[int] = []
    labels: dict[str, int] = {}
    with collector_off():
        for text, label in documents(on_file):
            texts.append(text.encode("utf-8", "replace"))
            label_ids.append(labels.setdefault(label, len(labels)))
    if not texts:
        raise InputError("The built-in corpus is empty: no source of Python could be read.")
    return {
        "text": np.frombuffer(b"".join(texts), np.uint8),
        "ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        "label_ids": np.array(label_ids, np.int32),
        "labels": np.frombuffer(json.dumps(list(labels)).encode(), np.uint8),
    }


def _cache_path() -> Path:
    key = hashlib.blake2b(json.dumps(versions(), sort_keys=True).encode(), digest_size=8)
    return cache_dir() / "library" / f"{key.hexdigest()}.safetensors"


def _checksum(arrays: dict[str, np.ndarray]) -> np.ndarray:
    digest = hashlib.blake2b(digest_size=16)
    for name in ("text", "ends", "label_ids", "labels"):
        digest.update(
            f"{arrays[name].dtype} {arrays[name].shape}".encode() + arrays[name].tobytes()
        )
    return np.frombuffer(digest.digest(), np.uint8)


def collect(on_file: Callable[[int, int], None] | None = None) -> dict[str, np.ndarray]:
    """The corpus as arrays (text, ends, label_ids, labels), from the cache or built now."""
    path = _cache_path()
    if path.exists():
        with suppress(ArtifactError, KeyError):  # a damaged copy is made again
            arrays = read_tensors(path)
            if np.array_equal(arrays.pop("checksum"), _checksum(arrays)):
                return arrays
    arrays = _build(on_file)
    with suppress(WriteError), write_file(path) as scratch:  # without a cache it is only slower
        write_tensors(scratch, arrays | {"checksum": _checksum(arrays)})
    return arrays


def size() -> int:
    """Bytes of text in the corpus."""
    return len(collect()["text"])


def read() -> Generator[DocumentBatch, None, None]:
    """The documents of the corpus with their labels, in batches."""
    arrays = collect()
    text, ends, label_ids = arrays["text"], arrays["ends"], arrays["label_ids"]
    labels = json.loads(arrays["labels"].tobytes())
    start = 0
    while start < len(ends):
        first = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, first + BATCH_SIZE)), start + 1)
        last = int(ends[stop - 1])
        names = [labels[label_id] for label_id in label_ids[start:stop]]
        local = np.asarray(ends[start:stop]) - first
        yield DocumentBatch(text[first:last].tobytes(), local, names, last - first)
        start = stop

"""Files on other file systems, through fsspec: `s3://bucket/texts/*.jsonl.gz`, `gs://…`, `file://…`.

A corpus is read as a stream, and a part of a file from its offset. A model is downloaded to the
cache when it is opened; it is written on this machine and then uploaded, its manifest last, so
that a reader finds a complete one or none. The text of a link (`https://…`) is not a file here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import InputError, MissingExtraError, SememeError, WriteError
from sememe.machine import cache_dir, key_of
from sememe.storage.folder import (
    CHECKSUMS,
    MANIFEST,
    parse_json,
    scratch_mark,
    verify,
    write_folder,
)
from sememe.storage.urls import url_of

_BLOCK_SIZE = 4 << 20
_VERSIONS = (
    "ETag", "etag", "md5Hash", "generation", "mtime", "LastModified", "last_modified", "updated",
    "created",
)  # fmt: skip
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs"}
_RECORD = "uploaded.json"
# The files whose presence makes a folder one that can be opened.
_LAST = (CHECKSUMS, "config.json", MANIFEST)


@contextmanager
def remote_errors(name: str, error: type[SememeError] = InputError) -> Iterator[None]:
    """Turn any error of a file system into one sentence."""
    try:
        yield
    except SememeError:
        raise
    except Exception as failure:  # each file system has its own
        verb = "write" if error is WriteError else "read"
        told = failure.strerror if isinstance(failure, OSError) else None
        lines = str(told or failure).strip().splitlines() or [type(failure).__name__]
        raise error(f"Cannot {verb} {name}: {lines[0].rstrip('.')}.") from failure


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    scheme = url.partition(":")[0]
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{url} needs fsspec: pip install 'sememe[s3]'.") from error
    try:
        system, path = url_to_fs(url)
    except ImportError as error:
        package = _PACKAGES.get(scheme)
        how = f"needs {package}: pip install 'sememe[s3]'" if package else f"needs {error}"
        raise MissingExtraError(f"{url} {how.rstrip('.')}.") from error
    except Exception as error:
        raise InputError(f"Cannot open {url}: {str(error).rstrip('.')}.") from error
    system.invalidate_cache()
    return system, path


class _Size(NamedTuple):
    st_size: int


@dataclass(frozen=True)
class RemoteFile:
    """A file of another file system, as it was when it was found; it is read like a Path."""

    url: str
    size: int
    version: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """Its last part."""
        return self.url.rsplit("/", 1)[-1]

    @property
    def suffix(self) -> str:
        """Its ending."""
        return Path(self.name).suffix

    def stat(self) -> _Size:
        """Its size."""
        return _Size(self.size)

    def is_file(self) -> bool:
        """It is a file: it was found as one."""
        return True

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        """Open it for reading; only what is read is transferred, some megabytes at a time."""
        system, path = file_system(self.url)
        return system.open(path, mode, block_size=_BLOCK_SIZE)

    def stamp(self) -> dict[str, Any]:
        """What identifies its content."""
        return {"path": self.url, "size": self.size, "version": self.version}


def _file(system: Any, path: str, info: dict[str, Any]) -> RemoteFile:
    version = next((str(info[name]) for name in _VERSIONS if info.get(name)), "")
    return RemoteFile(system.unstrip_protocol(path), int(info.get("size") or 0), version)


def absolute(name: str | Path) -> str:
    """A name that means the same in every working folder."""
    return url_of(name) or str(Path(name).absolute())


def exists(url: str) -> bool:
    """Whether a file or a folder has this URL, or a pattern in it fits one."""
    if not _is_known(url):  # such as steam://run/440, which is a text
        return False
    system, path = file_system(url)
    with remote_errors(url):
        return bool(system.glob(path)) if _is_pattern(path) else bool(system.exists(path))


def _is_known(url: str) -> bool:
    try:
        from fsspec import available_protocols
    except ModuleNotFoundError:
        return url.startswith(
            ("s3:", "gs:", "abfs:", "file:")
        )  # `file_system` says what is missing
    return url.partition(":")[0] in available_protocols()


def _is_pattern(path: str) -> bool:
    return any(mark in path for mark in "*?[")


def find_files(url: str) -> tuple[list[RemoteFile], bool]:
    """The files that a URL or a pattern names, in order, and whether they are a folder's."""
    system, path = file_system(url)
    with remote_errors(url):
        if _is_pattern(path):
            found = system.glob(path, detail=True)
        elif system.isdir(path):
            found = system.find(path, detail=True)
        else:
            found = {path: system.info(path)} if system.exists(path) else {}
        is_folder = not _is_pattern(path) and system.isdir(path)
        files = [
            _file(system, name, info) for name, info in sorted(found.items())
            if info["type"] == "file"
        ]  # fmt: skip
    return files, is_folder


def read_manifest(url: str) -> dict[str, Any]:
    """The content of sememe.json in a folder; empty if there is none."""
    system, path = file_system(url)
    with remote_errors(url):
        place = f"{path.rstrip('/')}/{MANIFEST}"
        content = parse_json(system.cat_file(place).decode()) if system.exists(place) else {}
    return content if isinstance(content, dict) else {}


def _place() -> Path:
    return cache_dir() / "remote"


# ---- reading models -----------------------------------------------------------------------------


def here(path: str | Path) -> Path:
    """The path itself, or of a URL the copy in the cache, downloaded if what is there is new."""
    url = url_of(path)
    return Path(path) if url is None else downloaded(url)


def downloaded(url: str) -> Path:
    """A copy of a file or folder in the cache; one of the same content is used again."""
    url = url.rstrip("/")
    name, key = url.rsplit("/", 1)[-1], key_of(url)
    files, is_folder = find_files(url)
    if not files:
        raise InputError(f"There is no file or folder {url}.")
    stamp = key_of([file.stamp() for file in files])
    place = _place() / f"{key}-{stamp[:10]}"
    if not place.exists():
        with write_folder(place, checksums=False) as scratch:
            _download(url, files, scratch / name, is_folder=is_folder)
            if is_folder:
                verify(scratch / name)  # another process may have replaced a part meanwhile
        for old in _place().glob(f"{key}-*"):
            if old != place:
                shutil.rmtree(old, ignore_errors=True)
    return place / name


def _download(url: str, files: list[RemoteFile], target: Path, *, is_folder: bool) -> None:
    root = _full(url)
    for file in files:
        name = file.url.removeprefix(f"{root}/") if is_folder else ""
        # An object store takes any name, and this one is written on our disk.
        if ".." in name.split("/") or name.startswith("/"):
            raise InputError(f"{file.url} leaves its folder by its name: it is not downloaded.")
        own = target / name
        own.parent.mkdir(parents=True, exist_ok=True)
        system, path = file_system(file.url)
        with remote_errors(file.url):
            system.get_file(path, str(own))


def _full(url: str) -> str:
    """The URL as a file system writes those of its files."""
    system, path = file_system(url)
    return str(system.unstrip_protocol(path)).rstrip("/")


# ---- writing ------------------------------------------------------------------------------------


@contextmanager
def written(url: str, *, uploads: bool) -> Iterator[Path]:
    """Give the path to write instead; of several processes of torchrun, one uploads it."""
    if uploads:
        with working_copy(url) as path:
            yield path
    else:
        yield copy_of(url)


@contextmanager
def working_copy(url: str) -> Iterator[Path]:
    """Give a path in the cache to write instead; it is uploaded when the block ends without error.

    What is at the URL already is there, too. After an interruption the copy stays for --resume.
    """
    url = url.rstrip("/")
    name = url.rsplit("/", 1)[-1]
    if not name or "/" not in url.partition("://")[2].strip("/"):
        raise WriteError(f"{url} has no name after its bucket: choose {url}/NAME.")
    _check_writable(url)
    root = copy_of(url).parent
    files, is_folder = find_files(url)
    listing = [file.stamp() for file in files]
    is_new = not root.exists()
    root.mkdir(parents=True, exist_ok=True)
    if _record(root) != listing:
        if (root / name).exists():  # perhaps what could not be uploaded
            kept = root.with_name(f"kept-{root.name}-{scratch_mark()}")
            kept.mkdir()
            (root / name).rename(kept / name)
        if files:
            _download(url, files, root / name, is_folder=is_folder)
        (root / _RECORD).write_text(json.dumps(listing))
    before = _state(root)
    try:
        yield root / name
    except BaseException:
        is_begun = any(path.suffix in (".checkpoints", ".parts") for path in root.iterdir())
        if is_new and _state(root) == before and not is_begun:
            shutil.rmtree(root, ignore_errors=True)
        raise
    if _state(root) != before:
        try:
            _upload(root, url, is_folder=is_folder)
        except WriteError as error:
            raise WriteError(
                f"{error} The output is complete in {root}: copy it by hand."
            ) from error
        shutil.rmtree(root, ignore_errors=True)


def copy_of(url: str) -> Path:
    """The path of the working copy of a URL."""
    url = url.rstrip("/")
    return _place() / f"out-{key_of(url)}" / url.rsplit("/", 1)[-1]


def _record(root: Path) -> Any:
    with suppress(OSError, ValueError):
        return json.loads((root / _RECORD).read_text())
    return None


def _state(root: Path) -> dict[str, tuple[int, int]]:
    """The files to upload, with their sizes and times; checkpoints and parts stay here."""
    found = {}
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        is_own = parts[0].startswith(".") or parts[0].endswith((".checkpoints", ".parts"))
        if path.is_file() and not is_own and parts[0] != _RECORD:
            state = path.stat()
            found["/".join(parts)] = (state.st_size, state.st_mtime_ns)
    return found


def _check_writable(url: str) -> None:
    """Refuse, before any work, a place where nothing can be written."""
    parent = url.rsplit("/", 1)[0]
    system, path = file_system(f"{parent}/.sememe-{scratch_mark()}")
    with remote_errors(url, WriteError):
        system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        system.pipe_file(path, b"sememe")
        system.rm_file(path)


def _upload(root: Path, url: str, *, is_folder: bool) -> None:
    """Upload the files, those that say what they are last; then remove what was there before."""
    parent, name = url.rsplit("/", 1)
    system, base = file_system(parent)
    names = sorted(_state(root), key=lambda own: (_rank(own, name), own))
    with remote_errors(url, WriteError):
        old = {file.url for file in find_files(url)[0]} if is_folder else set()
        for last in _LAST:  # from here on nobody takes the folder for a complete one
            if system.exists(f"{base}/{name}/{last}"):
                system.rm_file(f"{base}/{name}/{last}")
        new = set()
        for own in names:
            target = f"{base}/{own}"
            if _rank(own, name):
                continue
            system.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
            system.put_file(str(root / own), target)
            new.add(system.unstrip_protocol(target))
        ending = [own for own in names if _rank(own, name)]
        kept = {system.unstrip_protocol(f"{base}/{own}") for own in ending}
        for gone in old - new - kept:
            with suppress(FileNotFoundError):
                system.rm_file(file_system(gone)[1])
        for own in ending:
            system.put_file(str(root / own), f"{base}/{own}")


def _rank(own: str, name: str) -> int:
    """0 for files that may be uploaded in any order, then the place of those that come last."""
    marks = [f"{name}/{last}" for last in _LAST]
    return marks.index(own) + 1 if own in marks else 0

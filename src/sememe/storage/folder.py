"""Artifacts appear whole or not at all: work is done in a sibling folder, then renamed."""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sememe.errors import ArtifactError, WriteError
from sememe.storage.leftovers import is_left_over, scratch_mark

MANIFEST = "sememe.json"


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; free some space or choose another place, then run again"
    return error.strerror or str(error)


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals while writing `path` into one clear sentence."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"Cannot write {path}: {_reason(error)}.") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _scratch_beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}-{scratch_mark()}")


def _clear_up(path: Path) -> None:
    """Remove what killed processes left beside the folder `path`, or give it back."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*-*"):
        if not is_left_over(leftover.name):
            continue
        if ".old-" in leftover.name and not path.exists():
            leftover.rename(path)  # killed between the two renames
        else:
            shutil.rmtree(leftover, ignore_errors=True)


def _replace(path: Path, scratch: Path) -> None:
    old = _scratch_beside(path, "old")
    path.rename(old)
    try:
        scratch.rename(path)
    except BaseException:
        if not path.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def write_folder(path: str | Path) -> Iterator[Path]:
    """Give an empty folder to fill; it takes the name `path` when the block ends without error.

    A folder that already has the name is replaced in two renames, so that a kill between them
    leaves the old content under its scratch name rather than a mixture; the next write to `path`
    finds it there, and clears up what killed ones left.
    """
    path = Path(path).absolute()
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_up(path)
        scratch = _scratch_beside(path, "new")
        scratch.mkdir()
        try:
            yield scratch
            for file in scratch.rglob("*"):
                _sync(file)
            _sync(scratch)
            if path.exists():
                _replace(path, scratch)
            else:
                scratch.rename(path)
            _sync(path.parent)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def scratch_folder(place: Path, name: str) -> Iterator[Path]:
    """Give an empty folder in `place`, gone when the block ends, as are those of killed ones."""
    with write_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        for leftover in place.glob(f"{name}-*"):
            if is_left_over(leftover.name):
                shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(mkdtemp(prefix=f"{name}-{scratch_mark()}-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def write_file(path: str | Path) -> Iterator[Path]:
    """Give a scratch path to write; it replaces `path` in one step when the block succeeds."""
    path = Path(path).absolute()
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The scratch name keeps the ending, because some writers choose the format by it.
        scratch = path.with_name(f".new-{scratch_mark()}-{path.name}")
        for leftover in path.parent.glob(f".new-*-{glob.escape(path.name)}"):
            if is_left_over(leftover.name):
                leftover.unlink(missing_ok=True)
        try:
            yield scratch
            _sync(scratch)
            scratch.replace(path)
            _sync(path.parent)
        finally:
            with suppress(FileNotFoundError):
                scratch.unlink()


def write_json(path: Path, content: Any) -> None:
    """Write `content` as indented JSON, atomically."""
    with write_file(path) as scratch:
        text = json.dumps(content, ensure_ascii=False, indent=2, sort_keys=False)
        # A name of a file may hold half a surrogate; \udc80 is what JSON calls it, too.
        scratch.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def read_json(path: Path) -> Any:
    """Read JSON that one of our artifacts must hold."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing: {path.parent} is not a whole artifact.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ArtifactError(f"{path} cannot be read ({error}).") from error


def check_replaceable(folder: Path, kind: str) -> None:
    """Refuse to replace a folder that does not hold a model of this kind."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if manifest_in(folder).get("kind") != kind:
        raise WriteError(f"{folder} exists and is not a {kind} model; choose another name.")


def manifest_in(folder: Path) -> dict[str, Any]:
    """What sememe.json says of a folder; nothing where it is none of ours."""
    manifest = read_json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    return manifest if isinstance(manifest, dict) else {}


def kind_of_folder(folder: Path) -> str | None:
    """What sememe.json says a folder holds; None where it is none of ours."""
    kind = manifest_in(folder).get("kind")
    return kind if isinstance(kind, str) else None


def check_format(folder: Path, manifest: dict[str, Any], known: int) -> None:
    """Refuse a folder that another version wrote in another format."""
    if manifest.get("format") != known:
        raise ArtifactError(
            f"{folder} has format {manifest.get('format')!r}; this version reads {known}."
        )

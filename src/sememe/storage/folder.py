"""Write artifacts atomically, and read them as one save left them.

Files are written to a scratch folder that is swapped with the existing one in one step. Scratch
names contain the process that owns them, so that the next one can remove what a killed process
left. A reader whose artifact was replaced meanwhile reads again. Every model and checkpoint has a
file of checksums to detect damage.
"""

import ctypes
import errno
import glob
import hashlib
import json
import math
import os
import platform
import re
import shutil
import stat
import struct
import sys
import time
import uuid
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from io import BufferedReader
from pathlib import Path
from tempfile import mkdtemp
from tokenize import TokenError  # by NumPy, for the header of a .npy file
from typing import Any, ParamSpec, TypeVar

from sememe.errors import ArtifactError, OptionError, SememeError, WriteError
from sememe.storage.urls import check_here

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MANIFEST = "sememe.json"
CHECKSUMS = "SHA256SUMS"  # as `sha256sum --check` reads them
CARD, OTHER_CARD = "README.md", "README.sememe.md"  # the second where the user wrote the first
_CARD_END = re.compile(
    r"<!-- Written by sememe \(([0-9a-f]{16})\)\. A changed file is kept\. -->\n?", re.ASCII
)
_MARK = re.compile(r"-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}")
_MAX_JSON = 1 << 26
_MAX_DIGITS = 20  # of a 64-bit number with its sign
_MAX_READS = 200
_GAP_S = 0.01
_LATE_S = 10.0  # for what a lost task of a cluster still writes
_HERE, _EXCHANGE = -100, 2  # flags of renameat2: this folder, swap two names
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for a writer
_HOLD = getattr(os, "O_PATH", os.O_RDONLY | _NO_WAIT)  # identify a file without opening it
_Generation = tuple[int, int]
# The errors that damaged content can cause.
_DAMAGE = (
    OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError,
    MemoryError, EOFError, struct.error, TokenError,
)  # fmt: skip


def _machine() -> str:
    """A name for this machine: several may share a folder, and only ours can be checked."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def scratch_mark() -> str:
    """A unique part of a name: the machine, the process, a random number."""
    return f"{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def is_left_over(name: str) -> bool:
    """Whether `name` has `-` and the mark of a process of this machine that has ended."""
    found = _MARK.search(name)
    return found is not None and found[1] == _machine() and not _is_alive(int(found[2]))


def _is_alive(process_id: int) -> bool:
    if os.name == "nt":  # where signal 0 would interrupt the process
        return True
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except OSError:  # alive, but another user's
        return True
    return True


def remove_left_over(place: Path, pattern: str) -> None:
    """Remove the files and folders of a pattern in `place` that killed processes left."""
    for leftover in place.glob(pattern):
        if is_left_over(leftover.name):
            shutil.rmtree(leftover, ignore_errors=True)
            with suppress(OSError):
                leftover.unlink()


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors while writing `path` into one clear sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "the disk is full; free some space or choose another place, then run again"
        raise WriteError(f"Cannot write {path}: {reason}.") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def write_folder(path: str | Path, *, checksums: bool = True) -> Iterator[Path]:
    """Yield an empty folder to fill; it is renamed to `path` when the block ends without error.

    An existing folder is swapped in one step, so that nobody ever finds none or a mixture; for a
    symbolic link, its target is replaced.
    """
    check_here(path)
    with write_errors(Path(path)):
        path = Path(os.path.realpath(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_up(path)
        scratch = path.with_name(f".{path.name}.new-{scratch_mark()}")
        scratch.mkdir()
        try:
            yield scratch
            keep_card(path, scratch)
            if checksums:
                own = _files(scratch).items()  # the card is the user's to edit
                write_checksums(scratch, [n for n, f in own if f.name not in (CARD, OTHER_CARD)])
            for file in scratch.rglob("*"):
                _sync(file)
            _sync(scratch)
            _replace(path, scratch)
            _sync(path.parent)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def write_card(folder: Path, text: str) -> None:
    """Write the README.md of a folder, with a hash by which later saves see if it was edited."""
    text = text.rstrip("\n") + "\n\n"
    end = f"<!-- Written by sememe ({_card_hash(text)}). A changed file is kept. -->\n"
    write_text(folder / CARD, text + end, errors="replace")


def _card_hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def is_users_card(card: Path) -> bool:
    """Whether a README.md exists and was written or changed by the user."""
    try:
        text = read_text(card) if card.is_file() else None
    except ArtifactError:  # not in UTF-8: not ours
        text = ""
    end = None if text is None else _CARD_END.search(text)
    is_own = text is None or (end is not None and _card_hash(text[: end.start()]) == end[1])
    return not is_own


def keep_card(path: Path, scratch: Path) -> None:
    """Let a README.md that the user wrote in `path` replace ours in `scratch`, which is renamed."""
    if (scratch / CARD).exists() and is_users_card(path / CARD):
        (scratch / CARD).rename(scratch / OTHER_CARD)
        shutil.copyfile(path / CARD, scratch / CARD)


def _clear_up(path: Path) -> None:
    """Remove what killed processes left next to the folder `path`, or restore it."""
    name = glob.escape(path.name)
    for old in path.parent.glob(f".{name}.old-*"):
        if is_left_over(old.name) and not path.exists():
            old.rename(path)  # killed between the two renames
    remove_left_over(path.parent, f".{name}.*-*")


def _replace(path: Path, scratch: Path) -> None:
    """Rename the folder `scratch` to `path`; the old folder is then `scratch`, or gone."""
    try:
        scratch.rename(path)  # nothing has the name, or an empty folder
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if _swap(path, scratch):
        return
    old = path.with_name(f".{path.name}.old-{scratch_mark()}")
    path.rename(old)
    try:
        scratch.rename(path)
    except BaseException:
        if not path.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _swap(first: Path, second: Path) -> bool:
    """Swap two paths atomically; False if the system or the disk cannot."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    names = os.fsencode(first), os.fsencode(second)
    return rename is not None and rename(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0


@contextmanager
def scratch_folder(place: Path, name: str) -> Iterator[Path]:
    """Give an empty folder in `place`, gone when the block ends, as are those of killed ones."""
    with write_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        remove_left_over(place, f"{glob.escape(name)}-*")
        folder = Path(mkdtemp(prefix=f"{name}-{scratch_mark()}-", dir=place))
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder, also one in which a lost task of a cluster writes until its process ends."""
    deadline_s = time.monotonic() + _LATE_S
    while folder.exists() and time.monotonic() < deadline_s:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            # A file was added to a folder that was being emptied, or was removed by its writer.
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                break
            time.sleep(_GAP_S)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def write_file(path: str | Path) -> Iterator[Path]:
    """Yield a scratch path to write; it replaces `path` in one step when the block succeeds."""
    check_here(path)
    with write_errors(Path(path)):
        path = Path(os.path.realpath(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        # The scratch name keeps the ending, because some writers choose the format by it.
        scratch = path.with_name(f".new-{scratch_mark()}-{path.name}")
        remove_left_over(path.parent, f".new-*-{glob.escape(path.name)}")
        try:
            yield scratch
            _sync(scratch)
            scratch.replace(path)
            _sync(path.parent)
        finally:
            scratch.unlink(missing_ok=True)


@contextmanager
def locked(artifact: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of the artifact at the path `artifact`: one process builds, the others wait."""
    from filelock import FileLock, Timeout  # 40 ms to import

    path = artifact.with_name(f".{artifact.name}.lock")
    # The operating system's lock, which ends with the process that holds it.
    lock = FileLock(path, thread_local=False)
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            note(f"Waiting for another process that is writing beside {path} …")
            lock.acquire()
    try:
        yield
    finally:
        # Removed while it is held: a waiting process finds the file gone and creates a new one.
        with suppress(OSError):
            path.unlink()
        lock.release()


# ---- reading ------------------------------------------------------------------------------------


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn errors from missing or damaged content of `path` into one clear sentence."""
    try:
        yield
    except _DAMAGE as error:
        if isinstance(error, SememeError) and not isinstance(error, OptionError):
            raise
        raise _damaged(path, error) from error


def _damaged(path: Path, error: BaseException) -> ArtifactError:
    if isinstance(error, FileNotFoundError):
        file = Path(error.filename or path)
        return ArtifactError(f"{file} is missing: {file.parent} is not complete.")
    reason = " ".join(str(error).split()).rstrip(".")
    is_missing = " is missing" if isinstance(error, KeyError) else ""
    return ArtifactError(f"{path} cannot be used: {reason}{is_missing}.")


def reads_artifact(read: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate `read`, whose first path names an artifact, so that it sees one consistent save.

    If another process has replaced the artifact meanwhile, it is read again. An error caused by a
    damaged file says so.
    """

    @wraps(read)
    def read_whole(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        values = (*arguments, *options.values())
        path = Path(next((value for value in values if isinstance(value, str | Path)), ""))
        for _ in range(_MAX_READS):
            with _held(path) as generation:
                try:
                    result = read(*arguments, **options)
                    failure = None
                except (SememeError, *_DAMAGE) as error:
                    failure = error
                if _is_replaced(path, generation):
                    continue
                if failure is None:
                    return result
                if isinstance(failure, SememeError):
                    raise failure
                raise _damaged(path, failure) from failure
        raise ArtifactError(f"{path} is replaced faster than it can be read; try again.")

    return read_whole


@contextmanager
def _held(path: Path) -> Iterator[_Generation | None]:
    """What tells the file or folder that has a name now from all that follow; None: there is none.

    The number of a folder is not given to another one while a descriptor holds it.
    """
    try:
        descriptor = os.open(path, _HOLD)
    except OSError:
        yield None
        return
    try:
        state = os.fstat(descriptor)
        yield state.st_dev, state.st_ino
    finally:
        os.close(descriptor)


def _is_replaced(path: Path, generation: _Generation | None) -> bool:
    with suppress(OSError):
        state = path.stat()
        return generation != (state.st_dev, state.st_ino)
    # Nothing has the name: it was deleted, or the writer is between its two renames (on a disk that
    # cannot exchange). The second rename may come while we search for the old folder: check again.
    is_between = any(path.parent.glob(f".{glob.escape(path.name)}.old-*"))
    if is_between or generation is not None:
        time.sleep(_GAP_S)
        return True
    return path.exists()


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading; a pipe or a device, which could block or never end, is refused."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return file


def _files(folder: Path) -> dict[str, Path]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in files}


def _checksum(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksums(folder: Path, names: Iterable[str]) -> None:
    """Write the checksums of these files of a folder, for `verify`."""
    sums = [f"{_checksum(folder / name)}  {name}\n" for name in names]
    (folder / CHECKSUMS).write_text("".join(sums), encoding="utf-8")


def verify(folder: Path, names: Container[str] | None = None) -> int:
    """Compare files of a folder (all by default) with their checksums, if any; return how many."""
    sums = folder / CHECKSUMS
    if not sums.is_file():
        return 0
    with read_errors(sums):
        lines = read_text(sums).splitlines()
        if not lines:
            raise ValueError("it is empty")
    parted = (line.partition("  ") for line in lines)
    checked = [(name, checksum) for checksum, _, name in parted if names is None or name in names]
    for name, checksum in checked:
        with read_errors(folder / name):
            if _checksum(folder / name) != checksum:
                raise ValueError(
                    "it is damaged, its checksum is not the one written with it; take another "
                    "copy, or train again without --resume"
                )
    return len(checked)


def write_text(path: str | Path, text: str, *, errors: str = "strict") -> None:
    """Write a file in UTF-8, atomically."""
    with write_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8", errors=errors, newline="\n")


def write_json(path: Path, content: Any) -> None:
    """Write `content` as indented JSON, atomically."""
    text = json.dumps(content, ensure_ascii=False, indent=2, sort_keys=False)
    # A name of a file may hold half a surrogate; \udc80 is what JSON calls it, too.
    write_text(path, text + "\n", errors="backslashreplace")


def read_text(path: Path) -> str:
    """Read text of an artifact; too large or endless content is refused."""
    with read_errors(path), open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > _MAX_JSON:
            raise ValueError(f"it is larger than {_MAX_JSON:,} bytes")
        return file.read().decode("utf-8")


def read_json(path: Path) -> Any:
    """Read JSON of an artifact; content that is too large, deep or long is refused."""
    with read_errors(path):
        return parse_json(read_text(path))


def parse_json(content: str) -> Any:
    """Parse JSON; raise an error for numbers that are not finite, or too deep nesting."""
    return json.loads(content, parse_int=_whole_number, parse_float=_number, parse_constant=_number)


def _whole_number(digits: str) -> float:
    # Files of transformers may state a maximum of 10^30 tokens.
    return int(digits) if len(digits) <= _MAX_DIGITS else _number(digits)


def _number(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text[:20]} ({len(text):,} characters) is not a JSON number")
    return float(text)


def manifest_in(folder: Path) -> dict[str, Any]:
    """The content of sememe.json of a folder; empty if it is not one of sememe."""
    manifest = read_json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    return manifest if isinstance(manifest, dict) else {}


def kind_of_folder(folder: Path) -> str | None:
    """The kind in sememe.json of a folder; None if it is not one of sememe."""
    kind = manifest_in(folder).get("kind")
    return kind if isinstance(kind, str) else None


def check_replaceable(folder: Path, kind: str, *, overwrite: bool = True) -> None:
    """Raise an error for replacing a folder that is not a model of this kind, or of any."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if kind_of_folder(folder) != kind:
        raise WriteError(f"{folder} exists and is not a {kind} model; choose another name.")
    if not overwrite:
        raise WriteError(
            f"{folder} holds a model already ({kind}): choose another name, or replace it with "
            "--overwrite (in Python overwrite=True)."
        )


def read_manifest(folder: Path, format: int, kind: str | None = None) -> dict[str, Any]:
    """The content of sememe.json of an artifact with this format, and this kind if given."""
    if not folder.is_dir():
        raise ArtifactError(f"There is no model folder at {folder}.")
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or kind not in (None, manifest.get("kind")):
        wanted = "an artifact of sememe" if kind is None else f"a {kind} model"
        raise ArtifactError(f"{folder} is not {wanted}; sememe.load may open it.")
    if manifest.get("format") != format:
        raise ArtifactError(
            f"{folder} has format {manifest.get('format')!r}; this version reads {format}."
        )
    return manifest

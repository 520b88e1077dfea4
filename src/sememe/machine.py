"""The machine's cores and cache, package versions, optional libraries, compiled kernels.

numba's own cache checks the time stamp of one file and misses an edited callee in another. Our
cache folder is named after a hash of all kernels and of what they import, so any edit starts a new
one. Cache files are pickles, which run code when loaded: the folder belongs to the user alone, and
a file that fails its checksum is compiled again.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sememe.errors import MissingExtraError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Task = TypeVar("Task")
Result = TypeVar("Result")

# Libraries of the extra `neural`, as errors call them.
_NEURAL = {"torch": "PyTorch", "tokenizers": "tokenizers", "safetensors": "safetensors"}
_IMPORTS = re.compile(r"^from (sememe[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


def available_cores() -> int:
    """The cores that this process may use; a container may have fewer than the machine."""
    affinity = getattr(os, "sched_getaffinity", None)  # only on Linux
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def memory_size() -> int:
    """Bytes of memory; of the container if that has less; 0 if the system cannot say."""
    total = 0
    with suppress(AttributeError, OSError, ValueError):
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total


def gpu() -> tuple[str, int]:
    """The name and the bytes of memory of the first GPU of PyTorch; "" and 0 without one."""
    if find_spec("torch") is None:
        return "", 0
    import torch

    if not torch.cuda.is_available():
        return "", 0
    found = torch.cuda.get_device_properties(0)
    return found.name, found.total_memory


def processor() -> str:
    """The name of the processor."""
    with suppress(OSError):
        found = re.search(r"^model name\s*:(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


# If one of these is set, the user has decided how OpenMP threads wait.
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def is_busy() -> bool:
    """Whether other work keeps every core busy; False if the system cannot say."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return load >= (os.cpu_count() or 1)


def torchrun_ranks() -> tuple[int, ...]:
    """Rank, number of processes and local rank as torchrun sets them; 0, 1, 0 without torchrun."""
    found = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]
    # torchrun sets all of them; a scheduler's RANK alone must not silence the only process.
    return tuple(map(int, found)) if all(map(str.isdecimal, found)) else (0, 1, 0)


def limit_spinning() -> None:
    """Let OpenMP threads sleep while they wait for each other, if the machine is busy.

    They spin otherwise, which is a little faster on a quiet machine. On a busy one they take the
    time of the thread that they wait for: a step of BERT took twenty times as long. Call this
    before PyTorch is imported.
    """
    if is_busy() and not any(name in os.environ for name in _WAITING):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"


def in_order(
    pool: Executor, work: Callable[[Task], Result], tasks: Iterable[Task], ahead: int
) -> Iterator[Result]:
    """Yield work(task) for every task in order, with at most `ahead` results computed in advance.

    Unlike the pool's own `map`, tasks are taken one by one, so that results do not pile up.
    """
    pending: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            pending.append(pool.submit(work, task))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


def cache_dir() -> Path:
    """The user's cache folder for sememe; the environment variable SEMEME_CACHE overrides it."""
    import platformdirs

    return Path(os.environ.get("SEMEME_CACHE") or platformdirs.user_cache_dir("sememe"))


def key_of(*parts: Any) -> str:
    """A short hash of `parts` as JSON, for names in the cache."""
    return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=10).hexdigest()


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    # Takes 20 ms to import, which `sememe --help` must not spend.
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def provenance() -> dict[str, Any]:
    """The versions and the machine of a run, in JSON values."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else [],
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "versions": installed_versions(("sememe", "numpy", "numba")),
    }


def imported(module: str, name: str) -> Any:
    """An attribute of a module that may need PyTorch."""
    with naming_extra(name):
        return getattr(import_module(module), name)


@contextmanager
def naming_extra(what: str) -> Iterator[None]:
    """Turn the error for a library of the extra `neural` into one that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = _NEURAL.get((error.name or "").partition(".")[0])
        if library is None:
            raise
        raise MissingExtraError(f"{what} needs {library}: pip install 'sememe[neural]'.") from error


def lazily(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__` that imports each name from its module: {"Word2Vec": "model"}."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return imported(f"{package}.{homes[name]}", name)

    return find


@cache
def _sources_hash() -> str:
    import numba

    digest = blake2b(numba.__version__.encode(), digest_size=8)
    root = Path(__file__).parent
    sources = {path: path.read_text("utf-8") for path in sorted(root.rglob("*.py"))}
    # Kernels use functions and constants of the modules that they import, so those count too.
    waiting = [path for path, source in sources.items() if "kernel\ndef " in source]
    counted: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in counted or path not in sources:
            continue
        counted.add(path)
        for package, names in _IMPORTS.findall(sources[path]):
            place = root.joinpath(*package.split(".")[1:])
            waiting += [place.with_suffix(".py"), place / "__init__.py"]
            waiting += [place / f"{name.strip()}.py" for name in names.strip("()\n").split(",")]
    for path in sorted(counted):
        own = path.relative_to(root).as_posix() + "\0" + sources[path]
        digest.update(own.encode())
    return digest.hexdigest()


def _kernels_dir() -> Path:
    return cache_dir() / "kernels" / _sources_hash()


def is_first_use() -> bool:
    """Whether no kernel has been compiled yet for these sources on this machine."""
    # numba creates the folders as soon as kernels are imported; files appear with machine code.
    return not any(_kernels_dir().rglob("*.nbc"))


class Compilation:
    """What numba compiles in this process: how long it takes, how much it is, who is informed.

    numba compiles one kernel at a time, in the thread that calls it first, together with the
    functions that it calls.
    """

    # Of the first training with a version; measured for every kind of model: 45 to 111 functions,
    # 0.14 to 0.26 s each on two cores.
    usual_functions, usual_s = 60, 15.0

    def __init__(self) -> None:
        self.num_kernels = self.num_functions = 0
        self.is_first = False  # whether this version had compiled nothing before this process
        self._depth = 0
        self._done_s = self._since_s = 0.0
        self._watchers: list[weakref.WeakMethod[Callable[[], None]]] = []

    @property
    def is_on(self) -> bool:
        """Whether a kernel is being compiled now."""
        return self._depth > 0

    @property
    def seconds(self) -> float:
        """The time spent so far."""
        return self._done_s + (time.monotonic() - self._since_s if self._depth else 0.0)

    @property
    def expected_s(self) -> float:
        """The time for all kernels of a first training, by the speed so far."""
        if self.num_functions < self.usual_functions / 6:
            return self.usual_s
        return self.seconds / self.num_functions * max(self.usual_functions, self.num_functions)

    def watch(self, tell: Callable[[], None]) -> None:
        """Call a method when a kernel starts or ends; of several objects the newest is told."""
        self._watchers = [own for own in self._watchers if own() is not None]
        self._watchers.append(weakref.WeakMethod(tell))

    def start(self) -> None:
        """Note that a kernel is being compiled, or a function of one."""
        if not self._depth:
            if not self.num_kernels:
                self.is_first = is_first_use()
            self._since_s = time.monotonic()
        self._depth += 1
        self._tell()

    def end(self) -> None:
        """Note that it is compiled."""
        self.num_functions += 1
        if self._depth == 1:
            self._done_s = self.seconds
            self.num_kernels += 1
        self._depth -= 1
        self._tell()

    def _tell(self) -> None:
        known = [tell for own in self._watchers if (tell := own()) is not None]
        if self._depth < 2 and known:
            known[-1]()


COMPILATION = Compilation()


def clock() -> float:
    """Seconds of a clock that stands still while kernels are compiled."""
    return time.monotonic() - COMPILATION.seconds


@cache
def _watch_compilation() -> None:
    """Let numba tell us when it compiles one of our kernels."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if event.data["dispatcher"] in _KERNELS:
                COMPILATION.start()

        def on_end(self, event: Any) -> None:
            if event.data["dispatcher"] in _KERNELS:
                COMPILATION.end()

    event.register("numba:compile", Listener())


_KERNELS: weakref.WeakSet[Any] = weakref.WeakSet()  # the compiled functions


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at first use: no GIL, fused and reordered float arithmetic allowed."""
    # Contraction and reordering let LLVM vectorise a dot product; NaN and infinity keep their
    # meaning, because the divergence checks look for them.
    return _compiled(function, {"reassoc", "contract", "nsz", "arcp", "afn"})


def exact_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at first use: no GIL, float arithmetic in the order it is written."""
    return _compiled(function, False)


def _compiled(function: Callable[..., Any], fastmath: set[str] | bool) -> Callable[..., Any]:
    import numba

    config: Any = numba.config
    own, config.CACHE_DIR = config.CACHE_DIR, str(_kernels_dir())
    try:
        is_kept = _is_private(_kernels_dir())
        compiled: Any = numba.njit(
            nogil=True, cache=is_kept, error_model="numpy", fastmath=fastmath
        )(function)
    finally:
        config.CACHE_DIR = own  # the user's own kernels are not ours to check
    _watch_compilation()
    _KERNELS.add(compiled)
    if files := getattr(getattr(compiled, "_cache", None), "_cache_file", None):
        files.__class__ = _sealed_files()
    return compiled


@cache
def _is_private(folder: Path) -> bool:
    """Whether a folder (created if missing) is this user's and writable by nobody else."""
    try:
        # The folder above, too: someone who may write there could put another one in its place.
        for own in (folder.parent, folder):
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            if own.stat().st_uid != os.getuid():
                raise PermissionError("it belongs to another user")
            own.chmod(0o700)
        return True
    except OSError as error:
        reason = str(error)
    warnings.warn(
        f"Compiled kernels are not kept in {folder}: {reason}. Set SEMEME_CACHE to a folder of "
        "your own.",
        stacklevel=2,
    )
    return False


_LARGEST_KERNEL = 1 << 26  # bytes of machine code; our kernels have a few hundred thousand


def _seal(path: Path, content: bytes) -> bytes:
    return blake2b(path.name.encode() + content, digest_size=32).digest()


def _is_whole(name: str) -> bool:
    """Whether a cache file ends with the hash of its name and content."""
    path = Path(name)
    if not os.path.lexists(path):
        return True  # numba handles it
    is_small = path.is_file() and path.stat().st_size < _LARGEST_KERNEL
    content = path.read_bytes() if is_small else b""
    if content[-32:] == _seal(path, content[:-32]):
        return True
    _warn_damaged(path.parents[1])
    return False


@cache
def _warn_damaged(folder: Path) -> None:
    """Warn once per process: where one file is damaged, most are, and there are hundreds."""
    warnings.warn(
        f"Compiled kernels in {folder} are damaged: they are compiled again.", stacklevel=2
    )


@cache
def _sealed_files() -> type:
    """The class of numba's cache files, with a hash at the end of each."""
    from numba.core.caching import IndexDataCacheFile

    class SealedFiles(IndexDataCacheFile):
        @contextmanager
        def _open_for_write(self, name: str) -> Iterator[Any]:
            with super()._open_for_write(name) as file:
                yield file
                file.flush()
                file.write(_seal(Path(name), Path(file.name).read_bytes()))

        def _load_index(self) -> Any:
            return super()._load_index() if _is_whole(self._index_path) else {}

        def _load_data(self, name: str) -> Any:
            if not _is_whole(self._data_path(name)):
                raise FileNotFoundError(name)  # as if the cache had been cleared
            return super()._load_data(name)

        def save(self, key: Any, data: Any) -> None:
            with suppress(OSError):  # for example a full disk: compiled again in the next process
                super().save(key, data)

    return SealedFiles

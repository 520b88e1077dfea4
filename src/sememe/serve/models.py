"""The served models: ids in, open models out; loaded, reloaded and unloaded while requests run."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sememe.contract import KINDS
from sememe.errors import ArtifactError, InputError, OptionError, SememeError
from sememe.models.registry import load, recognise
from sememe.search.index import Search, is_index
from sememe.serve.config import ServeConfig

_CHECK_S = 1.0  # how often a folder is looked at for a new model
INDEX = "search"  # the kind and the capability of a search index


class UnknownModelError(InputError):
    """A model id that is not served."""


class UnavailableError(SememeError):
    """A model that cannot be used at the moment."""


class Served:
    """One model: where it is, and what is open of it."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self.kind = INDEX if is_index(path) else recognise(path).kind
        if self.kind != INDEX and self.kind not in KINDS:
            load(path)  # raises: it says what this is
        self.model: Any = None
        # What it can do; before it is loaded, what its kind can do.
        self.capabilities = self._capabilities()
        self.dimensions = 0  # of its vectors, if it has some
        self.is_table = False  # whether it is word vectors and no network
        self.is_parallel = False  # whether it embeds token ids in several threads at once
        self.error = ""  # why the last loading failed
        self.created = int(path.stat().st_mtime)
        self.used_s = 0.0
        self.num_users = 0
        self.mark: Any = None  # of the files that are open, or that could not be opened
        self._checked_s = 0.0
        self.lock = asyncio.Lock()

    @property
    def state(self) -> str:
        """Whether it is loaded, failed, or waits for its first request."""
        return "loaded" if self.model is not None else "failed" if self.error else "unloaded"

    def _capabilities(self) -> frozenset[str]:
        if self.kind == INDEX:
            return frozenset({INDEX})
        own = self.model
        return frozenset(KINDS[self.kind].capabilities) if own is None else own.capabilities

    def put(
        self,
        model: Any,
        dimensions: int = 0,
        *,
        is_table: bool = False,
        is_parallel: bool = False,
    ) -> None:
        """Serve an open model; without one, none until the next request."""
        self.model, self.dimensions = model, dimensions
        self.is_table, self.is_parallel = is_table, is_parallel
        if model is not None:
            self.kind = INDEX if isinstance(model, Search) else model.kind
            self.error = ""
        self.capabilities = self._capabilities()

    def size(self) -> int:
        """Bytes of its files, an estimate of its memory."""
        if self.path.is_file():
            return self.path.stat().st_size
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def has_changed(self) -> bool:
        """Whether other files are at its path now, looked up at most once per second."""
        now = time.monotonic()
        if now - self._checked_s < _CHECK_S:
            return False
        self._checked_s = now
        try:
            return self.current_mark() != self.mark
        except OSError:
            return False  # it is being replaced, or was removed: what is open stays

    def current_mark(self) -> Any:
        """Identify the files at its path without reading them."""
        files = [self.path, *(sorted(self.path.iterdir()) if self.path.is_dir() else ())]
        told = ((file.name, file.stat()) for file in files if not file.name.startswith("."))
        return [(name, own.st_ino, own.st_mtime_ns, own.st_size) for name, own in told]


class Models:
    """All served models by their ids."""

    def __init__(self, paths: Sequence[str | Path], config: ServeConfig) -> None:
        """Each path may be named: `reviews=runs/a`; otherwise its last part is the id."""
        if not paths:
            raise OptionError("Give at least one model to serve.")
        self.config = config
        self.after_load: Callable[[], None] = lambda: None  # in the thread that has loaded a model
        self.note: Callable[..., None] = lambda **told: None  # of what happens to a model
        self.served: dict[str, Served] = {}
        for given in map(str, paths):
            name, _, path = given.partition("=") if "=" in given else ("", "", given)
            if not name or Path(given).exists():  # a path may contain =
                path, name = given, Path(given).absolute().name
            if name in self.served:
                raise OptionError(f"Two models have the id {name}: name one, as in other={path}.")
            self.served[name] = Served(name, Path(path))
        self._loading = asyncio.Lock()  # one loads at a time, while others compute
        self._reloads: set[asyncio.Task[None]] = set()

    def find(self, name: str | None, can: Callable[[Served], bool]) -> Served:
        """The model of an id; without one, the only served model that can answer."""
        if name is not None:
            if (found := self.served.get(name)) is None:
                known = ", ".join(self.served)
                raise UnknownModelError(f"There is no model {name[:100]!r}; served: {known}.")
            return found
        able = [own for own in self.served.values() if can(own)]
        if len(able) != 1:
            what = "Several models" if able else "None of the models"
            names = ", ".join(own.name for own in able or self.served.values())
            raise InputError(f"{what} can answer this request: name the model ({names}).")
        return able[0]

    async def load_all(self) -> None:
        """Load every model; one that fails is reported and stays unavailable."""
        for own in self.served.values():
            try:
                await self.opened(own)
            except UnavailableError:
                continue

    async def opened(self, own: Served) -> Any:
        """The open model; a changed folder is loaded while requests still use the old one."""
        own.used_s = time.monotonic()
        if own.model is None:
            async with own.lock:
                if own.model is None:
                    await self._load(own)
        elif own.has_changed() and not own.lock.locked():
            task = asyncio.create_task(self._reload(own))
            self._reloads.add(task)
            task.add_done_callback(self._reloads.discard)
        return own.model

    async def _reload(self, own: Served) -> None:
        async with own.lock:
            try:
                await self._load(own)
            except UnavailableError:
                pass  # own.error tells; the old one still answers

    async def _load(self, own: Served) -> None:
        if own.error and own.model is None and not own.has_changed():
            raise UnavailableError(f"Model {own.name} cannot be loaded: {own.error}")
        start_s = time.monotonic()
        try:
            async with self._loading:
                own.mark = own.current_mark()
                self._make_room(own)
                model, facts = await _in_thread(lambda: self._loaded(own.path))
                own.put(model, **facts)
        except (MemoryError, UnavailableError) as error:  # may be over at the next request
            raise self._failed(own, str(error) or "there is not enough memory.") from error
        except Exception as error:  # whatever damaged files may cause
            own.error = str(error) or type(error).__name__
            raise self._failed(own, own.error) from error
        self.note(event="loaded", model=own.name, seconds=round(time.monotonic() - start_s, 3))

    def _failed(self, own: Served, why: str) -> UnavailableError:
        self.note(event="load failed", model=own.name, error=why)
        return UnavailableError(f"Model {own.name} cannot be loaded: {why}")

    def _loaded(self, path: Path) -> tuple[Any, dict[str, Any]]:
        found = self._open(path)
        self.after_load()
        return found

    def _open(self, path: Path) -> tuple[Any, dict[str, Any]]:
        """The model, and what `Served.put` notes about it.

        On the event loop, asking a network for these would start an OpenMP team (batching.py).
        """
        if is_index(path):
            index = Search.load(path)
            if index.has_vectors:
                _ = index.model  # opened now, not by the first request
            return index, {}
        model = load(path, device=self.config.device)
        if self.config.precision != "fp32" and model.max_tokens:
            model.in_precision(self.config.precision)
        can = model.capabilities
        if "embed" not in can:
            return model, {}
        return model, {
            "dimensions": dimensions_of(model),
            "is_table": "words" in can and not model.max_tokens and model.words is model,
            # A GPU computes one batch after the other.
            "is_parallel": model.embeds_ids and not self._has_gpu(),
        }

    def _has_gpu(self) -> bool:
        """Whether networks compute on a GPU."""
        torch = sys.modules.get("torch") if self.config.device != "cpu" else None
        return torch is not None and bool(torch.cuda.is_available())

    def _make_room(self, new: Served) -> None:
        """Unload the models that were idle longest, until the new one fits below the limit."""
        most = self.config.memory_limit * 1e9
        if not most:
            return
        needed = new.size()
        if needed > most:
            raise ArtifactError(f"it has {needed / 1e9:.2f} GB, more than memory_limit.")
        loaded = [own for own in self.served.values() if own.model is not None and own is not new]
        total = needed + sum(own.size() for own in loaded)
        for own in sorted(loaded, key=lambda one: one.used_s):
            if total <= most:
                return
            if not own.num_users:
                own.put(None)
                total -= own.size()
                self.note(event="unloaded", model=own.name)
        if total > most:
            raise UnavailableError("the memory limit is reached, and all loaded models are in use.")

    @contextmanager
    def using(self, own: Served) -> Iterator[None]:
        """Keep a model loaded while a request uses it."""
        own.num_users += 1
        try:
            yield
        finally:
            own.num_users -= 1


def dimensions_of(model: Any) -> int:
    """The dimensions of its vectors."""
    return int(getattr(model, "dim", 0) or model.embed(["."]).shape[1])


async def _in_thread(function: Callable[[], Any]) -> Any:
    """The result of a function that runs in a thread of its own.

    The thread ends with it, and with it the OpenMP team that it may have started (batching.py). It
    does not keep a process alive that was told to stop.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def told(result: Any, error: BaseException | None) -> None:
        if done.done():
            return  # nobody waits any more
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = function()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(told, result, error)

    threading.Thread(target=run, name="sememe-load", daemon=True).start()
    return await done

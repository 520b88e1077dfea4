"""Find the token store of a text, or make it: one text and its settings have one place."""

from __future__ import annotations

import hashlib
import json
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sememe.errors import ArtifactError, OptionError
from sememe.progress import Reporter
from sememe.storage.leftovers import is_left_over, scratch_mark
from sememe.storage.places import cache_dir
from sememe.text.settings import TextSettings
from sememe.tokens.locking import locked
from sememe.tokens.store import TokenStore


def key_of(*parts: Any) -> str:
    """A short name for what JSON can say of `parts`."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def reuse_or_make(
    path: Path,
    fingerprint: dict[str, Any] | None,
    min_count: int,
    make: Callable[[], None],
    note: Callable[[str], None],
) -> TokenStore:
    """Open the store at `path` if it is of that fingerprint; otherwise say why and make it."""
    store, _ = _usable(path, fingerprint, min_count)
    if store is not None:
        return store
    with locked(path, note):
        # Another process may have made it while this one waited for the lock.
        store, reason = _usable(path, fingerprint, min_count)
        if store is not None:
            return store
        if reason:
            note(f"Building the token store {path} again: {reason}.")
        make()
        return TokenStore.open(path)


def _usable(
    path: Path, fingerprint: dict[str, Any] | None, min_count: int
) -> tuple[TokenStore | None, str]:
    """The store at `path`, or the reason why it cannot serve; no reason where there is none."""
    if not path.exists():
        return None, ""
    try:
        # Every byte: a damaged id would train a wrong word in silence, and reading them is quick
        # beside an epoch.
        store = TokenStore.open(path, verify=True)
    except ArtifactError as error:
        return None, str(error).rstrip(".")
    if fingerprint is None or store.fingerprint is None:
        return None, "nobody can tell whether its text is still the same"
    if store.fingerprint != fingerprint:
        names = sorted(
            name
            for name in {*fingerprint, *store.fingerprint}
            if fingerprint.get(name) != store.fingerprint.get(name)
        )
        return None, f"it was made from other text or settings ({', '.join(names)} changed)"
    if store.min_count > min_count:
        return None, f"it leaves out words below {store.min_count:,}"
    return store, ""


def build_from_text(
    corpus: Any,
    settings: TextSettings,
    path: Path | None,
    min_count: int,
    workers: int,
    memory: int,
    progress: Reporter,
) -> TokenStore:
    """Open the store of `corpus` where it can serve, otherwise read the text and build it."""
    from sememe.text import stream

    # Taken before the text is read: if that changes meanwhile, the store will not be reused.
    fingerprint = stream.fingerprint(corpus, settings)
    if fingerprint is not None:
        fingerprint = json.loads(json.dumps(fingerprint))  # as it will be read back
    is_temporary = fingerprint is None and path is None
    if is_temporary:
        path = temporary_place()
    place = Path(path or cache_dir() / "stores" / _key(corpus, settings)).absolute()

    def make() -> None:
        from sememe.tokens.building import build_store

        with _heard(progress, stream.total_bytes(corpus)) as on_bytes:
            records = stream.segment(corpus, settings, workers=workers, on_bytes=on_bytes)
            with closing(records):  # type: ignore[type-var]
                build_store(place, records, min_count, workers, memory, fingerprint)

    store = reuse_or_make(place, fingerprint, min_count, make, progress.note)
    if is_temporary:
        remove_with(store)
    return store


def _key(corpus: Any, settings: TextSettings) -> str:
    """Names the place by where the text is and how it is cut, so a changed text keeps its place."""
    names = [corpus] if isinstance(corpus, (str, Path)) else corpus or []
    return key_of([str(Path(name).absolute()) for name in names], settings.to_dict())


@contextmanager
def _heard(progress: Reporter, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show the bytes read so far."""
    with progress.task("reading text", total, "B") as task:
        yield lambda num_bytes: task.update(task.done + num_bytes)


def check_min_count(store: TokenStore, min_count: int) -> TokenStore:
    """Give `store` back if it holds every word that occurs `min_count` times."""
    if min_count < store.min_count:
        raise OptionError(
            f"The token store {store.path} leaves out words that occur fewer than "
            f"{store.min_count:,} times: min_count cannot be {min_count:,}; "
            "build the store again from its text."
        )
    return store


def temporary_place() -> Path:
    """A place for a store that nobody can find again, after removing those of dead processes."""
    folder = cache_dir() / "stores"
    for leftover in folder.glob("*temporary-*"):
        if is_left_over(leftover.name):
            shutil.rmtree(leftover, ignore_errors=True)
            with suppress(OSError):
                leftover.unlink()
    return folder / f"temporary-{scratch_mark()}"


def remove_with(store: TokenStore) -> None:
    """Remove the store's folder when the store is garbage or the program ends."""
    store.is_temporary = True
    weakref.finalize(store, shutil.rmtree, str(store.path), ignore_errors=True)

"""Find the token store of a text, or make it: one text and its settings have one place."""

from __future__ import annotations

import hashlib
import json
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sememe.errors import ArtifactError, OptionError
from sememe.progress import Reporter
from sememe.storage.leftovers import is_left_over, scratch_mark
from sememe.storage.places import cache_dir
from sememe.text.settings import TextSettings
from sememe.tokens.advice import note_dictionary, note_uncut_chinese
from sememe.tokens.locking import locked
from sememe.tokens.mapped import MappedStore
from sememe.tokens.store import TokenStore

Store = TypeVar("Store", bound=MappedStore)


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
    """Open the token store at `path` if it serves; otherwise say why not and make it."""

    def lack(store: TokenStore) -> str:
        is_cut = store.min_count > min_count
        return f"it leaves out words below {store.min_count:,}" if is_cut else ""

    return reuse(TokenStore, path, fingerprint, lack, make, note)


def reuse(
    kind: type[Store],
    path: Path,
    fingerprint: dict[str, Any] | None,
    lack: Callable[[Store], str],
    make: Callable[[], None],
    note: Callable[[str], None],
) -> Store:
    """Open the store at `path` if it is of that fingerprint and lacks nothing; or make it."""
    store, _ = _usable(kind, path, fingerprint, lack)
    if store is not None:
        return store
    with locked(path, note):
        # Another process may have made it while this one waited for the lock.
        store, reason = _usable(kind, path, fingerprint, lack)
        if store is not None:
            return store
        if reason:
            note(f"Building the {kind.noun} {path} again: {reason}.")
        make()
        return kind.open(path)


def _usable(
    kind: type[Store],
    path: Path,
    fingerprint: dict[str, Any] | None,
    lack: Callable[[Store], str],
) -> tuple[Store | None, str]:
    """The store at `path`, or the reason why it cannot serve; no reason where there is none."""
    if not path.exists():
        return None, ""
    try:
        # Every byte: a damaged id would train a wrong word in silence, and reading them is quick
        # beside an epoch.
        store = kind.open(path, verify=True)
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
    reason = lack(store)
    return (None, reason) if reason else (store, "")


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
    place, is_temporary = place_of(corpus, fingerprint, path, settings.to_dict())

    def make() -> None:
        from sememe.tokens.building import build_store

        with heard(progress, stream.total_bytes(corpus)) as on_bytes:
            records = stream.segment(corpus, settings, workers=workers, on_bytes=on_bytes)
            with closing(records):  # type: ignore[type-var]
                build_store(place, records, min_count, workers, memory, fingerprint)

    store = reuse_or_make(place, fingerprint, min_count, make, progress.note)
    if is_temporary:
        remove_with(store)
    note_uncut_chinese(store.vocabulary, settings, progress.note)
    note_dictionary(store.vocabulary, store.min_count, settings, progress.note)
    return store


def place_of(
    corpus: Any, fingerprint: dict[str, Any] | None, path: Path | None, settings: Any
) -> tuple[Path, bool]:
    """Where the store of a text lies, and whether only for this process.

    The place is named by where the text is and how it is cut, so a changed text keeps its place.
    """
    if path is not None:
        return path.absolute(), False
    if fingerprint is None:
        return temporary_place().absolute(), True
    names = [corpus] if isinstance(corpus, (str, Path)) else corpus or []
    key = key_of([str(Path(name).absolute()) for name in names], settings)
    return (cache_dir() / "stores" / key).absolute(), False


@contextmanager
def heard(progress: Reporter, total: int | None) -> Iterator[Callable[[int], None]]:
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


def remove_with(store: MappedStore) -> None:
    """Remove the store's folder when the store is garbage or the program ends."""
    store.is_temporary = True
    weakref.finalize(store, shutil.rmtree, str(store.path), ignore_errors=True)

"""Find the token store of a corpus, or build it: a corpus with its settings has one path.

A new store is checked for settings that do not fit the text, such as unsegmented Chinese.
"""

import json
import shutil
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.executor import Executor, cluster
from sememe.machine import cache_dir, key_of
from sememe.progress import SILENT, Reporter, shown
from sememe.storage import remote
from sememe.storage.folder import locked, remove_left_over, scratch_mark
from sememe.text import library, stream
from sememe.text.characters import is_han, is_mostly_chinese
from sememe.text.chinese import narrow, read_dictionary
from sememe.text.settings import TextSettings
from sememe.text.shards import Shard, cut_shards
from sememe.tokens.building import write_store, write_store_in_shards
from sememe.tokens.counting import DEFAULT_MEMORY
from sememe.tokens.store import MappedStore, TokenStore
from sememe.tokens.vocabulary import Vocabulary

_NUM_WORDS = 200  # the most frequent ones tell enough
_NUM_NAMED = 5
_SHARDS_A_CORE = 4
_KANA = ("\u3041", "\u30ff")


def note_uncut_chinese(
    vocabulary: Vocabulary, settings: TextSettings, note: Callable[[str], None]
) -> None:
    """Suggest `--language zh` if Chinese was split by character, or warn if there is none."""
    words = vocabulary[:_NUM_WORDS]
    sizes = [len(word) for word in words if is_han(word[0])]
    is_uncut = (
        is_mostly_chinese(words)
        and max(sizes) == 1
        and not any(_KANA[0] <= word[0] <= _KANA[1] for word in words)
    )
    if settings.mode == "unicode" and is_uncut:
        note("The text looks Chinese and was split into characters; --language zh segments words.")
    elif settings.mode == "chinese" and not sizes:
        note("The text, read with --language zh, has no Chinese: check --language and --encoding.")


def note_dictionary(
    vocabulary: Vocabulary, min_count: int, settings: TextSettings, note: Callable[[str], None]
) -> None:
    """Note how many words of the user's dictionary are in the text, and some that are not."""
    if not settings.dictionary:
        return

    words = [word for word, *_ in read_dictionary(settings.dictionary)]
    as_cut = [narrow(word).lower() if settings.lowercase else word for word in words]
    missing = [word for word, own in zip(words, as_cut, strict=True) if own not in vocabulary]
    named = "、".join(missing[:_NUM_NAMED]) + " …" * (len(missing) > _NUM_NAMED)
    often = f" {min_count:,} times or more" if min_count > 1 else ""
    found = f"{len(words) - len(missing):,} of its {len(words):,} words are in the text{often}"
    note(f"{settings.dictionary}: {found}" + (f"; without: {named}" if missing else ""))


Store = TypeVar("Store", bound=MappedStore)


def _lacking(store: TokenStore, min_count: int) -> str:
    is_cut = store.min_count > min_count
    return f"it leaves out words below {store.min_count:,}" if is_cut else ""


def reuse(
    kind: type[Store],
    path: Path,
    fingerprint: dict[str, Any] | None,
    lack: Callable[[Store], str],
    make: Callable[[], None],
    note: Callable[[str], None],
) -> Store:
    """Open the store at `path` if it has that fingerprint and is complete; otherwise build it."""
    store, _ = _usable(kind, path, fingerprint, lack)
    if store is not None:
        return store
    with locked(path, note):
        # Another process may have built it while this one waited for the lock.
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
    """The store at `path`, or the reason why it cannot be reused; None if there is none."""
    if not path.exists():
        return None, ""
    try:
        # Checks every byte: a damaged id would silently train a wrong word, and reading is fast
        # compared with an epoch.
        store = kind.open(path, verify=True)
    except ArtifactError as error:
        return None, str(error).rstrip(".")
    if fingerprint is None or store.fingerprint is None:
        return None, "it is unknown whether its text is still the same"
    if store.fingerprint != fingerprint:
        names = sorted(
            name
            for name in {*fingerprint, *store.fingerprint}
            if fingerprint.get(name) != store.fingerprint.get(name)
        )
        return None, f"it was made from other text or settings ({', '.join(names)} changed)"
    reason = lack(store)
    return (None, reason) if reason else (store, "")


def open_or_build(
    corpus: Any,
    settings: TextSettings,
    *,
    min_count: int,
    workers: int = 0,
    path: str | Path | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Reporter = SILENT,
) -> TokenStore:
    """Open the token store of `corpus`, or build it if none can be reused.

    `corpus` is any input of text.stream.segment, or a store. Without `path` the store of files and
    of the built-in corpus is cached for the user, that of anything else (standard input, iterables)
    exists only while it is in use. A store is reused if its text and settings are the same and its
    min_count is not higher; `progress` notes why a store is rebuilt.
    """
    if isinstance(corpus, TokenStore):
        return _checked(corpus, min_count)

    def make(place: Path, fingerprint: dict[str, Any] | None) -> None:
        with byte_progress(progress, stream.total_bytes(corpus)) as on_bytes:
            if (own := shards_of(corpus, settings, progress)) is not None:
                shards, executor = own
                write_store_in_shards(
                    place, shards, settings, min_count, memory, fingerprint, executor, on_bytes
                )
                return
            records = stream.segment(corpus, settings, workers=workers, on_bytes=on_bytes)
            with closing(records):  # type: ignore[type-var]
                write_store(place, records, min_count, workers, memory, fingerprint)

    store = store_of(
        TokenStore, corpus, settings, {}, settings.to_dict(), path,
        lambda own: _lacking(own, min_count), make, progress,
    )  # fmt: skip
    note_uncut_chinese(store.vocabulary, settings, progress.note)
    note_dictionary(store.vocabulary, store.min_count, settings, progress.note)
    if np.count_nonzero(store.vocabulary.counts >= min_count) == 1:
        warnings.warn(
            f"Only one word, “{shown(store.vocabulary[0])}”, occurs {min_count:,} times or more: a "
            "model has nothing to compare it with. Check the corpus, or lower --min-count.",
            stacklevel=2,
        )
    return store


def shards_of(
    corpus: Any, settings: TextSettings, progress: Reporter
) -> tuple[list[Shard], Executor] | None:
    """The shards of a corpus and the cluster that reads them; None: it is read in this process."""
    executor = cluster()
    if executor is None:
        return None
    if corpus is None or (names := stream.as_names(corpus)) is None or stream.reads_once(corpus):
        progress.note("This text is not in files: this machine reads it, not the cluster.")
        return None
    # A few for each core, so that all are busy until the end.
    return cut_shards(names, settings, wanted=_SHARDS_A_CORE * executor.num_tasks), executor


def store_of(
    kind: type[Store],
    corpus: Any,
    settings: TextSettings,
    identity: dict[str, Any],
    key: Any,
    path: str | Path | None,
    lack: Callable[[Store], str],
    make: Callable[[Path, dict[str, Any] | None], None],
    progress: Reporter,
) -> Store:
    """Open the store of a text, or build it at its path, given by the text's path and `key`.

    `identity` is added to the store's fingerprint. A changed text keeps its path.
    """
    # Computed before the text is read: if that changes meanwhile, the store is not reused.
    fingerprint = stream.fingerprint(corpus, settings)
    if corpus is None and (told := library.lacking()):
        progress.note(told)
    is_temporary = fingerprint is None and path is None
    if fingerprint is not None:
        fingerprint = json.loads(json.dumps(fingerprint | identity))  # as it will be read back
    if path is not None:
        place = Path(path).absolute()
    elif is_temporary:
        place = temporary_place().absolute()
    else:
        names = [corpus] if isinstance(corpus, (str, Path)) else corpus or []
        own = key_of([remote.absolute(name) for name in names], key)
        place = (cache_dir() / "stores" / own).absolute()
    store = reuse(kind, place, fingerprint, lack, lambda: make(place, fingerprint), progress.note)
    if is_temporary:
        remove_with(store)
    return store


@contextmanager
def byte_progress(progress: Reporter, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show the bytes read so far."""
    with progress.task("reading text", total, "B") as task:
        yield lambda num_bytes: task.update(task.done + num_bytes)


def _checked(store: TokenStore, min_count: int) -> TokenStore:
    """Return `store` if it is intact and holds every word that occurs `min_count` times."""
    if min_count < store.min_count:
        raise OptionError(
            f"The token store {store.path} leaves out words that occur fewer than "
            f"{store.min_count:,} times: min_count cannot be {min_count:,}; "
            "build the store again from its text."
        )
    return store.verified()


def temporary_place() -> Path:
    """A path for a temporary store; also removes those of dead processes."""
    folder = cache_dir() / "stores"
    remove_left_over(folder, "*temporary-*")
    return folder / f"temporary-{scratch_mark()}"


def remove_with(store: MappedStore) -> None:
    """Remove the store's folder when the store is garbage-collected or the program ends."""
    store.is_temporary = True
    weakref.finalize(store, shutil.rmtree, str(store.path), ignore_errors=True)

"""A search index: texts in, the rows that fit a query out.

    index = sememe.Search.build("reviews.csv", "runs/encoder", folder="runs/reviews")
    for hit in index.search("too loud at night", top=5, where="year>=2020"):
        print(hit.score, hit.id, hit.snippet.text)

Dense search compares vectors, lexical search words (BM25); hybrid search, the default, fuses both.
Every change is written to the index's folder at once. R rows, P passages.
"""

from __future__ import annotations

import math
import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from sememe.contract import KINDS, Model
from sememe.errors import ArtifactError, InputError, OptionError
from sememe.machine import cache_dir, key_of
from sememe.models.inference import embed_all
from sememe.models.registry import content_hash, opened
from sememe.notebook import html_table
from sememe.progress import SILENT, Reporter
from sememe.search.config import SearchConfig
from sememe.search.folder import KIND, IndexFolder, KnownRow, known_rows, write_index
from sememe.search.lexical import BM25, words_of_texts
from sememe.search.passages import Snippet, snippet
from sememe.search.ranking import fuse, nearest_by_bits, nearest_rows
from sememe.search.rows import (
    Condition,
    Row,
    Where,
    column_cells,
    conditions,
    detected_language,
    read_rows,
)
from sememe.storage import remote
from sememe.storage.folder import (
    check_replaceable,
    kind_of_folder,
    locked,
    reads_artifact,
    remove_left_over,
    scratch_mark,
    write_folder,
)
from sememe.storage.urls import url_of
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.vectors.search import (
    MAX_NEIGHBORS,
    ApproximateIndex,
    Found,
    nearest_approximately,
    open_or_build,
    unit_rows,
)

Mode = Literal["auto", "dense", "lexical", "hybrid"]
# Passages that each ranking contributes to the fusion, and rows that a pair model ranks again.
_DEPTH, _RERANKED = 100, 50


class Hit(NamedTuple):
    """A row that fits a query, and the passage of it that fits best."""

    id: str
    score: float
    text: str  # of the passage
    start: int  # where the passage is in the row, in characters
    end: int
    cells: dict[str, Any]
    words: list[str]  # of the query

    @property
    def snippet(self) -> Snippet:
        """The part of the passage with most words of the query."""
        return snippet(self.text, self.words)

    def to_dict(self) -> dict[str, Any]:
        """The hit in JSON values; highlights are offsets in the snippet."""
        shown = self.snippet
        cells = {
            name: None if isinstance(cell, float) and math.isnan(cell) else cell
            for name, cell in self.cells.items()
        }
        return {
            "id": self.id, "score": self.score, "text": self.text, "start": self.start,
            "end": self.end, "snippet": shown.text, "highlights": shown.highlights,
            "cells": cells,
        }  # fmt: skip


class Search:
    """Rows with their vectors and words, in a folder."""

    def __init__(self, folder: str | Path, model: Any = None) -> None:
        """Open an index; `model` must be the one it was made with (default: from its old place)."""
        self._index = IndexFolder(remote.here(folder))
        self._given, self._model = model, None
        if model is not None and not self.has_vectors:
            raise OptionError(f"{folder} has no vectors: build it with a model to use one.")
        self._lexical  # noqa: B018 (its files must be of the same save as the rows)
        self._columns: dict[str, list[Any]] = {}  # those of earlier conditions

    def __len__(self) -> int:
        return self._index.num_rows

    def __repr__(self) -> str:
        return f"Search({str(self.folder)!r}: {len(self):,} rows)"

    def _repr_html_(self) -> str:
        return html_table((), list(self.describe().items()))

    @property
    def folder(self) -> Path:
        """Where the index is."""
        return self._index.folder

    @property
    def config(self) -> SearchConfig:
        """How rows were read, split and stored."""
        return self._index.config

    @property
    def has_vectors(self) -> bool:
        """Whether the index was made with a model."""
        return self._index.vectors_PD is not None

    def describe(self) -> dict[str, Any]:
        """What the index holds, in JSON values."""
        told = self._index.manifest
        return {
            name: told[name] for name in told if name not in ("format", "sources", "provenance")
        }

    # ---- build and open ---------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        data: Any = None,
        model: Any = None,
        *,
        folder: str | Path | None = None,
        progress: Reporter = SILENT,
        **options: Any,
    ) -> Self:
        """Index rows: paths, None (the built-in corpus), a DataFrame, texts, or dicts with `text`.

        `model` is a saved model or its path; without one the index is lexical only. Without
        `folder` the index is temporary until `save`. If `folder` has an index of the same model and
        options, vectors of unchanged texts are taken from there. `options` are those of
        SearchConfig.
        """
        config = SearchConfig(**options)
        place = Path(folder) if folder is not None else _temporary()
        check_replaceable(place, KIND)
        own = None if model is None else opened(model, able="embed")
        identity = None if own is None else _identity(own)
        old = _reusable(place, config, identity)
        # Noted before files are read: if one changes meanwhile, the index is not reused.
        sources = _sources(data, config)
        rows = read_rows(data, config, progress)
        settings, rows = _settings(rows, config, own, progress)
        numbered: Iterable[KnownRow] = ((row, -1) for row in rows)
        if old is not None and old.settings == settings:
            numbered = known_rows(rows, old)
        manifest = {"model": identity, "sources": sources}
        _write(place, numbered, config, settings, own, old, manifest, progress)
        made = cls(place, own)
        if folder is None:
            weakref.finalize(made, shutil.rmtree, str(place), ignore_errors=True)
        return made

    @classmethod
    def reuse(
        cls,
        data: Any = None,
        model: Any = None,
        *,
        folder: str | Path | None = None,
        progress: Reporter = SILENT,
        **options: Any,
    ) -> Self:
        """Open the index of these data, model and options, or build it if it is not current.

        Without `folder` it is in the user's cache; pipes and items are indexed each time.
        """
        config = SearchConfig(**options)
        if folder is None:
            if _sources(data, config) is None:
                return cls.build(data, model, progress=progress, **options)
            names = [data] if isinstance(data, str | Path) else data or []
            where = [remote.absolute(name) for name in names]
            folder = cache_dir() / "indexes" / key_of(where, str(model or ""), config.to_dict())
        place = Path(folder).absolute()
        with locked(place, progress.note):
            if is_index(place):
                found = cls.load(place)
                if not (reason := found.outdated(data, model, config)):
                    progress.note(f"Index {place}: {len(found):,} rows, unchanged.")
                    return found
                progress.note(f"Building the index {place} again: {reason}.")
            found = cls.build(data, model, folder=place, progress=progress, **options)
        progress.note(f"Index {place}: {len(found):,} rows.")
        return found

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path, model: Any = None) -> Self:
        """Open the index in a folder; rows and vectors are memory-mapped.

        It stays as it was when it was opened, even if another process changes the folder.
        """
        return cls(folder, model)

    def save(self, folder: str | Path) -> None:
        """Copy the index to a folder, where later changes are written."""
        folder = Path(folder)
        check_replaceable(folder, KIND)
        with write_folder(folder) as scratch:
            shutil.copytree(self.folder, scratch, dirs_exist_ok=True)
        self._open(folder)

    def _open(self, folder: Path) -> None:
        self._index, self._columns = IndexFolder(folder), {}
        for name in ("_lexical", "_approximate", "_ids"):
            self.__dict__.pop(name, None)

    @contextmanager
    def _changing(self, progress: Reporter) -> Iterator[None]:
        """Hold the lock of the folder, with what others have changed in it before."""
        with locked(self.folder.absolute(), progress.note):
            self._open(self.folder)
            yield

    @property
    def model(self) -> Any:
        """The model of the index, opened at first use; another model is refused."""
        if self._model is None:
            kept = self._index.manifest["model"]
            if kept is None:
                raise OptionError(
                    f"{self.folder} has no vectors: build it with a model to search by meaning."
                )
            path = kept["path"] if self._given is None else self._given
            if self._given is None and not Path(path).exists():
                raise ArtifactError(
                    f"The model of {self.folder} is no longer at {path}; name its place with "
                    "--model."
                )
            model = opened(path, able="embed")
            if not _is_same(model, kept):
                raise ArtifactError(
                    f"{self.folder} was built with another model ({kept['title']}, then at "
                    f"{kept['path']}): search with that one, or build the index again."
                )
            self._model = model
        return self._model

    def outdated(self, data: Any, model: Any, config: SearchConfig) -> str:
        """Why the index is not the one of these data, model and options; empty if it is."""
        kept = self._index.manifest
        if config != self.config:
            return "its options have changed"
        own = None if model is None else opened(model, able="embed")
        if (own is None) != (kept["model"] is None) or (own and not _is_same(own, kept["model"])):
            return "its model has changed"
        sources = _sources(data, config)
        if sources is None or sources != kept["sources"]:
            return "its text has changed"
        self._model = own
        return ""

    # ---- change -----------------------------------------------------------------------------

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {row.id: number for number, row in enumerate(self._index.rows())}

    @property
    def ids(self) -> list[str]:
        """The ids of all rows, in order."""
        return list(self._ids)

    def row(self, id: str) -> Row:
        """The row of an id: its whole text and its cells."""
        if (number := self._ids.get(str(id))) is None:
            raise InputError(f"The index has no row with the id {id!r}.")
        return self._index.row(number)

    def add(self, data: Any, progress: Reporter = SILENT) -> list[str]:
        """Add rows, as `build` takes them; return their ids, which must be new."""
        with self._changing(progress):
            taken = [int(own) for own in self._ids if own.isdecimal()]
            new = list(self._new_rows(data, max(taken, default=-1) + 1, progress))
            if twice := next((row.id for row in new if row.id in self._ids), None):
                raise InputError(f"The index has a row with the id {twice!r} already: use update.")
            self._change(chain(self._kept(), ((row, -1) for row in new)), progress)
        return [row.id for row in new if row.text.strip() and not row.problem]

    def update(self, data: Any, progress: Reporter = SILENT) -> list[str]:
        """Replace the rows of the same ids; every id must be there."""
        if isinstance(data, list | tuple) and any(isinstance(own, str) for own in data):
            raise InputError("Rows that replace others need ids: give dicts with id and text.")
        with self._changing(progress):
            new: dict[str, Row] = {}
            for row in self._new_rows(data, 0, progress):
                if row.id not in self._ids:
                    raise InputError(f"The index has no row with the id {row.id!r}: use add.")
                if row.id in new:
                    raise InputError(f"Two rows have the id {row.id!r}; ids must be unique.")
                if row.problem or not row.text.strip():
                    raise InputError(f"The new row {row.id!r} has no text: use delete.")
                new[row.id] = row
            rows = ((new[row.id], -1) if row.id in new else (row, old) for row, old in self._kept())
            self._change(rows, progress)
        return list(new)

    def delete(self, ids: str | Iterable[str], progress: Reporter = SILENT) -> None:
        """Remove rows; every id must be there."""
        gone = {str(ids)} if isinstance(ids, str | int) else {str(own) for own in ids}
        with self._changing(progress):
            if other := next((own for own in gone if own not in self._ids), None):
                raise InputError(f"The index has no row with the id {other!r}.")
            if len(gone) == len(self):
                raise InputError("An index needs at least one row: remove its folder instead.")
            self._change(((row, old) for row, old in self._kept() if row.id not in gone), progress)

    def _kept(self) -> Iterator[KnownRow]:
        return zip(self._index.rows(), range(len(self)), strict=True)

    def _new_rows(self, data: Any, first_id: int, progress: Reporter) -> Iterator[Row]:
        return read_rows(data, self.config, progress, first_id=first_id)

    def _change(self, rows: Iterable[KnownRow], progress: Reporter) -> None:
        index = self._index
        model = self.model if self.has_vectors else None
        # The files are no longer what the index holds: the command builds it again.
        manifest = {"model": index.manifest["model"], "sources": None}
        _write(
            self.folder, rows, self.config, index.settings, model, index, manifest, progress
        )  # fmt: skip
        self._open(self.folder)

    # ---- search -----------------------------------------------------------------------------

    def search(
        self,
        query: str,
        top: int = 10,
        *,
        where: Where | None = None,
        mode: Mode = "auto",
        approximate: bool = False,
        rerank: Any = None,
    ) -> list[Hit]:
        """The rows that fit a query best, each with its best passage.

        `where` is a condition such as "year>=2020", several of them, or {"label": "sports"}.
        `rerank` is a fine-tuned `pairs` or `regress` model, or its path, that ranks the first rows
        again. `approximate` uses an index of vectors (extra `index`).
        """
        if not isinstance(query, str) or not query.strip():
            raise OptionError("The query is empty: give some words to search for.")
        if top < 1 or top != int(top):
            raise OptionError(f"top must be 1 or more, not {top}.")
        num = top if rerank is None else max(top, _RERANKED)
        (rankings,) = self._rankings([query], num, mode, self._allowed(where), approximate)
        passages, scores = self._best_passages(rankings, num)
        (words,) = words_of_texts([query], self._index.settings)
        hits = [
            self._hit(passage, score, words)
            for passage, score in zip(passages.tolist(), scores.tolist(), strict=True)
        ]
        if rerank is not None and hits:
            hits = _reranked(opened(rerank, able="score_pairs"), query, hits)
        return hits[:top]

    def rank(
        self, queries: Sequence[str], top: int, *, mode: Mode = "auto", approximate: bool = False
    ) -> list[Found]:
        """For each of many queries the numbers of the best rows, and their scores."""
        rankings = self._rankings(queries, top, mode, None, approximate)
        found = (self._best_passages(own, top) for own in rankings)
        return [
            (self._index.row_P[passages].astype(np.int64), scores) for passages, scores in found
        ]

    def _rankings(
        self,
        queries: Sequence[str],
        num: int,
        mode: Mode,
        is_allowed_P: np.ndarray | None,
        approximate: bool,
    ) -> list[tuple[Found, ...]]:
        """For each query its best passages, by words and by vectors, of at least `num` rows."""
        mode = self._mode(mode)
        kinds: list[list[Found]] = []
        if mode != "dense":
            kinds.append(
                self._deep_enough(
                    lambda depth: self._lexical.search(queries, depth, is_allowed_N=is_allowed_P),
                    num,
                )
            )
        if mode != "lexical":
            vectors_QD = np.asarray(self.model.embed_role(list(queries), "query"), np.float32)
            kinds.append(
                self._deep_enough(
                    lambda depth: self._nearest(vectors_QD, depth, is_allowed_P, approximate), num
                )
            )
        return list(zip(*kinds, strict=True))

    def _deep_enough(self, find: Callable[[int], list[Found]], num: int) -> list[Found]:
        """Passages of at least `num` rows: one long row may have many of the best."""
        depth = max(_DEPTH, 10 * num)
        while True:
            found = find(depth)
            full = [own for own, _ in found if len(own) == depth]
            if all(len(np.unique(self._index.row_P[own])) >= num for own in full):
                return found
            depth *= 4

    def _mode(self, mode: Mode) -> Mode:
        if mode not in get_args(Mode):
            raise OptionError(f"mode must be one of {', '.join(get_args(Mode))}, not {mode!r}.")
        if mode in ("dense", "hybrid"):
            self.model  # noqa: B018 (an index without vectors has none)
        return mode if mode != "auto" else "hybrid" if self.has_vectors else "lexical"

    def _allowed(self, where: Where | None) -> np.ndarray | None:
        """Whether each passage is of a row that satisfies the conditions."""
        if not (wanted := conditions(where)):
            return None
        if new := [own.column for own in wanted if own.column not in self._columns]:
            self._columns |= column_cells(self._index.rows(), new)
        cells = zip(*(self._columns[own.column] for own in wanted), strict=True)
        is_allowed_R = np.fromiter(
            (all(map(Condition.holds, wanted, own)) for own in cells), np.bool_, len(self)
        )
        return np.asarray(is_allowed_R[self._index.row_P])

    @cached_property
    def _lexical(self) -> BM25:
        return self._index.lexical()

    @cached_property
    def _approximate(self) -> ApproximateIndex:
        # Candidates come from int8 vectors; the stored ones give their scores.
        return open_or_build(np.asarray(self._index.vectors_PD), self.folder, "i8")

    def _nearest(
        self,
        vectors_QD: np.ndarray,
        num: int,
        is_allowed_P: np.ndarray | None,
        approximate: bool,
    ) -> list[Found]:
        """The nearest passages; with conditions, the search is exact."""
        index = self._index
        rows_PD = np.asarray(index.vectors_PD)
        if vectors_QD.shape[1] != rows_PD.shape[1]:
            raise ArtifactError(
                f"The model gives {vectors_QD.shape[1]:,} dimensions, the index has "
                f"{rows_PD.shape[1]:,}."
            )
        if approximate and is_allowed_P is None:
            units_QD = unit_rows(vectors_QD)
            most = min(num, MAX_NEIGHBORS)
            found = nearest_approximately(self._approximate, rows_PD, units_QD, most)
        elif index.bits_PW is not None:
            found = nearest_by_bits(
                index.bits_PW, rows_PD, vectors_QD, num, is_allowed_N=is_allowed_P
            )
        else:
            found = nearest_rows(
                rows_PD, vectors_QD, num, inverse_N=index.inverse_P, is_allowed_N=is_allowed_P
            )
        # A text without a known word has a zero vector, and a score of exactly 0.
        return [(ids[scores != 0], scores[scores != 0]) for ids, scores in found]

    def _best_passages(self, rankings: Sequence[Found], num: int) -> Found:
        """The best passage of each of the best rows, and its score."""
        by_row: list[tuple[np.ndarray, np.ndarray]] = []
        best_of: dict[int, int] = {}
        for passages, scores in rankings:
            rows = self._index.row_P[passages]
            _, first = np.unique(rows, return_index=True)
            first.sort()
            by_row.append((rows[first].astype(np.int64), scores[first]))
            for row, passage in zip(by_row[-1][0].tolist(), passages[first].tolist(), strict=True):
                best_of.setdefault(row, passage)  # the lexical one, which has words of the query
        if len(by_row) == 1:
            found, scores = by_row[0][0][:num], by_row[0][1][:num]
        else:
            found, scores = fuse([rows for rows, _ in by_row], num)
        return np.array([best_of[row] for row in found.tolist()], np.int64), scores

    def _hit(self, passage: int, score: float, words: list[str]) -> Hit:
        index = self._index
        row = index.row(int(index.row_P[passage]))
        start, end = int(index.start_P[passage]), int(index.end_P[passage])
        return Hit(row.id, score, row.text[start:end], start, end, dict(row.cells), words)


def _reranked(model: Any, query: str, hits: list[Hit]) -> list[Hit]:
    """The hits in the order of a pair model's scores."""
    scores = model.score_pairs([(query, hit.text) for hit in hits])
    order = np.argsort(-scores, kind="stable")
    return [hits[index]._replace(score=float(scores[index])) for index in order.tolist()]


def is_index(folder: str | Path) -> bool:
    """Whether a folder holds an index."""
    if (url := url_of(folder)) is not None:
        return bool(remote.read_manifest(url).get("kind") == KIND)
    return Path(folder).is_dir() and kind_of_folder(Path(folder)) == KIND


# ---- building -----------------------------------------------------------------------------


def _temporary() -> Path:
    folder = cache_dir() / "indexes"
    remove_left_over(folder, "*temporary-*")
    return folder / f"temporary-{scratch_mark()}"


def _identity(model: Model) -> dict[str, Any]:
    """What binds an index to a model: its place and the hash of its files."""
    if model.path is None:
        raise OptionError("An index belongs to a saved model: call save on the model first.")
    path = model.path.resolve()
    return {
        "path": str(path), "hash": content_hash(path), "title": KINDS[model.kind].title,
        "stamp": _stamp(path),
    }  # fmt: skip


def _stamp(path: Path) -> str:
    """Sizes and times of a model's files, as a hash: while they stay, its own hash does."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    states = [(file, file.stat()) for file in files if file.is_file()]
    return key_of([[file.name, state.st_size, state.st_mtime_ns] for file, state in states])


def _is_same(model: Model, kept: dict[str, Any]) -> bool:
    if model.path is None:
        return False
    path = model.path.resolve()
    is_there = str(path) == kept["path"] and _stamp(path) == kept["stamp"]
    return is_there or content_hash(path) == kept["hash"]


def _sources(data: Any, config: SearchConfig) -> str | None:
    """A hash of the paths, sizes and times of the files of an index; None for pipes and items."""
    found = stream.fingerprint(data, config.reading())
    return None if found is None else key_of(found)


def _reusable(
    place: Path, config: SearchConfig, identity: dict[str, Any] | None
) -> IndexFolder | None:
    """The index in a folder, if the vectors of its rows can be copied."""
    try:
        old = IndexFolder(place)
    except ArtifactError:
        return None
    kept = old.manifest["model"]
    is_same = (kept or {}).get("hash") == (identity or {}).get("hash")
    names = ("passage", "overlap", "vectors")
    is_alike = all(getattr(old.config, name) == getattr(config, name) for name in names)
    return old if is_same and is_alike else None


def _settings(
    rows: Iterator[Row], config: SearchConfig, model: Model | None, progress: Reporter
) -> tuple[TextSettings, Iterator[Row]]:
    """How texts are split into words: by the option, or by what the first rows are."""
    language = config.language
    if not language:
        language, rows = detected_language(rows)
        if language == "zh":
            progress.note("The text is Chinese: rjieba segments its words (--language en: not).")
    settings = TextSettings(language=language)
    if model is not None and model.text.mode == settings.mode == "chinese":
        settings = TextSettings(language=language, dictionary=model.text.dictionary)
    return settings, rows


def _write(
    place: Path,
    rows: Iterable[KnownRow],
    config: SearchConfig,
    settings: TextSettings,
    model: Any,
    old: IndexFolder | None,
    manifest: dict[str, Any],
    progress: Reporter,
) -> None:
    """Write an index, and say what was left out."""
    num_longer = 0

    def embed(texts: list[str]) -> np.ndarray:
        nonlocal num_longer
        num_longer += model.num_longer(texts)
        return np.asarray(embed_all(model, texts, "document"), np.float32)

    done = write_index(
        place, rows, config=config, settings=settings, old=old, manifest=manifest,
        embed=None if model is None else embed, reporter=progress,
    )  # fmt: skip
    for num, told in (
        (done.num_empty, f"Empty rows omitted: {done.num_empty:,}."),
        (done.num_bad, f"Invalid rows skipped: {done.num_bad:,}."),
        (
            num_longer,
            f"Passages longer than the model reads at once: {num_longer:,}; their vectors "
            "are means over windows, without truncation.",
        ),
        (
            done.num_unknown,
            f"Passages without a word of the model: {done.num_unknown:,}; only "
            "lexical search finds them.",
        ),
    ):
        if num:
            progress.note(told)

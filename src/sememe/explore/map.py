"""The view "map" of the explorer: words or rows as points, their clusters, and what changed.

Points are the unit vectors on their principal components, or laid out by UMAP or t-SNE in a process
of its own. Those are kept in the cache under the hash of the vectors and the settings.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal
from weakref import ref

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field

from sememe.errors import InputError, OptionError, WriteError
from sememe.explore.jobs import Jobs, Recent, Report
from sememe.explore.routing import columns_response, explore_router
from sememe.explore.rows import OwnRows, nearest_rows
from sememe.machine import cache_dir, installed_versions
from sememe.plots.manifold import PACKAGES, Manifold, check, lay_out_beside
from sememe.plots.projection import project
from sememe.plots.vocabulary import MOST_POINTS, Points, cluster_points, word_points
from sememe.serve.models import Served
from sememe.serve.routes import Body, Word
from sememe.serve.service import Service, json_response
from sememe.storage.folder import write_file
from sememe.vectors.comparison import Comparison

_MOST_CACHED = 200  # files; one of 100,000 points has 800 kB
_MOST_PLACES_BYTES, _MOST_COMPARED_BYTES = 20_000_000, 500_000_000  # in memory


class MapOf(Body):
    """Which points, and how they are laid out."""

    of: Literal["words", "rows"] = "words"
    method: Literal["pca", "umap", "tsne"] = "pca"
    num: Annotated[int, Field(ge=10, le=MOST_POINTS)] = 5_000
    neighbors: Annotated[int, Field(ge=2, le=200)] = 15
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1


class ClustersOf(MapOf):
    """The number of clusters of the same points."""

    clusters: Annotated[int, Field(ge=2, le=20)] = 10


class ChangesOf(Body):
    """Two models whose neighbors are compared, for one word or for the most changed ones."""

    other: Annotated[str, Field(max_length=1_000)]
    word: Word | None = None
    num: Annotated[int, Field(ge=10, le=20_000)] = 5_000
    neighbors: Annotated[int, Field(ge=1, le=100)] = 10
    top: Annotated[int, Field(ge=1, le=500)] = 50


class ColumnOf(Body):
    """A column of the rows."""

    name: Annotated[str, Field(min_length=1, max_length=1_000)]


class RowSearch(Body):
    """Rows with a text, near to a text, or near to another row."""

    query: Annotated[str, Field(max_length=10_000)] = ""
    index: Annotated[int, Field(ge=0)] | None = None
    by: Literal["text", "meaning"] = "text"
    num: Annotated[int, Field(ge=1, le=1_000)] = 20


def map_routes(service: Service, jobs: Jobs, rows: OwnRows | None) -> APIRouter:
    """The routes of this view."""
    router = explore_router("/map")
    maps = _Maps(service, jobs, rows)

    @router.post("/start", summary="Compute a map, if it is not known yet")
    async def start(request: Request, body: MapOf) -> Response:
        return json_response(await maps.start(request, body))

    @router.post("/points", summary="The points of a map")
    async def points(request: Request, body: MapOf) -> Response:
        own, found = await maps.points(request, body)
        return await maps.run(request, own, lambda: _answer(maps, found, body))

    @router.post("/clusters", summary="The clusters of the same points by k-means")
    async def clusters(request: Request, body: ClustersOf) -> Response:
        own, found = await maps.points(request, body)
        numbers, names = await maps.run(
            request, own, lambda: _clusters_of_known(found, body.clusters, body.seed)
        )
        return columns_response({"names": names}, category=numbers.astype(np.uint8))

    @router.post("/changes", summary="Neighbors that two models do not share")
    async def changes(request: Request, body: ChangesOf) -> Response:
        return json_response(await maps.changes(request, body))

    @router.get("/rows", summary="The rows to show as points")
    async def own_rows(request: Request) -> Response:
        if rows is None:
            return json_response({"num": 0, "notes": [], "columns": [], "path": ""})
        columns = await maps.beside(request, lambda: rows.columns)
        return json_response(
            {"num": len(rows), "notes": rows.notes, "columns": columns, "path": rows.path}
        )

    @router.post("/rows/column", summary="A column of the rows, as colors")
    async def column(request: Request, body: ColumnOf) -> Response:
        told, found = await maps.beside(request, lambda: maps.own_rows().colors(body.name))
        return columns_response(told, **found)

    @router.post("/rows/search", summary="Rows by text, by meaning, or near a row")
    async def search(request: Request, body: RowSearch) -> Response:
        return json_response({"rows": await maps.search(request, body)})

    return router


class _Maps:
    """What the routes share: the points of models, their places, and comparisons."""

    def __init__(self, service: Service, jobs: Jobs, rows: OwnRows | None) -> None:
        self.service, self.jobs, self.rows = service, jobs, rows
        self._places = Recent[np.ndarray](_MOST_PLACES_BYTES)
        self._is_computing = threading.Lock()
        self._comparisons = Recent[Comparison](_MOST_COMPARED_BYTES)

    def own_rows(self) -> OwnRows:
        if self.rows is None:
            raise InputError("No rows are open: start with sememe explore MODEL --rows FILE.")
        return self.rows

    async def beside(self, request: Request, call: Callable[[], Any]) -> Any:
        """Compute at the same time as the networks."""
        return await self.service.waiting(request, self.service.batcher.call_beside(call))

    async def run(self, request: Request, own: Served, call: Callable[[], Any]) -> Any:
        """The same with a model, which is kept loaded meanwhile."""
        with self.service.models.using(own):
            return await self.beside(request, call)

    async def start(self, request: Request, body: MapOf) -> dict[str, Any]:
        """Begin what takes long: vectors of rows, UMAP and t-SNE. The state of its job."""
        done = {"id": "", "state": "done", "progress": 1.0, "message": ""}
        if body.of == "words":
            if body.method == "pca":
                return done
            own, found = await self.points(request, body)
            check(Manifold(body.method), len(found.units_ND))
            if not (key := await self.run(request, own, lambda: self._new(found.units_ND, body))):
                return done
            return self._fresh(key, lambda report: self._compute(found.units_ND, body, report))
        rows, loop = self.own_rows(), asyncio.get_running_loop()
        if body.method != "pca":
            check(Manifold(body.method), len(rows))  # before minutes of embedding
        own = await self.service.model(request, body.model, "embed")

        def work(report: Report) -> None:
            units_ND = rows.embed(self.service, own, loop, lambda s, m: report(s / 2, m))
            known_ND = units_ND[_has_vector(units_ND)]
            if body.method != "pca":
                self._compute(known_ND, body, lambda s, m: report(0.5 + s / 2, m))

        def is_known() -> bool:
            units_ND = rows.units(own)
            known_ND = units_ND[_has_vector(units_ND)]
            return body.method == "pca" or not self._new(known_ND, body)

        with suppress(InputError):
            if await self.run(request, own, is_known):
                return done
        key = f"rows-{id(own.model)}-{body.method}-{body.neighbors}-{body.seed}"
        return self._fresh(key, work)

    def _new(self, units_ND: np.ndarray, body: MapOf) -> str:
        """The key of a map that is not computed yet; empty for a known one."""
        key = map_key(units_ND, body)
        return key if self._known(key) is None else ""

    def _fresh(self, key: str, work: Callable[[Report], None]) -> dict[str, Any]:
        """The state of a job; one that has finished, but whose map was forgotten, runs again."""
        return self.jobs.start(key, work, is_new=True).state()

    def _compute(self, units_ND: np.ndarray, body: MapOf, report: Report) -> None:
        manifold = Manifold(body.method, body.neighbors, body.seed)
        # One at a time: together they would be slower, and use the memory of all.
        while not self._is_computing.acquire(timeout=0.25):
            report(0.0, "Waiting for other work")
        try:
            points_N2 = lay_out_beside(units_ND, manifold, report)
        finally:
            self._is_computing.release()
        self._keep(map_key(units_ND, body), points_N2)

    def _keep(self, key: str, points_N2: np.ndarray) -> None:
        self._places.put(key, points_N2, points_N2.nbytes)
        with suppress(WriteError, OSError):  # a full disk costs the time of the next run
            write_cached(key, points_N2)

    def _known(self, key: str) -> np.ndarray | None:
        if (kept := self._places.get(key)) is not None:
            return kept
        if (found := read_cached(key)) is not None:
            self._places.put(key, found, found.nbytes)
        return found

    async def points(self, request: Request, body: MapOf) -> tuple[Served, Points]:
        """The unit vectors that a map shows, with labels."""
        if body.of == "rows":
            rows = self.own_rows()
            own = await self.service.model(request, body.model, "embed")
            return own, await self.run(
                request, own, lambda: Points(rows.units(own), rows.labels, [])
            )
        own = await self.service.model(request, body.model, "words")
        model = own.model
        return own, await self.run(request, own, lambda: word_points(model.words, body.num))

    def places(self, points: Points, body: MapOf) -> tuple[np.ndarray, dict[str, Any]]:
        """Where the points are, (N, 2), and what is known about the axes."""
        if body.method == "pca":
            points_N2, shares = project(points.units_ND)
            return points_N2, {"shares": shares.tolist()}
        found = self._known(map_key(points.units_ND, body))
        if found is None:
            raise InputError("This map is not computed yet: start it first.")
        return found, {}

    async def changes(self, request: Request, body: ChangesOf) -> dict[str, Any]:
        """The most changed words between two models, and the neighbors of one word in both."""
        pair = [
            await self.service.model(request, name, "words") for name in (body.model, body.other)
        ]
        models = [own.model for own in pair]
        key = (*map(ref, models), body.num)

        def compute() -> dict[str, Any]:
            if (known := self._comparisons.get(key)) is None:
                known = _compared(models, body.num)
                self._comparisons.put(key, known, sum(own.nbytes for own in known.sides))
            changes = known.most_changed(body.top, body.neighbors)
            answer = {
                "num_words": len(known.words),
                "mean": float(known.overlaps(body.neighbors).mean()),
                "changes": [_changed(own) for own in changes],
            }
            if body.word is not None:
                answer["word"] = _changed(known.change(body.word, body.neighbors))
            return answer

        found: dict[str, Any] = await self.run(request, pair[0], compute)
        return found

    async def search(self, request: Request, body: RowSearch) -> list[dict[str, Any]]:
        """Rows that fit a query, best first."""
        rows = self.own_rows()
        if body.index is None and not body.query.strip():
            raise InputError("Give a text to look for.")
        if body.index is None and body.by == "text":
            indexes = await self.beside(request, lambda: rows.containing(body.query, body.num))
            return [rows.described(index) for index in indexes]
        own = await self.service.model(request, body.model, "embed")
        units_ND = rows.units(own)
        if body.index is not None:
            if body.index >= len(rows):
                raise InputError(f"There is no row {body.index:,}.")
            query_D = units_ND[body.index]
        else:
            query_D = (
                await self.service.answer(
                    request, body.model, "embed", lambda model: model.embed([body.query])
                )
            )[0]
        near = await self.run(request, own, lambda: nearest_rows(units_ND, query_D, body.num))
        return [rows.described(*found) for found in near]


def _compared(models: list[Any], num: int) -> Comparison:
    for model in models:
        if model.words.is_one_hot:
            raise OptionError("One-hot vectors have no neighbors to compare.")
    return Comparison(models[0].words, models[1].words, num)


def _clusters_of_known(points: Points, num: int, seed: int) -> tuple[np.ndarray, list[list[str]]]:
    """The clusters of the points that have a vector; the others are in the first."""
    is_known = _has_vector(points.units_ND)
    labels = [label for label, known in zip(points.labels, is_known, strict=True) if known]
    numbers = np.zeros(len(is_known), np.int64)
    numbers[is_known], names = cluster_points(points.units_ND[is_known], labels, num, seed)
    return numbers, names


def _changed(own: Any) -> dict[str, Any]:
    return {**own._asdict(), "lost": own.lost, "gained": own.gained}


def _has_vector(units_ND: np.ndarray) -> np.ndarray:
    return np.asarray(units_ND.any(axis=1))


def _answer(maps: _Maps, points: Points, body: MapOf) -> Response:
    """Points as binary columns; labels are one text in UTF-8 with the ends of each."""
    num = len(points.units_ND)
    # A row may have no word that the model knows.
    is_known = np.ones(num, np.bool_) if body.of == "words" else _has_vector(points.units_ND)
    if is_known.sum() < 3:
        raise OptionError("At least three points with a vector are needed for a map.")
    known = Points(points.units_ND[is_known], [], [])
    places_N2, told = maps.places(known, body)
    all_N2 = np.zeros((num, 2), np.float32)
    all_N2[is_known] = places_N2
    encoded = [label.encode("utf-8", "replace") for label in points.labels]
    columns: dict[str, np.ndarray] = {
        "x": all_N2[:, 0], "y": all_N2[:, 1], "is_known": is_known.astype(np.uint8),
        "labels": np.frombuffer(b"".join(encoded), np.uint8),
        "ends": np.cumsum([len(own) for own in encoded]).astype(np.uint32),
    }  # fmt: skip
    if points.counts:
        columns["counts"] = np.minimum(points.counts, 2**32 - 1).astype(np.uint32)
    told |= {"num": num, "num_unknown": int((~is_known).sum())}
    return columns_response(told, **columns)


# ---- the cache ----------------------------------------------------------------------------------


def map_key(units_ND: np.ndarray, body: MapOf) -> str:
    """The name of a map: a hash of the vectors, the settings, and the version of the library."""
    facts = (
        units_ND.shape, body.method, body.neighbors, body.seed,
        installed_versions([PACKAGES[body.method][1]]),
    )  # fmt: skip
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(units_ND, np.float32).tobytes())
    return f"{body.method}-{digest.hexdigest()}"


def write_cached(key: str, points_N2: np.ndarray) -> None:
    """Write a map in one step; the oldest ones go."""
    folder = cache_dir() / "maps"
    with write_file(folder / f"{key}.npy") as path:
        np.save(path, points_N2)
    files = sorted(folder.glob("*.npy"), key=lambda own: own.stat().st_mtime)
    for old in files[:-_MOST_CACHED]:
        old.unlink(missing_ok=True)


def read_cached(key: str) -> np.ndarray | None:
    """A map of the cache; None if there is none, or a damaged one."""
    try:
        points_N2 = np.load(cache_dir() / "maps" / f"{key}.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    is_map = points_N2.ndim == 2 and points_N2.shape[1] == 2 and np.isfinite(points_N2).all()
    return points_N2 if is_map else None

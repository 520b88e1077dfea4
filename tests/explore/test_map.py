"""The view Map: points, clusters and changes as in Python; jobs, the cache, and one's own rows."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from sememe.errors import OptionError, SememeError
from sememe.explore import map as explored, page
from sememe.explore.app import Explorer
from sememe.explore.config import ExploreConfig
from sememe.explore.map import MapOf, map_key, read_cached, write_cached
from sememe.explore.rows import OwnRows
from sememe.plots import manifold
from sememe.plots.manifold import Manifold, lay_out_beside
from sememe.plots.projection import project
from sememe.plots.vocabulary import cluster_points, word_points
from sememe.vectors.comparison import Comparison
from sememe.vectors.search import unit_rows

STATIC, OTHER, CONTEXTUAL, CHINESE = (
    "word2vec-skipgram-negative",
    "glove",
    "bert",
    "word2vec-chinese",
)
API = "/explore/api/map"
HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty cache of these tests' own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explored, "cache_dir", lambda: folder)
        yield folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "reviews.csv"
    texts = ["the list of words", "a string of text", "the value of an object", "zzz qqq"]
    lines = [f"{texts[number % 4]} {number},{number % 3},{HOSTILE!r}" for number in range(40)]
    path.write_text("text,kind,mark\n" + "\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def with_rows(golden: Path, rows: Path, new_client: Any) -> Iterator[TestClient]:
    """A client of an explorer with rows."""
    explorer = Explorer([golden / STATIC, golden / OTHER], ExploreConfig(port=0, rows=str(rows)))
    with new_client(explorer) as client:
        yield client


def unpack(answer: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    assert answer.status_code == 200, answer.text
    data = answer.content
    start = 4 + int.from_bytes(data[:4], "little")
    header = json.loads(data[4:start])
    columns = {}
    for told in header["columns"]:
        num = int(np.prod(told["shape"]))
        found = np.frombuffer(data, told["type"], num, start)
        columns[told["name"]] = found.reshape(told["shape"])
        start += -(-found.nbytes // 8) * 8
    return header["meta"], columns


def labels(columns: dict[str, np.ndarray]) -> list[str]:
    ends = columns["ends"].tolist()
    data = columns["labels"].tobytes()
    return [data[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]


def points(client: Any, model: str, **more: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return unpack(client.post(f"{API}/points", json={"model": model, **more}))


def start(client: Any, **body: Any) -> dict[str, Any]:
    """Start a map and wait for it; the last state."""
    answer = client.post(f"{API}/start", json=body)
    assert answer.status_code == 200, answer.text
    state = answer.json()
    end_s = time.monotonic() + 300
    while state["state"] == "running":
        assert time.monotonic() < end_s
        time.sleep(0.1)
        state = client.get(f"/explore/api/jobs/{state['id']}").json()
    return state


def refused(answer: Any) -> str:
    assert answer.status_code in (400, 404, 422), answer.text
    message: str = answer.json()["error"]["message"]
    assert "\n" not in message and "Traceback" not in message
    return message


# ---- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [STATIC, OTHER, CONTEXTUAL, CHINESE, "fasttext", "counts"])
def test_points_are_the_principal_components_of_unit_vectors(
    client: Any, opened: Any, name: str
) -> None:
    words = opened(name).words
    meta, columns = points(client, name, num=100)
    names = labels(columns)
    wanted = word_points(words, 100)
    assert names == wanted.labels and len(set(names)) == len(names) == meta["num"]
    units_ND = unit_rows(words[names])
    places_N2, shares = project(units_ND)
    assert np.allclose(np.stack([columns["x"], columns["y"]], 1), places_N2, atol=1e-5)
    assert meta["shares"] == pytest.approx(shares.tolist(), abs=1e-6)
    assert columns["is_known"].all() and meta["num_unknown"] == 0


def test_most_frequent_words_come_first(client: Any, opened: Any) -> None:
    counts = opened(STATIC).words.vocabulary.counts
    _, columns = points(client, STATIC, num=50)
    assert columns["counts"].tolist() == sorted(counts, reverse=True)[:50]


def test_projection_of_many_rows_equals_that_of_few() -> None:
    """Tall tables go through the products of their columns; the singular vectors are the same."""
    rows_ND = np.random.default_rng(1).standard_normal((300, 12)) * np.arange(1, 13)
    fast_N2, shares = project(rows_ND)
    centred_ND = rows_ND - rows_ND.mean(axis=0)
    _, scales, axes = np.linalg.svd(centred_ND, full_matrices=False)
    slow_N2 = centred_ND @ axes[:2].T
    assert np.allclose(np.abs(fast_N2), np.abs(slow_N2), atol=1e-9)
    assert np.allclose(shares, (scales**2 / (scales**2).sum())[:2])
    flat_N2, shares = project(np.ones((300, 3)))
    assert not flat_N2.any() and not shares.any()


def test_clusters_equal_those_of_python(client: Any, opened: Any) -> None:
    wanted = word_points(opened(STATIC).words, 80)
    numbers, names = cluster_points(wanted.units_ND, wanted.labels, 4, 1)
    meta, columns = unpack(
        client.post(f"{API}/clusters", json={"model": STATIC, "num": 80, "clusters": 4})
    )
    assert meta["names"] == names and columns["category"].tolist() == numbers.tolist()
    sizes = np.bincount(numbers).tolist()
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == 4


def test_a_cluster_is_named_by_the_points_near_its_mean() -> None:
    units_ND = unit_rows(np.array([[1, 0.01], [1, 0.5], [1, 0.0], [0, 1.0], [0.1, 1]]))
    numbers, names = cluster_points(units_ND.astype(np.float32), list("abcde"), 2, 1)
    assert numbers.tolist() == [0, 0, 0, 1, 1] and set(names[1]) == {"d", "e"}
    assert set(names[0]) == {"a", "b", "c"}


def test_changes_equal_neighbors_in_python(client: Any, opened: Any) -> None:
    sides = [opened(name).words for name in (STATIC, OTHER)]
    body = {"model": STATIC, "other": OTHER, "num": 200, "neighbors": 5, "top": 7}
    found = client.post(f"{API}/changes", json=body).json()
    shared = [word for word in sides[0] if word in sides[1]][:200]
    assert found["num_words"] == len(shared)

    def nearest(vectors: Any, word: str) -> list[str]:
        scores = dict(zip(shared, vectors.similarities(word, shared), strict=True))
        return sorted(set(shared) - {word}, key=lambda own: -scores[own])[:5]

    overlaps = []
    for word in shared:
        first, second = (set(nearest(vectors, word)) for vectors in sides)
        overlaps.append(len(first & second) / 5)
    assert found["mean"] == pytest.approx(np.mean(overlaps), abs=0.01)
    assert [own["overlap"] for own in found["changes"]] == sorted(overlaps)[:7]
    one = found["changes"][3]
    first, second = (nearest(vectors, one["word"]) for vectors in sides)
    assert one["before"] == first and one["after"] == second
    assert one["lost"] == [word for word in first if word not in second]
    assert one["gained"] == [word for word in second if word not in first]
    told = client.post(f"{API}/changes", json={**body, "word": shared[0]}).json()["word"]
    assert (told["word"], told["overlap"]) == (shared[0], overlaps[0])


def test_a_model_has_no_changes_beside_itself(opened: Any) -> None:
    words = opened(STATIC).words
    assert (Comparison(words, words, 100).overlaps(5) == 1).all()


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("points", {"method": "umap"}, "not computed yet"),
        ("points", {"num": 5}, "10"),
        ("points", {"num": 200_000}, "100000"),
        ("points", {"method": "lda"}, "pca"),
        ("points", {"of": "rows"}, "--rows"),
        ("points", {"model": "ngram"}, "word"),
        ("points", {"model": "nobody"}, "nobody"),
        ("points", {"extra": 1}, "extra"),
        ("start", {"of": "rows"}, "--rows"),
        ("clusters", {"clusters": 1}, "2"),
        ("changes", {"other": "nobody"}, "nobody"),
        ("changes", {"other": CHINESE}, "share"),
        ("changes", {"other": OTHER, "word": HOSTILE}, HOSTILE),
        ("rows/column", {"name": "x"}, "--rows"),
        ("rows/search", {"query": "x"}, "--rows"),
    ],
)
def test_bad_input_is_one_sentence(client: Any, path: str, body: dict[str, Any], told: str) -> None:
    assert told in refused(client.post(f"{API}/{path}", json={"model": STATIC} | body))


def test_without_rows_the_page_is_told_so(client: Any) -> None:
    assert client.get(f"{API}/rows").json() == {"num": 0, "notes": [], "columns": [], "path": ""}


def test_a_missing_package_is_named(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifold, "find_spec", lambda name: None)
    answer = client.post(f"{API}/start", json={"model": STATIC, "method": "tsne"})
    assert "pip install 'sememe[explore]'" in answer.json()["error"]["message"]
    assert answer.status_code >= 400


# ---- UMAP and t-SNE -----------------------------------------------------------------------------


def test_tsne_is_computed_once_and_kept(client: Any, opened: Any, cache: Path) -> None:
    pytest.importorskip("openTSNE")
    body = {"model": STATIC, "method": "tsne", "num": 60, "neighbors": 5}
    state = start(client, **body)
    assert (state["state"], state["progress"]) == ("done", 1.0)
    _, columns = points(client, **body)
    units_ND = word_points(opened(STATIC).words, 60).units_ND
    wanted_N2 = manifold.lay_out(units_ND, Manifold("tsne", 5, 1))
    assert np.array_equal(np.stack([columns["x"], columns["y"]], 1), wanted_N2)
    key = map_key(units_ND, MapOf(**body))
    assert np.array_equal(read_cached(key), wanted_N2)
    assert (cache / "maps" / f"{key}.npy").exists()
    again = client.post(f"{API}/start", json=body).json()
    assert again["state"] == "done" and not again["id"]  # no new job


def test_the_cache_is_bound_to_vectors_and_settings(cache: Path) -> None:
    units_ND = np.eye(12, dtype=np.float32)
    body = MapOf(method="tsne")
    key = map_key(units_ND, body)
    other_ND = units_ND.copy()
    other_ND[3, 3] = 0.5
    others = [
        map_key(other_ND, body), map_key(units_ND[::-1], body),
        map_key(units_ND.reshape(24, 6), body),
        *(map_key(units_ND, MapOf(**{"method": "tsne"} | more))
          for more in ({"seed": 2}, {"neighbors": 9}, {"method": "umap"})),
    ]  # fmt: skip
    assert len({key, *others}) == 7 and map_key(units_ND.copy(), body) == key
    write_cached(key, np.ones((12, 2), np.float32))
    assert read_cached(key) is not None
    path = cache / "maps" / f"{key}.npy"
    path.write_bytes(path.read_bytes()[:-9])
    assert read_cached(key) is None  # damaged: computed again
    assert all(read_cached(other) is None for other in others)


class _StoppedError(SememeError):
    pass


def test_a_cancelled_map_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends and its files go, whenever it is stopped."""
    pytest.importorskip("openTSNE")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    begun: list[Any] = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        manifold.subprocess,
        "Popen",
        lambda *own, **more: begun.append(popen(*own, **more)) or begun[0],
    )
    num_reports = 0

    def report(_share: float, _message: str) -> None:
        nonlocal num_reports
        num_reports += 1
        if num_reports == 3:
            raise _StoppedError("Cancelled.")

    rows_ND = np.random.default_rng(1).standard_normal((3_000, 8)).astype(np.float32)
    with pytest.raises(_StoppedError):
        lay_out_beside(rows_ND, Manifold("tsne"), report)
    assert begun[0].poll() is not None and not list(tmp_path.iterdir())


def test_a_process_that_is_killed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openTSNE")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    popen = subprocess.Popen

    def killed(*own: Any, **more: Any) -> Any:
        process = popen(*own, **more)
        process.kill()
        return process

    monkeypatch.setattr(manifold.subprocess, "Popen", killed)
    with pytest.raises(SememeError, match="its process ended"):
        lay_out_beside(np.eye(12, dtype=np.float32), Manifold("tsne"), lambda share, message: None)
    assert not list(tmp_path.iterdir())


def test_a_cancelled_job_is_told_and_starts_again(
    client: Any, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    pytest.importorskip("openTSNE")
    body = {"model": STATIC, "method": "tsne", "num": 40}

    def endless(rows_ND: np.ndarray, own: Manifold, report: Any) -> np.ndarray:
        while True:
            report(0.3, "Moving the points")
            time.sleep(0.01)

    before = set(cache.rglob("*.npy"))
    monkeypatch.setattr(explored, "lay_out_beside", endless)
    state = client.post(f"{API}/start", json=body).json()
    assert state["state"] == "running"
    assert client.post(f"/explore/api/jobs/{state['id']}/cancel", json={}).status_code == 200
    state = client.get(f"/explore/api/jobs/{state['id']}").json()
    assert (state["state"], state["error"]) == ("failed", "Cancelled.")
    assert "not computed" in refused(client.post(f"{API}/points", json=body))
    assert set(cache.rglob("*.npy")) == before
    monkeypatch.setattr(
        explored, "lay_out_beside", lambda rows_ND, own, report: rows_ND[:, :2].copy()
    )
    assert start(client, **body)["state"] == "done"
    assert points(client, **body)[0]["num"] == 40


def test_too_few_points_are_refused() -> None:
    with pytest.raises(OptionError, match="10 points, not 9"):
        manifold.check(Manifold("umap"), 9)


# ---- rows ---------------------------------------------------------------------------------------


def test_rows_are_embedded_and_shown(with_rows: Any, opened: Any, rows: Path) -> None:
    told = with_rows.get(f"{API}/rows").json()
    assert told["num"] == 40 and told["path"] == str(rows) and "kind" in told["columns"]
    body = {"model": STATIC, "of": "rows"}
    assert "draw its map first" in refused(with_rows.post(f"{API}/points", json=body))
    assert start(with_rows, **body)["state"] == "done"
    meta, columns = points(with_rows, **body)
    texts = labels(columns)
    assert texts[0] == "the list of words 0" and meta["num"] == 40
    vectors_ND = opened(STATIC).embed(texts)
    is_known = np.asarray(vectors_ND.any(axis=1))
    assert columns["is_known"].tolist() == is_known.tolist() and 0 < meta["num_unknown"] < 40
    places_N2, _ = project(unit_rows(vectors_ND[is_known]))
    found_N2 = np.stack([columns["x"], columns["y"]], 1)
    assert np.allclose(found_N2[is_known], places_N2, atol=1e-5)
    assert not found_N2[~is_known].any()
    told, found = unpack(with_rows.post(f"{API}/clusters", json=body | {"clusters": 3}))
    assert len(told["names"]) == 3 and len(found["category"]) == 40
    assert not any("zzz" in name for names in told["names"] for name in names)


def test_rows_are_colored_and_found(with_rows: Any, opened: Any) -> None:
    body = {"model": STATIC}
    start(with_rows, **body, of="rows")
    told, found = unpack(with_rows.post(f"{API}/rows/column", json={"name": "kind"}))
    assert told["names"] == ["0", "1", "2"]
    assert found["category"].tolist() == [number % 3 for number in range(40)]

    def search(**more: Any) -> list[dict[str, Any]]:
        answer = with_rows.post(f"{API}/rows/search", json=body | more)
        assert answer.status_code == 200, answer.text
        return answer.json()["rows"]

    texts = [own["text"] for own in search(query="STRING")]
    assert len(texts) == 10 and all("string" in text for text in texts)
    assert HOSTILE in search(query="string", num=1)[0]["cells"]["mark"]
    near = search(query="a string of text", by="meaning", num=3)
    model = opened(STATIC)
    query_D, row_D = unit_rows(model.embed(["a string of text", near[0]["text"]]))
    assert near[0]["score"] == pytest.approx(float(query_D @ row_D), abs=1e-5)
    same = search(index=4, num=1)[0]
    assert same["index"] % 4 == 0 and same["score"] == pytest.approx(1, abs=1e-5)
    for bad in ({"query": " "}, {"index": 40}, {"index": -1}, {"query": "x", "by": "sound"}):
        assert refused(with_rows.post(f"{API}/rows/search", json=body | bad))
    assert "“nope”" in refused(with_rows.post(f"{API}/rows/column", json={"name": "nope"}))


def test_what_takes_long_is_not_computed_on_the_event_loop(
    with_rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service would answer nobody meanwhile."""
    body = {"model": STATIC}
    start(with_rows, **body, of="rows")
    places: dict[str, str] = {}

    def watch(owner: Any, name: str, result: Any = None) -> None:
        own = getattr(owner, name)

        def call(*given: Any) -> Any:
            places[name] = threading.current_thread().name
            return own(*given) if result is None else result

        monkeypatch.setattr(owner, name, call)

    for owner, name in (
        (page, "described"), (OwnRows, "containing"), (OwnRows, "colors"),
        (explored, "nearest_rows"), (explored, "map_key"),
    ):  # fmt: skip
        watch(owner, name)
    watch(explored, "read_cached", np.zeros((10, 2), np.float32))
    for path, more in (
        ("rows/search", {"query": "string"}), ("rows/search", {"index": 4}),
        ("start", {"method": "tsne", "neighbors": 3, "num": 10}),
    ):  # fmt: skip
        assert with_rows.post(f"{API}/{path}", json=body | more).status_code == 200
    assert with_rows.post(f"{API}/rows/column", json={"name": "kind"}).status_code == 200
    assert with_rows.get("/explore/api/state").status_code == 200
    assert len(places) == 6
    assert all(thread.startswith("sememe-call") for thread in places.values()), places

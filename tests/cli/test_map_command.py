"""`sememe plot map`: the places of the words, as tables and as pictures."""

import csv
from pathlib import Path

import numpy as np
import pytest

from sememe.plots.manifold import Manifold, lay_out
from sememe.plots.projection import project
from sememe.plots.vocabulary import word_points
from sememe.vectors import WordVectors


@pytest.fixture
def vectors(tmp_path):
    """Forty words, one of which is no text of XML and one of which is Chinese."""
    rows_ND = np.random.default_rng(1).standard_normal((40, 8)).astype(np.float32)
    words = ["国王", "<b>$x", *(f"word{number}" for number in range(38))]
    path = tmp_path / "vectors.txt"
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, rows_ND, strict=True)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def read(path):
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["word"] for row in rows], np.array([[float(r["x"]), float(r["y"])] for r in rows])


@pytest.mark.parametrize("method", ["pca", "umap", "tsne"])
def test_places_are_those_of_python(sememe, vectors, method):
    if method != "pca":
        pytest.importorskip({"umap": "umap", "tsne": "openTSNE"}[method])
    arguments = ["--method", method, "--words", 30, "--seed", 3]
    if method != "pca":
        arguments += ["--neighbors", 5]
    ran = sememe("plot", "map", vectors, *arguments, "--out", "map.csv", "--out", "map.svg")
    assert ran.out == "Saved map.csv\nSaved map.svg\n"
    points = word_points(WordVectors.load(vectors), 30)
    if method == "pca":
        wanted_N2, _ = project(points.units_ND)
    else:
        wanted_N2 = lay_out(points.units_ND, Manifold(method, 5, 3))
    words, found_N2 = read("map.csv")
    assert words == points.labels and words[:2] == ["国王", "<b>$x"]
    assert np.allclose(found_N2, wanted_N2, atol=1e-5)
    assert "A map of 30 words. 国王" in Path("map.svg").read_text("utf-8")


def test_map_is_a_picture_by_default(sememe, vectors):
    assert sememe("plot", "map", vectors, "--quiet").out == ""
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_mapped_is_told_before_anything_is_written(sememe, vectors, tmp_path):
    few = tmp_path / "few.txt"
    few.write_text("cat 1 0\ndog 0 1\n", "utf-8")
    before = sorted(Path().iterdir())
    for arguments, told in (
        ((vectors, "--out", "map.svg", "--out", "map.pdf"), "must end in"),
        ((few,), "2 words: too few"),
        ((vectors, "--words", 9), "10"),
        ((vectors, "--neighbors", 5), "--method umap"),
    ):
        wrong = sememe("plot", "map", *arguments, fails=True)
        assert wrong.code == 2 and told in wrong.err
    assert sorted(Path().iterdir()) == before

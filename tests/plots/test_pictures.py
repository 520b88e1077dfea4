"""Pictures: what is drawn, that it is the same every time, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from sememe.errors import InputError, OptionError, UnknownWordError, WriteError
from sememe.plots import heatmap, history, pca, style
from sememe.plots.heatmaps import combine
from sememe.plots.projection import place_labels, project
from sememe.progress import History
from sememe.vectors import WordVectors
from sememe.vectors.search import parse_sum

WORDS = ["france", "paris", "italy", "rome", "spain", "madrid", "t-shirt", "cost$5$"]
PAIRS = [("france", "paris"), ("italy", "rome"), ("spain", "madrid")]


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(0).normal(size=(8, 20)).astype("f4"))


def texts(figure) -> list[str]:  # type: ignore[no-untyped-def]
    return [text.get_text() for text in figure.axes[0].texts]


def test_pairs_are_joined_and_every_word_is_labelled(vectors: WordVectors, tmp_path: Path) -> None:
    paths = [tmp_path / "map.png", tmp_path / "map.svg"]
    figure = pca(vectors, [*PAIRS, "t-shirt", "cost$5$"], paths, title="Capitals")
    axes = figure.axes[0]
    assert sorted(texts(figure)) == sorted(WORDS)
    assert len(axes.lines) == 3 and all(line.get_linestyle() != "-" for line in axes.lines)
    # By their place in a pair words have another color and another mark.
    assert [len(own.get_offsets()) for own in axes.collections] == [3, 3, 2]
    shapes = [own.get_paths()[0].vertices.tolist() for own in axes.collections]
    assert shapes[0] != shapes[1] != shapes[2] != shapes[0]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in paths[1].read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.png", "map.svg"]


def test_words_alone_have_no_lines(vectors: WordVectors, tmp_path: Path) -> None:
    figure = pca(vectors, WORDS[:4], tmp_path / "map.svg", unit=False)
    assert len(figure.axes[0].lines) == 0 and len(texts(figure)) == 4


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_same_picture_gives_the_same_bytes(
    vectors: WordVectors, tmp_path: Path, ending: str
) -> None:
    for name in ("one", "two"):
        pca(vectors, PAIRS, tmp_path / f"{name}-map.{ending}")
        heatmap(vectors, ["rome", "paris - france + italy"], tmp_path / f"{name}-heat.{ending}")
    for kind in ("map", "heat"):
        first, second = (tmp_path / f"{name}-{kind}.{ending}" for name in ("one", "two"))
        assert first.read_bytes() == second.read_bytes()


def test_a_heat_map_has_a_strip_for_each_expression(vectors: WordVectors, tmp_path: Path) -> None:
    rows = ["rome", "paris - france + italy", "t-shirt"]
    figure = heatmap(vectors, rows, tmp_path / "heat.png")
    axes = figure.axes[0]
    mesh = axes.collections[0]
    assert mesh.get_array().shape == (3, 20)
    largest = np.abs(mesh.get_array()).max()
    assert (
        -mesh.get_clim()[0] == mesh.get_clim()[1] and largest <= mesh.get_clim()[1] < 1.1 * largest
    )
    assert np.allclose(mesh.get_array()[1], vectors["paris"] - vectors["france"] + vectors["italy"])
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["rome", "paris − france + italy", "t-shirt"]
    blue, white, red = mesh.cmap([0.0, 0.5, 1.0])
    assert blue[2] > blue[0] and red[0] > red[2] and white[:3].min() > 0.98


def test_the_colors_and_the_size_of_a_heat_map_follow_the_data(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values = random.uniform(-0.03, 0.03, (3, 200)).astype("f4")
    values[0, 7] = 0.0299
    told: list[str] = []

    def drawn(rows: np.ndarray, **options: Any) -> Any:
        words = [f"w{index}" for index in range(len(rows))]
        return heatmap(
            WordVectors(words, rows), words, tmp_path / "h.png", on_note=told.append, **options
        )

    mesh = drawn(values).axes[0].collections[0]
    assert mesh.get_clim() == (-0.03, 0.03) and told[-1].startswith("Colors run from −0.03")
    # One value that is far larger must not make all others pale; the scale shows it.
    values[1, 3] = 5.0
    figure = drawn(values)
    assert figure.axes[0].collections[0].get_clim()[1] < 0.04 and "is 5." in told[-1]
    assert len(figure.axes[1].patches) == 2, "arrows at the ends of the scale"
    assert drawn(values, limit=2.0).axes[0].collections[0].get_clim() == (-2, 2)
    assert drawn(np.zeros((1, 4), "f4")).axes[0].collections[0].get_clim() == (-1, 1)
    # Few dimensions are not stretched, many rows are lower; all labels are inside the picture.
    small, wide, many = (drawn(np.ones(shape, "f4")) for shape in ((2, 8), (2, 100), (300, 100)))
    assert small.get_figwidth() < 0.6 * wide.get_figwidth() < 12
    assert many.get_figheight() < 45 and len(many.axes[0].get_yticklabels()) == 300
    for figure in (small, wide, many):
        renderer = figure.canvas.get_renderer()
        lefts = [one.get_window_extent(renderer).x0 for one in figure.axes[0].get_yticklabels()]
        assert min(lefts) >= 0
    with pytest.raises(OptionError, match="2,000"):
        drawn(np.ones((2_001, 2), "f4"))


def test_labels_of_chinese_words_are_inside_a_heat_map(tmp_path: Path) -> None:
    words = ["自然语言处理", "国王"]
    rows = np.random.default_rng(0).normal(size=(2, 10)).astype("f4")
    figure = heatmap(WordVectors(words, rows), ["自然语言处理 - 国王"], tmp_path / "h.png")
    renderer = figure.canvas.get_renderer()
    assert figure.axes[0].get_yticklabels()[0].get_window_extent(renderer).x0 >= 0


def test_pictures_have_a_text_alternative(vectors: WordVectors, tmp_path: Path) -> None:
    paths = [tmp_path / "one.svg", tmp_path / "one.png"]
    records = [{"words": index, "loss": 2.0 / index} for index in range(1, 9)]
    for draw in (
        lambda: pca(vectors, [*PAIRS, "cost$5$"], paths),
        lambda: heatmap(vectors, ["rome", "paris - france + italy"], paths),
        lambda: history(records, paths),
    ):
        draw()
        root = ElementTree.parse(paths[0]).getroot()
        title, text = root[0], root[1]
        assert root.get("role") == "img" and title.tag.endswith("title")
        assert text.tag.endswith("desc") and len(text.text) > 20
        with Image.open(paths[1]) as picture:
            assert picture.info["Description"] == text.text
    heatmap(vectors, ["rome"], paths)
    assert "rome" in paths[0].read_text() and "Colors run from" in paths[0].read_text()


def test_expressions(vectors: WordVectors) -> None:
    assert parse_sum("king - man + woman") == [(1, "king"), (-1, "man"), (1, "woman")]
    assert parse_sum("- t-shirt") == [(-1, "t-shirt")]
    assert np.array_equal(combine(vectors, "- rome"), -vectors["rome"])
    for bad in ("", "king -", "king + - man", "king man", "+", "- - king"):
        with pytest.raises(OptionError, match="not a sum of words"):
            parse_sum(bad)


def test_a_history_is_drawn_over_words(tmp_path: Path) -> None:
    records = History({"words": 100 * i, "epoch": i // 10, "loss": 1 / (i + 1)} for i in range(30))
    figure = history(records, tmp_path / "loss.svg")
    raw, smoothed, *edges = figure.axes[0].lines
    assert raw.get_xdata().tolist() == [100 * i for i in range(30)]
    assert len(smoothed.get_ydata()) == 30 and len(edges) == 2
    assert figure.axes[0].get_xlabel() == "words"
    plain = history([{"loss": 2.0}, {"loss": 1.0}], tmp_path / "plain.png")
    assert plain.axes[0].lines[0].get_xdata().tolist() == [1, 2]
    for nothing in ([], [{"words": 1}], [{"loss": None}]):
        with pytest.raises(InputError, match="no metric “loss”"):
            history(nothing, tmp_path / "none.png")


def test_what_cannot_be_drawn_is_refused_before_work(vectors: WordVectors, tmp_path: Path) -> None:
    for path in ("map.pdf", "map", []):
        with pytest.raises(OptionError, match=r"\.png or \.svg"):
            pca(vectors, PAIRS, path)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="three words"):
        pca(vectors, ["rome", "paris"], tmp_path / "map.png")
    with pytest.raises(UnknownWordError, match="pariss"):
        pca(vectors, ["rome", "pariss", "italy"], tmp_path / "map.png")
    with pytest.raises(OptionError, match="limit"):
        heatmap(vectors, ["rome"], tmp_path / "heat.png", limit=0)
    with pytest.raises(OptionError, match="needs a word"):
        heatmap(vectors, [], tmp_path / "heat.png")
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError):
        heatmap(vectors, ["rome"], tmp_path / "file" / "heat.png")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_chinese_labels_take_a_font_or_say_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["北京", "中国", "东京", "日本"]
    vectors = WordVectors(words, np.random.default_rng(1).normal(size=(4, 6)).astype("f4"))
    base = {style.BASE_FAMILY: style._installed()[style.BASE_FAMILY]}
    monkeypatch.setattr(style, "_installed", lambda: base)
    style._warn_once.cache_clear()
    with pytest.warns(UserWarning, match="No installed font can draw Chinese"):
        pca(vectors, [("中国", "北京"), ("日本", "东京")], tmp_path / "map.svg")
    # Text stays text, so that the fonts of whoever looks at it can show it.
    assert "北京" in (tmp_path / "map.svg").read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pca(vectors, words, tmp_path / "again.png")


def test_a_font_with_the_characters_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    have = {"base": frozenset(map(ord, "abc")), "zh": frozenset(map(ord, "北京"))}
    monkeypatch.setattr(style, "_characters", lambda path: have[path])
    installed = {style.BASE_FAMILY: "base", "SimHei": "zh"}
    monkeypatch.setattr(style, "_installed", lambda: installed)
    assert style.families_for(["a b c"]) == ([style.BASE_FAMILY], True)
    assert style.families_for(["abc", "北京"]) == ([style.BASE_FAMILY, "SimHei"], True)


def test_a_font_installed_since_matplotlib_made_its_list_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib import font_manager

    new, broken = tmp_path / "new.ttf", tmp_path / "broken.ttf"
    shutil.copy(style._installed()["DejaVu Serif"], new)
    broken.write_bytes(b"no font")
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(broken), str(new)])
    known = list(font_manager.fontManager.ttflist)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    style._find_new_fonts.cache_clear()
    style.families_for(["abc"])  # holds nothing that a search could help with
    assert str(new) not in [font.fname for font in known]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        style.families_for(["\U0010fffd"])
    assert str(new) in [font.fname for font in known]
    style._find_new_fonts.cache_clear()


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 12), st.integers(1, 9), st.integers(0, 999))
def test_projection_keeps_as_much_variance_as_two_axes_can(rows: int, dim: int, seed: int) -> None:
    data = np.random.default_rng(seed).normal(size=(rows, dim)) * np.arange(1, dim + 1)
    points, shares = project(data)
    values = np.linalg.eigvalsh(np.atleast_2d(np.cov(data.T)))[::-1][:2]
    kept = points.var(axis=0, ddof=1)
    assert np.allclose(kept[: len(values)], values, atol=1e-8)
    assert 0 <= shares.sum() <= 1 + 1e-9 and points.shape == (rows, 2)


def test_projection_of_equal_rows_is_a_point() -> None:
    points, shares = project(np.ones((4, 3)))
    assert not points.any() and shares.tolist() == [0, 0]


def overlaps(centres: np.ndarray, sizes: np.ndarray) -> int:
    gap = np.abs(centres[:, None] - centres) - (sizes[:, None] + sizes) / 2
    return int(np.triu((gap < 0).all(axis=2), 1).sum())


def test_a_label_lies_over_the_point_of_no_other():
    # Nine models of a ladder, most of which took as long and came as far.
    points = np.array([(56, 158), (135, 76), (238, 70), (219, 85), (252, 72), (271, 85), (261, 107),
                       (266, 166), (274, 62)], float)  # fmt: skip
    wide = np.array([42, 42, 89, 36, 54, 31, 31, 25, 31], float)
    sizes = np.stack([wide, np.full(9, 14.0)], axis=1)
    centres = place_labels(points, sizes, (38, 44, 338, 228))
    is_inside = np.abs(points[None] - centres[:, None]) < sizes[:, None] / 2
    assert not is_inside.all(2).any()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_labels_part_and_stay_inside(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = random.uniform((60, 40), (840, 560), (30, 2))
    points[:6] = points[0] + random.normal(size=(6, 2)) * 5
    sizes = np.stack([random.uniform(25, 70, 30), np.full(30, 12.0)], axis=1)
    centres = place_labels(points, sizes, (0, 0, 900, 600))
    beside = points + [1, 0] * (sizes / 2 + 4)
    assert overlaps(beside, sizes) > 0
    assert overlaps(centres, sizes) <= 1
    assert ((centres - sizes / 2 >= 0) & (centres + sizes / 2 <= (900, 600))).all()


def test_matplotlib_loads_only_to_draw_and_pyplot_never() -> None:
    program = (
        "import sys, numpy, sememe.plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from sememe.vectors import WordVectors\n"
        "v = WordVectors(list('abc'), numpy.eye(3, dtype='f4'))\n"
        "import tempfile, pathlib\n"
        "sememe.plots.pca(v, list('abc'), pathlib.Path(tempfile.mkdtemp()) / 'a.png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

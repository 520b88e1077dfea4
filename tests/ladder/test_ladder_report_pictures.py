"""The pictures of a report: well-formed, readable in light and dark, none without content."""

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import combinations

import pytest
from report_reader import assert_alone
from sample_results import hostile_results, sample_results

from sememe.ladder.report import write_report
from sememe.ladder.report.charts import DARK, FAMILIES, LIGHT, MARKS, SERIES
from sememe.ladder.report.pages import page
from sememe.ladder.report.panels import styles
from sememe.ladder.results import Point, Visuals, WordPoint, WordsVisual


def test_pictures_are_well_formed_and_hold_their_text(tmp_path):
    for language, word in (("en", "axis"), ("zh", "苹果")):
        write_report(sample_results(language), tmp_path / language)
        names = sorted(path.name for path in (tmp_path / language / "pictures").iterdir())
        assert names == ["attention.svg", "contexts.svg", "losses.svg", "quality.svg", "words.svg"]
        for name in names:
            text = (tmp_path / language / "pictures" / name).read_text(encoding="utf-8")
            assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
            assert f"pictures/{name}" in (tmp_path / language / "report.md").read_text()
        assert word in (tmp_path / language / "pictures" / "contexts.svg").read_text()
    write_report(hostile_results(), tmp_path / "bad")
    for path in (tmp_path / "bad" / "pictures").iterdir():
        ElementTree.fromstring(path.read_text(encoding="utf-8"))


def test_headings_of_losses_are_whole():
    results = sample_results()
    curve = [Point(1.0, 10**9, 0.02081), Point(82.4, 910_305_534, 0.00578)]
    text = page(replace(results, rungs=[replace(rung, history=curve) for rung in results.rungs]))
    assert "from 0.0208 to 0.00578, 910 M tokens<" in text


def _luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_text_and_marks_stand_out_from_their_ground(palette):
    """WCAG 2.1, AA: 4.5 for text, 3 for marks."""

    def contrast(one: str, other: str) -> float:
        high, low = sorted((_luminance(palette[one]), _luminance(palette[other])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for ground in ("paper", "card", "shade"):
        assert min(contrast(name, ground) for name in ("ink", "soft", "blue")) >= 4.5
        assert min(contrast(name, ground) for name in SERIES) >= 3
    families = [look[1:] for look in FAMILIES.values()]
    assert len({shape for shape, _ in families}) == len(families)
    assert len(set(MARKS)) == len(MARKS)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_the_colors_of_groups_are_told_apart(palette):
    colors = [[int(palette[name][at : at + 2], 16) for at in (1, 3, 5)] for name in SERIES]
    apart = [math.dist(one, other) for one, other in combinations(colors, 2)]
    assert min(apart) > 45  # of 442


def test_no_two_groups_look_alike():
    built_in = styles([f"group {number}" for number in range(len(SERIES))])
    assert len({color for _, color in built_in.values()}) == len(built_in) > 7
    many = styles([f"group {number}" for number in range(40)])  # more than there are colors
    assert len(set(many.values())) == 40
    groups = {f"group {number}": [f"word{number}"] for number in range(8)}
    points = [WordPoint(f"word{n}", f"group {n}", float(n), float(n % 3)) for n in range(8)]
    looks = Visuals(pca=WordsVisual(groups=groups, points={"bert": points}))
    text = page(replace(sample_results(), looks=looks))
    shapes = re.findall(r'class="mark (\w+)[^"]*"><title>word\d: group', text)
    assert len(set(shapes)) == len(shapes) == 8


def test_marks_that_hide_each_other_share_a_label():
    results = sample_results()
    rungs = [replace(rung, train_s=30.0) for rung in results.rungs]
    cells = [replace(cell, mean=50.0) if cell.task == "odd" else cell for cell in results.cells]
    assert "onehot, skipgram, bert<title>" in page(replace(results, rungs=rungs, cells=cells))


def test_a_picture_of_an_earlier_report_does_not_stay(tmp_path):
    write_report(sample_results(), tmp_path)
    write_report(replace(sample_results(), looks=Visuals()), tmp_path)
    left = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert left == ["losses.svg", "quality.svg"]
    assert "attention.svg" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_numbers_that_are_none_are_drawn_nowhere():
    results = sample_results()
    points = {"bert": [WordPoint("a", "g", math.nan, 0.0), WordPoint("b", "g", 0.0, 0.0),
                       WordPoint("c", "g", 1.0, 1.0)]}  # fmt: skip
    rungs = [
        replace(r, history=[Point(1.0, 1, math.nan), Point(2.0, 2, math.inf)])
        for r in results.rungs
    ]
    looks = Visuals(pca=WordsVisual(groups={"g": ["a", "b", "c"]}, points=points))
    text = page(replace(results, rungs=rungs, looks=looks))
    assert_alone(text)
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", text) and 'id="losses"' not in text


def test_a_static_model_has_one_point_for_all_uses():
    text = page(sample_results())
    assert "one vector for all 2 uses" in text
    assert "2 uses, each with its own vector" in text
    assert "dimension: The axis of an array." in text  # what a pointer reads

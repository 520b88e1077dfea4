"""The pictures of a report: well-formed, readable in light and dark, none without content."""

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from report_reader import Reader, assert_alone, table_with
from sample_results import hostile_results, sample_results

from sememe.ladder.report import write_report
from sememe.ladder.report.charts import DARK, FAMILIES, LIGHT, MARKS, SERIES, model_styles
from sememe.ladder.report.pages import markdown, page
from sememe.ladder.report.panels import rung_styles, styles, task_panel
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


# Linear RGB as it is seen without one kind of cones (Machado et al. 2009, severity 1).
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def _seen(color: str, vision: str) -> np.ndarray:
    """A color as (L, a, b) for some eyes."""
    parts = np.array([int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    xyz = _XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def _apart(one: str, other: str, palette: dict[str, str], vision: str) -> float:
    return float(np.linalg.norm(_seen(palette[one], vision) - _seen(palette[other], vision)))


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_marks_of_one_shape_have_colors_that_everybody_can_tell_apart(palette, vision):
    """A distance of 2 can be seen; 13 is plain for small marks."""
    groups = styles([f"group {number}" for number in range(len(SERIES))]).values()
    for (mark, color), (other_mark, other) in combinations(groups, 2):
        assert mark != other_mark or _apart(color, other, palette, vision) > 13
    models = model_styles([(f"model {number}", "static") for number in range(6)]).values()
    assert len(set(models)) == 6
    for (_, color), (_, other) in combinations(models, 2):
        assert _apart(color, other, palette, vision) > 13


def test_a_model_has_its_own_mark_in_all_charts_and_in_the_table():
    results = sample_results()
    more = replace(results.rungs[1], name="glove", title="GloVe")
    results = replace(results, rungs=[*results.rungs[:2], more, *results.rungs[2:]])
    known = rung_styles(results)
    assert known["skipgram"] == ("circle", "blue") and known["glove"] == ("open circle", "red")
    text = page(results)
    assert re.search(
        r'<th scope="row" title="glove"><svg[^>]*><circle[^>]*class="mark red hol', text
    )
    assert 'class="mark blue"><title>word2vec, skip-gram: mean rank' in text


def test_charts_have_text_alternatives(tmp_path):
    results = sample_results()
    reader = Reader(page(results))
    charts = [found for tag, found in reader.tags if tag == "svg" and "aria-hidden" not in found]
    assert len(charts) > 8
    assert all(own["role"] == "img" and len(own["aria-label"]) > 20 for own in charts)
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("desc") >= len(charts) - 2
    assert table_with(reader, "Mean rank")["BERT"][0] == "1.7"
    captions = re.findall(r"<caption>(.*?)</caption>", page(results))
    for told in ("Odd one out against training time", "Loss of BERT", "Attention of BERT"):
        assert any(told in one for one in captions), captions
    attention = results.looks.attention
    row = table_with(reader, "from token")[attention.tokens[0]]
    assert row == [f"{weight:.2f}" for weight in attention.weights[0]]
    write_report(results, tmp_path)
    for path in (tmp_path / "pictures").iterdir():
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        kinds = [part.tag.rpartition("}")[2] for part in root]
        assert kinds[:2] == ["title", "desc"] and root[1].text, path
        assert root.get("role") == "img"


def test_the_head_is_shown_for_a_stated_reason_with_a_color_scale():
    results = sample_results()
    look = replace(results.looks.attention, num_heads=8, share=0.314)
    text = page(replace(results, looks=replace(results.looks, attention=look)))
    told = "Of its 8 heads this one looks at other words most clearly"
    assert told in text and "is 31% on average" in text and ">attention weight<" in text
    assert told in markdown(replace(results, looks=replace(results.looks, attention=look)), {})
    assert told not in page(results), "an older file does not say"


def test_equal_scores_do_not_look_different():
    results = sample_results()
    cells = [
        replace(cell, scores=[25.0001], mean=25.0001, sd=None) if cell.task == "odd" else cell
        for cell in results.cells
    ]
    panel = task_panel(replace(results, cells=cells), results.tasks[0], "size")
    ticks = re.findall(r'class="tick"[^>]*>([\d.]+)<', "".join(panel.parts))
    assert float(ticks[1]) - float(ticks[0]) >= 0.5, ticks


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

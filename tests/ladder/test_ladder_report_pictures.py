"""The pictures of a report: well-formed, readable in light and dark, none without content."""

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

import pytest
from made_results import hostile_results, made_results
from report_reader import assert_alone

from sememe.errors import OptionError
from sememe.ladder.report import write_picture, write_report
from sememe.ladder.report.page import page
from sememe.ladder.report.theme import DARK, FAMILIES, LIGHT, MARKS, SERIES
from sememe.ladder.results import Looks, Point, WordPoint, WordsLook


def test_pictures_are_well_formed_and_hold_their_text(tmp_path):
    for language, word in (("en", "axis"), ("zh", "苹果")):
        write_report(made_results(language), tmp_path / language)
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


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_picture_for_a_readme(theme, tmp_path):
    path = write_picture(made_results(), tmp_path / "ladder.svg", theme=theme)
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    words = "".join(root.itertext())
    for shown in ("The ladder", "word2vec, skip-gram", "83.8 ± 0.8", "Failed: the loss ran away."):
        assert shown in words
    assert ("prefers-color-scheme" in text) == (theme == "auto")
    assert len(text) < 150_000
    assert "href" not in text and "url(" not in text


def test_a_picture_shows_an_ambiguous_word_in_every_contextual_model(tmp_path):
    results = made_results()
    look = results.looks.contexts
    assert look is not None
    rungs = [replace(rung, state="done") for rung in results.rungs]
    points = {**look.points, "gpt": look.points["bert"], "elmo": look.points["bert"]}
    looks = replace(results.looks, contexts=replace(look, points=points))
    path = write_picture(replace(results, rungs=rungs, looks=looks), tmp_path / "ladder.svg")
    texts = [part.text for part in ElementTree.parse(path).iter() if part.tag.endswith("text")]
    told = "2 uses, each with its own vector"
    heads = [head for head, below in pairwise(texts) if below == told]
    assert sorted(heads) == ["BERT", "ELMo", "GPT"]
    assert "“axis”: dimension" in texts and "“axis”: plot" in texts


def test_long_titles_are_broken_in_a_picture(tmp_path):
    results = made_results()
    tasks = [replace(task, title="analogies: google-analogies") for task in results.tasks] * 3
    tasks = [replace(task, name=f"{task.name}{n}") for n, task in enumerate(tasks)]
    cells = [replace(cell, task=f"{cell.task}{n}") for cell in results.cells for n in range(12)]
    path = write_picture(replace(results, tasks=tasks, cells=cells), tmp_path / "ladder.svg")
    texts = [part.text or "" for part in ElementTree.parse(path).iter()]
    assert "Analogies:" in texts and not any("…" in text for text in texts)


def test_headings_of_losses_are_whole():
    results = made_results()
    curve = [Point(1.0, 10**9, 0.02081), Point(82.4, 910_305_534, 0.00578)]
    text = page(replace(results, rungs=[replace(rung, history=curve) for rung in results.rungs]))
    assert "from 0.0208 to 0.00578, 910 M tokens<" in text


def test_a_picture_is_refused_in_another_form(tmp_path):
    with pytest.raises(OptionError, match="svg"):
        write_picture(made_results(), tmp_path / "ladder.png")
    with pytest.raises(OptionError, match="light, dark or auto"):
        write_picture(made_results(), tmp_path / "ladder.svg", theme="pink")


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
    assert len(set(MARKS)) == len(set(SERIES)) == len(MARKS)


def test_marks_that_hide_each_other_share_a_label():
    results = made_results()
    rungs = [replace(rung, train_s=30.0) for rung in results.rungs]
    cells = [replace(cell, mean=50.0) if cell.task == "odd" else cell for cell in results.cells]
    assert "onehot, skipgram, bert<title>" in page(replace(results, rungs=rungs, cells=cells))


def test_a_picture_of_an_earlier_report_does_not_stay(tmp_path):
    write_report(made_results(), tmp_path)
    write_report(replace(made_results(), looks=Looks()), tmp_path)
    left = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert left == ["losses.svg", "quality.svg"]
    assert "attention.svg" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_numbers_that_are_none_are_drawn_nowhere():
    results = made_results()
    points = {"bert": [WordPoint("a", "g", math.nan, 0.0), WordPoint("b", "g", 0.0, 0.0),
                       WordPoint("c", "g", 1.0, 1.0)]}  # fmt: skip
    rungs = [
        replace(r, history=[Point(1.0, 1, math.nan), Point(2.0, 2, math.inf)])
        for r in results.rungs
    ]
    looks = Looks(pca=WordsLook(groups={"g": ["a", "b", "c"]}, points=points))
    text = page(replace(results, rungs=rungs, looks=looks))
    assert_alone(text)
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", text) and 'id="losses"' not in text


def test_a_static_model_has_one_point_for_all_uses():
    text = page(made_results())
    assert "one vector for all 2 uses" in text
    assert "2 uses, each with its own vector" in text
    assert "dimension: The axis of an array." in text  # what a pointer reads

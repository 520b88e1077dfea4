"""The report of a ladder: whole pages, every figure, no markup from a corpus, nothing fetched."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from made_results import HOSTILE, hostile_results, made_results

from sememe.errors import OptionError
from sememe.ladder.report import write_picture, write_report
from sememe.ladder.report.__main__ import main as report_command
from sememe.ladder.report.figures import count, duration, score
from sememe.ladder.report.markdown import markdown
from sememe.ladder.report.page import page
from sememe.ladder.report.standing import mean_ranks, near_best
from sememe.ladder.report.summary import summary
from sememe.ladder.report.theme import DARK, FAMILIES, LIGHT, MARKS, SERIES
from sememe.ladder.results import Cell, Looks, Point, Results, Rung, WordPoint, WordsLook

EMPTY_TAGS = {"meta", "br", "hr", "input", "col"}
TABLE_PARTS = ("th", "td")


class Reader(HTMLParser):
    """Reads a page as a browser would: what is open, the text, tables, references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY_TAGS:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in TABLE_PARTS:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, text):
        if self.open and self.open[-1] not in ("style", "title"):
            self.text.append(text)
        if any(tag in self.open for tag in TABLE_PARTS):
            self.tables[-1][-1][-1] += text


def rows_of(reader: Reader, index: int = 0) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in reader.tables[index] if row and row[0]}


def assert_alone(text: str) -> None:
    """The page asks for nothing outside itself and runs no script."""
    reader = Reader(text)
    assert reader.open == []
    assert not {"script", "link", "img", "iframe", "object", "base"} & {t for t, _ in reader.tags}
    ids = {found["id"] for _, found in reader.tags if "id" in found}
    for _, found in reader.tags:
        assert not any(name.startswith("on") for name in found)
        assert not {"src", "srcset", "xlink:href", "data"} & set(found)
        target = found.get("href")
        assert target is None or (target.startswith("#") and target[1:] in ids)
    assert "url(" not in text and "@import" not in text and "http" not in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_page_is_whole_and_needs_nothing(language):
    text = page(made_results(language))
    assert_alone(text)
    reader = Reader(text)
    assert text.startswith("<!DOCTYPE html>") and 'charset="utf-8"' in text
    identities = [found["id"] for _, found in reader.tags if "id" in found]
    assert len(identities) == len(set(identities))
    headings = [tag for tag, _ in reader.tags if tag in ("h1", "h2", "h3")]
    assert headings.count("h1") == 1 and headings[0] == "h1"
    if language == "zh":
        shown = "".join(reader.text)
        for word in ("中文维基", "苹果", "上海", "水果", "法国", "words of Chinese"):
            assert word in shown
        assert any(found.get("lang") == "zh" for _, found in reader.tags)


def test_every_figure_of_the_json_is_in_both_tables(tmp_path):
    results = made_results()
    write_report(results, tmp_path)
    content = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert Results.load(tmp_path).cells[0] == results.cells[0]
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    rows = rows_of(Reader((tmp_path / "report.html").read_text(encoding="utf-8")))
    names = [task["name"] for task in content["tasks"]]
    titles = {rung["name"]: rung["title"] for rung in content["rungs"]}
    written = re.search(r"## The table\n\n(.*?)\n\n", text, re.S)
    assert written
    of_scores = {line.split(" | ")[0].strip("| *"): line.split(" | ")
                 for line in written.group(1).splitlines()}  # fmt: skip
    for cell in content["cells"]:
        column = names.index(cell["task"])
        shown = rows[titles[cell["rung"]]][column]
        told = of_scores[titles[cell["rung"]]][column + 1]
        wanted = f"{cell['mean']:.1f} ± {cell['sd']:.1f}" if cell["mean"] is not None else "–"
        assert wanted in shown and wanted in told
    for task in content["tasks"]:
        for name, value in task["baselines"].items():
            assert rows[name][names.index(task["name"])] == f"{value:.1f}"
            assert of_scores[name][names.index(task["name"]) + 1].strip(" |") == f"{value:.1f}"
    for rung in content["rungs"]:
        if rung["state"] == "done":
            costs = rows_of(Reader((tmp_path / "report.html").read_text()), 1)[rung["title"]]
            known = (
                (duration, rung["train_s"]), (count, rung["tokens"]),
                (count, rung["tokens_per_s"]), (count, rung["parameters"]),
            )  # fmt: skip
            assert costs[1:5] == [show(value) if value else "–" for show, value in known]


def test_the_best_is_marked_and_what_cannot_be_told_from_it_too():
    results = made_results()
    text = page(results)
    assert "<strong>71.4</strong>" in text and "<strong>83.8</strong>" in text
    assert near_best(results, results.task("package")) == {"bert"}
    assert "<u>71.0</u>" in text
    assert near_best(results, results.task("odd")) == set()
    below = re.findall(r"<td[^>]*class=\"low\"[^>]*>.*?</td>", text)
    assert len(below) == 3 and all("▽" in cell for cell in below)  # one-hot twice, skip-gram once
    told = markdown(results, {})
    assert "**71.4 ± 0.7**" in told and "71.0 ± 1.1 ≈" in told and "24.8 ± 1.0 ▽" in told


def test_where_all_are_equal_nobody_is_the_best():
    results = made_results()
    cells = [replace(c, scores=[44.7], mean=44.7, sd=None) if c.task == "senses" else c
             for c in results.cells]  # fmt: skip
    equal = replace(results, cells=cells)
    assert "<strong>44.7</strong>" not in page(equal) and "**44.7**" not in markdown(equal, {})
    assert "senses" not in summary(equal)[1]
    alone = [cell for cell in results.cells if (cell.rung, cell.task) != ("bert", "senses")]
    alone = [cell for cell in alone if (cell.rung, cell.task) != ("onehot", "senses")]
    assert "<strong>50.0</strong>" not in page(replace(results, cells=alone))
    assert "over 2 repetitions; a figure without ± was measured once" in page(equal)


def test_a_lower_perplexity_is_the_better_one():
    results = made_results()
    cells = [cell for cell in results.cells if cell.task != "ppl"]
    cells += [
        Cell(rung="bert", task="ppl", scores=[900.0], mean=900.0),
        Cell(rung="skipgram", task="ppl", scores=[120.0], mean=120.0),
    ]
    text = page(replace(results, cells=cells))
    assert "<strong>120.0</strong>" in text
    assert re.search(r'class="low"[^>]*><span>900.0</span><span class="below"', text)


def test_a_gap_says_why_on_hover_and_as_a_footnote():
    text = page(made_results())
    why = "It gives no probabilities."
    assert text.count(f'title="{why}"') == 2
    number = re.search(r'<li id="why-(\d)">It gives no probabilities', text)
    assert number and text.count(f'href="#why-{number.group(1)}"') == 2
    assert "It fills gaps and foresees nothing." in text
    told = markdown(made_results(), {})
    assert "– (1)" in told and "1. It gives no probabilities." in told


def test_rungs_that_failed_or_were_left_out_keep_their_line():
    rows = rows_of(Reader(page(made_results())))
    assert rows["GPT"] == ["Failed: the loss ran away."]
    assert rows["ELMo"] == ["Left out: not asked for."]
    assert "GPT failed; ELMo was left out" in " ".join(summary(made_results()))
    told = markdown(made_results(), {})
    assert "Failed: the loss ran away." in told


def test_no_text_becomes_markup():
    results = hostile_results()
    text = page(results)
    assert_alone(text)
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&amp;&quot;" in text
    kinds = {tag for tag, _ in Reader(page(made_results())).tags}
    assert {tag for tag, _ in Reader(text).tags} <= kinds
    told = markdown(results, {})
    outside = re.sub(r"(`+).*?\1(?!`)", "", told)
    assert not re.search(r"(?<!\\)<script", outside)
    table = told[told.index("## The table") :].split("\n\n")[1].splitlines()
    widths = {len(re.split(r"(?<!\\)\|", line)) for line in table}
    assert len(widths) == 1


def test_characters_that_no_page_may_hold_are_replaced(tmp_path):
    bad = "a\x00b\ud800c\u202ed\x1b"
    results = replace(made_results(), title=bad)
    write_report(results, tmp_path / "here")
    text = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert "<h1>a\ufffdb\ufffdcd\ufffd</h1>" in text
    assert Results.load(tmp_path / "here").title == bad


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


def test_a_picture_is_refused_in_another_form(tmp_path):
    with pytest.raises(OptionError, match="svg"):
        write_picture(made_results(), tmp_path / "ladder.png")
    with pytest.raises(OptionError, match="light, dark or auto"):
        write_picture(made_results(), tmp_path / "ladder.svg", theme="pink")


def test_the_same_results_give_the_same_bytes():
    assert page(made_results()) == page(made_results())


def test_nothing_to_show_is_no_section(tmp_path):
    results = made_results()
    bare = replace(results, looks=Looks(), rungs=[replace(r, history=[]) for r in results.rungs])
    text = page(bare)
    assert_alone(text)
    for name in ("losses", "words", "contexts", "attention", "neighbors"):
        assert f'<section id="{name}"' not in text and f'id="{name}"' not in text
        assert f"#{name}" not in text
    none = replace(bare, rungs=[], tasks=[], cells=[], seeds=[], notes=[], versions={}, seconds=0.0)
    write_report(none, tmp_path)
    assert_alone((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "No model has been trained yet" in (tmp_path / "report.md").read_text(encoding="utf-8")
    write_picture(none, tmp_path / "none.svg")


def test_a_ladder_on_its_way_can_be_shown():
    results = made_results()
    rungs = [replace(r, state="done" if r.name == "onehot" else "waiting") for r in results.rungs]
    cells = [cell for cell in results.cells if cell.rung == "onehot"]
    text = page(replace(results, rungs=rungs, cells=cells, looks=Looks()))
    assert_alone(text)
    assert rows_of(Reader(text))["BERT"] == ["Not yet trained."]
    assert "still to come" in text


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


def test_ranks_compare_only_models_that_were_asked_the_same():
    ranks = mean_ranks(made_results())
    assert ranks is not None
    assert [task.name for task in ranks.tasks] == ["odd", "package", "senses"]
    assert ranks.means == pytest.approx(
        {"onehot": (3 + 3 + 2.5) / 3, "skipgram": (1 + 1 + 2.5) / 3, "bert": (2 + 2 + 1) / 3}
    )
    text = page(made_results())
    assert "Odd one out, Which package and Senses" in text
    one = replace(made_results(), tasks=made_results().tasks[:1])
    assert mean_ranks(one) is None
    assert "There is no mean rank" in page(one)


def test_the_summary_says_what_the_figures_say():
    text = " ".join(summary(made_results()))
    assert "Three models" in text and "45.0 k words of English" in text and "30 s" in text
    assert "word2vec, skip-gram in two (odd one out, which package); BERT in one (senses)" in text
    # One-hot: 1 of 3; skip-gram: 2 of 3; BERT: 3 of 3.
    assert "6 of 9 figures are above the best baseline of their column." in text
    assert (
        "contextual models reach 71.8 %, static vectors reach 50.0 %, mean of context vectors 68.1"
        in text
    )


def test_models_that_learned_elsewhere_are_not_said_to_have_learned_here():
    results = made_results()
    own = Rung(name="mine", title="runs/mine", family="static", state="done", megabytes=3.0)
    cells = [Cell(rung="mine", task="odd", scores=[90.0, 90.0], mean=90.0, sd=0.0)]
    more = replace(results, rungs=[*results.rungs, own], cells=[*results.cells, *cells])
    told = " ".join(summary(more))
    assert "Three models" in told
    assert "Beside them stands runs/mine, which did not learn from it." in told
    text = page(more)
    assert "no time of training to draw of One-hot and runs/mine" in text
    titles = re.findall(r"<title>(runs/mine: [^<]*)</title>", text)
    assert titles and all("MB" in title for title in titles)


def test_what_was_run_is_told():
    results = made_results()
    shown = "".join(Reader(page(results)).text)
    told = markdown(results, {})
    for text in (shown, told):
        assert "sememe ladder --budget 30s" in text and "sememe train bert" in text
        assert "numpy 2.1.0" in text and "1, 2" in text and "2 cores of a chip, 8 GiB" in text
        assert "900 documents, 45,000 words" in text and "Every tenth is held out." in text
        assert "Vectors are frozen in sentence tasks." in text
    assert "num_layers 2, width 128" in shown and "init" not in shown
    assert "`` sememe train word2vec --out 'my `runs`' ``" in told


def test_one_seed_has_no_deviation():
    results = made_results()
    cells = [replace(c, scores=c.scores[:1], sd=None) for c in results.cells]
    text = page(replace(results, cells=cells, seeds=[1]))
    rows = rows_of(Reader(text))
    assert rows["BERT"][0].strip() == "47.8"
    assert "Every figure was measured once, so no deviation is known." in text


def test_a_static_model_has_one_point_for_all_uses():
    text = page(made_results())
    assert "one vector for all 2 uses" in text
    assert "2 uses, each with its own vector" in text
    assert "dimension: The axis of an array." in text  # what a pointer reads


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (math.nan, "–"), (-0.04, "0.0"), (-3.2, "−3.2"), (63.25, "63.2"),
     (12345.6, "12,346")],
)  # fmt: skip
def test_scores_in_text(value, shown):
    assert score(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0.0 s"), (0.03, "< 0.1 s"), (9.3, "9.3 s"), (59.6, "1 min"), (90, "1 min 30 s"),
     (3600, "1 h"), (5400, "1 h 30 min")],
)  # fmt: skip
def test_durations_in_text(seconds, shown):
    assert duration(seconds) == shown


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


def test_a_report_can_be_drawn_again(tmp_path, monkeypatch, capsys):
    made_results().save(tmp_path)
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path)])
    assert report_command() == 0
    assert_alone((tmp_path / "report.html").read_text(encoding="utf-8"))
    picture = tmp_path / "dark.svg"
    monkeypatch.setattr(
        "sys.argv", ["report", str(tmp_path), "--picture", str(picture), "--theme", "dark"]
    )
    assert report_command() == 0 and picture.is_file()
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path / "nothing")])
    assert report_command() == 2
    assert "nothing" in capsys.readouterr().err


def test_a_picture_of_an_earlier_report_does_not_stay(tmp_path):
    write_report(made_results(), tmp_path)
    write_report(replace(made_results(), looks=Looks()), tmp_path)
    left = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert left == ["losses.svg", "quality.svg"]
    assert "attention.svg" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_hostile_text_is_still_readable():
    assert HOSTILE in "".join(Reader(page(hostile_results())).text)

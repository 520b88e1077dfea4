"""The page of a ladder's report: whole, no markup from a corpus, nothing fetched."""

import re
from dataclasses import replace

import pytest
from report_reader import Reader, assert_alone, rows_of
from sample_results import HOSTILE, hostile_results, sample_results

from sememe.ladder.report import write_report
from sememe.ladder.report.pages import markdown, page
from sememe.ladder.results import Results, Visuals


@pytest.mark.parametrize("language", ["en", "zh"])
def test_page_is_whole_and_needs_nothing(language):
    text = page(sample_results(language))
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


def test_no_text_becomes_markup():
    results = hostile_results()
    text = page(results)
    assert_alone(text)
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&#34;" in text
    kinds = {tag for tag, _ in Reader(page(sample_results())).tags}
    assert {tag for tag, _ in Reader(text).tags} <= kinds
    told = markdown(results, {})
    outside = re.sub(r"(`+).*?\1(?!`)", "", told)
    assert not re.search(r"(?<!\\)<script", outside)
    table = told[told.index("## The table") :].split("\n\n")[1].splitlines()
    widths = {len(re.split(r"(?<!\\)\|", line)) for line in table}
    assert len(widths) == 1


def test_characters_that_no_page_may_hold_are_replaced(tmp_path):
    bad = "a\x00b\ud800c\u202ed\x1b"
    results = replace(sample_results(), title=bad)
    write_report(results, tmp_path / "here")
    text = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert "<h1>a\ufffdb\ufffdcd\ufffd</h1>" in text
    assert Results.load(tmp_path / "here").title == bad


def test_the_same_results_give_the_same_bytes():
    assert page(sample_results()) == page(sample_results())


def test_nothing_to_show_is_no_section(tmp_path):
    results = sample_results()
    bare = replace(results, looks=Visuals(), rungs=[replace(r, history=[]) for r in results.rungs])
    text = page(bare)
    assert_alone(text)
    for name in ("losses", "words", "contexts", "attention", "neighbors"):
        assert f'<section id="{name}"' not in text and f'id="{name}"' not in text
        assert f"#{name}" not in text
    none = replace(bare, rungs=[], tasks=[], cells=[], seeds=[], notes=[], versions={}, seconds=0.0)
    write_report(none, tmp_path)
    assert_alone((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "No model has been trained yet" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_ladder_on_its_way_can_be_shown():
    results = sample_results()
    rungs = [replace(r, state="done" if r.name == "onehot" else "waiting") for r in results.rungs]
    cells = [cell for cell in results.cells if cell.rung == "onehot"]
    text = page(replace(results, rungs=rungs, cells=cells, looks=Visuals()))
    assert_alone(text)
    assert rows_of(Reader(text))["BERT"] == ["Not trained yet."]
    assert "not finished yet" in text


def test_hostile_text_is_still_readable():
    assert HOSTILE in "".join(Reader(page(hostile_results())).text)

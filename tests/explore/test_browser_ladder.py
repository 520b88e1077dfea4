"""The view Ladder in a browser: the table, its links, its files, and what to do without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from explorer_pages import Tab, served_page
from test_ladder_view import saved

from sememe.explore.app import Explorer
from sememe.explore.config import ExploreConfig

# After test_ladder_view, which knows where they are.
from sample_results import HOSTILE, hostile_results, sample_results  # isort: skip

pytestmark = pytest.mark.slow


def opened_ladder(folder: Path, golden: Path, results: Any) -> Explorer:
    saved(results, folder)
    for name, model in (("skipgram", "word2vec-skipgram-negative"), ("bert", "bert")):
        (folder / "models" / name).rmdir()
        (folder / "models" / name).symlink_to(golden / model)
    (folder / "models" / "onehot").rmdir()
    return Explorer([folder], ExploreConfig(port=0))


def test_scores_lead_to_views_and_are_saved(chromium: Any, golden: Path, tmp_path: Path) -> None:
    with served_page(opened_ladder(tmp_path, golden, sample_results())) as address:
        tab = Tab(chromium, address)
        page = tab.open("ladder")
        page.wait_for_selector(".ladder-table")
        assert page.locator(".ladder-table .best").count() > 0
        for kind in ("png", "svg", "csv"):
            with page.expect_download() as started:
                page.locator(f'[data-save="{kind}"]').click()
            assert Path(started.value.path()).stat().st_size > 100
        page.locator('.ladder-table a[href*="part=odd"]').first.click()
        page.wait_for_selector('.tabs [aria-selected="true"]')
        assert "words" in page.url and "odd" in page.url
        page.go_back()
        page.wait_for_selector(".ladder-table")
        links = page.locator('.ladder-table tr:has-text("BERT") th a')
        shown = [link.get_attribute("href") for link in links.all()]
        for view in ("words", "map", "context", "attention", "predictions"):
            assert f"#/{view}?models=bert" in shown
        assert "#/learning?models=bert&part=masks" in shown
        assert page.locator('.ladder-table a[href="#/learning?models=skipgram&part=step"]').count()
        tab.context.close()
        assert not tab.faults


def test_hostile_texts_and_phone(chromium: Any, golden: Path, tmp_path: Path) -> None:
    with served_page(opened_ladder(tmp_path, golden, hostile_results())) as address:
        tab = Tab(chromium, address, viewport={"width": 390, "height": 844}, locale="zh-CN")
        page = tab.open("ladder")
        page.wait_for_selector(".ladder-table")
        assert HOSTILE in page.locator(".ladder-table").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert "粗体" in page.locator(".ladder").inner_text()
        tab.context.close()
        assert not tab.faults


def test_without_a_ladder_the_view_says_how_to_get_one(tab: Any) -> None:
    page = tab.open("ladder")
    assert "sememe ladder --budget" in page.locator(".ladder pre").inner_text()

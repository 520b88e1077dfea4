"""The frame of all views in a browser: names of controls, focus, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from explorer_pages import Tab, served_page

from sememe.explore.app import Explorer
from sememe.explore.config import ExploreConfig

pytestmark = pytest.mark.slow

STATIC = "word2vec-skipgram-negative"
PLACES = (
    *(
        f"words?models={STATIC},fasttext&part={part}"
        for part in ("neighbors", "analogy", "similarity", "odd", "pairs", "vectors")
    ),
    f"map?models={STATIC},glove&num=50&color=cluster", "context?models=bert&word=mouse",
    "attention?models=bert&show=lines&text=the+king", "attention?models=transformer&show=cells",
    "predictions?part=masks", "predictions?part=next", "predictions?part=generate",
    "predictions?part=follows&text=the+king&others=a+queen",
    "predictions?part=tasks&models=answer", "learning?part=step", "learning?part=masks", "ladder",
)  # fmt: skip

# Visible things to use or to look at without a name for a screen reader.
NAMELESS = """() => {
  const named = (node) => node.getAttribute("aria-label") || node.labels?.length || node.title
    || node.innerText?.trim() || node.querySelector("caption, title")?.textContent;
  const all = document.querySelectorAll("a, button, input, select, textarea, summary, canvas,"
    + "[role=img], [role=region], [role=listbox], [role=application], [tabindex='0']");
  return [...all].filter((node) => node.checkVisibility() && !node.closest("[aria-hidden=true]")
    && !(node.tagName === "CANVAS" && node.closest("button")) && !named(node))
    .map((node) => node.outerHTML.slice(0, 150));
}"""
TWICE = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  return ids.filter((id, place) => ids.indexOf(id) !== place);
}"""


def settle(page: Any) -> None:
    page.wait_for_timeout(600)
    page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")


@pytest.mark.parametrize("place", PLACES)
def test_every_control_has_a_name(tab: Any, place: str) -> None:
    page = tab.open(place)
    settle(page)
    assert page.locator("main button, main a, main pre").count()
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(TWICE) == []


def test_focus_is_visible_wherever_tab_leads(tab: Any) -> None:
    page = tab.open(f"words?models={STATIC}")
    settle(page)
    seen = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "() => [document.activeElement.outerHTML.slice(0, 60),"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        seen.add(name)
        assert outline != "none", name
    assert len(seen) > 15


def test_focus_stays_on_a_control_that_is_drawn_anew(tab: Any) -> None:
    page = tab.open(f"words?models={STATIC}")
    settle(page)
    focused = "() => document.activeElement.textContent"
    for name, has_changed in (
        (".chooser button >> nth=1", "() => location.hash.includes('glove')"),
        (".settings button >> nth=1", "() => document.documentElement.dataset.theme"),
        ("nav a >> nth=1", "() => document.querySelector('.view.map')"),
    ):
        control = page.locator(name)
        wanted = control.inner_text()
        control.focus()
        page.keyboard.press("Enter")
        page.wait_for_function(has_changed)
        assert "".join(page.evaluate(focused).split()) == "".join(wanted.split())


def test_a_stopped_service_is_told(chromium: Any, golden: Path) -> None:
    with served_page(Explorer([golden / STATIC], ExploreConfig(port=0))) as address:
        tab = Tab(chromium, address)
        page = tab.open("words")
        page.wait_for_selector(".bars li")
    page.get_by_role("button", name="Show").click()
    error = page.locator(".card .error")
    error.wait_for()
    assert "does not answer" in error.inner_text()
    tab.context.close()


def test_a_model_that_failed_is_told_beside_the_others(
    chromium: Any, golden: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "<img src=x onerror=alert(1)>.txt"
    broken.write_text("", "utf-8")
    with served_page(Explorer([golden / STATIC, broken], ExploreConfig(port=0))) as address:
        tab = Tab(chromium, address)
        page = tab.open("words")
        page.wait_for_selector(".bars li")
        told = page.locator("main > .error").inner_text()
        assert broken.name in told and "empty" in told
        assert page.locator("main img").count() == 0
        assert page.locator(".chooser button").count() == 1
        tab.context.close()
        assert not tab.faults


def test_typing_is_kept_while_models_are_loaded(tab: Any) -> None:
    stage = ["loading"]

    def state(route: Any) -> None:
        told = route.fetch().json()
        told["is_ready"], told["models"][-1]["state"] = stage[0] == "ready", stage[0]
        route.fulfill(body=json.dumps(told), content_type="application/json")

    tab.page.route("**/explore/api/state", state)
    page = tab.open(f"words?models={STATIC}")
    page.wait_for_selector(".bars li")
    field = page.get_by_role("combobox", name="Word", exact=True)
    field.fill("unfinish")
    page.evaluate("() => { document.querySelector('main input').isOld = true; }")
    stage[0] = "ready"
    page.wait_for_timeout(1_500)
    assert field.input_value() == "unfinish"
    assert page.evaluate("() => document.activeElement.isOld")
    page.get_by_role("button", name="Light or dark").focus()
    page.wait_for_function("() => !document.querySelector('main input').isOld")

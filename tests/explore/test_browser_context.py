"""The view Context in a browser: points that move, sentences, its address, and its files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from explorer_pages import HOSTILE

from sememe.text.settings import BUILT_IN

pytestmark = pytest.mark.slow

STATIC = "word2vec-skipgram-negative"
# The first picture as a few numbers: its colors, and where they are.
PIXELS = """() => {
  const canvas = document.querySelector(".contexts canvas");
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const colors = new Map();
  new Uint32Array(context.getImageData(0, 0, copy.width, copy.height).data.buffer)
    .forEach((own, place) => colors.set(own, (colors.get(own) ?? 0) + place % 9973));
  return [...colors].map((one) => one.join(":")).sort().join(" ");
}"""


def show(tab: Any, *models: str, **params: Any) -> Any:
    """Open a word in models, and wait for its points."""
    given = {"models": ",".join(models), "word": "mouse"} | params
    tab.page.goto("about:blank")
    page = tab.open(
        "context?" + "&".join(f"{name}={quote(str(own))}" for name, own in given.items())
    )
    page.wait_for_selector(".contexts canvas")
    page.wait_for_selector('[aria-busy="true"]', state="detached")
    page.wait_for_function(f"() => ({PIXELS})().split(' ').length > 3", polling=200)  # a frame
    return page


@pytest.mark.parametrize("models", [("bert", STATIC), ("elmo", "gpt"), ("classify", "sentence")])
def test_points_are_drawn_and_move_with_the_slider(tab: Any, models: tuple[str, ...]) -> None:
    page = show(tab, *models)
    assert page.locator(".contexts canvas").count() == len(models)
    before = page.evaluate(PIXELS)
    assert len(before.split()) > 10
    page.locator('.controls input[type="range"]').fill("0")
    page.wait_for_function(f"before => ({PIXELS})() !== before", arg=before, polling=200)
    assert "layer=0" in page.url
    assert "Layer 0" in page.locator(".contexts .note").first.inner_text()


def test_another_color_is_drawn_and_the_zoom_stays(tab: Any) -> None:
    page = show(tab, "bert")
    drawn = f"before => ({PIXELS})() !== before"
    for act in (
        lambda: page.locator(".contexts .plot-buttons button").first.click(),
        lambda: page.locator(".controls select").first.select_option("place"),
        lambda: page.locator(".controls select").first.select_option(index=0),
    ):
        before = page.evaluate(PIXELS)
        act()
        page.wait_for_function(drawn, arg=before, polling=200)
    zoomed = page.evaluate(PIXELS)
    page.locator(".contexts .plot-buttons button").last.click()  # all points
    page.wait_for_function(drawn, arg=zoomed, polling=200)


def test_uses_of_static_vectors_fall_on_one_point(tab: Any) -> None:
    page = show(tab, STATIC)
    assert "one point" in page.locator(".contexts .note").inner_text()
    assert page.locator('.controls input[type="range"]').count() == 0


def test_chinese_words(tab: Any) -> None:
    page = show(tab, "bert-chinese", "word2vec-chinese", word="苹果", set="chinese")
    assert "same sense" in page.locator(".contexts .note").first.inner_text()
    assert "水果" in page.locator(".controls").inner_text()


def test_the_nearest_uses_of_a_sentence_are_those_of_python(tab: Any, opened: Any) -> None:
    own = "Every day a mouse follows the clever king."
    page = show(tab, "bert", own=own, layer=1)
    first = page.locator(".contexts .uses li").first
    sentence = first.locator("button").inner_text()
    units = []
    for text in (own, sentence):
        start = text.index("mouse")
        found = opened("bert").embed_spans([text], [np.array([[start, start + 5]])], layers=1)
        vector_D = next(iter(found)).vectors_WD[0]
        units.append(vector_D / np.linalg.norm(vector_D))
    shown = float(first.locator(".value").inner_text())
    assert shown == pytest.approx(float(units[0] @ units[1]), abs=1e-4)


def test_a_click_opens_a_use_and_the_address_restores_it(tab: Any) -> None:
    page = show(tab, "bert")
    page.locator(".all-uses summary").click()
    page.locator(".all-uses li button").nth(4).click()
    told = page.locator('[data-card="context-sentence"] .sentence').inner_text()
    assert "mouse" in told and "pick=4" in page.url
    page.locator(".controls select").first.select_option("place")
    page.locator('.controls input[type="range"]').fill("1")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector('[data-card="context-sentence"] .sentence')
    assert page.locator('[data-card="context-sentence"] .sentence').inner_text() == told
    assert page.locator(".controls select").first.input_value() == "place"
    assert page.locator('.controls input[type="range"]').input_value() == "1"


def test_the_pointer_shows_a_sentence(tab: Any) -> None:
    page = show(tab, STATIC)
    canvas = page.locator(".contexts canvas").bounding_box()
    page.mouse.move(canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2)
    page.wait_for_selector(".tip mark")
    assert page.locator(".tip mark").inner_text().lower() == "mouse"


def test_hostile_texts_are_text(tab: Any) -> None:
    page = show(tab, "bert", own=f"A mouse {HOSTILE}", num=500)
    page.locator(".all-uses summary").click()
    assert HOSTILE in page.locator(".all-uses").inner_text()
    assert "<b>uses.txt" in page.locator('[data-card="context-word"]').inner_text()
    word = HOSTILE.replace("img", "i")
    page = tab.open(f"context?models=bert&word={quote(word)}")
    page.wait_for_selector(".note")
    assert word in page.locator('[data-card="context-word"] .note').inner_text()
    assert page.locator("img").count() == 0


def test_files_are_saved(tab: Any, tmp_path: Path) -> None:
    page = show(tab, "bert", own="A mouse sees a king.")
    found = {}
    for kind in ("png", "svg", "csv"):
        with page.expect_download() as started:
            page.locator(f'[data-card="context-bert"] [data-save="{kind}"]').click()
        path = tmp_path / f"picture.{kind}"
        started.value.save_as(path)
        found[kind] = path.read_bytes()
    assert found["png"].startswith(b"\x89PNG") and b"<svg" in found["svg"]
    rows = list(csv.DictReader(io.StringIO(found["csv"].decode("utf-8-sig"))))
    assert len(rows) == 49 and {"sentence", "x", "y", "cosine"} <= set(rows[0])
    shown = page.locator('[data-card="context-bert"] .code pre').first.text_content()
    scope: dict[str, Any] = {}
    *lines, last = shown.strip().split("\n")
    exec("\n".join(lines), scope)
    cosine = float(page.locator(".contexts .uses .value").first.inner_text())
    given = eval(last, scope)
    assert max(row["cosine"] for row in given) == pytest.approx(cosine, abs=1e-4)
    assert [row["sentence"] for row in given] == [row["sentence"] for row in rows]


def test_phone_and_chinese_interface(chromium: Any, address: str) -> None:
    from explorer_pages import Tab

    def built_in(route: Any) -> None:
        told = route.fetch().json() | {"text": BUILT_IN}
        route.fulfill(body=json.dumps(told), content_type="application/json")

    tab = Tab(chromium, address, viewport={"width": 390, "height": 844}, locale="zh-CN")
    tab.page.route("**/context/examples?*", built_in)
    page = show(tab, "bert", STATIC)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert "一个点" in page.locator(".contexts").inner_text()
    assert "文档字符串" in page.locator('[data-card="context-word"]').inner_text()
    tab.context.close()
    assert not tab.faults

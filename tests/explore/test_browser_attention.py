"""The view Attention in a browser: heads, lines, matrix, keyboard, address, and its files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest

pytestmark = pytest.mark.slow

TEXT = "the old king reads a book"
MODELS = ("bert", "gpt", "classify", "sentence", "transformer", "seq2seq", "bert-chinese")
HOSTILE = "<img src=x>"
# How many colors a canvas holds.
COLORS = """canvas => new Set(new Uint32Array(canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""


def settle(page: Any) -> None:
    """Wait until every card has its answer."""
    page.wait_for_selector('.card[aria-busy="false"]')
    page.wait_for_selector('[aria-busy="true"]', state="detached")


def show(tab: Any, *models: str, **params: str) -> Any:
    """Open the view."""
    given = {"models": ",".join(models)} | params
    tab.page.goto("about:blank")  # so that no card of the page before is taken for the new one
    page = tab.open("attention?" + "&".join(f"{key}={quote(own)}" for key, own in given.items()))
    settle(page)
    return page


def shown_weights(page: Any) -> list[float]:
    """The list beside the picture: the largest weights of the chosen token."""
    return [float(own) for own in page.locator(".attention-list .value").all_inner_texts()]


def largest(weights_S: np.ndarray) -> list[float]:
    return [float(own) for own in np.sort(weights_S)[::-1][:10]]


def saved(page: Any, kind: str) -> bytes:
    """The file that a button saves."""
    with page.expect_download() as download:
        page.locator(f'[data-save="{kind}"]').first.click()
    return Path(download.value.path()).read_bytes()


@pytest.mark.parametrize("model", MODELS)
def test_every_matrix_of_every_kind_of_model(tab: Any, opened: Any, model: str) -> None:
    page = show(tab, model, text=TEXT, token="1")
    wanted = opened(model).attention(TEXT)
    num_layers, num_heads = wanted.weights_LHTS.shape[:2]
    assert not page.locator(".error:visible").count()
    assert page.locator(".thumb canvas").count() == num_layers * num_heads
    assert page.locator(".thumb canvas").first.evaluate(COLORS) > 1
    assert shown_weights(page) == pytest.approx(largest(wanted.of()[1]), abs=6e-5)

    page.click('.thumb[data-at="1.1"]')
    page.wait_for_selector('.thumb[data-at="1.1"][aria-pressed="true"]')
    settle(page)
    assert shown_weights(page) == pytest.approx(largest(wanted.of(1, 1)[1]), abs=6e-5)
    assert "at=1.1" in page.url

    page.click('[data-at="mean"]')
    page.wait_for_selector('[data-at="mean"][aria-pressed="true"]')
    settle(page)
    assert shown_weights(page) == pytest.approx(largest(wanted.mean()[1]), abs=6e-5)
    assert (page.locator('[data-at="rollout"]').count() == 0) == (wanted.translation is not None)
    if wanted.translation is None:
        page.click('[data-at="rollout"]')
        page.wait_for_selector('[data-at="rollout"][aria-pressed="true"]')
        settle(page)
        assert shown_weights(page) == pytest.approx(largest(wanted.rollout()[1]), abs=6e-5)


@pytest.mark.parametrize("over", ["mean", "rollout"])
def test_command_gives_the_weights_of_the_page(tab: Any, run_command: Any, over: str) -> None:
    page = show(tab, "bert", text=TEXT, token="1", at=over)
    page.locator("details.code summary").first.click()
    _, command = page.locator("details.code").first.locator("pre").all_inner_texts()
    told = json.loads(run_command(f"{command} --json"))
    assert told["over"] == over
    assert shown_weights(page) == pytest.approx(largest(np.array(told["weights"][1])), abs=6e-5)


@pytest.mark.parametrize("kind", ["lines", "cells"])
@pytest.mark.parametrize("model", ["bert", "transformer"])
def test_pictures_and_tables_are_saved(tab: Any, opened: Any, model: str, kind: str) -> None:
    page = show(tab, model, text=TEXT, at="1.2", show=kind)
    if kind == "cells":
        assert page.locator("canvas.attention-cells").evaluate(COLORS) > 10
    else:
        assert page.locator("svg.attention-lines path").count() > 3
    assert saved(page, "png")[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(list(ElementTree.fromstring(saved(page, "svg")).iter())) > 10
    wanted = opened(model).attention(TEXT)
    head, *rows = csv.reader(io.StringIO(saved(page, "csv").decode("utf-8-sig")))
    assert head[1:] == list(wanted.source)
    found = np.array([[float(own) for own in row[1:]] for row in rows])
    assert found == pytest.approx(wanted.of(1, 2), abs=1e-6)


def test_pointing_at_a_token_shows_where_it_looks(tab: Any) -> None:
    page = show(tab, "bert", text=TEXT, token="0")
    tokens = page.locator(".attention-lines .token")
    fills = """() => [...document.querySelectorAll(".attention-lines .token rect")]
        .map((one) => one.style.fillOpacity).join(" ")"""
    before = page.evaluate(fills)
    tokens.nth(5).hover()
    pointed = page.evaluate(fills)
    assert pointed != before
    page.mouse.move(5, 5)
    assert page.evaluate(fills) == before
    tokens.nth(5).click()
    assert "token=5" in page.url and page.locator(".attention-list h3").inner_text()


def test_tokens_and_heads_with_the_keyboard(tab: Any, opened: Any) -> None:
    page = show(tab, "bert", text=TEXT, token="0")
    page.focus(".attention-scroll")
    page.keyboard.press("ArrowDown")
    weights = opened("bert").attention(TEXT).of()
    assert shown_weights(page) == pytest.approx(largest(weights[1]), abs=6e-5)
    assert "looks at" not in page.locator("#status").inner_text()
    assert page.locator("#status").inner_text()
    page.focus('.thumb-grid [tabindex="0"]')
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-at="1"][aria-pressed="true"]')
    assert page.evaluate("document.activeElement.dataset.at") == "1"


def test_two_models_and_an_address_restore(tab: Any) -> None:
    page = show(tab, "bert", "gpt", text=TEXT, at="1.2,2.1", token="2,3", show="lines")
    assert page.locator(".chosen").all_inner_texts() == ["Layer 1, head 2", "Layer 2, head 1"]
    before = page.locator(".panels").inner_text()
    url = page.url
    page.goto("about:blank")
    page.goto(url)
    settle(page)
    assert page.locator(".panels").inner_text() == before
    # A head that the other model lacks is no dead end.
    tab.open(f"attention?models=seq2seq&text={quote(TEXT)}&at=2.2")
    page.wait_for_selector(".thumb")
    settle(page)
    assert not page.locator(".error:visible").count()
    [refused] = tab.faults  # the browser tells of the question that was refused
    assert "400" in refused
    tab.faults.clear()


def test_the_example_is_ready(tab: Any) -> None:
    page = show(tab, "bert")
    assert page.locator("textarea").first.input_value() == (
        "The animal didn't cross the street because it was too tired."
    )
    page.locator(".examples button").nth(1).click()
    assert page.locator("textarea").first.input_value().endswith("too wide.")
    settle(page)
    # Longer than this small model reads: the card says so.
    assert "32" in page.locator(".card .error").inner_text()
    page.locator("textarea").first.fill("then it is read")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".attention-list h3")
    assert page.locator(".attention-list h3").inner_text() == "it looks at"
    assert all("422" in fault for fault in tab.faults)  # the browser tells of what was refused
    tab.faults.clear()


def test_matrix_is_zoomed_with_the_keyboard(new_tab: Any) -> None:
    page = show(new_tab(viewport={"width": 390, "height": 844}), "bert", text=TEXT, show="cells")
    canvas = page.locator("canvas.attention-cells")
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    canvas.focus()
    page.keyboard.press("+")
    assert canvas.evaluate("canvas => canvas.toDataURL()") != before
    page.keyboard.press("0")
    assert canvas.evaluate("canvas => canvas.toDataURL()") == before


def test_hostile_texts_are_text(tab: Any) -> None:
    page = show(tab, "gpt", text=HOSTILE)
    page = show(tab, "bert", text=HOSTILE, other="<script>1")
    assert page.locator("textarea").first.input_value() == HOSTILE
    assert not page.locator("main img, main script").count()
    assert ElementTree.fromstring(saved(page, "svg")) is not None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_in_chinese(new_tab: Any, scheme: str) -> None:
    phone = {"width": 390, "height": 844}
    tab = new_tab(viewport=phone, locale="zh-CN", color_scheme=scheme)
    for kind in ("lines", "cells"):
        page = show(tab, "bert-chinese", show=kind)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert "那只动物" in page.locator("textarea").first.input_value()
        assert page.locator(".chosen").inner_text() == "最后一层，各头平均"

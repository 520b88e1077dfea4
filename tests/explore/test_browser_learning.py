"""The view How it learns in a browser: steps, a film whose slider moves points, masks."""

from __future__ import annotations

import csv
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sememe.models.bert.mask_draws import draw_masks
from sememe.models.word2vec.steps import training_step

pytestmark = pytest.mark.slow
TEXT = "the quick brown fox jumps over the lazy dog"


def saved(page: Any, one: Any, kind: str) -> bytes:
    """What a button saves."""
    with page.expect_download() as download:
        one.locator(f'[data-save="{kind}"]').click()
    return Path(download.value.path()).read_bytes()


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(data.decode("utf-8-sig").splitlines()))


def move(page: Any, label: str, value: float) -> None:
    """Set a slider as a drag does."""
    page.get_by_label(label).first.evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_a_step_shows_the_numbers_of_python(tab: Any) -> None:
    page = tab.open(f"learning?part=step&text={TEXT.replace(' ', '+')}&step=70&dim=4")
    sums = page.locator('[data-card="step-decisions"]')
    sums.locator("td").first.wait_for()
    wanted = training_step(TEXT, 70, dim=4)
    for row, own in zip(sums.locator("tbody tr").all(), wanted.decisions, strict=True):
        told = row.locator("td").all_inner_texts()
        assert told[0] == own.name
        numbers = [own.score, own.probability, own.label - own.probability, own.step]
        assert [float(one) for one in told[2:]] == pytest.approx(numbers, abs=5e-5)
    assert f"{wanted.loss:.4f}" in sums.inner_text()
    # A step on, by its button; the address keeps it.
    page.get_by_label("Step on").click()
    page.wait_for_url("**step=71*")
    page.reload()
    sums.locator("td").first.wait_for()
    assert f"{training_step(TEXT, 71, dim=4).loss:.4f}" in sums.inner_text()
    update = page.locator('[data-card="step-update"]')
    rows = rows_of(saved(page, update, "csv"))
    assert [float(one) for one in rows[1][1:]] == pytest.approx(
        training_step(TEXT, 71, dim=4).input.before
    )
    assert b"<svg" in saved(page, update, "svg")
    assert saved(page, update, "png").startswith(b"\x89PNG")
    assert page.locator('[data-card="step-losses"] path').count() == 1


def test_bad_sentences_are_told_in_the_card(tab: Any) -> None:
    page = tab.open("learning?part=step&text=one")
    error = page.locator('[data-card="step-pair"] .error')
    error.wait_for()
    assert "two different words" in error.inner_text()
    tab.faults = [own for own in tab.faults if "400" not in own]  # the browser logs the status


def test_the_slider_of_a_film_moves_points(tab: Any) -> None:
    page = tab.open("learning?part=film&epochs=5&dim=10&num_words=50")
    page.get_by_role("button", name="Train").click()
    canvas = page.locator(".plot canvas")
    canvas.wait_for()
    picture = "document.querySelector('.plot canvas').toDataURL()"
    page.wait_for_function(f"() => {picture}.length > 4_000")  # an empty one is much smaller
    last = page.evaluate(picture)
    move(page, "Snapshot", 2)
    page.wait_for_url("**snapshot=2*")
    page.wait_for_function(f"last => {picture} !== last", arg=last)
    told = page.locator(".formula").inner_text()
    # The address trains nothing anew and shows the same snapshot.
    page.reload()
    canvas.wait_for()
    assert page.locator(".formula").inner_text() == told
    one = page.locator('[data-card="film"]')
    one.get_by_label("Find a word").fill("no-such-word")
    one.get_by_label("Find a word").press("Enter")
    one.get_by_text("“no-such-word” is not among the points").wait_for()
    rows = rows_of(saved(page, one, "csv"))
    assert rows[0][:4] == ["snapshot", "words of text", "loss", "word"]
    num_words = len({row[3] for row in rows[1:]})
    assert num_words > 5 and (len(rows) - 1) % num_words == 0
    assert b"<svg" in saved(page, one, "svg")
    assert saved(page, one, "png").startswith(b"\x89PNG")


def test_a_training_is_cancelled(tab: Any, explorer: Any) -> None:
    released = threading.Event()
    for number in range(4):  # as many jobs run at a time: the training waits
        explorer.jobs.start(f"before the browser {number}", lambda report: released.wait(60))
    page = tab.open("learning?part=film&seed=4")
    page.get_by_role("button", name="Train").click()
    with page.expect_response("**/cancel"):
        page.get_by_role("button", name="Cancel").click()
    released.set()
    error = page.locator('[data-card="film"] .error')
    error.wait_for()
    assert "Cancelled" in error.inner_text()


@pytest.mark.parametrize(
    ("model", "text"), [("bert", "the old king sees a river"), ("bert-chinese", "国王喜欢音乐")]
)
def test_masks_are_redrawn_and_counted(tab: Any, opened: Any, model: str, text: str) -> None:
    page = tab.open(
        f"learning?part=masks&models={model}&text={text.replace(' ', '+')}&rate=0.3&draw=1000"
    )
    one = page.locator('[data-card="masks"]')
    one.locator(".bars li").first.wait_for()
    wanted = draw_masks(opened(model), text, num=1000, rate=0.3)
    for told, count in zip(
        one.locator(".bars .value").all_inner_texts(), wanted.counts().values(), strict=True
    ):
        assert told.startswith(f"{count:,} =")
    move(page, "Draw", 3)
    page.wait_for_url("**draw=3*")
    seen = one.locator(".noted > span").all_inner_texts()[: len(wanted.tokens)]
    assert seen == wanted.seen(2)
    one.get_by_role("button", name="Draw again").click()
    page.wait_for_url("**draw=4*")
    rows = rows_of(saved(page, one, "csv"))
    assert len(rows) == 1 + sum(wanted.counts().values())
    assert b"<svg" in saved(page, one, "svg")


def test_chinese_interface_and_phone(chromium: Any, address: str) -> None:
    from explorer_pages import Tab

    tab = Tab(chromium, address, locale="zh-CN", viewport={"width": 390, "height": 800})
    for part in ("step", "film", "masks"):
        page = tab.open(f"learning?part={part}")
        page.wait_for_function("() => document.querySelector('.card .body')?.children.length")
        page.wait_for_selector('[aria-busy="true"]', state="detached")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390, part
        assert any(
            "\u4e00" <= mark <= "\u9fff" for mark in page.locator("main h2").first.inner_text()
        )
    tab.context.close()
    assert not tab.faults


def test_hostile_texts_are_text(tab: Any) -> None:
    hostile = "<img src=x> <b>two</b> words"
    for part, name in (("step", "step-pair"), ("masks", "masks")):
        page = tab.open(f"learning?part={part}&models=bert&text={quote(hostile)}")
        page.locator(f'[data-card="{name}"] .marked-text').first.wait_for()
        assert page.locator("textarea").first.input_value() == hostile
        assert page.locator("img, main b").count() == 0
        page.goto("about:blank")

"""The view Predictions in a browser: masks by click, generation, fine-tuned models, exports."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.slow
TEXT = "The old king sees a river."
HOSTILE = "<img src=x> <b>film</b>"


def card(page: Any, name: str) -> Any:
    """A card of the view that has been filled."""
    found = page.locator(f'[data-card="{name}"]')
    found.locator(".body > *").first.wait_for()
    page.wait_for_function("() => !document.querySelector('.card[aria-busy=\"true\"]')")
    return found


def saved(page: Any, one: Any, kind: str) -> bytes:
    """What a button saves."""
    with page.expect_download() as download:
        one.locator(f'[data-save="{kind}"]').click()
    return Path(download.value.path()).read_bytes()


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(data.decode("utf-8-sig").splitlines()))


def test_words_are_masked_by_click(tab: Any, opened: Any) -> None:
    page = tab.open(f"predictions?part=masks&models=bert&masked=-&text={quote(TEXT)}")
    one = card(page, "masks-bert")
    assert "Click a word" in one.inner_text()
    words = page.locator(".hidden-words button")
    assert words.all_inner_texts() == TEXT.rstrip(".").split()
    words.nth(2).click()
    one.locator(".bars li").first.wait_for()
    assert words.nth(2).get_attribute("aria-pressed") == "true" and "masked=4" in page.url
    ((first, *_),) = opened("bert").fill("The old [MASK] sees a river.", top=1)
    told = one.locator(".bars li").first.inner_text()
    assert first.token in told and f"{100 * first.probability:.2f}%" in told
    # Again from its address, and then the most likely token in its place.
    page.reload()
    one.locator(".bars li").first.wait_for()
    assert words.nth(2).get_attribute("aria-pressed") == "true"
    one.locator(".bars button").first.click()
    page.wait_for_function(
        "text => document.querySelector('textarea').value === text",
        arg=f"The old {first.token} sees a river.",
    )


def test_a_word_of_several_tokens_is_told(tab: Any, opened: Any) -> None:
    tokens = [own.text for own in opened("bert").tokenize(["rivers"])[0]]
    assert len(tokens) > 1
    page = tab.open("predictions?part=masks&models=bert&masked=2&text=The+rivers+sees.")
    title = card(page, "masks-bert").locator("h3").inner_text()
    assert f"{len(tokens)} tokens ({' '.join(tokens)})" in title


def test_chinese_characters_are_masked(tab: Any) -> None:
    page = tab.open(
        f"predictions?part=masks&models=bert-chinese&masked=2&text={quote('国王喜欢音乐。')}"
    )
    assert card(page, "masks-bert-chinese").locator(".bars li").count() >= 8


def test_next_words_of_three_models_side_by_side(tab: Any, opened: Any) -> None:
    page = tab.open("predictions?part=next&models=ngram,nnlm,gpt&text=the+old")
    for name in ("ngram", "nnlm", "gpt"):
        one = card(page, f"next-{name}")
        (first, *_) = opened(name).next_words("the old ", count=10)
        told = one.locator(".bars li").first.inner_text()
        assert first.text in told and f"{100 * first.probability:.2f}%" in told
    word = one.locator(".bars button").first.inner_text()
    one.locator(".bars button").first.click()
    page.wait_for_function(
        "text => document.querySelector('textarea').value === text", arg=f"the old {word}"
    )
    rows = rows_of(saved(page, card(page, "next-ngram"), "csv"))
    assert rows[0] == ["model", "text", "word", "probability"] and len(rows) == 11
    assert saved(page, one, "png").startswith(b"\x89PNG") and b"<svg" in saved(page, one, "svg")


def test_a_generation_goes_on_from_an_alternative(tab: Any, opened: Any) -> None:
    page = tab.open("predictions?part=generate&models=gpt,ngram&text=the+old&max_tokens=6&seed=3")
    one = card(page, "generate-gpt")
    tokens = one.locator(".marked-text button")
    steps = list(opened("gpt").generate_steps("the old", max_tokens=6, seed=3))
    shown = [step.chosen.text.replace("\n", "⏎\n") or "⟨end⟩" for step in steps]
    assert tokens.all_text_contents() == shown
    tokens.nth(1).click()
    assert tokens.nth(1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("ArrowRight")
    assert tokens.nth(2).get_attribute("aria-pressed") == "true"
    page.keyboard.press("ArrowLeft")
    chosen = next(own for own in steps[1].tokens if own.id != steps[1].chosen.id and own.text)
    place = steps[1].tokens.index(chosen)
    one.locator(".alternatives .bars button").nth(place).click()
    page.wait_for_url(f"**at=1%3A{chosen.id}*")
    ids = [steps[0].chosen.id, chosen.id]
    more = opened("gpt").generate_steps("the old", ids=ids, max_tokens=4, seed=3)
    wanted = [shown[0], chosen.text, *(own.chosen.text or "⟨end⟩" for own in more)]
    wanted = [text.replace("\n", "⏎\n") for text in wanted[:2]] + wanted[2:]
    page.wait_for_function(
        "text => document.querySelectorAll('.marked-text')[0].textContent === text",
        arg="the old" + "".join(text.replace("⏎\n", "\n").replace("\n", "⏎\n") for text in wanted),
    )
    page.reload()
    card(page, "generate-gpt")
    assert "".join(tokens.all_text_contents()) == "".join(wanted)
    rows = rows_of(saved(page, one, "csv"))
    assert rows[0][:4] == ["model", "step", "token", "id"] and len(rows) > 50
    assert b"<svg" in saved(page, one, "svg") and saved(page, one, "png").startswith(b"\x89PNG")


def test_next_sentences(tab: Any, opened: Any) -> None:
    page = tab.open("predictions?part=follows&models=bert&text=the+king+walks&others=he+has+a+dog")
    told = card(page, "follows-bert").locator(".bars li").inner_text()
    assert f"{100 * opened('bert').follows('the king walks', 'he has a dog'):.2f}%" in told


@pytest.mark.parametrize("name", ["classify", "pairs", "tag", "answer", "regress"])
def test_fine_tuned_models_answer(tab: Any, name: str) -> None:
    place = f"predictions?part=tasks&models={name}&text=the+king+sees+the+dog"
    page = tab.open(f"{place}&other=the+dog+sleeps&question=who+sees")
    one = card(page, f"tasks-{name}")
    page.wait_for_function("() => document.querySelector('.code:not([hidden])')")
    if name != "tag":
        one.locator(".important .noted").first.wait_for()
    if name == "answer":
        assert one.locator(".answer").count() or "no answer" in one.inner_text()
    assert len(rows_of(saved(page, one, "csv"))) > 1 and b"<svg" in saved(page, one, "svg")


def test_which_words_matter_shows_the_drops_of_python(tab: Any, opened: Any) -> None:
    from sememe.tasks.importance import word_importance

    text = "the lovely film about the garden"
    page = tab.open(f"predictions?part=tasks&models=classify&text={quote(text)}")
    one = card(page, "tasks-classify")
    one.locator(".important .noted").first.wait_for()
    found = word_importance(opened("classify"), text)
    wanted = [f"{100 * own.drop:z.1f}".replace("-", "−") for own in found.words]
    assert one.locator(".important small").all_inner_texts() == wanted
    page.get_by_label("Which words matter").uncheck()
    one.locator(".important").wait_for(state="detached")
    assert "why=0" in page.url


def test_hostile_texts_are_texts(tab: Any) -> None:
    for place in (
        "tasks&models=classify",
        "tasks&models=tag",
        "masks&models=bert",
        "generate&models=gpt",
    ):
        page = tab.open(f"predictions?part={place}&text={quote(HOSTILE)}")
        page.wait_for_function("() => !document.querySelector('.card[aria-busy=\"true\"]')")
        assert page.locator("main img, main b").count() == 0
        assert "<img" in page.locator("main").inner_text() or "<img" in page.input_value("textarea")


def test_chinese_interface_and_phone(chromium: Any, address: str) -> None:
    from explorer_pages import Tab

    tab = Tab(chromium, address, locale="zh-CN", viewport={"width": 390, "height": 800})
    for part in ("masks", "next", "generate", "follows&text=the+king&others=a+dog", "tasks"):
        page = tab.open(f"predictions?part={part}")
        page.wait_for_function("() => document.querySelector('.card .body')?.children.length")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390, part
        told = page.locator("main h2").first.inner_text()
        assert any("\u4e00" <= mark <= "\u9fff" for mark in told)
    tab.context.close()
    assert not tab.faults

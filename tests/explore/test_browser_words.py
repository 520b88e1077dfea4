"""The view Words in a browser: every part with every kind of model, its address, and its files."""

from __future__ import annotations

import ast
import csv
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest

from sememe.explore.app import Explorer
from sememe.explore.config import ExploreConfig
from sememe.plots.heatmaps import combine

pytestmark = pytest.mark.slow

STATIC = "word2vec-skipgram-negative"
PARTS = ("neighbors", "analogy", "similarity", "odd", "pairs", "vectors")
GROUPS = (
    (STATIC, "glove", "fasttext", "counts"), ("bert",), ("gpt",), ("elmo", "nnlm"),
    ("classify", "sentence"), ("word2vec-chinese",), ("bert-chinese",),
)  # fmt: skip
HOSTILE = "<img src=x onerror=document.title='hacked'>"


def settle(page: Any) -> None:
    """Wait until every card has its answer."""
    page.wait_for_selector('.card[aria-busy="false"]')
    page.wait_for_selector('[aria-busy="true"]', state="detached")


def show(tab: Any, part: str, *models: str, **params: str) -> Any:
    """Open a part of the view."""
    given = {"models": ",".join(models), "part": part} | params
    tab.page.goto("about:blank")  # so that no card of the page before is taken for the new one
    page = tab.open("words?" + "&".join(f"{key}={quote(own)}" for key, own in given.items()))
    settle(page)
    return page


def card(page: Any, model: str) -> Any:
    return page.locator(f'.card[data-card$="-{model}"]')


def bars(shown: Any) -> list[tuple[str, str]]:
    """Labels and values of a list with bars."""
    items = shown.locator(".bars li")
    return [
        (item.locator(":first-child").first.inner_text(), item.locator(".value").inner_text())
        for item in items.all()
    ]


def saved(page: Any, shown: Any, kind: str) -> bytes:
    """The file that a button saves."""
    with page.expect_download() as download:
        shown.locator(f'[data-save="{kind}"]').click()
    return Path(download.value.path()).read_bytes()


def rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


def listings(shown: Any) -> list[str]:
    """The Python call and the command."""
    shown.locator("details.code summary").click()
    return [own.inner_text() for own in shown.locator("details.code pre").all()]


def evaluate(code: str) -> Any:
    """The value of the last expression of a program."""
    tree = ast.parse(code)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    names: dict[str, Any] = {}
    exec(compile(tree, "page", "exec"), names)
    return eval(compile(ast.Expression(last.value), "page", "eval"), names)


@pytest.mark.parametrize("models", GROUPS)
def test_every_part_with_every_kind_of_model(tab: Any, models: tuple[str, ...]) -> None:
    for part in PARTS:
        page = show(tab, part, *models)
        for model in models:
            shown = card(page, model)
            assert shown.count() == 1, (part, model)
            assert not shown.locator(".error:visible").count(), (part, shown.inner_text())
            assert len(listings(shown)) == 2
        assert saved(page, shown, "png")[:8] == b"\x89PNG\r\n\x1a\n"
        assert len(list(ElementTree.fromstring(saved(page, shown, "svg")).iter())) > 5
        assert len(rows(saved(page, shown, "csv"))) > 1


@pytest.mark.parametrize("model", [STATIC, "gpt", "classify", "word2vec-chinese"])
def test_numbers_are_those_of_python(tab: Any, opened: Any, model: str) -> None:
    words = opened(model).words
    given = [word for word in words if word.isalpha()][:4]
    shown = card(show(tab, "neighbors", model, word=given[0]), model)
    wanted = words.neighbors(given[0], num=12)
    assert bars(shown) == [(own.word, f"{own.score:.4f}") for own in wanted]

    a, b, c = given[:3]
    shown = card(show(tab, "analogy", model, a=a, b=b, c=c), model)
    answers = words.analogy(a, b, c, num=5)
    assert bars(shown) == [(own.word, f"{own.score:.4f}") for own in answers]
    assert answers[0].word in shown.locator(".formula").inner_text()
    assert shown.locator("svg.plane line.join").count() == 4

    page = show(tab, "similarity", model, list=" ".join(given))
    found = rows(saved(page, card(page, model), "csv"))
    assert found[0] == ["", *given]
    for word, *cosines in found[1:]:
        wanted_cosines = [words.similarity(word, other) for other in given]
        assert [float(own) for own in cosines] == pytest.approx(wanted_cosines, abs=1e-6)

    shown = card(show(tab, "odd", model, odd=" ".join(given)), model)
    assert shown.locator(".formula strong").inner_text() == words.odd_one_out(given)

    page = show(tab, "vectors", model, vectors=f"{a}, {b} - {a} + {c}")
    for text, *values in rows(saved(page, card(page, model), "csv")):
        assert [float(own) for own in values] == pytest.approx(combine(words, text), abs=1e-6)


def test_shared_neighbors_are_marked(tab: Any, opened: Any) -> None:
    page = show(tab, "neighbors", STATIC, "glove", word="king")
    lists = {
        name: {own.word for own in opened(name).words.neighbors("king", num=12)}
        for name in (STATIC, "glove")
    }
    shared = lists[STATIC] & lists["glove"]
    for name in lists:
        marked = card(page, name).locator(".bars li.marked button").all_inner_texts()
        assert set(marked) == shared and shared


def test_words_are_completed_and_looked_up_while_typing(tab: Any, opened: Any) -> None:
    page = show(tab, "neighbors", STATIC, "glove", word="dog")
    field = page.locator("[role=combobox]")
    field.fill("")
    field.press_sequentially("kin", delay=30)
    page.wait_for_selector("[role=option]")
    assert "king" in page.locator("[role=option]").all_inner_texts()
    assert card(page, STATIC).locator("h3").inner_text().startswith("Nearest to “dog”")
    field.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant")
    field.press("Escape")
    field.press("g")  # a whole word: its neighbors are shown without Enter
    page.wait_for_selector('h3:has-text("king")')
    settle(page)
    wanted = [own.word for own in opened(STATIC).words.neighbors("king", num=12)]
    assert [label for label, _ in bars(card(page, STATIC))] == wanted
    assert "word=king" in page.url


def test_unseen_words_are_answered_where_a_model_can(tab: Any) -> None:
    page = show(tab, "neighbors", "fasttext", word="kinglike")
    assert "sub-words" in card(page, "fasttext").inner_text()
    assert len(bars(card(page, "fasttext"))) == 12


def test_an_address_restores_what_was_shown(tab: Any) -> None:
    page = show(tab, "neighbors", STATIC, "fasttext", word="king")
    page.select_option("select", "5")
    card(page, STATIC).locator(".bars button").nth(2).click()
    page.wait_for_selector('[aria-busy="true"]', state="detached")
    page.wait_for_url("**num=5**")
    settle(page)
    before = page.locator(".side-by-side").inner_text()
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    settle(page)
    assert page.locator(".side-by-side").inner_text() == before


def test_back_undoes_a_word(tab: Any) -> None:
    page = show(tab, "neighbors", STATIC, word="king")
    picked = card(page, STATIC).locator(".bars button").first
    second = picked.inner_text()
    picked.click()
    page.wait_for_selector(f'h3:has-text("“{second}”")')
    settle(page)
    page.locator("[role=combobox]").fill("dog")  # typing is one step
    page.wait_for_selector('h3:has-text("“dog”")')
    settle(page)
    for word in (second, "king"):
        page.go_back()
        page.wait_for_selector(f'h3:has-text("“{word}”")')


@pytest.mark.parametrize(
    ("part", "param", "given", "told"),
    [
        ("neighbors", "word", " ", "Type a word."),
        ("similarity", "list", " ", "Type a word."),
        ("odd", "odd", "king " * 41, "40"),
        ("pairs", "pairs", "king queen, dog cat", "hot:cold, big:small"),
        ("vectors", "vectors", "king-dog+cat", "with spaces"),
    ],
)
def test_wrong_input_is_told_and_clears_the_card(
    tab: Any, part: str, param: str, given: str, told: str
) -> None:
    page = show(tab, part, STATIC)
    assert card(page, STATIC).locator(".body > *").count()
    field = page.locator(".tools input, .tools textarea").first
    field.fill(given)
    page.click('.tools > button:has-text("Show")')
    page.wait_for_selector(f'.card .error:has-text("{told}")')
    assert not card(page, STATIC).locator(".body > *").count()
    tab.faults = [own for own in tab.faults if "status of 4" not in own]


def test_red_is_positive_wherever_numbers_are_colored(tab: Any) -> None:
    page = show(tab, "similarity", STATIC, list="king queen")
    assert "red is positive" in card(page, STATIC).inner_text()
    cell = page.locator(".matrix rect").first  # of a word with itself
    red = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--red')")
    fill = cell.evaluate("one => getComputedStyle(one).fill")
    wanted = page.evaluate(
        """red => { const one = document.body.appendChild(document.createElement('p'));
        one.style.color = `color-mix(in srgb, ${red} 100%, white)`;
        const found = getComputedStyle(one).color; one.remove(); return found; }""",
        red,
    )
    assert fill == wanted


def test_python_call_and_command_give_the_same(tab: Any, run_command: Any) -> None:
    page = show(tab, "neighbors", STATIC, word="king", num="5")
    python, command = listings(card(page, STATIC))
    wanted = bars(card(page, STATIC))
    assert [(own.word, f"{own.score:.4f}") for own in evaluate(python)] == wanted
    told = run_command(command)
    assert all(word in told and score in told for word, score in wanted)

    page = show(tab, "similarity", STATIC, list="king dog cat")
    python, command = listings(card(page, STATIC))
    _, *found = rows(saved(page, card(page, STATIC), "csv"))
    told = json.loads(run_command(f"{command} --json"))
    assert [word for word, *_ in found] == told["words"] == ["king", "dog", "cat"]
    shown_NN = [[float(cosine) for cosine in own] for _, *own in found]
    for made_NN in (told["similarities"], evaluate(python)):
        assert np.allclose(shown_NN, made_NN, atol=1e-6)

    page = show(tab, "vectors", STATIC, vectors="king, king - dog")
    found = rows(saved(page, card(page, STATIC), "csv"))
    for (_, *values), wanted_D in zip(
        found, evaluate(listings(card(page, STATIC))[0]), strict=True
    ):
        assert [float(own) for own in values] == pytest.approx(wanted_D, abs=1e-6)


def test_tabs_work_with_the_keyboard(tab: Any) -> None:
    page = show(tab, "neighbors", STATIC)
    page.focus("#tab-neighbors")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('#tab-analogy[aria-selected="true"]')
    settle(page)
    assert page.evaluate("document.activeElement.id") == "tab-analogy"
    assert "part=analogy" in page.url


def test_hostile_words_are_text(tab: Any) -> None:
    page = show(tab, "similarity", STATIC, list=f"king dog {HOSTILE.replace(' ', '/')}")
    assert "<img/src=x" in card(page, STATIC).locator(".error.note").inner_text()
    page = show(tab, "neighbors", "fasttext", word=HOSTILE)
    assert HOSTILE in card(page, "fasttext").locator("h3").inner_text()
    page = show(tab, "analogy", "fasttext", a=HOSTILE, b="king", c="dog")
    assert HOSTILE in card(page, "fasttext").locator(".formula").inner_text()
    page = show(tab, "pairs", "fasttext", pairs=f"{HOSTILE}:king, dog:cat")
    svg = saved(page, card(page, "fasttext"), "svg")
    assert b"<img" not in svg and ElementTree.fromstring(svg) is not None
    assert not page.locator("main img").count() and page.title() != "hacked"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_in_chinese(new_tab: Any, scheme: str) -> None:
    phone = {"width": 390, "height": 844}
    tab = new_tab(viewport=phone, locale="zh-CN", color_scheme=scheme)
    for part in PARTS:
        page = show(tab, part, "word2vec-chinese")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, part
    assert page.locator("#tab-vectors").inner_text() == "向量"
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (paper == "rgb(253, 253, 251)") == (scheme == "light")


def test_a_failed_start_is_told(tab: Any) -> None:
    body = '{"error": {"message": "The disk is broken."}}'
    tab.page.route("**/explore/api/state", lambda route: route.fulfill(status=503, body=body))
    tab.page.goto(tab.address)
    told = tab.page.locator("main [role=alert]")
    told.wait_for()
    assert told.inner_text() == "The disk is broken."
    tab.faults.clear()  # the browser tells the status, too


def test_a_view_without_a_model_says_what_it_needs(
    serve_page: Any, tab_class: Any, chromium: Any, golden: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "file.log"
    broken.write_text("error: it failed\n")
    with serve_page(Explorer([golden / "glove", broken], ExploreConfig(port=0))) as address:
        tab = tab_class(chromium, address)
        for view, told in (("predictions", "BERT"), ("attention", "attention"), ("none", "none")):
            page = tab.open(view) if view != "none" else tab.page
            page.goto(f"{address}#/{view}")
            page.wait_for_selector(f'main :text("{told}")')
            assert page.locator("nav a").count() == 7
        page = tab.open("words")
        page.wait_for_selector('.card[data-card="neighbors-glove"]')
        assert "file.log: " in page.locator("main > .error").inner_text()
        tab.context.close()
        assert not tab.faults

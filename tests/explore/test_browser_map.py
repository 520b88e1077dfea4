"""The view Map in a browser: points, the lasso, the address, exports, and one's own rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememe.explore.app import Explorer
from sememe.explore.config import ExploreConfig
from sememe.plots.projection import project
from sememe.plots.vocabulary import word_points

pytestmark = pytest.mark.slow

STATIC, OTHER, CONTEXTUAL, CHINESE = (
    "word2vec-skipgram-negative", "glove", "bert", "word2vec-chinese"
)  # fmt: skip
HOSTILE = "<img src=x onerror=alert(1)>"
# How many colors a canvas has. It is copied: Chromium warns of reading the same one often.
PIXELS = """(canvas) => {
  if (!canvas.width) return 0;
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const {data} = context.getImageData(0, 0, copy.width, copy.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""
ALL_PIXELS = f"[...document.querySelectorAll('.plot canvas')].map({PIXELS})"


def wait_for_maps(page: Any, num: int = 1) -> None:
    """Wait until maps can be saved: their points and colors are drawn."""
    # UMAP compiles its code first, which takes half a minute where other work runs.
    page.wait_for_function(
        "(num) => document.querySelectorAll('.maps [data-save=csv]').length === num",
        arg=num, timeout=300_000,
    )  # fmt: skip
    page.wait_for_function("() => !document.querySelector('.maps [aria-busy=true]')")
    page.wait_for_function(
        f"() => [...document.querySelectorAll('.plot canvas')].every((one) => ({PIXELS})(one) > 3)",
        polling=200,
    )


def saved(page: Any, card: str, kind: str) -> bytes:
    with page.expect_download() as told:
        page.click(f'[data-card="{card}"] [data-save={kind}]')
    return Path(told.value.path()).read_bytes()


def saved_rows(page: Any, card: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(saved(page, card, "csv").decode("utf-8-sig"))))


@pytest.mark.parametrize("name", [STATIC, CONTEXTUAL, "classify", CHINESE])
def test_points_are_drawn_and_saved(tab: Any, opened: Any, name: str) -> None:
    page = tab.open(f"map?models={name}&num=50")
    wait_for_maps(page)
    page.wait_for_function(
        f"() => ({PIXELS})(document.querySelector('.plot canvas')) > 20", polling=200
    )
    points = word_points(opened(name).words, 50)
    places_N2, _ = project(points.units_ND)
    rows = saved_rows(page, f"map-{name}")
    # A spreadsheet would run what begins like a formula; those words get an apostrophe.
    assert [row["word"].removeprefix("'") for row in rows] == [
        word.removeprefix("'") for word in points.labels
    ]
    found = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    assert np.allclose(found, places_N2, atol=1e-5)
    picture = saved(page, f"map-{name}", "svg").decode()
    assert picture.startswith("<svg") and points.labels[0] in picture
    assert saved(page, f"map-{name}", "png").startswith(b"\x89PNG")


@pytest.mark.parametrize("method", ["pca", "umap"])
def test_command_gives_the_places_of_the_page(
    tab: Any, run_command: Any, tmp_path: Path, method: str
) -> None:
    page = tab.open(f"map?models={STATIC}&num=50&method={method}&neighbors=5")
    wait_for_maps(page)
    page.click(f'[data-card="map-{STATIC}"] details.code summary')
    _, command = page.locator(f'[data-card="map-{STATIC}"] details.code pre').all_inner_texts()
    run_command(command)
    with (tmp_path / "map.csv").open(encoding="utf-8-sig", newline="") as file:
        made = list(csv.DictReader(file))
    shown = saved_rows(page, f"map-{STATIC}")
    assert [row["word"] for row in made] == [row["word"].removeprefix("'") for row in shown]
    made_N2, shown_N2 = (
        np.array([[float(row["x"]), float(row["y"])] for row in rows]) for rows in (made, shown)
    )
    assert len(made) == 50 and np.allclose(made_N2, shown_N2, atol=1e-5)


def test_the_lasso_selects_in_every_map(tab: Any) -> None:
    page = tab.open(f"map?models={STATIC},{OTHER}&num=60")
    wait_for_maps(page, 2)
    box = page.locator(".plot canvas").first.bounding_box()
    left, top = box["x"], box["y"]
    corners = [(0.5, 0.01), (0.99, 0.01), (0.99, 0.99), (0.5, 0.99), (0.5, 0.1)]
    page.keyboard.down("Shift")
    for number, (x, y) in enumerate(corners):
        page.mouse.move(left + x * box["width"], top + y * box["height"], steps=4)
        if number == 0:
            page.mouse.down()
    page.mouse.up()
    page.keyboard.up("Shift")
    rows = saved_rows(page, f"map-{STATIC}")
    xs = np.array([float(row["x"]) for row in rows])
    middle = (xs.min() + xs.max()) / 2
    wanted = {row["word"] for row, x in zip(rows, xs, strict=True) if x > middle}
    chosen = saved_rows(page, "map-selection")
    assert {row["word"] for row in chosen if row["model"] == STATIC} == wanted
    assert 0 < len(wanted) < len(rows) and {row["model"] for row in chosen} == {STATIC, OTHER}
    assert "sel=" in page.url
    pixels = page.evaluate(f"() => {ALL_PIXELS}")
    page.reload()
    wait_for_maps(page, 2)
    assert {row["word"] for row in saved_rows(page, "map-selection")} == {
        row["word"] for row in chosen
    }
    page.wait_for_function(
        f"wanted => String({ALL_PIXELS}) === String(wanted)", arg=pixels, polling=200
    )
    page.keyboard.press("Escape")
    assert "sel=" not in page.url


def test_a_word_is_found_with_its_neighbors_and_changes(tab: Any, opened: Any) -> None:
    word = next(word for word in opened(STATIC).words if word in opened(OTHER).words)
    page = tab.open(f"map?models={STATIC},{OTHER}&color=cluster&clusters=3")
    wait_for_maps(page, 2)
    assert page.locator(".maps .card").first.locator(".legend button").count() == 3
    page.get_by_role("combobox", name="Find a word").fill(word)
    page.get_by_role("combobox", name="Find a word").press("Enter")
    page.wait_for_selector(".near .bars li")
    found = page.locator(".maps .card").first.locator(".near li > :first-child").all_inner_texts()
    assert found == [own.word for own in opened(STATIC).words.neighbors(word, num=10)]
    page.wait_for_selector('[data-card="map-changes"] table')
    assert page.locator('[data-card="map-changes"] tbody tr').first.inner_text().startswith(word)
    page.wait_for_function("() => location.hash.includes('zoom=')")
    before = page.url
    page.reload()
    wait_for_maps(page, 2)
    page.wait_for_timeout(500)
    assert page.url == before


def test_keys_move_and_choose(tab: Any) -> None:
    page = tab.open(f"map?models={STATIC}&num=40")
    wait_for_maps(page)
    page.focus(".plot canvas")
    for key in ("+", "+", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".near .bars li")
    page.wait_for_function("() => location.hash.includes('zoom=')")
    page.keyboard.press("0")
    page.wait_for_function("() => !location.hash.includes('zoom=')")


@pytest.fixture(scope="module")
def with_rows(
    golden: Path, tmp_path_factory: pytest.TempPathFactory, serve_page: Any
) -> Iterator[str]:
    """The address of an explorer with hostile rows."""
    folder = tmp_path_factory.mktemp("rows")
    path = folder / f"{HOSTILE}.csv"
    lines = [f"{HOSTILE} the list of words {n},{('good', HOSTILE)[n % 2]}" for n in range(30)]
    path.write_text("text,kind\n" + "\n".join(lines) + "\n", "utf-8")
    with serve_page(Explorer([golden / STATIC], ExploreConfig(port=0, rows=str(path)))) as address:
        yield address


@pytest.mark.parametrize(
    "options",
    [{}, {"locale": "zh-CN", "viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}],
    ids=["wide", "phone-dark-chinese"],
)
def test_hostile_rows_are_text(
    chromium: Any, tab_class: Any, with_rows: str, options: dict[str, Any]
) -> None:
    tab = tab_class(chromium, with_rows, **options)
    page = tab.open("map")
    wait_for_maps(page)
    assert page.locator(".legend button").all_inner_texts() == ["good", HOSTILE]
    page.locator(".legend button").nth(1).click()
    assert page.locator(".chosen button").count() == 15
    page.locator(".chosen button").first.click()
    page.wait_for_selector("blockquote")
    assert page.inner_text("blockquote").startswith(HOSTILE)
    search = page.locator(".tools input[type=text]")
    search.fill("words 17")
    search.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('.chosen button').length === 1")
    assert "words 17" in page.inner_text(".chosen")
    assert page.locator("main img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.context.close()
    assert not tab.faults

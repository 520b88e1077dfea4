"""What every view saves as CSV is what its Python call and its command give."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

pytestmark = pytest.mark.slow
TEXT = "the lovely film about the garden"


def opened_card(tab: Any, place: str, name: str) -> tuple[list[dict[str, str]], str, str]:
    """The rows of the CSV of a card, its Python call and its command."""
    page = tab.open(place)
    card = page.locator(f'[data-card="{name}"]')
    card.locator('[data-save="csv"]').wait_for()
    card.locator("details.code pre").nth(1).wait_for(state="attached")
    page.wait_for_selector('[aria-busy="true"]', state="detached")
    with page.expect_download() as download:
        card.locator('[data-save="csv"]').click()
    text = Path(download.value.path()).read_text("utf-8-sig")
    rows = list(csv.DictReader(text.split("\n\n")[0].splitlines()))
    python, command = (own.text_content() for own in card.locator("details.code pre").all())
    return rows, python, command


def value_of(python: str) -> tuple[Any, dict[str, Any]]:
    """The value of the last line of a call, and all of its names."""
    scope: dict[str, Any] = {}
    *lines, last = python.strip().split("\n")
    exec("\n".join(lines), scope)
    return eval(last, scope), scope


def numbers(rows: list[dict[str, str]], *names: str) -> np.ndarray:
    return np.array([[float(row[name]) for name in names] for row in rows])


def written(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("model", ["bert", "word2vec-skipgram-negative", "bert-chinese"])
def test_context(tab: Any, run_command: Any, model: str) -> None:
    asked = "word=苹果&set=chinese" if model == "bert-chinese" else "word=mouse&layer=1"
    own = "" if model == "bert-chinese" else "&own=A+mouse+sees+a+king."
    rows, python, command = opened_card(
        tab, f"context?models={model}&{asked}{own}", f"context-{model}"
    )
    found, _ = value_of(python)
    told = json.loads(run_command(f"{command} --json"))["uses"]
    names = ["x", "y", *(["cosine"] if own else [])]
    shown = numbers(rows, *names)
    for other in (found, told):
        assert [row["sentence"] for row in rows] == [one["sentence"] for one in other]
        given = np.array([[one[name] for name in names] for one in other])
        assert np.allclose(shown, given, atol=2e-4)
        assert [int(row["cluster"]) for row in rows] == [one["cluster"] for one in other]


def test_changes(tab: Any, run_command: Any) -> None:
    first, second = "word2vec-skipgram-negative", "glove"
    rows, python, command = opened_card(tab, f"map?models={first},{second}", "map-changes")
    (mean, changes), _ = value_of(python)
    told = json.loads(run_command(f"{command} --json"))
    assert told["mean"] == pytest.approx(mean)
    assert [row["word"] for row in rows] == [one.word for one in changes]
    assert [row["word"] for row in rows] == [one["word"] for one in told["changes"]]
    assert [float(row["overlap"]) for row in rows] == pytest.approx(
        [one["overlap"] for one in told["changes"]]
    )


def test_a_step(tab: Any, run_command: Any) -> None:
    page = tab.open("learning?part=step&text=the+quick+brown+fox+jumps&step=33&dim=4&seed=2")
    page.locator('[data-card="step-decisions"] td').first.wait_for()
    pair = page.locator('[data-card="step-pair"] details.code pre')
    python, command = (own.text_content() for own in pair.all())
    (_, decisions, _, _), _ = value_of(python)
    told = json.loads(run_command(f"{command} --json"))["decisions"]
    shown = page.locator('[data-card="step-decisions"] tbody tr').all()
    for row, one, other in zip(shown, decisions, told, strict=True):
        cells = row.locator("td").all_inner_texts()
        assert cells[0] == one.name == other["name"]
        assert float(cells[2]) == pytest.approx(one.score, abs=5e-5)
        assert other["probability"] == pytest.approx(one.probability)


def test_a_film(tab: Any, run_command: Any, tmp_path: Path) -> None:
    rows, python, command = opened_card(
        tab, "learning?part=film&trained=1&epochs=5&dim=10&num_words=50", "film"
    )
    (words, places, losses), _ = value_of(python)
    run_command(f"{command} --quiet")
    told = written(tmp_path / "film.csv")
    assert [row["word"] for row in rows[: len(words)]] == words
    assert np.allclose(numbers(rows, "x", "y"), places.reshape(-1, 2), atol=1e-4)
    assert np.allclose(numbers(rows, "x", "y", "loss"), numbers(told, "x", "y", "loss"), atol=1e-4)
    assert float(rows[-1]["loss"]) == pytest.approx(losses[-1], abs=1e-6)


@pytest.mark.parametrize(
    ("model", "text"), [("bert", "the old king sees a river"), ("bert-chinese", "国王喜欢音乐")]
)
def test_masks(tab: Any, run_command: Any, model: str, text: str) -> None:
    rows, python, command = opened_card(
        tab, f"learning?part=masks&models={model}&rate=0.4&text={quote(text)}", "masks"
    )
    (tokens, _, counts, _), _ = value_of(python)
    told = json.loads(run_command(f"{command} --json"))
    assert told["counts"] == counts and told["tokens"] == tokens
    fates = [row["fate"] for row in rows]
    assert {name: fates.count(name) for name in counts} == counts


@pytest.mark.parametrize("model", ["gpt", "ngram"])
def test_a_generation_with_a_chosen_token(tab: Any, run_command: Any, model: str) -> None:
    place = f"predictions?part=generate&models={model}&text=the+king&max_tokens=6"
    rows, _, _ = opened_card(tab, place, f"generate-{model}")
    other = next(r for r in rows if r["step"] == "2" and r["chosen"] == "false" and r["token"])
    tab.page.goto("about:blank")
    rows, python, command = opened_card(tab, f"{place}&at=1:{other['id']}", f"generate-{model}")
    assert f"--choose 2={other['id']}" in command
    told = json.loads(run_command(f"{command} --json"))["steps"]
    scope: dict[str, Any] = {}
    exec(python.replace("print(step.chosen, step.tokens)", "last = step"), scope)
    chosen = [int(row["id"]) for row in rows if row["chosen"] == "true"]
    assert chosen == [one["chosen"]["id"] for one in told] and chosen[1] == int(other["id"])
    assert scope["last"].chosen.id == chosen[-1]
    given = []
    for one in told:
        ids = [own["id"] for own in one["tokens"]]
        given += one["tokens"] + ([one["chosen"]] if one["chosen"]["id"] not in ids else [])
    given = [own["probability"] for own in given]
    assert np.allclose(numbers(rows, "probability").ravel(), given, atol=1e-5)


@pytest.mark.parametrize("model", ["classify", "pairs", "regress", "answer", "tag"])
def test_a_prediction(tab: Any, run_command: Any, opened: Any, model: str) -> None:
    more = {
        "answer": "&question=where+is+the+king",
        "pairs": "&other=a+dog",
        "regress": "&other=a+dog",
    }
    place = f"predictions?part=tasks&models={model}&text={quote(TEXT)}{more.get(model, '')}"
    page = tab.open(place)
    card = page.locator(f'[data-card="tasks-{model}"]')
    card.locator("details.code pre").nth(1).wait_for(state="attached")
    page.wait_for_selector('[aria-busy="true"]', state="detached")
    with page.expect_download() as download:
        card.locator('[data-save="csv"]').click()
    table, *rest = (
        Path(download.value.path()).read_text("utf-8-sig").replace("\r", "").split("\n\n")
    )
    python, command = (own.text_content() for own in card.locator("details.code pre").all())
    told = json.loads(run_command(f"{command} --json"))
    scope: dict[str, Any] = {}
    exec(python, scope)
    rows = list(csv.DictReader(table.splitlines()))
    if model in ("classify", "pairs"):
        shown = {row["label"]: float(row["probability"]) for row in rows}
        assert shown == pytest.approx({label: value for label, value, _ in told["items"]}, abs=1e-5)
    elif model == "regress":
        assert float(rows[0]["score"]) == pytest.approx(told["items"][0][1], abs=1e-5)
    elif model == "tag":
        spans = [(row["text"], row["type"]) for row in rows]
        assert spans == [(own["text"], own["type"]) for own in told["spans"]]
    if model != "tag":
        drops = [float(row["drop"]) for row in csv.DictReader(rest[0].splitlines())]
        assert drops == pytest.approx(
            [own["drop"] for own in told["importance"]["words"]], abs=1e-5
        )


def test_rows_on_the_map(
    chromium: Any, golden: Path, serve_page: Any, tab_class: Any, run_command: Any, tmp_path: Path
) -> None:
    from sememe.explore.app import Explorer
    from sememe.explore.config import ExploreConfig

    path = tmp_path / "rows.csv"
    people, verbs = ("king", "queen", "dog", "cat"), ("walks", "sleeps", "eats", "sees a river")
    lines = [f"the {who} {verb},{who}" for who in people for verb in verbs]
    path.write_text("text,who\n" + "\n".join(lines) + "\n", "utf-8")
    explorer = Explorer([golden / "sentence"], ExploreConfig(port=0, rows=str(path)))
    with serve_page(explorer) as address:
        tab = tab_class(chromium, address)
        rows, python, command = opened_card(tab, "map?color=cluster&clusters=3", "map-sentence")
        tab.context.close()
    assert not tab.faults
    scope: dict[str, Any] = {}
    exec(python, scope)
    run_command(f"{command} --quiet")
    told = written(tmp_path / "map.csv")
    assert [row["row"] for row in rows] == scope["points"].labels == [row["row"] for row in told]
    assert np.allclose(numbers(rows, "x", "y"), scope["places"], atol=1e-4)
    assert np.allclose(numbers(rows, "x", "y"), numbers(told, "x", "y"), atol=1e-4)
    assert [int(row["cluster"]) for row in told] == scope["clusters"].tolist()

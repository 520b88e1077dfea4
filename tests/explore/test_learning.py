"""The view How it learns: steps, films and masks have the numbers of Python."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import numpy as np
import pytest

from sememe.models.bert.mask_draws import draw_masks
from sememe.models.word2vec.snapshots import train_film
from sememe.models.word2vec.steps import training_step
from sememe.text.settings import TextSettings

TEXT = "The quick brown fox jumps over the lazy dog."
PATH = "/explore/api/learning"


def columns_of(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the columns of a binary answer."""
    size = int.from_bytes(data[:4], "little")
    header, start, found = json.loads(data[4 : 4 + size]), 4 + size, {}
    for own in header["columns"]:
        num = int(np.prod(own["shape"]))
        found[own["name"]] = np.frombuffer(data, own["type"], num, start).reshape(own["shape"])
        start += -(-found[own["name"]].nbytes // 8) * 8
    return header["meta"], found


@pytest.mark.parametrize("step", [0, 201])
def test_a_step_has_the_numbers_of_python(client: Any, step: int) -> None:
    options: dict[str, Any] = {
        "dim": 4,
        "window": 3,
        "negatives": 2,
        "learning_rate": 0.5,
        "seed": 2,
    }
    found = client.post(f"{PATH}/step", json={"text": TEXT, "step": step, **options}).json()
    wanted = training_step(TEXT, step, **options)
    assert found["sentence"] == wanted.sentence and found["pair"] == list(wanted.pair)
    assert found["loss"] == pytest.approx(wanted.loss, abs=1e-6)
    assert found["losses"] == pytest.approx(wanted.losses, abs=1e-6)
    assert found["input"]["after"] == pytest.approx(wanted.input.after, abs=1e-6)
    for own, decision in zip(found["decisions"], wanted.decisions, strict=True):
        assert own["name"] == decision.name and own["label"] == decision.label
        for name in ("score", "probability", "step"):
            assert own[name] == pytest.approx(getattr(decision, name), abs=1e-6)
    for own, change in zip(found["outputs"], wanted.outputs, strict=True):
        assert own["before"] == pytest.approx(change.before, abs=1e-6)


def test_a_chinese_sentence_is_cut_into_words(client: Any) -> None:
    text = "国王喜欢音乐，老师也喜欢音乐。"
    found = client.post(f"{PATH}/step", json={"text": text, "step": 3}).json()
    wanted = training_step(text, 3, settings=TextSettings(language="zh"))
    assert (
        found["sentence"]
        == wanted.sentence
        == ["国王", "喜欢", "音乐", "老师", "也", "喜欢", "音乐"]
    )


def test_a_hostile_sentence_is_a_text(client: Any) -> None:
    found = client.post(f"{PATH}/step", json={"text": "<img src=x> <b>two</b> words"}).json()
    assert found["sentence"] == training_step("<img src=x> <b>two</b> words").sentence


@pytest.mark.parametrize(
    "body",
    [{"text": ""}, {"text": "one"}, {"text": TEXT, "step": 10**6}, {"text": TEXT, "dim": 0},
     {"text": TEXT, "learning_rate": 1e9}, {"text": TEXT, "unknown": 1}],
)  # fmt: skip
def test_bad_steps_are_refused(client: Any, body: dict[str, Any]) -> None:
    answer = client.post(f"{PATH}/step", json=body)
    assert answer.status_code in (400, 422) and answer.json()["error"]["message"]


FILM: dict[str, Any] = {
    "num_words": 20,
    "num_snapshots": 4,
    "epochs": 60,
    "dim": 8,
    "window": 2,
    "seed": 2,
}


@pytest.fixture(scope="module")
def film(client: Any) -> tuple[dict[str, Any], np.ndarray]:
    state = client.post(f"{PATH}/film", json=FILM).json()
    end_s = time.monotonic() + 120
    while state["state"] == "running":
        assert time.monotonic() < end_s
        time.sleep(0.1)
        state = client.get(f"/explore/api/jobs/{state['id']}").json()
    assert state["state"] == "done", state
    again = client.post(f"{PATH}/film", json=FILM).json()
    assert again["state"] == "done"  # the same training is not done twice
    meta, found = columns_of(client.post(f"{PATH}/film/snapshots", json=FILM).content)
    return meta, found["positions"]


def test_a_film_is_that_of_python(film: Any, explorer: Any) -> None:
    meta, positions_SN2 = film
    wanted = train_film(explorer.text, **FILM)
    assert meta["words"] == wanted.words and meta["counts"] == wanted.counts
    assert meta["num_words"] == wanted.num_words_S
    assert meta["losses"] == pytest.approx(wanted.losses_S, abs=1e-6)
    assert np.allclose(positions_SN2, wanted.positions_SN2, atol=1e-6)
    # The words move.
    assert np.abs(positions_SN2[-1] - positions_SN2[0]).max() > 0.1


def test_a_film_can_be_cancelled_and_started_again(client: Any, explorer: Any) -> None:
    released = threading.Event()
    explorer.jobs.start("earlier", lambda report: released.wait(60))  # jobs run one at a time
    body = FILM | {"epochs": 100, "dim": 300, "seed": 5}
    key = client.post(f"{PATH}/film", json=body).json()["id"]
    assert client.post(f"/explore/api/jobs/{key}/cancel", json={}).status_code == 200
    released.set()
    end_s, state = time.monotonic() + 120, {"state": "running"}
    while state["state"] == "running":
        assert time.monotonic() < end_s
        time.sleep(0.1)
        state = client.get(f"/explore/api/jobs/{key}").json()
    assert state["state"] == "failed" and "Cancelled" in state["error"]
    assert client.post(f"{PATH}/film/snapshots", json=body).status_code == 400
    assert client.post(f"{PATH}/film", json=body).json()["state"] != "failed"
    client.post(f"/explore/api/jobs/{key}/cancel", json={})


def test_unknown_films_are_refused(client: Any) -> None:
    answer = client.post(f"{PATH}/film/snapshots", json=FILM | {"seed": 77})
    assert answer.status_code == 400 and "start it again" in answer.json()["error"]["message"]
    assert client.post(f"{PATH}/film", json={"dim": 1}).status_code == 422


def test_the_language_of_a_corpus_is_found(place: Any) -> None:
    (place / "zh.txt").write_text("国王喜欢音乐，老师喜欢苹果。\n", "utf-8")
    (place / "en.txt").write_text("The king likes music.\n", "utf-8")
    for name in ("zh", "en"):
        film = train_film(place / f"{name}.txt", min_count=1, epochs=1, dim=4, num_snapshots=2)
        assert film.model.text.language == name


@pytest.mark.parametrize("name", ["bert", "bert-chinese"])
def test_masks_are_those_of_python(client: Any, opened: Any, name: str) -> None:
    text = "国王喜欢自然语言。" if name == "bert-chinese" else "The old king sees a lovely giraffe."
    body = {"text": text, "num": 50, "seed": 3, "rate": 0.3, "unit": "word"}
    answer = client.post(f"{PATH}/masks", json={"model": name, **body})
    meta, found = columns_of(answer.content)
    wanted = draw_masks(opened(name), text, num=50, seed=3, rate=0.3, unit="word")
    assert meta["tokens"] == wanted.tokens and meta["counts"] == wanted.counts()
    assert np.array_equal(found["fates"], wanted.fates_NT)
    for draw in range(50):
        assert [meta["names"][str(own)] for own in found["seen"][draw]] == wanted.seen(draw)


def test_bad_masks_are_refused(client: Any) -> None:
    for body in (
        {"model": "bert", "text": " "}, {"model": "bert", "text": "word " * 900},
        {"model": "bert", "text": "a", "num": 10**6}, {"model": "gpt", "text": "the king"},
        {"model": "bert", "text": "a", "unit": "phrase"},
    ):  # fmt: skip
        answer = client.post(f"{PATH}/masks", json=body)
        assert answer.status_code in (400, 422) and answer.json()["error"]["message"]

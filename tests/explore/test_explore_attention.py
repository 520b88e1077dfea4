"""The view Attention: matrices as in Python, thumbnails of all heads, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sememe.explore.attention import RecentAttention, thumbnails

TEXT = "the old king reads a book"
# Encoders, a decoder, translators, fine-tuned models, and Chinese.
MODELS = (
    "bert", "gpt", "transformer", "seq2seq", "classify", "sentence", "bert-chinese",
)  # fmt: skip
HOSTILE = "<b onclick=x> \u202e king"
Found = tuple[dict[str, Any], dict[str, np.ndarray]]


def unpack(data: bytes) -> Found:
    """What the page reads: JSON, and the columns."""
    size = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + size])
    start, columns = 4 + size, {}
    for own in header["columns"]:
        num = int(np.prod(own["shape"]))
        columns[own["name"]] = np.frombuffer(data, own["type"], num, start).reshape(own["shape"])
        start += -(-columns[own["name"]].nbytes // 8) * 8
    return header["meta"], columns


@pytest.fixture
def ask(client: Any) -> Callable[..., Found]:
    """Ask for one matrix of a model."""

    def call(model: str, text: str = TEXT, **given: Any) -> Found:
        body = {"model": model, "text": text, **given}
        answer = client.post("/explore/api/attention", json=body)
        assert answer.status_code == 200, answer.text
        return unpack(answer.content)

    return call


@pytest.mark.parametrize("name", MODELS)
def test_every_matrix_is_that_of_python(ask: Any, opened: Any, name: str) -> None:
    wanted = opened(name).attention(TEXT)
    num_layers, num_heads = wanted.weights_LHTS.shape[:2]
    places: list[dict[str, int]] = [{}, {"layer": 1}, {"layer": num_layers, "head": num_heads}]
    for place in places:
        meta, columns = ask(name, **place)
        assert columns["weights"] == pytest.approx(wanted.of(**place), abs=1e-6)
        assert columns["weights"].sum(axis=1) == pytest.approx(1, abs=1e-5)
        assert (meta["target"], meta["source"]) == (list(wanted.target), list(wanted.source))
        assert (meta["num_layers"], meta["num_heads"]) == (num_layers, num_heads)
        assert meta["translation"] == wanted.translation
    mean = ask(name, over_all="mean")[1]["weights"]
    assert mean == pytest.approx(wanted.mean(), abs=1e-6)


@pytest.mark.parametrize("name", ["bert", "gpt", "classify"])
def test_rollout_is_that_of_python(ask: Any, opened: Any, name: str) -> None:
    found = ask(name, over_all="rollout")[1]["weights"]
    assert found == pytest.approx(opened(name).attention(TEXT).rollout(), abs=1e-6)
    if name == "gpt":  # nothing comes from tokens that follow
        assert np.triu(found, 1) == pytest.approx(0)


def test_pairs_and_given_translations(ask: Any, opened: Any) -> None:
    meta, columns = ask("bert", other="the dog")
    wanted = opened("bert").attention(TEXT, "the dog")
    assert meta["segments"] == list(wanted.segments) and 1 in meta["segments"]
    assert columns["weights"] == pytest.approx(wanted.of(), abs=1e-6)
    meta, columns = ask("transformer", other="das alte Buch")
    wanted = opened("transformer").attention(TEXT, "das alte Buch")
    assert meta["target"] == list(wanted.target) and meta["translation"] == "das alte Buch"
    assert columns["weights"] == pytest.approx(wanted.of(), abs=1e-6)


def test_thumbnails_show_every_head(ask: Any, opened: Any) -> None:
    wanted = opened("bert").attention(TEXT).weights_LHTS
    small = ask("bert", thumbnails=True)[1]["thumbnails"]
    assert small.shape == wanted.shape and small.dtype == np.uint8
    largest = np.maximum(wanted.max((2, 3), keepdims=True), 4 / wanted.shape[3])
    assert small == pytest.approx(255 * wanted / largest, abs=0.51)


def test_single_strong_weights_of_long_texts_stay_visible() -> None:
    weights = np.full((1, 2, 300, 301), 1 / 301, np.float32)
    weights[0, 0, 123, 45] = 1
    small = thumbnails(weights)
    assert max(small.shape[2:]) <= 48 and small[0, 0].max() == 255
    assert small[0, 1].max() == pytest.approx(64, abs=1)  # even weights are pale


def test_a_text_is_computed_once_for_all_its_heads(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened("bert")
    num_bytes = model.attention(TEXT).weights_LHTS.nbytes
    monkeypatch.setattr("sememe.explore.attention._MOST_BYTES", num_bytes)
    recent = RecentAttention()
    first = recent.of(model, TEXT, None)
    assert recent.of(model, TEXT, None) is first
    recent.of(model, "a", None)
    assert recent.of(model, TEXT, None) is not first


@pytest.mark.parametrize("name", ["bert", "gpt", "transformer"])
def test_hostile_texts_come_back_as_text(ask: Any, opened: Any, name: str) -> None:
    meta, columns = ask(name, HOSTILE)
    assert meta["source"] == list(opened(name).attention(HOSTILE).source)
    assert columns["weights"].shape == (len(meta["target"]), len(meta["source"]))


@pytest.mark.parametrize(
    ("model", "given"),
    [
        ("transformer", {"text": "", "thumbnails": True}),
        ("bert", {"layer": 9}),
        ("bert", {"layer": 0}),
        ("bert", {"layer": 1, "head": 9}),
        ("bert", {"over_all": "median"}),
        ("bert", {"unknown": 1}),
        ("gpt", {"text": "king " * 3_000}),
        ("transformer", {"text": "king " * 3_000}),
        ("transformer", {"over_all": "rollout"}),
        ("glove", {}),
        ("no-such-model", {}),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(client: Any, model: str, given: Any) -> None:
    answer = client.post("/explore/api/attention", json={"model": model, "text": TEXT, **given})
    assert answer.status_code in (400, 404, 422)
    message = answer.json()["error"]["message"]
    assert 0 < len(message) < 1_000 and "\n" not in message and "Traceback" not in message

"""What every model and task promises: verbs, determinism, whole writes, resume, Chinese, errors."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from models import ENGLISH, MODELS, Promised, every_model, learned, write_texts
from sememe.contract import KINDS


@pytest.fixture(autouse=True)
def files(place: Path) -> None:
    write_texts(place)


@pytest.fixture(scope="module")
def trained() -> dict[Any, Any]:
    """The models of earlier tests, which no test may change."""
    return {}


@pytest.fixture
def fitted(golden: Path, trained: dict[Any, Any]) -> Callable[..., Any]:
    """Train a model, or take the one that was trained with the same options."""

    def fit(promised: Promised, language: str = "english", **more: Any) -> Any:
        key = promised.name, str(promised.options), language, str(more)
        if key not in trained:
            model = promised.make(golden, language, **more)
            trained[key] = model.fit(*promised.data(language), **promised.reading(language))
            assert trained[key] is model
        return trained[key]

    return fit


def assert_same(first: Any, second: Any) -> None:
    ours, theirs = learned(first), learned(second)
    assert ours.keys() == theirs.keys() and ours
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def records(model: Any) -> list[dict[str, Any]]:
    """The history of a model without undefined values, which JSON keeps as null."""
    history = getattr(model, "history", ())
    return [{key: own[key] for key in own if own[key] == own[key] is not None} for own in history]


def test_every_kind_is_among_them() -> None:
    kinds = {promised.kind or promised.name.lower() for promised in MODELS.values()}
    # The `fit` of word vectors learns nothing: it is there for pipelines of scikit-learn.
    assert kinds | {"vectors"} == {name for name, kind in KINDS.items() if "fit" in dir(kind.cls())}


@every_model
def test_what_it_learns_is_finite_and_has_a_history(promised: Promised, fitted: Callable) -> None:
    model = fitted(promised)
    assert all(np.isfinite(own).all() for own in learned(model).values() if own.dtype.kind == "f")
    losses = [] if promised.is_counted else [own["loss"] for own in model.history if "loss" in own]
    assert bool(losses) != promised.is_counted and np.isfinite(losses).all()


@every_model
def test_one_worker_and_a_seed_give_the_same_bits(
    promised: Promised, golden: Path, fitted: Callable
) -> None:
    model = fitted(promised)
    assert_same(model, promised.make(golden).fit(*promised.data()))
    if not promised.is_counted:
        other = learned(promised.make(golden, seed=4).fit(*promised.data()))
        assert any(not np.array_equal(own, other[name]) for name, own in learned(model).items())


@every_model
def test_save_and_load_keep_everything(promised: Promised, place: Path, fitted: Callable) -> None:
    model = fitted(promised)
    model.save("model")
    again, opened = promised.model_class.load("model"), sememe.load("model")
    is_task = bool(promised.base) and "device" in promised.options  # which forgets its machine
    machine = {"device": "cpu", "workers": 1} if is_task else {}
    assert replace(again.config, **machine) == model.config
    assert_same(again, model)
    assert records(again) == records(model)
    assert opened.kind == model.kind and opened.capabilities == model.capabilities


@every_model
def test_a_folder_says_how_it_was_made(promised: Promised, place: Path, fitted: Callable) -> None:
    model = fitted(promised)
    model.save("model")
    manifest = json.loads((place / "model" / "sememe.json").read_text(encoding="utf-8"))
    assert model.kind in (manifest["kind"], manifest.get("task")) and manifest["format"] == 1
    assert manifest["provenance"] and ("text" in manifest or not promised.needs_language)


@every_model
def test_a_full_disk_leaves_the_last_good_folder(
    promised: Promised, place: Path, fitted: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(promised).save("model")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(sememe.SememeError, match="disk is full"):
            fitted(promised, "chinese").save("model")
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


@every_model
def test_a_finished_run_is_opened_when_it_is_resumed(
    promised: Promised, golden: Path, fitted: Callable
) -> None:
    promised.make(golden).fit(*promised.data(), out="model")
    with pytest.raises(sememe.SememeError, match="model"):  # it exists
        promised.make(golden).fit(*promised.data(), out="model")
    again = promised.make(golden).fit(*promised.data(), out="model", resume=True)
    assert_same(again, fitted(promised))
    with pytest.raises(sememe.SememeError):  # another text
        promised.make(golden).fit(
            *promised.data("chinese"), out="model", resume=True, **promised.reading("chinese")
        )


@every_model
def test_chinese_works(promised: Promised, fitted: Callable) -> None:
    fitted(promised, "chinese").save("model")
    model = promised.model_class.load("model")
    assert promised.knows(model)


@pytest.mark.parametrize(
    "promised", [own for own in MODELS.values() if own.reads_lists], ids=lambda own: own.name
)
def test_token_lists_and_files_give_the_same(promised: Promised, golden: Path, place: Path) -> None:
    lists = [line.split() for line in ENGLISH.lower().splitlines()]
    (place / "cut.txt").write_text(ENGLISH.lower(), encoding="utf-8")
    from_file = promised.make(golden).fit("cut.txt", language="none")
    assert_same(promised.make(golden).fit(lists), from_file)


@every_model
def test_an_unknown_option_is_named(promised: Promised, golden: Path) -> None:
    with pytest.raises((TypeError, sememe.SememeError), match="no_such_option"):
        promised.make(golden, no_such_option=1)
    with pytest.raises((TypeError, sememe.SememeError), match="no_such_setting"):
        promised.make(golden).fit(*promised.data(), no_such_setting=1)


@every_model
def test_an_option_out_of_range_is_a_value_error_of_ours(promised: Promised, golden: Path) -> None:
    name, value = promised.wrong
    with pytest.raises(ValueError, match=name) as caught:
        promised.make(golden, **{name: value})
    assert isinstance(caught.value, sememe.SememeError)


@every_model
def test_bad_text_is_an_error_of_ours(promised: Promised, golden: Path, place: Path) -> None:
    (place / "empty.txt").write_text("")
    for corpus in ("empty.txt", "nowhere.txt", []):
        with pytest.raises(sememe.SememeError):
            promised.make(golden).fit(*[corpus] * len(promised.files))


@every_model
def test_a_folder_of_another_kind_is_refused(promised: Promised, place: Path) -> None:
    (place / "other").mkdir()
    (place / "other" / "sememe.json").write_text('{"kind": "tokens", "format": 1}')
    with pytest.raises(sememe.SememeError):
        promised.model_class.load("other")
    with pytest.raises(sememe.SememeError):
        promised.model_class.load("nowhere")

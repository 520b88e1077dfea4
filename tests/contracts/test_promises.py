"""What every model promises: verbs, determinism, whole writes, options, Chinese, clear errors."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

import sememe
from models import Promised, every_model

ENGLISH = "The old king and the young queen live in a small castle by the sea .\n" * 30
CHINESE = "国王和女王在宫殿里吃早饭，孩子们学习自然语言处理。\n" * 30


@pytest.fixture(autouse=True)
def files(place: Path) -> None:
    (place / "english.txt").write_text(ENGLISH, encoding="utf-8")
    (place / "chinese.txt").write_text(CHINESE, encoding="utf-8")


@every_model
def test_fit_gives_the_model_itself_with_a_history(promised: Promised) -> None:
    model = promised.make()
    assert model.fit("english.txt") is model
    assert np.isfinite(promised.learned(model)).all()
    assert model.history and np.isfinite(model.history[-1]["loss"])


@every_model
def test_one_worker_and_a_seed_give_the_same_bits(promised: Promised) -> None:
    first, second = (promised.make().fit("english.txt") for _ in range(2))
    assert np.array_equal(promised.learned(first), promised.learned(second))
    other = promised.make(seed=4).fit("english.txt")
    assert not np.array_equal(promised.learned(first), promised.learned(other))


@every_model
def test_save_and_load_keep_everything(promised: Promised, place: Path) -> None:
    model = promised.make().fit("english.txt")
    model.save("model")
    again = promised.model_class.load("model")
    assert again.config == model.config
    assert again.config.to_dict() == json.loads((place / "model/sememe.json").read_text())["config"]
    assert np.array_equal(promised.learned(again), promised.learned(model))
    assert np.array_equal(sememe.load("model").words.vectors, model.vectors.vectors)
    assert list(again.history) == list(model.history)


@every_model
def test_a_folder_says_how_it_was_made(promised: Promised, place: Path) -> None:
    promised.make().fit("english.txt").save("model")
    manifest = json.loads((place / "model" / "sememe.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == promised.name.lower() and manifest["format"] == 1
    assert manifest["provenance"] and manifest["text"]["language"] == "en"


@every_model
def test_a_full_disk_leaves_the_last_good_folder(
    promised: Promised, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = promised.make().fit("english.txt")
    model.save("model")
    before = {path: path.read_bytes() for path in place.glob("model/*") if path.is_file()}
    more = promised.make(seed=9).fit("english.txt")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(sememe.SememeError, match="disk is full"):
            more.save("model")
    assert {path: path.read_bytes() for path in place.glob("model/*") if path.is_file()} == before
    assert sorted(path.name for path in place.iterdir()) == ["chinese.txt", "english.txt", "model"]


@every_model
def test_chinese_works(promised: Promised) -> None:
    model = promised.make().fit("chinese.txt", language="zh")
    assert "国王" in model.vectors and "自然语言" in model.vectors
    model.save("model")
    assert "国王" in sememe.load("model").words


@every_model
def test_token_lists_and_files_give_the_same(promised: Promised, place: Path) -> None:
    lists = [line.split() for line in ENGLISH.lower().splitlines()]
    (place / "cut.txt").write_text(ENGLISH.lower(), encoding="utf-8")
    from_lists = promised.make().fit(lists)
    from_file = promised.make().fit("cut.txt", language="none")
    assert np.array_equal(promised.learned(from_lists), promised.learned(from_file))


@every_model
def test_an_unknown_option_is_named(promised: Promised) -> None:
    with pytest.raises((TypeError, sememe.SememeError), match="no_such_option"):
        promised.make(no_such_option=1)
    with pytest.raises((TypeError, sememe.SememeError), match="no_such_setting"):
        promised.make().fit("english.txt", no_such_setting=1)


@every_model
def test_an_option_out_of_range_is_a_value_error_of_ours(promised: Promised) -> None:
    with pytest.raises(ValueError, match="dim") as caught:
        promised.make(dim=-1)
    assert isinstance(caught.value, sememe.SememeError)


@every_model
def test_bad_text_is_an_error_of_ours(promised: Promised, place: Path) -> None:
    (place / "empty.txt").write_text("")
    for corpus in ("empty.txt", "nowhere.txt", []):
        with pytest.raises(sememe.SememeError):
            promised.make().fit(corpus)


@every_model
def test_a_folder_of_another_kind_is_refused(promised: Promised, place: Path) -> None:
    (place / "other").mkdir()
    (place / "other" / "sememe.json").write_text('{"kind": "tokens", "format": 1}')
    with pytest.raises(sememe.SememeError):
        promised.model_class.load("other")
    with pytest.raises(sememe.SememeError):
        promised.model_class.load("nowhere")

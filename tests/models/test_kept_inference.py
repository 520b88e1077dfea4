"""Results of a model for many parts: in order, and kept for a run that continues."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import sememe
from sememe.cli import app
from sememe.errors import WriteError
from sememe.executor import Threads, running_on
from sememe.models import inference
from sememe.models.inference import ModelAt, OnModel, computed, embed_parts, keeping
from sememe.training.device import multiplies_bf16

TEXTS = [f"the cat{i % 7} sat on mat{i % 11} and ran" for i in range(1_000)]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "c.txt").write_text("\n".join(TEXTS))
    sememe.Counts(dim=4, min_count=1).fit(folder / "c.txt", out=folder / "m")
    return folder / "m"


def lengths(model, part):
    """Work that leaves a trace of each part that it computes."""
    CALLS.append(part)
    return {"lengths": np.array([len(model), *map(len, part)])}


CALLS: list[list[str]] = []


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_something_else_is_not_removed(tmp_path, resume):
    folder = tmp_path / "v.npy.parts"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(WriteError, match="something else"), keeping(folder, resume=resume):
        pass
    assert (folder / "notes.txt").read_text() == "mine"
    (folder / "notes.txt").unlink()
    (folder / ".new-of-a-killed-process-0.safetensors").touch()  # what a kill leaves is ours
    with keeping(folder, resume=resume):
        pass
    assert not folder.exists()


def test_kept_parts_are_not_computed_again(vectors, tmp_path):
    parts = [["a", "bb"], ["a", "bb"], ["ccc"], ["dddd"], ["e"]]
    work = OnModel(ModelAt(str(vectors)), lengths)
    expected = [own["lengths"].tolist() for own in computed(work, parts)]
    folder = tmp_path / "v.npy.parts"
    CALLS.clear()
    with pytest.raises(KeyboardInterrupt), keeping(folder, resume=True):
        for number, _ in enumerate(computed(work, parts)):
            if number == 2:
                raise KeyboardInterrupt
    assert [parts[0], parts[2]] == CALLS  # a part that occurs twice is computed once
    CALLS.clear()
    with keeping(folder, resume=True):
        found = [own["lengths"].tolist() for own in computed(work, parts)]
    assert found == expected
    assert parts[3:] == CALLS
    assert not folder.exists()


def test_parts_of_another_model_are_not_taken(vectors, tmp_path):
    (tmp_path / "c.txt").write_text("one two\n" * 9)
    other = sememe.Counts(dim=2, min_count=1).fit(tmp_path / "c.txt", out=tmp_path / "m")
    for path in (vectors, other.path or tmp_path / "m"):
        CALLS.clear()
        with keeping(None, resume=False):
            work = OnModel(ModelAt(str(path)), lengths)
            token = inference._KEPT.set(tmp_path / "parts")
            assert len([*computed(work, [["a"]])]) == 1
            inference._KEPT.reset(token)
        assert CALLS == [["a"]]


def run(*words):
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.output


def test_an_interrupted_embedding_continues(vectors, tmp_path, monkeypatch):
    (tmp_path / "t.txt").write_text("\n".join(TEXTS))
    run("embed", vectors, tmp_path / "t.txt", "--out", tmp_path / "one.npy", "-q")
    real, calls = inference.OnModel.__call__, []

    def dying(self, part):
        calls.append(part)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, part)

    command = ["embed", str(vectors), str(tmp_path / "t.txt"), "-o", str(tmp_path / "two.npy")]
    monkeypatch.setattr(inference.OnModel, "__call__", dying)
    done = CliRunner().invoke(app, [*command, "--resume", "-q"])
    assert done.exit_code == 130
    assert not (tmp_path / "two.npy").exists()
    assert len([*(tmp_path / "two.npy.parts").iterdir()]) == 2
    run(*command, "--resume", "-q")
    assert len(calls) == 3 + 2
    assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()
    assert not (tmp_path / "two.npy.parts").exists()


def test_predictions_that_are_kept_are_the_same(golden, tmp_path):
    rows = "".join(f"{text}\n" for text in TEXTS[:600])
    (tmp_path / "t.txt").write_text(rows)
    model = golden / "classify"
    for name, more in (("one", ()), ("two", ("--resume",))):
        run("predict", model, tmp_path / "t.txt", "--out", tmp_path / f"{name}.jsonl", "-q", *more)
    one, two = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    )
    assert one == two
    assert len(one) == 600


def test_what_cannot_be_spread_is_refused(golden, vectors, tmp_path):
    (tmp_path / "t.txt").write_text("a b\n")
    for words in (
        ("embed", vectors, "a text", "--resume"),
        ("search", tmp_path / "t.txt", "a", "--cluster", "local"),
        ("embed", vectors, "a text", "--cluster", "nowhere"),
    ):
        done = CliRunner().invoke(app, [*map(str, words)])
        assert done.exit_code == 2, done.output
        assert "--" in done.output


class Apart(Threads):
    """Workers that get what a cluster sends them."""

    def map_loaded(self, work, items, *, on_gpus=False):
        return map(pickle.loads(pickle.dumps(work)), items)


def assert_spread_is_the_same(model, texts):
    with running_on(Apart(2)):
        (found,) = embed_parts(model, [texts])
    assert np.array_equal(found, model.embed(texts))


def test_workers_open_a_model_as_it_was_opened(vectors):
    model = sememe.load(vectors, limit=3)
    assert not np.array_equal(model.embed(TEXTS), sememe.load(vectors).embed(TEXTS))
    assert_spread_is_the_same(model, TEXTS)
    model = sememe.load(vectors)
    model.text = replace(model.text, lowercase=False)
    assert_spread_is_the_same(model, [text.upper() for text in TEXTS])


def test_workers_compute_in_the_precision_of_the_model(golden):
    model = sememe.load(golden / "bert")
    assert inference._place_of(model).precision == "fp32"
    if not multiplies_bf16():
        pytest.skip("this CPU does not multiply bfloat16 numbers")
    assert_spread_is_the_same(model.in_precision("bf16"), TEXTS[:20])


def test_a_model_that_has_learned_more_is_not_opened_again(tmp_path):
    text = [["the", "cat", "sat"], ["on", "the", "mat"]] * 40
    model = sememe.Word2Vec(dim=4, min_count=1, workers=1, epochs=1).fit(text, out=tmp_path / "m")
    assert model.path == tmp_path / "m"
    model.continue_fit([["new", "words"]] * 40)
    assert model.path is None
    assert_spread_is_the_same(model, ["the new words", "the cat"])
    model.save(tmp_path / "m")
    assert_spread_is_the_same(model, ["the new words", "the cat"])
    model.fit(text)
    assert model.path is None

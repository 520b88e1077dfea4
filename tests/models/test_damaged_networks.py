"""Network folders with damaged settings or weights end in one error that names the file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from typer.testing import CliRunner

import sememe
from sememe.cli import app
from sememe.errors import ArtifactError, SememeError
from sememe.storage.tensors import read_tensors, write_tensors

WORDS = ["the old cat sat on the warm mat", "a king had lunch with a dog", "the dog ran home"]
SMALL = {"steps": 1, "batch_size": 4, "workers": 1, "evaluate_batches": 0, "device": "cpu"}
KINDS = ("bert", "gpt", "elmo", "ulmfit", "nnlm", "seq2seq", "transformer", "classify", "tag-elmo")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("networks")
    texts = [f"{one}. {other}." for one in WORDS for other in WORDS]
    blocks = {"width": 16, "num_heads": 2, "max_length": 32, "length": 16, "vocab_size": 300}
    sememe.BERT(**SMALL, **blocks).fit(texts, out=root / "bert")
    sememe.GPT(**SMALL, **blocks).fit(texts, out=root / "gpt")
    words = {"min_count": 1, "length": 12, **SMALL}
    sememe.ELMo(num_cells=8, width=4, **words).fit(texts, out=root / "elmo")
    sememe.ULMFiT(num_cells=8, width=4, **words).fit(texts, out=root / "ulmfit")
    sememe.NNLM(dim=4, num_hidden=4, **words).fit(texts, out=root / "nnlm")
    pairs = [(text, text.upper()) for text in texts]
    pieces = {**SMALL, "batch_size": 64, "vocab_size": 300, "bleu_pairs": 0}
    sememe.Seq2Seq("tiny", width=8, embedding_size=8, **pieces).fit(
        pairs, dev=False, out=root / "seq2seq"
    )
    sememe.Transformer("tiny", width=8, num_heads=2, **pieces).fit(
        pairs, dev=False, out=root / "transformer"
    )
    own = {"steps": 1, "batch_size": 4, "workers": 1, "device": "cpu", "length": 16}
    rows = [{"text": text, "label": text[:3]} for text in texts]
    sememe.Classify(root / "bert", **own).fit(rows, dev=False, out=root / "classify")
    tags = [(text.split(), ["O" if len(word) < 4 else "B-X" for word in text.split()])
            for text in WORDS]  # fmt: skip
    sememe.Tag(root / "elmo", **own).fit(tags, dev=False, out=root / "tag-elmo")
    return root


def weights_of(folder: Path) -> Path:
    found = [folder / name for name in ("model.safetensors", "head.safetensors")]
    return next(path for path in found if path.exists())


def change_weights(folder: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    path = weights_of(folder)
    arrays = {name: np.array(array) for name, array in read_tensors(path).items()}
    change(arrays)
    path.unlink()
    write_tensors(path, arrays)


def largest(arrays: dict[str, np.ndarray]) -> str:
    floats = [name for name, array in arrays.items() if array.dtype == np.float32 and array.size]
    return max(floats, key=lambda name: arrays[name].size)


def lose(arrays: dict[str, np.ndarray]) -> None:
    del arrays[largest(arrays)]


def reshape(arrays: dict[str, np.ndarray]) -> None:
    arrays[largest(arrays)] = arrays[largest(arrays)][..., :-1]


def break_number(value: float) -> Callable[[dict[str, np.ndarray]], None]:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[largest(arrays)].reshape(-1)[0] = value

    return change


WEIGHTS = {
    "a tensor is missing": lose, "a tensor has another shape": reshape,
    "nan": break_number(np.nan), "inf": break_number(np.inf),
}  # fmt: skip


@pytest.mark.parametrize("damage", list(WEIGHTS))
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_weights_are_refused(kind, damage, folders, tmp_path):
    folder = tmp_path / kind
    shutil.copytree(folders / kind, folder)
    change_weights(folder, WEIGHTS[damage])
    with pytest.raises(ArtifactError, match=kind):
        sememe.load(folder)


def leaves(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the values of JSON lie."""
    parts = content.items() if isinstance(content, dict) else enumerate(content)
    found = [path] if path else []
    for key, value in parts:
        inner = isinstance(value, dict | list)
        found += leaves(value, (*path, key)) if inner else [(*path, key)]
    return found


VALUES = (None, "text", -1, 1e18, 2.5, [[]], {"a": []}, True)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_of_a_wrong_type_are_refused_or_of_no_account(kind, folders, tmp_path):
    """Every value of the settings replaced in turn: a clean error, or a model that opens."""
    folder = tmp_path / kind
    shutil.copytree(folders / kind, folder)
    refused = 0
    for name in ("sememe.json", "config.json"):
        if not (folder / name).exists():
            continue
        whole = (folder / name).read_text("utf-8")
        skipped = ("plan", "figures", "metrics", "provenance", "trials", "scores")
        places = [path for path in leaves(json.loads(whole)) if path[0] not in skipped]
        for number, place in enumerate(places):
            content = json.loads(whole)
            owner = content
            for key in place[:-1]:
                owner = owner[key]
            owner[place[-1]] = VALUES[number % len(VALUES)]
            (folder / name).write_text(json.dumps(content), "utf-8")
            try:
                sememe.load(folder)
            except SememeError:
                refused += 1
        (folder / name).write_text(whole, "utf-8")
    assert refused > 5


def test_a_pipe_in_place_of_settings_does_not_wait(folders, tmp_path):
    folder = tmp_path / "bert"
    shutil.copytree(folders / "bert", folder)
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    with pytest.raises(SememeError):
        sememe.load(folder)


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("nnlm", ["evaluate", "perplexity"]), ("ulmfit", ["evaluate", "perplexity"]),
        ("gpt", ["evaluate", "perplexity"]), ("bert", ["embed"]), ("elmo", ["embed"]),
        ("classify", ["predict"]), ("transformer", ["translate"]),
    ],
)  # fmt: skip
def test_commands_on_broken_weights_fail(kind, command, folders, tmp_path):
    folder, texts = tmp_path / kind, tmp_path / "texts.txt"
    shutil.copytree(folders / kind, folder)
    change_weights(folder, break_number(np.nan))
    texts.write_text("the old cat sat\n", "utf-8")
    more = ["--out", tmp_path / "out.npy"] if command[0] == "embed" else []
    result = CliRunner().invoke(app, [str(one) for one in (*command, folder, texts, *more)])
    assert result.exit_code == 2
    assert "finite" in result.stderr


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")


@pytest.mark.parametrize(
    ("kind", "name", "changes"),
    [
        ("bert", "config.json", {"vocab_size": 10**9}),  # memory for it is never requested
        ("tag-elmo", "sememe.json", {"learned": {}}),
        ("classify", "config.json", {"id2label": {"0": [], "1": {}}}),
    ],
)
def test_settings_that_cannot_be_right_are_named(kind, name, changes, folders, tmp_path):
    copy = tmp_path / kind
    shutil.copytree(folders / kind, copy)
    change_json(copy / name, **changes)
    if kind == "classify":
        (copy / "sememe.json").unlink()  # as transformers writes it
    with pytest.raises(ArtifactError, match=name):
        sememe.load(copy)

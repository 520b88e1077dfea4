"""The folder format: mapped, whole or absent, and damage noticed."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import ArtifactError, SememeError, WriteError
from sememe.storage.folder import write_json
from sememe.storage.tensors import write_tensors
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors, load

WORDS = ["the", "苹果", "a b", "né"]


@pytest.fixture
def vectors() -> WordVectors:
    table = np.random.default_rng(0).standard_normal((4, 3), np.float32)
    return WordVectors(WORDS, table, counts=[9, 8, 7, 6])


def write_model(folder: Path, choice: str, num_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    inputs = generator.standard_normal((4, 3), np.float32)
    outputs = generator.standard_normal((num_outputs, 3), np.float32)
    folder.mkdir()
    words = Vocabulary.from_words(WORDS).to_tensors()
    write_tensors(folder / "model.safetensors", {"input": inputs, "output": outputs, **words})
    write_json(
        folder / "sememe.json", {"kind": "word2vec", "format": 1, "config": {"vectors": choice}}
    )
    return inputs, outputs


def test_round_trip(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v")
    opened = load(tmp_path / "v")
    assert list(opened) == WORDS
    assert opened.vectors.tolist() == vectors.vectors.tolist()
    assert opened.vocabulary.counts.tolist() == [9, 8, 7, 6]
    assert opened.neighbors("苹果") == vectors.neighbors("苹果")
    assert list(WordVectors.load(tmp_path / "v", limit=2)) == WORDS[:2]
    opened.save(tmp_path / "v")  # onto the files that it is mapped from
    assert load(tmp_path / "v")["né"].tolist() == vectors["né"].tolist()


def test_vectors_are_mapped_not_read(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v")
    opened = load(tmp_path / "v")
    assert not opened.vectors.flags.writeable
    assert not opened.vectors.flags.owndata


@pytest.mark.parametrize("choice", ["input", "output", "sum", "concat"])
def test_a_trained_model_gives_the_vectors_it_was_told_to(tmp_path: Path, choice: str) -> None:
    inputs, outputs = write_model(tmp_path / "m", choice, 4)
    expected = {
        "input": inputs,
        "output": outputs,
        "sum": inputs + outputs,
        "concat": np.hstack([inputs, outputs]),
    }
    assert load(tmp_path / "m").vectors.tolist() == expected[choice].tolist()


def test_tree_nodes_are_not_word_vectors(tmp_path: Path) -> None:
    inputs, _ = write_model(tmp_path / "m", "input", 3)
    assert load(tmp_path / "m").vectors.tolist() == inputs.tolist()
    write_model(tmp_path / "n", "sum", 3)
    with pytest.raises(ArtifactError, match="hierarchical softmax"):
        load(tmp_path / "n")


def test_nothing_else_is_overwritten(vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    write_model(tmp_path / "model", "input", 4)
    (tmp_path / "file").write_text("x")
    for name in ("mine", "model", "file"):
        with pytest.raises(WriteError, match="choose another"):
            vectors.save(tmp_path / name)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "cannot be used"),
        ("[1]", "not an artifact of sememe"),
        ('{"kind": "vectors", "format": 99}', "format 99"),
        ('{"kind": "vectors"}', "format None"),
    ],
)
def test_broken_manifest(vectors: WordVectors, tmp_path: Path, content: str, match: str) -> None:
    vectors.save(tmp_path / "v")
    (tmp_path / "v" / "sememe.json").write_text(content)
    with pytest.raises(ArtifactError, match=match):
        load(tmp_path / "v")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="does not exist"):
        load(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match=r"sememe\.json is missing"):
        load(tmp_path)
    (tmp_path / "store").mkdir()
    write_json(tmp_path / "store" / "sememe.json", {"kind": "tokens", "format": 1})
    write_tensors(tmp_path / "store" / "model.safetensors", {"ids": np.arange(3)})
    with pytest.raises(ArtifactError, match=r"'tokens'.*no word vectors"):
        load(tmp_path / "store")


@given(st.data())
@settings(max_examples=150)
def test_damaged_tensors_give_our_errors_only(
    vectors: WordVectors, tmp_path: Path, data: st.DataObject
) -> None:
    folder = tmp_path / "v"
    vectors.save(folder)
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        opened = load(folder)
        list(opened)
        opened.neighbors(opened.vocabulary[0])
    except SememeError:
        pass


def test_opening_needs_no_compiler(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v")
    program = (
        "import sys; from sememe.vectors import load; "
        f"v = load({json.dumps(str(tmp_path / 'v'))}); v['the']; v.neighbors('the'); "
        "sys.exit(any(name in sys.modules for name in ('numba', 'scipy', 'pyarrow', 'usearch')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_leaves_the_old_vectors(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors.save(tmp_path / "v")
    monkeypatch.setattr(
        "sememe.vectors.opening.write_tensors",
        lambda path, tensors: write_tensors(Path("/dev/full"), tensors),
    )
    with pytest.raises(WriteError, match="the disk is full"):
        vectors.subset(["the"]).save(tmp_path / "v")
    assert [path.name for path in tmp_path.iterdir()] == ["v"]
    assert list(load(tmp_path / "v")) == WORDS


def test_readers_beside_a_writer_see_one_version(tmp_path: Path) -> None:
    """Words of one save with vectors of another were seen in one load of four hundred."""
    versions = {
        name: WordVectors([f"{name}{index}" for index in range(size)], np.full((size, 3), size))
        for name, size in (("a", 40), ("b", 60))
    }
    versions["a"].save(tmp_path / "v")
    is_over, num_read = threading.Event(), [0, 0]

    def write() -> None:
        number = 0
        try:
            while number < 60 or (min(num_read) <= 5 and number < 10_000):
                versions["ab"[number % 2]].save(tmp_path / "v")
                number += 1
        finally:
            is_over.set()

    def read(own: int) -> None:
        while not is_over.is_set():
            found = load(tmp_path / "v")
            name = found.vocabulary[0][0]
            expected = versions[name]
            assert list(found) == list(expected)
            assert found.vectors.tolist() == expected.vectors.tolist()
            num_read[own] += 1

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read, own) for own in range(2)]
        writer = pool.submit(write)
        for work in (*readers, writer):
            work.result()
    assert min(num_read) > 5

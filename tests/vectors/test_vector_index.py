"""The approximate index: nearly all true neighbors, exact scores, kept beside the vectors."""

import sys
from pathlib import Path

import numpy as np
import pytest

from sememe.errors import MissingExtraError, OptionError
from sememe.vectors import WordVectors, load


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((50, 24))
    table = np.repeat(centres, 60, axis=0) + 0.7 * generator.standard_normal((3_000, 24))
    return WordVectors([f"w{index}" for index in range(3_000)], table)


def test_recall(vectors: WordVectors) -> None:
    pytest.importorskip("usearch")
    words = [f"w{index}" for index in range(0, 3_000, 15)]
    exact = vectors.neighbors_of_many(words)
    found = vectors.neighbors_of_many(words, approximate=True)
    hits = sum(len({*a} & {*b}) for a, b in zip(exact, found, strict=True))
    assert hits / (10 * len(words)) >= 0.95
    assert found[3] == vectors.neighbors(words[3], approximate=True)
    assert all(word not in [near.word for near in near_ones]
               for word, near_ones in zip(words, found, strict=True))  # fmt: skip


def test_kept_beside_the_vectors(vectors: WordVectors, tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    vectors.subset(f"w{index}" for index in range(200)).save(tmp_path / "v")
    first = load(tmp_path / "v")
    expected = first.neighbors("w5", approximate=True)
    (path,) = (tmp_path / "v").glob("*.usearch")
    stamp = path.stat().st_mtime_ns
    again = load(tmp_path / "v")
    assert again.neighbors("w5", approximate=True) == expected
    assert path.stat().st_mtime_ns == stamp
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy" / path.name).exists()


@pytest.mark.parametrize("place", [0, 40, -400, -1])
def test_a_damaged_index_is_built_again(place: int, vectors: WordVectors, tmp_path: Path) -> None:
    """The library itself follows whatever links it finds, and has crashed the interpreter so."""
    pytest.importorskip("usearch")
    vectors.subset(f"w{index}" for index in range(200)).save(tmp_path / "v")
    expected = load(tmp_path / "v").neighbors("w5", approximate=True)
    (path,) = (tmp_path / "v").glob("*.usearch")
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[place] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.warns(UserWarning, match="built again"):
        assert load(tmp_path / "v").neighbors("w5", approximate=True) == expected
    assert path.read_bytes() != bytes(damaged)


def test_index_of_every_word_cannot_be_restricted(vectors: WordVectors) -> None:
    with pytest.raises(OptionError, match="restrict_vocab"):
        vectors.neighbors("w1", approximate=True, restrict_vocab=10)


def test_absent_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch", None)
    plain = WordVectors(["a", "b"], np.eye(2))
    with pytest.raises(MissingExtraError, match=r"pip install 'sememe\[index\]'"):
        plain.neighbors("a", approximate=True)

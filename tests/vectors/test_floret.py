"""Compact tables: read as the floret program wrote them, written again, searched, kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sememe
from fasttext_models import DATA
from sememe.errors import ArtifactError, OptionError
from sememe.vectors import SubwordVectors, convert
from sememe.vectors.formats import read_vectors, write_vectors


@pytest.fixture
def compact() -> SubwordVectors:
    loaded = sememe.load(DATA / "floret.floret")
    assert isinstance(loaded, SubwordVectors)
    return loaded


def test_vectors_are_those_of_the_program(compact: SubwordVectors) -> None:
    assert len(compact) == 0 and compact.dim == 6 and compact.has_subwords
    num_words = 0
    for line in (DATA / "floret.words.txt").read_text("utf-8").splitlines():
        word, *numbers = line.split()
        if word == "</s>":  # the one word with a row of its own, which the table lacks
            continue
        # Both files have five digits.
        np.testing.assert_allclose(compact[word], np.array(numbers, np.float32), atol=2e-4)
        num_words += 1
    assert num_words > 20


def test_searches_need_words(compact: SubwordVectors, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="with_words"):
        compact.neighbors("bread")
    words = ["bread", "breads", "天气", "天气预报", "snow"]
    known = compact.with_words(words)
    assert list(known) == words
    assert known["unseen"].tobytes() == compact["unseen"].tobytes()
    assert known.vectors.tobytes() == compact[words].tobytes()
    assert {word for word, _ in known.neighbors("bread")} == {*words} - {"bread"}
    known.save(tmp_path / "v")
    again = sememe.load(tmp_path / "v")
    assert again.neighbors("bread") == known.neighbors("bread")
    assert len(sememe.load(tmp_path / "v", limit=2)) == 2
    with pytest.raises(OptionError, match="one string"):
        compact.with_words("bread")
    with pytest.raises(OptionError, match="rows of their own"):
        sememe.load(DATA / "skipgram.bin").with_words(words)  # type: ignore[attr-defined]


def test_written_and_read_again(compact: SubwordVectors, tmp_path: Path) -> None:
    write_vectors(compact, tmp_path / "t.floret.gz", "floret")
    again = sememe.load(tmp_path / "t.floret.gz")
    assert again["天气预报"].tobytes() == compact["天气预报"].tobytes()
    compact.save(tmp_path / "v")  # without any words
    convert(tmp_path / "v", tmp_path / "u.floret", "floret")
    header = (tmp_path / "u.floret").read_text().splitlines()[0]
    assert header == (DATA / "floret.floret").read_text().splitlines()[0].strip()
    with pytest.raises(OptionError, match="compact table"):
        convert(DATA / "skipgram.bin", tmp_path / "x.floret", "floret")
    with pytest.raises(OptionError, match="without words"):
        convert(DATA / "floret.floret", tmp_path / "x.vec", "word2vec")


def test_damage(tmp_path: Path) -> None:
    lines = (DATA / "floret.floret").read_text().splitlines()
    for changed, message in (
        (lines[:-1], "60 rows"),
        ([lines[0], *lines[2:], lines[1]], "numbered from 0"),
        (["61" + lines[0][2:], *lines[1:]], "61 rows"),
        (["60 0" + lines[0][4:], *lines[1:]], "header states"),
        ([lines[0], lines[1] + " 1", *lines[2:]], "line 2|numbered"),
        ([lines[0], "0 nan nan nan nan nan nan", *lines[2:]], "not finite"),
    ):
        (tmp_path / "t.floret").write_text("\n".join(changed) + "\n")
        with pytest.raises(ArtifactError, match=message):
            sememe.load(tmp_path / "t.floret")
    with pytest.raises(ArtifactError, match="floret table"):
        read_vectors(DATA / "skipgram.vec", format="floret")

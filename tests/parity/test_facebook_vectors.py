"""Vectors of models that Facebook's fastText program trained: ours are equal to the bit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sememe
from fasttext_models import DATA, MODELS, WITHOUT_NGRAMS, printed_vectors
from sememe.errors import UnknownWordError
from sememe.vectors import SubwordVectors, convert

FASTTEXT = shutil.which("fasttext")


@pytest.mark.parametrize("model", MODELS)
def test_words_known_and_unknown_have_the_same_bits(model: str) -> None:
    vectors = sememe.load(DATA / model).words
    assert isinstance(vectors, SubwordVectors)
    num_unknown = 0
    for word, expected in printed_vectors(model):
        num_unknown += word not in vectors
        if word not in vectors and model in WITHOUT_NGRAMS:
            assert not expected.any()  # the program gives zeros
            with pytest.raises(UnknownWordError):
                vectors[word]
        else:
            assert vectors[word].tobytes() == expected.tobytes(), word
    assert 5 < num_unknown < 32


@pytest.mark.parametrize("model", MODELS)
def test_the_kernel_composes_the_same_bits(model: str) -> None:
    vectors = sememe.load(DATA / model).words
    one_by_one = vectors[list(vectors)]
    assert vectors.vectors.tobytes() == one_by_one.tobytes()


def test_the_vec_file_holds_the_same_numbers() -> None:
    printed, vectors = sememe.load(DATA / "skipgram.vec"), sememe.load(DATA / "skipgram.bin")
    assert list(printed) == list(vectors)
    # The program prints five digits.
    np.testing.assert_allclose(printed.vectors, vectors.vectors, rtol=5.1e-5)


@pytest.mark.skipif(FASTTEXT is None, reason="Facebook's program is not installed")
@pytest.mark.parametrize("model", ["skipgram.bin", "cbow.bin", "cut.ftz"])
def test_the_program_opens_what_we_write(model: str, tmp_path: Path) -> None:
    convert(DATA / model, tmp_path / "folder")
    convert(tmp_path / "folder", tmp_path / "ours.bin", "fasttext")
    words = (DATA / "words.txt").read_text("utf-8")
    printed = [
        subprocess.run(
            [str(FASTTEXT), "print-word-vectors", str(path)],
            input=words, capture_output=True, text=True, check=True,
        ).stdout
        for path in (DATA / model, tmp_path / "ours.bin")
    ]  # fmt: skip
    assert printed[0] == printed[1]
    assert printed[0].count("\n") > 20

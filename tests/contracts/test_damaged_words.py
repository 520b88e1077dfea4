"""Damaged offsets of words are refused in every folder, before a kernel follows them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError
from sememe.storage.tensors import read_tensors, write_tensors

# (folder of the golden models, file, tensor)
ENDS = [
    ("classifier", "model.safetensors", "words.word_ends"),
    ("classifier", "model.safetensors", "labels.word_ends"),
    ("classifier-quantized", "model.safetensors", "words.word_ends"),
    ("word2vec-skipgram-negative", "model.safetensors", "word_ends"),
    ("fasttext", "model.safetensors", "word_ends"),
    ("ngram", "model.safetensors", "word_ends"),
    ("nnlm", "model.safetensors", "word_ends"),
    ("ulmfit", "vocabulary.safetensors", "word_ends"),
    ("elmo", "vocabulary.safetensors", "word_ends"),
]


@pytest.mark.parametrize("end", [-1, 2**40, 2**62])
@pytest.mark.parametrize(("folder", "file", "tensor"), ENDS)
def test_ends_of_words_that_lead_astray_are_refused(
    golden: Path, tmp_path: Path, folder: str, file: str, tensor: str, end: int
) -> None:
    place = tmp_path / folder
    shutil.copytree(golden / folder, place)
    tensors = {name: np.array(own) for name, own in read_tensors(place / file).items()}
    tensors[tensor][1] = end
    write_tensors(place / file, tensors)
    with pytest.raises(ArtifactError, match=file):
        sememe.load(place)

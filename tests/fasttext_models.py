"""The models of Facebook's program in tests/data/fasttext and what it said about them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "fasttext"
MODELS = sorted(path.name for path in DATA.iterdir() if path.suffix in (".bin", ".ftz"))
# Models whose options ask for no n-grams of characters.
WITHOUT_NGRAMS = ("hs.bin", "ova.bin", "words-only.bin")


def printed_vectors(model: str) -> Iterator[tuple[str, np.ndarray]]:
    """Words and their vectors as the program computed them, to the bit."""
    for line in (DATA / f"{model}.words.txt").read_text("utf-8").splitlines():
        word, *digits = line.split(" ")
        yield word, np.array([int(number, 16) for number in digits], np.uint32).view(np.float32)

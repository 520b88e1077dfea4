"""What a model file of Facebook's fastText holds. V words, D numbers in a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.quantized import QuantizedMatrix

# The first eight bytes of a file: this number and the version, which has been 12 since 2017.
MAGIC, VERSION = 793712314, 12

Loss = Literal["hs", "ns", "softmax", "ova"]
Model = Literal["cbow", "skipgram", "supervised"]
# The numbers that stand for these names in a file start at 1.
LOSSES: tuple[Loss, ...] = ("hs", "ns", "softmax", "ova")
MODELS: tuple[Model, ...] = ("cbow", "skipgram", "supervised")


@dataclass(frozen=True, kw_only=True)
class FastTextArgs:
    """The options of the program that a file keeps, in the order and with the words it has."""

    dim: int = 100
    ws: int = 5
    epoch: int = 5
    min_count: int = 5
    neg: int = 5
    word_ngrams: int = 1
    loss: Loss = "ns"
    model: Model = "skipgram"
    bucket: int = 2_000_000
    minn: int = 3
    maxn: int = 6
    lr_update_rate: int = 100
    t: float = 1e-4


@dataclass(kw_only=True)
class FastTextFile:
    """A model as the file has it: words and labels with counts, and two matrices.

    `input` has a row for each word, then one for each bucket, or for each n-gram that a pruned
    model kept; `pruned` (N, 2) says which bucket has which of those rows, None that all are there.
    `output` has a row for each word, node of the tree or label. `spellings` are the words as they
    were found where some of them are not UTF-8; their n-grams are those of these bytes.
    """

    args: FastTextArgs
    words: Vocabulary
    labels: Vocabulary
    num_tokens: int
    pruned: np.ndarray | None
    input: np.ndarray | QuantizedMatrix
    output: np.ndarray | QuantizedMatrix
    spellings: Vocabulary | None = None

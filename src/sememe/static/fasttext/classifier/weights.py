"""What the classifier has learned: words, labels, rows of numbers, and which n-grams have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sememe.static.fasttext.classifier.dictionary import Lines
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.formats.fasttext import QuantizedMatrix

Matrix = np.ndarray | QuantizedMatrix


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The rows of `input` are those of the words, then those of the n-grams in `buckets`.

    `buckets` None: every bucket has a row, in its order. Of other buckets a pruned model knows
    nothing and leaves them out; a model that was not pruned takes them as zero.
    """

    words: Vocabulary
    labels: Vocabulary  # with their prefix
    num_tokens: int
    input: Matrix
    output: Matrix
    buckets: np.ndarray | None = None
    is_pruned: bool = False

    @classmethod
    def of_lines(cls, lines: Lines, input: np.ndarray, output: np.ndarray) -> Weights:
        """Join the dictionary of a text with the matrices trained on it."""
        return cls(
            words=lines.words, labels=lines.labels, num_tokens=lines.num_tokens,
            input=input, output=output, buckets=lines.buckets,
        )  # fmt: skip

    @property
    def num_rows(self) -> int:
        """Rows of the input matrix."""
        return int(self.input.shape[0])

    @property
    def nbytes(self) -> int:
        """The bytes that the matrices take."""
        return int(self.input.nbytes + self.output.nbytes)

    def places(self, bucket: int) -> np.ndarray:
        """The row of each bucket; a negative one is left out, `num_rows` stands for zeros."""
        if self.buckets is None:
            return np.empty(0, np.int32)
        places = np.full(bucket, -1 if self.is_pruned else self.num_rows, np.int32)
        places[self.buckets] = len(self.words) + np.arange(len(self.buckets), dtype=np.int32)
        return places

    def kept(self) -> np.ndarray:
        """Pairs (bucket, row after the words) of a pruned model, sorted by bucket."""
        buckets = np.empty(0, np.int32) if self.buckets is None else np.asarray(self.buckets)
        order = np.argsort(buckets, kind="stable")
        return np.stack([buckets[order], order], axis=1).astype(np.int32)


def dense(matrix: Matrix) -> np.ndarray:
    """The rows of a matrix as float32."""
    if isinstance(matrix, QuantizedMatrix):
        return matrix.rows(np.arange(matrix.shape[0]))
    return np.ascontiguousarray(matrix, np.float32)

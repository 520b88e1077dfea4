"""Counts: a corpus in; the rows of its co-occurrence matrix, or their SVD, as word vectors out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.progress import History
from sememe.static.counts.config import CountsConfig
from sememe.static.counts.matrix import SparseMatrix
from sememe.static.counts.table import CountTable
from sememe.static.fitting import Request, content_of, plan_of, take_finished
from sememe.static.model import StaticModel
from sememe.storage.folder import scratch_folder
from sememe.tokens.store import TokenStore
from sememe.vectors import WordVectors

# Rows of the matrix are vectors of as many numbers as there are words: 400 MB at this number.
MAX_ROWS = 10_000
# A matrix of so few cells is kept with the model, so that it can be shown.
_KEPT_CELLS = 1 << 20


class Counts(StaticModel):
    """Word vectors by counting neighbors (Levy, Goldberg & Dagan 2015).

    model = sememe.Counts(window=10, dim=100).fit("corpus.txt")
    model.vectors.neighbors("king")
    """

    kind = "counts"
    config_class = CountsConfig

    def train(self, tokens: TokenStore, request: Request) -> None:
        """Count the text and make the vectors; nothing in it is learned step by step."""
        if request.start is not None or request.callbacks:
            raise OptionError(
                "Counts are not trained step by step: they take neither start nor callbacks."
            )
        size = self.trainable_words(tokens)
        if not self.config.dim and size > MAX_ROWS:
            raise OptionError(
                f"dim=0 keeps a row of {size:,} numbers for each of {size:,} words, and is meant "
                f"for up to {MAX_ROWS:,}: give a dim, raise min_count or lower max_words."
            )
        plan = plan_of(self, content_of(tokens, size))
        # Counting again gives the same bits, so there is nothing that a checkpoint could save.
        if take_finished(self, request, plan):
            return
        # The token store lies where large files may.
        with scratch_folder(tokens.path.parent, ".counts") as folder:
            self._count(tokens, size, folder, request)
        self.plan = plan
        if request.out is not None:
            self.save(request.out)

    def _count(self, tokens: TokenStore, size: int, folder: Path, request: Request) -> None:
        from sememe.static.counts.transform import make_matrices

        config, begun = self.config, time.monotonic()
        matrices = make_matrices(tokens, size, config, folder, request.reporter)
        matrix, loss, kept = matrices.matrix, 0.0, {}
        if not config.dim:
            vectors = matrix.dense()
        else:
            from sememe.static.counts.decomposition import decompose

            vectors, singular = decompose(
                matrices, config.dim, config.eigenvalue_weight, config.seed, config.num_workers,
                request.reporter,
            )  # fmt: skip
            if matrices.squares:
                loss = max(0.0, 1.0 - float((singular**2).sum()) / matrices.squares)
            kept["singular_values"] = singular
        if matrix.num_cells <= _KEPT_CELLS:
            kept["starts"] = matrix.starts
            kept["columns"], kept["values"] = np.array(matrix.columns), np.array(matrix.values)
        self.adopt(tokens.vocabulary.cut(size), vectors=vectors, **kept)
        # The loss is the share of the matrix (of the sum of its squares) that the vectors leave.
        figures = {"words": tokens.num_tokens, "cells": matrix.num_cells, "loss": loss}
        self.history = History([{**figures, "seconds": time.monotonic() - begun}])

    def make_vectors(self) -> WordVectors:
        """The rows of the matrix, or the vectors that stand for them."""
        return WordVectors(self.vocabulary, self._tensor("vectors"))

    def table(self, words: Sequence[str] | None = None) -> CountTable:
        """The matrix as a table of words by words; `words` gives some of them, in their order."""
        if "starts" not in self.tensors:
            raise OptionError(
                "The matrix is kept, and can be shown, for small texts only: "
                f"up to {_KEPT_CELLS:,} cells."
            )
        matrix = SparseMatrix(*(self.tensors[name] for name in ("starts", "columns", "values")))
        names = self.vocabulary[:] if words is None else list(words)
        return CountTable.from_matrix(names, [self.vocabulary.id(name) for name in names], matrix)

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {**super().manifest(), "dim": self.vectors.dim}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with the ends of their shapes."""
        num_words = len(self.vocabulary)
        return {"vectors": (num_words, self.config.dim or num_words)}

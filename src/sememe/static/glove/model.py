"""GloVe: a corpus in, two matrices of vectors with biases out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Self

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.static.fitting import Request, content_of, fit
from sememe.static.glove.cells import BUFFER_BYTES, SCRATCH, CellFile, check_place, check_size
from sememe.static.glove.config import GloVeConfig
from sememe.static.glove.training import (
    UNK,
    GloVeRun,
    check_unknown,
    matrix_bytes,
    with_mean_of_rarest,
)
from sememe.static.loop import Run
from sememe.static.model import StaticModel
from sememe.storage.folder import manifest_in
from sememe.tokens.store import TokenStore
from sememe.vectors import WordVectors, load


class GloVe(StaticModel):
    """Word vectors from counts of pairs of words (Pennington et al. 2014).

    model = sememe.GloVe(dim=100).fit("corpus.txt")
    model.vectors.neighbors("king")
    """

    kind = "glove"
    config_class = GloVeConfig
    config: GloVeConfig
    start_s = 0.0  # that counting took before the first step, which the history does not count

    @property
    def unknown(self) -> np.ndarray:
        """A vector for words that are not known: the mean of the hundred rarest ones."""
        vectors = self.vectors
        num_words = len(vectors) - (UNK in vectors.vocabulary)
        return with_mean_of_rarest(np.asarray(vectors.vectors[:num_words]))[-1]

    def train(self, tokens: TokenStore, request: Request) -> None:
        """Learn from a token store as the request says."""
        size = self.trainable_words(tokens)
        self._check_memory(size)
        vocabulary = tokens.vocabulary.cut(size)
        if self.config.unk:
            check_unknown(vocabulary)
        place = _place_beside(request.out)
        check_place(place)

        def prepare() -> Run:
            cells = self._open_cells(tokens, size, place, request)
            self.start_s = cells.seconds
            return GloVeRun(self.config, cells, vocabulary, tokens.num_tokens)

        def begin(run: Run) -> None:
            assert isinstance(run, GloVeRun)
            run.begin()
            if request.start is not None:
                self._take_start(run, request)

        is_kept = False
        try:
            fit(self, request, content_of(tokens, size), prepare, begin)
        except BaseException:
            # A run that can be resumed will want the same cells.
            is_kept = request.keeper is not None and request.keeper.folder.exists()
            raise
        finally:
            if not is_kept:
                shutil.rmtree(place, ignore_errors=True)

    def _check_memory(self, num_words: int) -> None:
        check_size(num_words)
        needed = matrix_bytes(num_words, self.config.dim)
        if needed > self.config.num_bytes:
            raise OptionError(
                f"memory: {num_words:,} words × {self.config.dim} take {needed >> 20:,}M and "
                f"{self.config.memory} were given; give more, or lower dim or max_words."
            )

    def _open_cells(
        self, tokens: TokenStore, num_words: int, place: Path, request: Request
    ) -> CellFile:
        """The arranged counts: those a stopped run has left, or new ones."""
        from sememe.examples.cooccurrence import count_pairs

        config = self.config
        content = {
            **content_of(tokens, num_words),
            "window": config.window, "weighting": config.weighting, "direction": config.direction,
        }  # fmt: skip
        found = CellFile.open(place, content)
        if found is not None:
            request.reporter.note(f"The counts in {place} are whole: they are used again.")
            return found
        cells = count_pairs(
            tokens, num_words, config, memory=config.num_bytes - BUFFER_BYTES,
            workers=config.num_workers, scratch=place / SCRATCH, progress=request.reporter,
        )  # fmt: skip
        arranged = CellFile.write(place, cells, num_words, content)
        if not arranged.num_cells:
            arranged.close()
            raise InputError("No two words stand near each other: the text has no pairs to count.")
        return arranged

    def _take_start(self, run: GloVeRun, request: Request) -> None:
        """Begin with given vectors, half of each in either matrix, so that their sum is it."""
        from sememe.static.word2vec.training import take_start

        vectors = request.start if isinstance(request.start, WordVectors) else load(request.start)
        half = WordVectors(vectors.vocabulary, np.asarray(vectors.vectors) * np.float32(0.5))
        for rows in run.matrices.values():
            num_known = take_start(rows, run.vocabulary, half, self.config.dim)
        request.reporter.note(
            f"{num_known:,} of {len(run.vocabulary):,} words start from the given vectors."
        )

    def take_over(self, other: StaticModel) -> None:
        """Become what another model of the same kind is, but for the options."""
        assert isinstance(other, GloVe)
        super().take_over(other)
        self.start_s = other.start_s

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {**super().manifest(), "start_s": self.start_s}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a saved model; its tensors are memory-mapped until it is trained further."""
        model = super().load(folder)
        model.start_s = float(manifest_in(Path(folder)).get("start_s", 0.0))
        return model

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with the ends of their shapes."""
        num_words, dim = len(self.vocabulary), self.config.dim
        return {"input": (num_words, dim), "output": (num_words, dim)}


def _place_beside(out: Any) -> Path:
    """Where the arranged counts lie: beside the model to be, or where nobody else looks."""
    from sememe.tokens.caching import temporary_place

    return Path(f"{Path(out)}.pairs").absolute() if out is not None else temporary_place()

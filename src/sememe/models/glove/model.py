"""GloVe: a corpus in, two matrices of vectors with biases out."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.cooccurrence.counting import count_pairs
from sememe.executor import cluster
from sememe.machine import imported
from sememe.models.fitting import Prepared, Request
from sememe.models.glove.cells import BUFFER_BYTES, SCRATCH, CellFile, check_place, check_size
from sememe.models.glove.config import GloVeConfig
from sememe.models.glove.partitions import PartitionRun
from sememe.models.glove.training import UNK, GloVeRun, row_size, with_mean_of_rarest
from sememe.models.static.loop import StaticRun, run_steps
from sememe.models.static.model import OnDevice, content_of
from sememe.models.word2vec.training import take_start
from sememe.storage.folder import manifest_in, reads_artifact
from sememe.tokens.caching import temporary_place
from sememe.tokens.store import TokenStore
from sememe.vectors import WordVectors, load


class GloVe(OnDevice):
    """Word vectors from counts of pairs of words (Pennington et al. 2014).

    model = sememe.GloVe(dim=100).fit("corpus.txt")
    model.vectors.neighbors("king")
    """

    kind = "glove"
    config_class = GloVeConfig
    config: GloVeConfig
    # The run on a GPU: its module needs PyTorch.
    strata_run: ClassVar[tuple[str, str]] = ("sememe.models.glove.strata.run", "StrataRun")
    start_s = 0.0  # spent on counting before the first step, not part of the history

    @property
    def unknown(self) -> np.ndarray:
        """A vector for unknown words: the mean of the hundred rarest ones."""
        vectors = self.vectors
        num_words = len(vectors) - (UNK in vectors.vocabulary)
        return with_mean_of_rarest(np.asarray(vectors.vectors[:num_words]))[-1]

    def prepare_tokens(self, tokens: TokenStore, request: Request) -> Prepared:
        """Return the plan of a run on a token store, and the function that trains."""
        size = self.trainable_words(tokens)
        self._check_memory(size)
        vocabulary = tokens.vocabulary.cut(size)
        if self.config.unk and UNK in vocabulary:
            raise InputError(
                f"The text has the word {UNK}, so there can be no other vector of that name: "
                "leave out unk."
            )
        # The arranged counts are next to the output folder, or in a temporary one.
        out = request.out
        place = temporary_place() if out is None else Path(f"{Path(out)}.pairs").absolute()
        check_place(place)
        plan = self.plan_of(tokens, size)
        # A GPU is that of this machine; only the counting is shared.
        executor, layout = None if self.is_on_gpu else cluster(), None
        if executor is not None:
            threads = 1 if self.config.deterministic else self.config.workers
            layout = executor.layout(threads, self._memory_needed(size))
            # Another number arranges the cells in another order.
            plan["config"]["num_workers"] = layout.num

        def make() -> StaticRun:
            num_groups = 1 if layout is None else layout.num
            cells = self._open_cells(tokens, size, place, request, num_groups)
            self.start_s = cells.seconds
            run = self._new_run(cells, vocabulary, tokens.num_tokens)
            if executor is None or layout is None:
                return run
            return PartitionRun(run, executor, layout)

        def begin(run: GloVeRun) -> None:
            run.begin()
            if request.start is not None:
                self._take_start(run, request)

        def train() -> None:
            keeper, is_kept = request.checkpoints(), False
            try:
                run_steps(self, plan, request, make, begin)
            except BaseException:
                # A resumable run will need the same cells again.
                is_kept = keeper is not None and keeper.folder.exists()
                raise
            finally:
                if not is_kept:
                    shutil.rmtree(place, ignore_errors=True)

        return Prepared(plan, train)

    def _new_run(self, *text: Any) -> GloVeRun:
        """A run on the device of the options; it closes the cells if it cannot start."""
        config = self.config
        try:
            if self.is_on_gpu:
                strata: type[GloVeRun] = imported(*self.strata_run)
                return strata(config, *text)
            return GloVeRun(replace(config, workers=1) if config.deterministic else config, *text)
        except BaseException:
            text[0].close()
            raise

    def _check_memory(self, num_words: int) -> None:
        check_size(num_words)
        needed = self._memory_needed(num_words)
        if needed > self.config.num_bytes:
            raise OptionError(
                f"memory: {num_words:,} words × {self.config.dim} take {needed >> 20:,}M and "
                f"{self.config.memory} were given; give more, or lower dim or max_words."
            )

    def _memory_needed(self, num_words: int) -> int:
        """The bytes of both matrices, their sums of squared steps, and the resulting vectors."""
        return 2 * num_words * (2 * row_size(self.config.dim) + self.config.dim) * 4

    def _open_cells(
        self, tokens: TokenStore, num_words: int, place: Path, request: Request, num_groups: int
    ) -> CellFile:
        """The arranged counts for this many groups: those of a stopped run, or new ones."""

        config = self.config
        content = {
            **content_of(tokens, num_words),
            "window": config.window, "weighting": config.weighting, "direction": config.direction,
            "groups": num_groups,
        }  # fmt: skip
        found = CellFile.open(place, content)
        if found is not None:
            request.reporter.note(f"The counts in {place} are whole: they are used again.")
            return found
        cells = count_pairs(
            tokens, num_words, config, memory=config.num_bytes - BUFFER_BYTES,
            workers=config.num_workers, scratch=place / SCRATCH, progress=request.reporter,
        )  # fmt: skip
        arranged = CellFile.write(place, cells, num_words, content, num_groups)
        if not arranged.num_cells:
            arranged.close()
            raise InputError("No two words stand near each other: the text has no pairs to count.")
        return arranged

    def _take_start(self, run: GloVeRun, request: Request) -> None:
        """Begin with given vectors, half of each in either matrix, so that their sum is it."""

        vectors = request.start if isinstance(request.start, WordVectors) else load(request.start)
        half = WordVectors(vectors.vocabulary, np.asarray(vectors.vectors) * np.float32(0.5))
        for rows in run.matrices.values():
            num_known = take_start(rows, run.vocabulary, half, self.config.dim)
        request.reporter.note(
            f"{num_known:,} of {len(run.vocabulary):,} words start from the given vectors."
        )

    def take_over(self, other: Any) -> None:
        """Take over the state of another model of the same kind, except for its options."""
        super().take_over(other)
        self.start_s = other.start_s

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return {**super().manifest(), "start_s": self.start_s}

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path) -> Self:
        """Open a saved model; its tensors are memory-mapped unless it is trained further."""
        model = super().load(folder)
        model.start_s = float(manifest_in(Path(folder)).get("start_s", 0.0))
        return model

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with their shapes."""
        num_words, dim = len(self.vocabulary), self.config.dim
        return {"input": (num_words, dim), "output": (num_words, dim)}

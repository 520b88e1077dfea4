"""A run of GloVe in strata, on a GPU or, for tests, on a CPU.

A step is some strata of a part of the cells. The parts are drawn at random once; each is read,
copied through pinned memory and arranged on the GPU while the part before it is trained on, and
stays there for all epochs if there is room.
"""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from sememe.models.glove.cells import CellFile
from sememe.models.glove.config import GloVeConfig
from sememe.models.glove.strata import batches
from sememe.models.glove.strata.batches import groups_of, make_plan, parts_of, strata_order
from sememe.models.glove.training import GloVeRun
from sememe.models.static import gpu
from sememe.models.static.model import StaticModel
from sememe.randomness import stream_key
from sememe.tokens.vocabulary import Vocabulary

_KEPT = 0.5  # of the GPU's free memory, for cells that stay there over all epochs
_CELL_BYTES, _SORT_BYTES = 12, 40  # of an arranged cell, and while it is sorted
_SHUFFLE = 6  # purpose of a random stream


class StrataRun(GloVeRun):
    """A run of GloVe in strata."""

    def __init__(
        self, config: GloVeConfig, cells: CellFile, vocabulary: Vocabulary, num_tokens: int
    ) -> None:
        super().__init__(config, cells, vocabulary, num_tokens)
        self.device = gpu.device_of(config.device)
        self.num_workers = 1  # threads that call `step`
        self.plan = make_plan(cells.num_cells, len(vocabulary))
        self.steps_per_epoch = self.plan.steps_per_epoch
        self.num_steps = self.steps_per_epoch * config.epochs
        self._parts = parts_of(cells.num_steps, self.plan.num_parts, config.seed)
        self._arranged: dict[int, Future[batches.Arranged]] = {}
        self._reader = ThreadPoolExecutor(1)
        self._tables: batches.Tables | None = None
        self._keeps_all = True
        self._kernel_s, self._kernel_words = 0.0, 0
        self._check_memory()
        self._train_strata, self.path = self._choose_path()

    def _check_memory(self) -> None:
        free = gpu.free_memory(self.device)
        matrices = sum(rows.nbytes for rows in self.matrices.values())
        part = -(-self.cells.num_cells // self.plan.num_parts)
        needed = matrices + part * (_SORT_BYTES + 2 * _CELL_BYTES)
        gpu.check_memory(self.device, needed, "The matrices and a part of the counts")
        self._keeps_all = free is None or self.cells.num_cells * _CELL_BYTES < _KEPT * (
            free - needed
        )

    def _choose_path(self) -> tuple[Any, str]:
        """The function that does the updates, and what it uses, for the message."""
        if not gpu.runs_triton(self.device):
            return batches.train_strata, "PyTorch"
        from sememe.models.glove.strata import kernels

        if not kernels.fits(self.width):
            return batches.train_strata, "PyTorch; dim is too large for Triton"
        try:
            kernels.try_out(self.width, self.device)
        except Exception as error:  # no C compiler, or a GPU that this version does not know
            reason = str(error).strip().partition("\n")[0]
            return batches.train_strata, f"PyTorch; Triton failed: {reason}"
        return kernels.train_strata, "Triton"

    def close(self) -> None:
        """Close the file of cells, and free the device's memory."""
        self._reader.shutdown(cancel_futures=True)
        super().close()
        self._tables = None
        self._arranged.clear()

    def start_message(self) -> str:
        """One line that describes the training about to start."""
        config = self.config
        return (
            f"{len(self.vocabulary):,} words, {self.cells.num_cells:,} counts, {config.epochs} "
            f"epochs: {config.dim} dimensions, {self.plan.num_groups:,} blocks at a time on "
            f"{gpu.name_of(self.device)} ({self.path})"
        )

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the vectors and biases to the model."""
        self.collect()
        super().hand_over(model, is_final=is_final)

    def collect(self) -> None:
        """Copy the matrices from the device, if they are there."""
        gpu.copy_back(self._tables, self.matrices, self.device)

    def new_space(self) -> Any:
        """Copy the matrices to the device, unless they are there."""
        if self._tables is None:
            with gpu.explained_memory():
                moved = [
                    torch.from_numpy(own).to(self.device)
                    for own in (*self.matrices.values(), self._rates, self._limits)
                ]
                words, contexts, rates, limits = moved
                self._tables = batches.Tables(
                    words, contexts, rates, limits, self.config.alpha, math.log(self.config.x_max)
                )
                groups = groups_of(len(self.vocabulary), self.plan.num_groups)
                self._groups = torch.from_numpy(groups).to(self.device)
                if self.device.type == "cuda":
                    self._stream = torch.cuda.Stream(self.device)

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Train on the strata of `step`."""
        with gpu.explained_memory(), gpu.threads(self.config.num_workers, is_exact=False):
            epoch, place = divmod(step, self.steps_per_epoch)
            part, piece = divmod(place, self.plan.num_pieces)
            cells = self._part(part).result()
            if piece == self.plan.num_pieces - 1 or self._keeps_all:
                self._part((part + 1) % self.plan.num_parts)
            turn = epoch * self.plan.num_parts + part
            order = strata_order(self.plan.num_groups, self.config.seed, turn)
            assert self._tables is not None
            strata, clock = order[self.plan.strata(piece)], gpu.Clock(self.device)
            found = self._train_strata(cells, strata, self._tables)
            clock.stop()
            stats += found.cpu().numpy()
            self._kernel_s += clock.seconds()
            self._kernel_words += self.words_at(step + 1) - self.words_at(step)

    def metrics(self) -> dict[str, float]:
        """The words of text per second of the updates alone; reading and arranging take none."""
        if not self._kernel_s:
            return {}
        return {"kernel_words_per_s": self._kernel_words / self._kernel_s}

    def _part(self, part: int) -> Future[batches.Arranged]:
        """The arranged cells of a part, which a thread may still be preparing."""
        if part not in self._arranged:
            if not self._keeps_all:  # the part that is trained on, and this one
                for other in list(self._arranged)[:-1]:
                    del self._arranged[other]
            self._arranged[part] = self._reader.submit(self._arrange, part)
        return self._arranged[part]

    def _arrange(self, part: int) -> batches.Arranged:
        """Read the cells of a part, copy them to the device and arrange them there."""
        found = [self.cells.read(step) for step in self._parts[part].tolist()]
        sizes = [len(keys) for keys, *_ in found]
        keys = np.concatenate([keys for keys, *_ in found] or [np.empty(0, np.uint32)])
        logs = np.concatenate([logs for _, logs, _ in found] or [np.empty(0, np.float32)])
        bases = np.repeat(np.array([base for *_, base in found], np.int32), sizes)
        is_cuda = self.device.type == "cuda"
        with torch.cuda.stream(self._stream) if is_cuda else nullcontext():
            arranged = batches.arrange(
                gpu.copied(keys.view(np.int32), self.device), gpu.copied(bases, self.device),
                gpu.copied(logs, self.device), self._groups, self.plan.num_groups,
                stream_key(self.config.seed, _SHUFFLE, part),
            )  # fmt: skip
        if is_cuda:
            self._stream.synchronize()
        return arranged

"""Batches of examples as tensors: rows laid end to end, without their padding.

B rows, T positions, N tokens, M tokens to predict. Made on the host with NumPy by the thread that
prepares batches, so that the network itself never has to look at lengths.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from sememe.examples.batches import Batch
from sememe.networks.rows import Rows, unpadded_rows


class BERTInputs(NamedTuple):
    """A batch for BERT."""

    ids_N: Tensor
    segments_N: Tensor
    positions_N: Tensor
    rows: Rows
    hidden_M: Tensor  # flat indices of the tokens to predict
    targets_M: Tensor
    follows_B: Tensor | None  # 0: the second text follows the first; 1: it does not
    # The losses are divided by these. Where a step has several batches or processes, put
    # the mean over them here: the sum of gradients is then that of one large batch.
    num_targets: Tensor
    num_pairs: Tensor


class GPTInputs(NamedTuple):
    """A batch for GPT."""

    ids_N: Tensor
    positions_N: Tensor
    rows: Rows
    hidden_M: Tensor  # flat indices of the tokens that have a next one
    targets_M: Tensor
    num_targets: Tensor


def bert_inputs(batch: Batch) -> BERTInputs:
    """Lay a batch of masked examples end to end; targets keep their order."""
    max_length = batch.ids_BT.shape[1]
    rows = unpadded_rows(batch.lengths_B, max_length)
    assert batch.hidden_N is not None and batch.targets_N is not None
    return BERTInputs(
        ids_N=_flat(batch.ids_BT, rows),
        segments_N=_flat(
            np.zeros_like(batch.ids_BT) if batch.segments_BT is None else batch.segments_BT, rows
        ),
        positions_N=_positions(rows),
        rows=rows,
        hidden_M=_unpadded_index(batch.hidden_N, batch.lengths_B, max_length),
        targets_M=torch.from_numpy(batch.targets_N.astype(np.int64)),
        follows_B=None
        if batch.is_next_B is None
        else torch.from_numpy(1 - batch.is_next_B.astype(np.int64)),
        num_targets=torch.tensor(float(max(len(batch.targets_N), 1))),
        num_pairs=torch.tensor(float(len(batch.lengths_B))),
    )


def gpt_inputs(batch: Batch) -> GPTInputs:
    """Lay a batch of running text end to end; every token but a row's last predicts the next."""
    max_length = batch.ids_BT.shape[1]
    rows = unpadded_rows(batch.lengths_B, max_length)
    has_next_BT = np.arange(max_length) < batch.lengths_B[:, None] - 1
    places = np.flatnonzero(has_next_BT)
    targets_M = batch.ids_BT.reshape(-1)[places + 1].astype(np.int64)
    return GPTInputs(
        ids_N=_flat(batch.ids_BT, rows),
        positions_N=_positions(rows),
        rows=rows,
        hidden_M=_unpadded_index(places, batch.lengths_B, max_length),
        targets_M=torch.from_numpy(targets_M),
        num_targets=torch.tensor(float(max(len(targets_M), 1))),
    )


def _flat(array_BT: np.ndarray, rows: Rows) -> Tensor:
    assert rows.places_N is not None
    return torch.from_numpy(array_BT.reshape(-1)[rows.places_N.numpy()].astype(np.int64))


def _positions(rows: Rows) -> Tensor:
    assert rows.places_N is not None
    return rows.places_N % rows.max_length


def _unpadded_index(places: np.ndarray, lengths_B: np.ndarray, max_length: int) -> Tensor:
    """Where places b × T + t of the padded batch lie when rows are laid end to end."""
    row_index, position = np.divmod(places.astype(np.int64), max_length)
    starts_B = np.concatenate([[0], np.cumsum(lengths_B)[:-1]])
    return torch.from_numpy(starts_B[row_index] + position)


Inputs = TypeVar("Inputs", bound=tuple)


def moved(inputs: Inputs, device: torch.device | str) -> Inputs:
    """The same batch on a device; to a GPU the copies run beside other work."""
    is_cuda = torch.device(device).type == "cuda"

    def move(value: Any) -> Any:
        if isinstance(value, Tensor):
            return (value.pin_memory() if is_cuda else value).to(device, non_blocking=True)
        return moved(value, device) if isinstance(value, tuple) else value

    return type(inputs)(*map(move, inputs))

"""Tiles with hierarchical and full softmax in PyTorch, on any device.

As in `batches`, all gradients of a batch are computed from the rows before it, and `reference.py`
has the same in plain NumPy. T tiles of the batch, C centres of a tile, S words around them, L inner
nodes of the longest path, B hidden vectors of the batch, V words, D dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.functional import softplus

# Scores at a time, of hidden vectors and all words: a gigabyte.
MOST_SCORES = 1 << 28


def padded_paths(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """(nodes int32, -1 where a path is shorter; labels float32), each (V, L)."""
    lengths = np.diff(tree.starts)
    place = np.arange(max(1, tree.max_length))
    is_used = place < lengths[:, None]
    nodes_VL = np.full(is_used.shape, -1, np.int32)
    labels_VL = np.zeros(is_used.shape, np.float32)
    nodes_VL[is_used], labels_VL[is_used] = tree.nodes, 1.0 - tree.codes
    return nodes_VL, labels_VL


def _decisions(
    scores: torch.Tensor, labels: torch.Tensor, is_used: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, gradient) of left-or-right decisions, zero where there is none."""
    loss = (is_used * softplus(torch.where(labels > 0, -scores, scores))).sum(dtype=torch.float64)
    return loss, is_used * (labels - torch.sigmoid(scores))


def hierarchical_batch(
    batch: Any, tables: Any, own: Any, rate: float, stats: torch.Tensor, is_counted: bool
) -> None:
    """A word around (skip-gram) or the joined window (cbow) predicts the path of the centre."""
    centres_TC, around_TS, _, is_pair_TCS = batch
    nodes_TCL = tables.nodes[centres_TC].long()
    labels_TCL = tables.labels[centres_TC]
    is_node_TCL = nodes_TCL >= 0
    nodes_TCL = nodes_TCL.clamp(min=0)
    path_TCLD = tables.output[nodes_TCL]
    around_TSD = tables.take_input(around_TS)
    if own.is_skipgram:
        num_pairs = is_pair_TCS.sum(dtype=torch.float64)
        scores_TCLS = path_TCLD @ around_TSD[:, None].mT
        is_used_TCLS = is_node_TCL[..., None] * is_pair_TCS[:, :, None]
        loss, g_TCLS = _decisions(scores_TCLS, labels_TCL[..., None], is_used_TCLS)
        change_TSD = torch.einsum("tcls,tcld->tsd", g_TCLS, path_TCLD)
        change_TCLD = g_TCLS @ around_TSD[:, None]
    else:
        num_TC1 = is_pair_TCS.sum(-1, keepdim=True)
        has_window_TC1 = num_TC1 > 0
        num_pairs = has_window_TC1.sum(dtype=torch.float64)
        join_TCS = is_pair_TCS / num_TC1.clamp(min=1) if own.is_mean else is_pair_TCS
        hidden_TCD = join_TCS @ around_TSD
        scores_TCL = (path_TCLD @ hidden_TCD[..., None])[..., 0]
        loss, g_TCL = _decisions(scores_TCL, labels_TCL, (is_node_TCL & has_window_TC1).float())
        change_TSD = is_pair_TCS.mT @ (g_TCL[..., None, :] @ path_TCLD)[:, :, 0]
        change_TCLD = g_TCL[..., None] * hidden_TCD[:, :, None]
    stats[2] += num_pairs
    if is_counted:
        stats[0] += loss
        stats[1] += num_pairs
    tables.add_input(around_TS, change_TSD, rate)
    tables.add_output(nodes_TCL.flatten(1), change_TCLD.flatten(1, 2), rate)


def softmax_batch(
    batch: Any, tables: Any, own: Any, rate: float, stats: torch.Tensor, is_counted: bool
) -> None:
    """p(target | hidden) ∝ exp(output[target] · hidden) over all words."""
    centres_TC, around_TS, _, is_pair_TCS = batch
    num_TC = is_pair_TCS.sum(-1)
    if own.is_skipgram:
        hidden_TCD = tables.take_input(centres_TC)
        targets_TCX, weight_TCX = around_TS[:, None].expand_as(is_pair_TCS), is_pair_TCS
    else:
        join_TCS = is_pair_TCS / num_TC[..., None].clamp(min=1) if own.is_mean else is_pair_TCS
        hidden_TCD = join_TCS @ tables.take_input(around_TS)
        targets_TCX, weight_TCX = centres_TC[..., None], (num_TC > 0).float()[..., None]
    hidden_BD, targets_BX = hidden_TCD.flatten(0, 1), targets_TCX.flatten(0, 1)
    weight_BX = weight_TCX.flatten(0, 1)
    num_pairs = weight_BX.sum(dtype=torch.float64)
    stats[2] += num_pairs
    change_BD, d_output_VD = torch.empty_like(hidden_BD), torch.zeros_like(tables.output)
    size = max(1, MOST_SCORES // len(tables.output))
    for first in range(0, len(hidden_BD), size):
        part = slice(first, first + size)
        log_p_BV = torch.log_softmax(hidden_BD[part] @ tables.output.T, 1)
        if is_counted:
            losses_BX = log_p_BV.gather(1, targets_BX[part]) * weight_BX[part]
            stats[0] -= losses_BX.sum(dtype=torch.float64)
        g_BV = log_p_BV.exp_().mul_(-weight_BX[part].sum(1, keepdim=True))
        g_BV.scatter_add_(1, targets_BX[part], weight_BX[part])
        change_BD[part] = g_BV @ tables.output
        d_output_VD += g_BV.T @ hidden_BD[part]
    if is_counted:
        stats[1] += num_pairs
    change_TCD = change_BD.view_as(hidden_TCD)
    if own.is_skipgram:
        tables.add_input(centres_TC, change_TCD, rate)
    else:
        tables.add_input(around_TS, is_pair_TCS.mT @ change_TCD, rate)
    tables.output.add_(d_output_VD * (rate * tables.damp_output[:, None]))

"""Texts as rows of ids: [CLS] A [SEP], [CLS] A [SEP] B [SEP], or for GPT the tokens alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.networks.bert import BERTNetwork
from sememe.networks.gpt import GPTNetwork
from sememe.tokens.subwords import SubwordTokenizer

Network = BERTNetwork | GPTNetwork


class Row(NamedTuple):
    """One row: ids, segments, and how many special tokens stand before and after the text."""

    ids: list[int]
    segments: list[int]
    num_before: int
    num_after: int


def frame(
    network: Network,
    tokenizer: SubwordTokenizer,
    first: Iterable[int],
    second: Iterable[int] | None = None,
) -> Row:
    """Put the special tokens of the network around one text or two."""
    ids = [int(token_id) for token_id in first]
    if isinstance(network, GPTNetwork):
        # A row needs a token: an empty text is what stands before a text.
        return Row(ids, [0] * len(ids), 0, 0) if ids else Row([tokenizer.end_id], [0], 0, 1)
    ids = [tokenizer.cls_id, *ids, tokenizer.sep_id]
    segments = [0] * len(ids)
    if second is not None:
        ids += [*(int(token_id) for token_id in second), tokenizer.sep_id]
        segments += [1] * (len(ids) - len(segments))
    return Row(ids, segments, 1, 1)


def room(network: Network) -> int:
    """How many tokens of one text fit into a row as in training, beside the special ones."""
    return network.seen_length - (2 if isinstance(network, BERTNetwork) else 0)


class Stacked(NamedTuple):
    """Rows below each other, filled up with zeros."""

    ids_BT: Tensor
    segments_BT: Tensor
    lengths_B: Tensor


def stacked(rows: Sequence[Row], device: torch.device) -> Stacked:
    """Lay rows of different lengths below each other."""
    lengths_B = np.array([len(row.ids) for row in rows], np.int64)
    ids_BT = np.zeros((len(rows), lengths_B.max()), np.int64)
    segments_BT = np.zeros_like(ids_BT)
    for index, row in enumerate(rows):
        ids_BT[index, : len(row.ids)] = row.ids
        segments_BT[index, : len(row.ids)] = row.segments
    return Stacked(*(torch.from_numpy(x).to(device) for x in (ids_BT, segments_BT, lengths_B)))


def device_of(network: Network) -> torch.device:
    """Where the weights of a network lie."""
    return network.embedding.tokens.weight.device

"""One vector per text from BERT and GPT: texts or token ids in, pooled vectors out.

A network computes rows of similar length together, without padding, and pools them where it
computes, so that a GPU returns one vector per text. Meanwhile another thread tokenizes the next
texts. Nothing waits for a GPU but the copies of finished vectors.

B texts, M tokens of all texts concatenated, R rows (a long text has several), N tokens of some rows
with their special tokens, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.errors import OptionError
from sememe.machine import in_order
from sememe.models.bert.network import BERTNetwork
from sememe.models.language.features import (
    TEXTS_AT_ONCE,
    Network,
    TextVectors,
    batched,
    device_of,
    room,
    token_vectors,
)
from sememe.nn.feature_layers import POOLS, Choice, choose_layers
from sememe.nn.rows import RowLayout, unpadded_rows, windows
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.training.device import mapped, to_device

Result = Callable[[], np.ndarray]  # waits for the vectors, (B, D)


def embed_texts(
    network: Network,
    tokenizer: SubwordTokenizer,
    texts: Sequence[str],
    *,
    layers: Choice = "last",
    pool: str = "mean",
) -> np.ndarray:
    """One vector per text, (texts, D): of [CLS], or the mean or maximum over all tokens.

    Mean and maximum include the special tokens, as in sentence-transformers.
    """
    if pool not in POOLS:
        raise OptionError(f"pool must be one of {', '.join(POOLS)}, not {pool!r}.")
    if pool == "cls" and not isinstance(network, BERTNetwork):
        raise OptionError("A GPT has no [CLS]; choose pool mean or max.")
    if not len(texts):
        return np.empty((0, network.config.width), np.float32)
    if pool == "max":
        found = token_vectors(network, tokenizer, texts, layers=layers)
        return np.stack([_all_tokens(own).max(0) for own in found])
    finished, waiting = [], None
    for rows in _tokenized(network, tokenizer, texts):
        started = _start(network, rows, layers, pool)
        if waiting is not None:
            finished.append(waiting())
        waiting = started
    assert waiting is not None
    return np.concatenate([*finished, waiting()])


def pooled_ids(
    network: Network,
    tokenizer: SubwordTokenizer,
    ids: Sequence[Sequence[int]],
    layers: Choice = "last",
    pool: str = "mean",
) -> np.ndarray:
    """Mean or [CLS] pooling of texts given as token ids, over the tokens of all their windows.

    Equal to pooling the result of `token_vectors`, without splitting the vectors by text.
    """
    return _start(network, _rows_of(network, tokenizer, ids), layers, pool)()


def _all_tokens(own: TextVectors) -> np.ndarray:
    special = [vector[None] for vector in (own.before_D, own.after_D) if vector is not None]
    return np.concatenate([own.vectors_TD, *special])


class _Rows(NamedTuple):
    """The windows of texts: a row has tokens of one text, and counts some of them."""

    ids_M: np.ndarray
    sizes_B: np.ndarray  # the number of tokens of each text
    texts_R: np.ndarray  # the text of each row
    starts_R: np.ndarray  # the first token of each row, among M
    sizes_R: np.ndarray  # its number of tokens
    firsts_R: np.ndarray  # the first of them that counts
    lasts_R: np.ndarray  # the one after the last that counts
    num_windows_R: np.ndarray  # how many rows the text has
    marks: tuple[int, ...]  # the special tokens before and after: [CLS] and [SEP], or none


def _tokenized(
    network: Network, tokenizer: SubwordTokenizer, texts: Sequence[str]
) -> Iterator[_Rows]:
    """The rows of some texts after the other, made while the network computes."""
    starts = range(0, len(texts), TEXTS_AT_ONCE)

    def rows(first: int) -> _Rows:
        ids = tokenizer.ids_batch(texts[first : first + TEXTS_AT_ONCE])
        return _rows_of(network, tokenizer, ids)

    if len(starts) == 1:
        yield rows(0)
        return
    with ThreadPoolExecutor(1) as pool:
        yield from in_order(pool, rows, starts, 1)


def _rows_of(network: Network, tokenizer: SubwordTokenizer, ids: Sequence[Sequence[int]]) -> _Rows:
    """Split long texts into windows that overlap by a quarter."""
    is_bert = isinstance(network, BERTNetwork)
    if not is_bert:  # a row needs a token: an empty text becomes the token that starts a text
        ids = [own if len(own) else [tokenizer.end_id] for own in ids]
    sizes_B = np.fromiter(map(len, ids), np.int64, len(ids))
    # The last one is of no text, where an empty text starts that is the last.
    ids_M = np.fromiter(chain(*ids, [0]), np.int64, int(sizes_B.sum()) + 1)
    starts_B = np.cumsum(sizes_B) - sizes_B
    most = room(network)
    short = np.flatnonzero(sizes_B <= most)
    rows = [np.stack([short, starts_B[short], sizes_B[short], 0 * short, sizes_B[short]])]
    num_windows_B = np.ones(len(ids), np.int64)
    for text in np.flatnonzero(sizes_B > most).tolist():
        cuts = np.array(windows(int(sizes_B[text]), most, most // 4)).T
        start, end, first, last = cuts
        num_windows_B[text] = len(start)
        own = [np.full(len(start), text), starts_B[text] + start, end - start]
        rows.append(np.stack([*own, first - start, last - start]))
    texts_R, starts_R, sizes_R, firsts_R, lasts_R = np.concatenate(rows, axis=1)
    marks = (tokenizer.cls_id, tokenizer.sep_id) if is_bert else ()
    return _Rows(
        ids_M, sizes_B, texts_R, starts_R, sizes_R, firsts_R, lasts_R, num_windows_B[texts_R], marks
    )  # fmt: skip


class _Batch(NamedTuple):
    """Some rows with their special tokens, concatenated."""

    ids_N: Tensor
    positions_N: Tensor
    layout: RowLayout
    weights_N1: Tensor  # of each token in the vector of its text
    texts_R: Tensor


def _batch(rows: _Rows, group: Sequence[int], pool: str) -> _Batch:
    """Concatenate the rows of a group."""
    own = np.asarray(group)
    num_before = len(rows.marks) // 2
    sizes_R = rows.sizes_R[own]
    lengths_R = sizes_R + len(rows.marks)
    layout = unpadded_rows(lengths_R, int(lengths_R.max()))
    positions_N = layout.positions()

    def of_tokens(values_R: np.ndarray) -> np.ndarray:
        return np.repeat(values_R, lengths_R)

    places_N = positions_N.numpy() - num_before  # within the text's part of the row
    is_before_N, is_after_N = places_N < 0, places_N >= of_tokens(sizes_R)
    ids_N = np.take(rows.ids_M, of_tokens(rows.starts_R[own]) + places_N, mode="clip")
    if rows.marks:
        ids_N[is_before_N], ids_N[is_after_N] = rows.marks
    # A token in two windows counts in one of them, a special token as the mean over all windows.
    shares_N = of_tokens(1 / rows.num_windows_R[own])
    if pool == "cls":
        weights_N = shares_N * is_before_N
    else:
        is_counted_N = places_N >= of_tokens(rows.firsts_R[own])
        is_counted_N &= places_N < of_tokens(rows.lasts_R[own])
        weights_N = np.where(is_before_N | is_after_N, shares_N, is_counted_N)
        weights_N /= of_tokens(rows.sizes_B[rows.texts_R[own]] + len(rows.marks))
    return _Batch(
        ids_N=torch.from_numpy(ids_N),
        positions_N=positions_N,
        layout=layout,
        weights_N1=torch.from_numpy(weights_N.astype(np.float32))[:, None],
        texts_R=torch.from_numpy(rows.texts_R[own]),
    )


@torch.inference_mode()
def _start(network: Network, rows: _Rows, layers: Choice, pool: str) -> Result:
    """Let the network compute all rows; what is returned waits for it."""
    device = device_of(network)
    lengths = (rows.sizes_R + len(rows.marks)).tolist()
    pooled_BD: Any = None
    for group in batched(lengths, device):
        batch = _batch(rows, group, pool)
        if device.type == "cuda":  # it reads pinned memory while the program continues
            batch = mapped(batch, torch.Tensor.pin_memory)
        batch = to_device(batch, device)
        inputs = batch.ids_N, torch.zeros_like(batch.ids_N), batch.positions_N, batch.layout
        if layers == "last":
            vectors_ND = network.encode(*inputs)
        else:
            vectors_ND = choose_layers(network.encode_layers(*inputs), layers)
        weighted_ND = vectors_ND.float() * batch.weights_N1
        sums_RD = batch.layout.padded(weighted_ND).sum(1)
        if pooled_BD is None:
            pooled_BD = sums_RD.new_zeros(len(rows.sizes_B), sums_RD.shape[1])
        pooled_BD.index_add_(0, batch.texts_R, sums_RD)
    return _copied(pooled_BD)


def _copied(vectors_BD: Tensor) -> Result:
    """Copy vectors from where they were computed; what is returned waits for them."""
    copy_BD = vectors_BD.to("cpu", non_blocking=vectors_BD.is_cuda)
    if not vectors_BD.is_cuda:
        return copy_BD.numpy
    is_copied = torch.cuda.Event()
    is_copied.record()

    def result() -> np.ndarray:
        is_copied.synchronize()
        return copy_BD.numpy().copy()  # pinned memory is scarce

    return result

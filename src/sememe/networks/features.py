"""Vectors of texts, words and tokens in context: texts in, float32 arrays out.

B rows, T tokens, D width. Layer 0 is the embedding, layer 1 the output of the first block. A text
longer than the network can see is read in overlapping windows, never cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.errors import InputError, OptionError
from sememe.networks.bert import BERTNetwork
from sememe.networks.framing import Network, Row, device_of, frame, room, stacked
from sememe.networks.grouping import grouped
from sememe.networks.windows import Window, windows
from sememe.tokens.subwords import Encoding, SubwordTokenizer

Layers = Literal["first", "last", "second-to-last", "sum-all", "sum-last-four", "concat-last-four"]
Choice = Layers | int | tuple[int, ...]
Pool = Literal["cls", "mean", "max"]
LAYERS = ("first", "last", "second-to-last", "sum-all", "sum-last-four", "concat-last-four")
POOLS = ("cls", "mean", "max")

_TOKENS_AT_ONCE = 8_192  # in one batch, padding counted
_TEXTS_AT_ONCE = 1_024


class TextVectors(NamedTuple):
    """The tokens of one text with their vectors, and the vectors of the special tokens around."""

    encoding: Encoding
    vectors_TD: np.ndarray
    before_D: np.ndarray | None  # [CLS]; the mean over the windows of a long text
    after_D: np.ndarray | None  # [SEP]


class WordsInContext(NamedTuple):
    """The words of one text, where they lie in it (characters), and their vectors."""

    words: list[str]
    starts: np.ndarray
    ends: np.ndarray
    vectors_WD: np.ndarray


def choose_layers(layers: Sequence[Tensor], choice: Choice) -> Tensor:
    """Join the embedding and the outputs of the blocks as the choice says, (…, D or 4 D).

    A tuple of numbers puts those layers side by side.
    """
    if isinstance(choice, tuple):
        return torch.cat([choose_layers(layers, one) for one in choice], -1)
    if isinstance(choice, int):
        if not -len(layers) <= choice < len(layers):
            raise OptionError(f"layers must lie between 0 and {len(layers) - 1}, not {choice}.")
        return layers[choice]
    if choice not in LAYERS:
        raise OptionError(f"layers must be a number or one of {', '.join(LAYERS)}, not {choice!r}.")
    outputs = layers[1:]
    if choice in ("first", "last", "second-to-last"):
        return layers[{"first": 0, "last": -1, "second-to-last": -2}[choice]]
    if choice == "sum-all":
        return torch.stack(list(outputs)).sum(0)
    if len(outputs) < 4:
        raise OptionError(f"{choice} needs four layers; this network has {len(outputs)}.")
    if choice == "sum-last-four":
        return torch.stack(list(outputs[-4:])).sum(0)
    return torch.cat(list(outputs[-4:]), -1)


def embed_texts(
    network: Network,
    tokenizer: SubwordTokenizer,
    texts: Sequence[str],
    *,
    layers: Layers | int = "last",
    pool: Pool = "mean",
    overlap: int | None = None,
) -> np.ndarray:
    """One vector for each text, (texts, D): of [CLS], or the mean or maximum over all tokens.

    Mean and maximum take in the special tokens, as sentence-transformers does.
    """
    if pool not in POOLS:
        raise OptionError(f"pool must be one of {', '.join(POOLS)}, not {pool!r}.")
    if pool == "cls" and not isinstance(network, BERTNetwork):
        raise OptionError("A GPT has no [CLS]; choose pool mean or max.")
    pooled = [
        _pooled(own, pool)
        for own in token_vectors(network, tokenizer, texts, layers=layers, overlap=overlap)
    ]
    return np.stack(pooled) if pooled else np.empty((0, network.config.width), np.float32)


def _pooled(own: TextVectors, pool: Pool) -> np.ndarray:
    if pool == "cls":
        assert own.before_D is not None
        return own.before_D
    special = [vector[None] for vector in (own.before_D, own.after_D) if vector is not None]
    all_TD = np.concatenate([own.vectors_TD, *special])
    return all_TD.mean(0) if pool == "mean" else all_TD.max(0)


def embed_words(
    network: Network,
    tokenizer: SubwordTokenizer,
    texts: Sequence[str],
    *,
    spans: Sequence[np.ndarray] | None = None,
    layers: Layers | int = "last",
    overlap: int | None = None,
) -> Iterator[WordsInContext]:
    """One vector for each word of each text: the mean over its sub-words.

    Words are those of the tokenizer, or the given spans: (words, 2) starts and ends in characters
    for each text, such as a word segmenter gives for Chinese.
    """
    vectors = token_vectors(network, tokenizer, texts, layers=layers, overlap=overlap)
    for index, (text, own) in enumerate(zip(texts, vectors, strict=True)):
        places = word_spans(own.encoding) if spans is None else np.asarray(spans[index])
        places = places.reshape(-1, 2)
        joined = [_joined(own, start, end, text) for start, end in places]
        width = own.vectors_TD.shape[1]
        yield WordsInContext(
            words=[text[start:end] for start, end in places],
            starts=places[:, 0],
            ends=places[:, 1],
            vectors_WD=np.stack(joined) if joined else np.empty((0, width), np.float32),
        )


def word_spans(encoding: Encoding) -> np.ndarray:
    """Where the words that the tokenizer sees lie in the text, (words, 2) in characters."""
    firsts = np.flatnonzero(encoding.is_word_start)
    lasts = np.append(firsts, len(encoding.ids))[1:] - 1
    return np.stack([encoding.starts[firsts], encoding.ends[lasts]], 1)


def _joined(own: TextVectors, start: int, end: int, text: str) -> np.ndarray:
    is_inside = (own.encoding.starts < end) & (own.encoding.ends > start)
    if not is_inside.any():
        raise InputError(f"“{text[start:end]}” (characters {start} to {end}) holds no token.")
    return own.vectors_TD[is_inside].mean(0)


def token_vectors(
    network: Network,
    tokenizer: SubwordTokenizer,
    texts: Sequence[str],
    *,
    layers: Choice = "last",
    overlap: int | None = None,
) -> Iterator[TextVectors]:
    """The vectors of the tokens of each text; neighboring windows share `overlap` tokens."""
    size = room(network)
    overlap = size // 4 if overlap is None else overlap
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        encodings = tokenizer.encode_batch(texts[first : first + _TEXTS_AT_ONCE])
        cuts = [windows(len(encoding.ids), size, overlap) for encoding in encodings]
        rows = [
            frame(network, tokenizer, encoding.ids[window.start : window.end])
            for encoding, own in zip(encodings, cuts, strict=True)
            for window in own
        ]
        vectors = iter(_row_vectors(network, rows, layers))
        for encoding, own in zip(encodings, cuts, strict=True):
            yield _assembled(encoding, own, [next(vectors) for _ in own])


class _RowVectors(NamedTuple):
    before_SD: np.ndarray
    text_TD: np.ndarray
    after_SD: np.ndarray


def _assembled(encoding: Encoding, own: list[Window], parts: list[_RowVectors]) -> TextVectors:
    kept = [
        part.text_TD[window.first - window.start : window.last - window.start]
        for window, part in zip(own, parts, strict=True)
    ]
    before_SD = np.concatenate([part.before_SD for part in parts])
    after_SD = np.concatenate([part.after_SD for part in parts])
    return TextVectors(
        encoding=encoding,
        vectors_TD=np.concatenate(kept),
        before_D=before_SD.mean(0) if len(before_SD) else None,
        after_D=after_SD.mean(0) if len(after_SD) else None,
    )


@torch.no_grad()
def _row_vectors(network: Network, rows: list[Row], layers: Choice) -> list[_RowVectors]:
    """Send rows through the network, those of like length together."""
    found: dict[int, _RowVectors] = {}

    def size_of(index: int) -> int:
        return len(rows[index].ids)

    order = sorted(range(len(rows)), key=size_of)
    for group in grouped(order, size_of, _TOKENS_AT_ONCE, is_padded=True):
        vectors_BTD = _vectors(network, [rows[index] for index in group], layers)
        for index, vectors_TD in zip(group, vectors_BTD, strict=True):
            row = rows[index]
            end = len(row.ids) - row.num_after
            found[index] = _RowVectors(
                vectors_TD[: row.num_before],
                vectors_TD[row.num_before : end],
                vectors_TD[end : len(row.ids)],
            )
    return [found[index] for index in range(len(rows))]


def _vectors(network: Network, rows: list[Row], layers: Choice) -> np.ndarray:
    batch = stacked(rows, device_of(network))
    inputs = batch if isinstance(network, BERTNetwork) else batch[:1]
    if layers == "last":
        chosen_BTD = network(*inputs)
    else:
        chosen_BTD = choose_layers(network.layers(*inputs), layers)
    return chosen_BTD.float().cpu().numpy()

"""Features of texts from BERT and GPT: vectors in context, and attention maps.

B rows, T tokens, D width. Layer 0 is the embedding, layer 1 the output of the first block. A text
longer than the network's maximum is read in overlapping windows, never truncated.

L layers, H heads, T query tokens, S key tokens.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sememe.contract import Attention, WordsInContext
from sememe.errors import InputError, TooLongError
from sememe.models.bert.network import BERTNetwork
from sememe.models.gpt.network import GPTNetwork
from sememe.nn.feature_layers import Choice, choose_layers
from sememe.nn.rows import RowLayout, TextWindow, grouped, unpadded_rows, windows
from sememe.tokens.subwords.tokenizer import Encoding, SubwordTokenizer
from sememe.training.device import to_device

Network = BERTNetwork | GPTNetwork


class FramedRow(NamedTuple):
    """One row: ids, segments, and the numbers of special tokens before and after the text."""

    ids: list[int]
    segments: list[int]
    num_before: int
    num_after: int


def frame(
    network: Network,
    tokenizer: SubwordTokenizer,
    first: Iterable[int],
    second: Iterable[int] | None = None,
) -> FramedRow:
    """Add the network's special tokens around one text or two."""
    ids = [int(token_id) for token_id in first]
    if isinstance(network, GPTNetwork):
        # A row needs a token: an empty text becomes the token that starts a text.
        return (
            FramedRow(ids, [0] * len(ids), 0, 0)
            if ids
            else FramedRow([tokenizer.end_id], [0], 0, 1)
        )
    ids = [tokenizer.cls_id, *ids, tokenizer.sep_id]
    segments = [0] * len(ids)
    if second is not None:
        ids += tokenizer.between_ids[1:]
        segments = [0] * len(ids)
        ids += [*(int(token_id) for token_id in second), tokenizer.sep_id]
        segments += [1] * (len(ids) - len(segments))
    return FramedRow(ids, segments, 1, 1)


def room(network: Network) -> int:
    """The number of tokens of one text that fit into a row, besides the special tokens."""
    return network.seen_length - (2 if isinstance(network, BERTNetwork) else 0)


class Stacked(NamedTuple):
    """Rows stacked, padded with zeros."""

    ids_BT: Tensor
    segments_BT: Tensor
    lengths_B: Tensor


def stacked(rows: Sequence[FramedRow], device: torch.device) -> Stacked:
    """Stack rows of different lengths."""
    lengths_B = np.array([len(row.ids) for row in rows], np.int64)
    ids_BT = np.zeros((len(rows), lengths_B.max()), np.int64)
    segments_BT = np.zeros_like(ids_BT)
    for index, row in enumerate(rows):
        ids_BT[index, : len(row.ids)] = row.ids
        segments_BT[index, : len(row.ids)] = row.segments
    return Stacked(*(torch.from_numpy(x).to(device) for x in (ids_BT, segments_BT, lengths_B)))


def concatenated(
    rows: Sequence[FramedRow], device: torch.device
) -> tuple[Tensor, Tensor, Tensor, RowLayout]:
    """Ids, segments and positions of rows end to end, without padding, and their layout."""
    lengths_B = np.array([len(row.ids) for row in rows], np.int64)
    layout = unpadded_rows(lengths_B, int(lengths_B.max()))
    ids_N = torch.tensor([token_id for row in rows for token_id in row.ids])
    segments_N = torch.tensor([segment for row in rows for segment in row.segments])
    inputs = ids_N, segments_N, layout.positions(), layout
    moved: tuple[Tensor, Tensor, Tensor, RowLayout] = to_device(inputs, device)
    return moved


def device_of(network: Network) -> torch.device:
    """Where the weights of a network lie."""
    return network.embedding.tokens.weight.device


# In one batch on a CPU, whose cache holds the activations, and on a GPU.
_TOKENS_AT_ONCE = {"cpu": 1_024, "cuda": 65_536}
TEXTS_AT_ONCE = 4_096  # sorted by length together


def batched(lengths_R: Sequence[int], device: torch.device) -> Iterator[list[int]]:
    """The numbers of rows of these lengths, batch by batch, those of similar length together."""
    is_gpu = device.type != "cpu"
    order = sorted(range(len(lengths_R)), key=lengths_R.__getitem__)
    most = _TOKENS_AT_ONCE["cuda" if is_gpu else "cpu"]
    # On a GPU, thousands of short rows beside a long one would be padded by gigabytes.
    return grouped(order, lengths_R.__getitem__, most, is_padded=is_gpu)


class TextVectors(NamedTuple):
    """The tokens of one text with their vectors, and the vectors of the special tokens."""

    encoding: Encoding
    vectors_TD: np.ndarray
    before_D: np.ndarray | None  # [CLS]; the mean over the windows of a long text
    after_D: np.ndarray | None  # [SEP]


def embed_words(
    network: Network,
    tokenizer: SubwordTokenizer,
    texts: Sequence[str],
    *,
    spans: Sequence[np.ndarray] | None = None,
    layers: Choice = "last",
) -> Iterator[WordsInContext]:
    """One vector per word of each text: the mean over its sub-word tokens, zeros if it has none.

    Words are those of the tokenizer, or the given spans: (words, 2) starts and ends in characters
    for each text, for example from a Chinese word segmenter.
    """
    vectors = token_vectors(network, tokenizer, texts, layers=layers)
    for index, (text, own) in enumerate(zip(texts, vectors, strict=True)):
        encoding, tokens_TD = own.encoding, own.vectors_TD
        places = word_spans(encoding) if spans is None else np.asarray(spans[index], np.int64)
        places = places.reshape(-1, 2)
        firsts, lasts = tokens_in(encoding, places)
        vectors_WD = np.zeros((len(places), tokens_TD.shape[1]), np.float32)
        is_known_T = known_tokens(encoding, tokenizer)
        is_known_W = np.zeros(len(places), np.bool_)
        for word, (first, last) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
            if first < last:
                vectors_WD[word] = tokens_TD[first:last].mean(0)
                is_known_W[word] = is_known_T[first:last].any()
        words = [text[start:end] for start, end in places]
        yield WordsInContext(words, places[:, 0], places[:, 1], vectors_WD, is_known_W)


def word_spans(encoding: Encoding) -> np.ndarray:
    """The spans of the tokenizer's words in the text, (words, 2) in characters."""
    firsts = np.flatnonzero(encoding.is_word_start)
    lasts = np.append(firsts, len(encoding.ids))[1:] - 1
    return np.stack([encoding.starts[firsts], encoding.ends[lasts]], 1)


def tokens_in(encoding: Encoding, places_W2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first token that overlaps each span, and the one after the last."""
    firsts_W = np.searchsorted(encoding.ends, places_W2[:, 0], "right")
    return firsts_W, np.searchsorted(encoding.starts, places_W2[:, 1], "left")


def known_tokens(encoding: Encoding, tokenizer: SubwordTokenizer) -> np.ndarray:
    """Which tokens of a text are more than an unknown-word token, (T,)."""
    if tokenizer.kind == "bpe":  # it can spell everything
        return np.ones(len(encoding.ids), np.bool_)
    return np.asarray(encoding.ids != tokenizer.unk_id)


def token_vectors(
    network: Network,
    tokenizer: SubwordTokenizer,
    texts: Sequence[str],
    *,
    layers: Choice = "last",
) -> Iterator[TextVectors]:
    """The vectors of the tokens of each text; adjacent windows overlap by a quarter."""
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        encodings = tokenizer.encode_batch(texts[first : first + TEXTS_AT_ONCE])
        cuts, rows = _windowed(network, tokenizer, [encoding.ids for encoding in encodings])
        vectors = iter(_row_vectors(network, rows, layers))
        for encoding, own in zip(encodings, cuts, strict=True):
            yield _assembled(encoding, own, [next(vectors) for _ in own])


def _windowed(
    network: Network, tokenizer: SubwordTokenizer, ids: Iterable[Any]
) -> tuple[list[list[TextWindow]], list[FramedRow]]:
    """The windows of each text, and the rows of all of them with special tokens."""
    size = room(network)
    cuts, rows = [], []
    for own in ids:
        cuts.append(windows(len(own), size, size // 4))
        rows += [frame(network, tokenizer, own[cut.start : cut.end]) for cut in cuts[-1]]
    return cuts, rows


class _RowVectors(NamedTuple):
    before_SD: np.ndarray
    text_TD: np.ndarray
    after_SD: np.ndarray


def _assembled(encoding: Encoding, own: list[TextWindow], parts: list[_RowVectors]) -> TextVectors:
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


def _row_vectors(network: Network, rows: list[FramedRow], layers: Choice) -> list[_RowVectors]:
    """The vectors of each row."""
    found: dict[int, _RowVectors] = {}
    for group, vectors_ND in _encoded(network, rows, layers):
        start = 0
        for index in group:
            row = rows[index]
            before, after = start + row.num_before, start + len(row.ids) - row.num_after
            end = start + len(row.ids)
            found[index] = _RowVectors(
                vectors_ND[start:before], vectors_ND[before:after], vectors_ND[after:end]
            )
            start = end
    return [found[index] for index in range(len(rows))]


@torch.inference_mode()
def _encoded(
    network: Network, rows: list[FramedRow], layers: Choice
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Run rows through the network, those of similar length together and without padding.

    Yields the numbers of some rows, and the vectors of their tokens concatenated, (N, D).
    """
    device = device_of(network)
    for group in batched([len(row.ids) for row in rows], device):
        inputs = concatenated([rows[index] for index in group], device)
        if layers == "last":
            chosen_ND = network.encode(*inputs)
        else:
            chosen_ND = choose_layers(network.encode_layers(*inputs), layers)
        yield group, chosen_ND.float().cpu().numpy()


@torch.no_grad()
def attention_maps(
    network: Network, tokenizer: SubwordTokenizer, text: str, other: str | None = None
) -> Attention:
    """The attention of every layer and head over a text, or over a pair of texts."""
    if other is not None and not isinstance(network, BERTNetwork):
        raise InputError("A GPT reads one text, not a pair: join the two.")
    second = None if other is None else tokenizer.encode(other).ids
    row = frame(network, tokenizer, tokenizer.encode(text).ids, second)
    if len(row.ids) > network.config.max_length:
        raise TooLongError(
            f"The text has {len(row.ids):,} tokens, but this network sees no more than "
            f"{network.config.max_length:,} at once: shorten it."
        )
    batch = stacked([row], device_of(network))
    maps = network.maps(*batch)
    tokens = [shown(tokenizer, token_id) for token_id in row.ids]
    return Attention(
        target=tokens,
        source=tokens,
        segments=row.segments,
        weights_LHTS=torch.stack([weights[0] for weights in maps]).float().cpu().numpy(),
    )


def shown(tokenizer: SubwordTokenizer, token_id: int) -> str:
    """A token in readable form: BPE writes bytes as other characters, a space as Ġ."""
    text = tokenizer.decode([token_id], specials=True) if tokenizer.kind == "bpe" else ""
    # Part of a multi-byte character is not text by itself.
    return text if text and "\ufffd" not in text else tokenizer.token(token_id)

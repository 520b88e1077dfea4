"""Results of a trained translator: translations, alignments, contextual vectors.

Alignments are the attention during decoding; the vectors are the encoder's (CoVe: McCann et al.
2017).

T words of the target, S words of the source, H heads.

S tokens of a text, including its end, W words, D width. A text longer than the network's maximum is
read in overlapping windows, never truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from sememe.contract import Attention, WordsInContext
from sememe.errors import InputError, TooLongError
from sememe.examples.parallel import Pair
from sememe.metrics.translation import Cutting, bleu
from sememe.models.translation.beam_search import search
from sememe.models.translation.coding import PairCoder, text_of
from sememe.models.translation.config import SearchConfig
from sememe.nn.feature_layers import Choice, choose_layers
from sememe.nn.rows import grouped, windows
from sememe.progress import SILENT, Reporter
from sememe.text.characters import has_ideograph
from sememe.tokens.subwords.tokenizer import Encoding
from sememe.training.device import choose_device, reproducible

if TYPE_CHECKING:
    from sememe.models.translation.model import Translator

# Tokens of all hypotheses of all sources at a time.
_TOKENS_AT_ONCE = {"cuda": 65_536, "cpu": 4_096, "mps": 16_384}


@contextmanager
def placed(model: Translator) -> Iterator[torch.device]:
    """The network on the device of the options, in float32, without dropout."""
    network = model.trained()
    device = choose_device(model.training.device)
    network.to(device)
    network.eval()
    network.precision = torch.float32
    with reproducible(device, "fp32", model.training.num_workers), torch.no_grad():
        yield device


def translations(
    model: Translator,
    texts: Sequence[str],
    config: SearchConfig,
    *,
    first: int = 1,
    progress: Reporter = SILENT,
) -> list[list[Translation]]:
    """The best translations of each text; texts of similar length are searched together.

    `first` is the number of the first text, for errors about texts that are too long.
    """

    network, coder = model.trained(), model.coder
    sources = checked_sources(model, texts, first)
    found = [[Translation("", 0.0)] for _ in texts]
    with placed(model) as device, progress.task("translating", len(texts), "texts") as task:
        num_done = 0
        with_words = [index for index, text in enumerate(texts) if text.strip()]
        # The longest first: memory that suffices for them suffices for all.
        order = sorted(with_words, key=lambda index: -len(sources[index]))
        most = _TOKENS_AT_ONCE[device.type] // config.beam
        for group in grouped(order, lambda index: len(sources[index]), most):
            limits = [
                min(len(sources[index]) + config.max_extra, model.config.max_length - 1)
                for index in group
            ]
            writer = network.writer([sources[index] for index in group], config.beam)
            hypotheses = search(
                writer, limits, config, start_id=coder.start_id, end_id=coder.end_id,
                barred=coder.barred, device=device,
            )  # fmt: skip
            for index, own in zip(group, hypotheses, strict=True):
                found[index] = [Translation(coder.decode(one.ids), one.score) for one in own]
            num_done += len(group)
            task.update(num_done)
    return found


def checked_sources(model: Translator, texts: Sequence[str], first: int = 1) -> list[np.ndarray]:
    """Texts as ids; one that exceeds the network's maximum length is an error."""
    sources: list[np.ndarray] = model.coder.sources(texts)
    for number, source in enumerate(sources, first):
        if len(source) > model.config.max_length:
            where = f"Text {number:,}" if len(texts) > 1 or first > 1 else "The text"
            raise TooLongError(
                f"{where} has {len(source):,} tokens, but this model reads no more than "
                f"{model.config.max_length:,} at once: split it into sentences."
            )
    return sources


def scored(
    model: Translator,
    pairs: Sequence[Pair],
    config: SearchConfig,
    *,
    cutting: Cutting = "auto",
    lowercase: bool | None = None,
    progress: Reporter = SILENT,
) -> dict[str, Any]:
    """BLEU and chrF of translations of pairs, with their signatures and the translations."""
    references = [pair.target for pair in pairs]
    bleu(references[:1], references[:1])  # says at once if sacrebleu is missing
    found = translations(model, [pair.source for pair in pairs], config, progress=progress)
    written = [own[0].text for own in found]
    scores = model.score_translations(written, references, cutting=cutting, lowercase=lowercase)
    return {**scores, "pairs": len(pairs), "beam": config.beam, "translations": written}


END = "⟨end⟩"


def align(
    model: Translator, source: str, target: str | None = None, *, tokens: bool | None = None
) -> Attention:
    """The attention of every layer and head over the source while a target is decoded.

    A word of several tokens has the mean of their attention as a query, and the sum as a key; with
    `tokens` the tokens themselves are shown, as in Chinese, which has no spaces.
    """
    coder = model.coder
    if not source.strip():
        raise InputError("A source without words cannot be looked at.")
    target = model.translate(source) if target is None else target
    weights_LHTS = np.stack(_maps(model, source, target))
    if tokens is None:
        tokens = has_ideograph(source + target)
    columns, sources = _words(coder, source, tokens)
    rows, targets = _words(coder, target, tokens)
    counts_T1 = np.diff([*rows, weights_LHTS.shape[2]])[:, None]
    weights_LHTS = np.add.reduceat(weights_LHTS, columns, axis=3)
    weights_LHTS = np.add.reduceat(weights_LHTS, rows, axis=2) / counts_T1
    return Attention(targets, sources, weights_LHTS, translation=" ".join(target.split()))


def _maps(model: Translator, source: str, target: str) -> list[np.ndarray]:
    network, coder = model.trained(), model.coder
    (own,) = checked_sources(model, [source])
    written = coder.targets([target])[0][:-1]
    if len(written) > model.config.max_length:
        raise InputError(
            f"The target has more than {model.config.max_length:,} tokens: shorten it."
        )
    with placed(model) as device:
        maps: list[Any] = network.maps(text_of([own]).to(device), text_of([written]).to(device))
    return [weights_BHTS[0].float().cpu().numpy() for weights_BHTS in maps]


def _words(coder: PairCoder, text: str, tokens: bool) -> tuple[list[int], list[str]]:
    """Where the words of a text start among its tokens, its end included, and the words."""
    (encoding,) = coder.encode([text])
    firsts = np.flatnonzero(encoding.is_word_start | tokens).tolist()
    lasts = [*firsts, len(encoding.ids)][1:]
    words = [
        text[encoding.starts[first] : encoding.ends[last - 1]]
        for first, last in zip(firsts, lasts, strict=True)
    ]
    return [*firsts, len(encoding.ids)], [*words, END]


_ROWS_AT_ONCE = 64


class TokenVectors(NamedTuple):
    """The tokens of a text with their positions and vectors, and the vector of its end."""

    encoding: Encoding
    vectors_SD: np.ndarray
    end_D: np.ndarray


def encoded(
    model: Translator, texts: Sequence[str], layers: Choice = "last"
) -> Iterator[TokenVectors]:
    """The encoder's output for the tokens of each text and its end."""
    model.trained()
    coder = model.coder
    size = model.config.max_length - 1
    encodings = coder.encode(texts)
    cuts = [windows(len(own.ids), size, size // 4) for own in encodings]
    rows = [
        np.append(encoding.ids[window.start : window.end], coder.end_id)
        for encoding, own in zip(encodings, cuts, strict=True)
        for window in own
    ]
    vectors = iter(_row_vectors(model, rows, layers))
    for encoding, own in zip(encodings, cuts, strict=True):
        parts = []
        for window in own:
            row_SD = next(vectors)
            parts.append(row_SD[window.first - window.start : window.last - window.start])
        yield TokenVectors(encoding, np.concatenate(parts), row_SD[-1])


def _row_vectors(model: Translator, rows: list[np.ndarray], layers: Choice) -> list[np.ndarray]:
    """Run rows through the encoder, those of similar length together."""
    network = model.trained()
    found: list[Any] = [None] * len(rows)
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    with placed(model) as device:
        for first in range(0, len(order), _ROWS_AT_ONCE):
            group = order[first : first + _ROWS_AT_ONCE]
            text = text_of([rows[index] for index in group])
            packed = text.to(device)
            if layers == "last":
                chosen_ND = network.encode(packed)
            else:
                chosen_ND = choose_layers(network.layers(packed), layers)
            vectors_ND = chosen_ND.float().cpu().numpy()
            ends = np.cumsum(text.lengths)
            for index, own in zip(group, np.split(vectors_ND, ends[:-1]), strict=True):
                found[index] = own
    return found


def words_of(text: str, own: TokenVectors, places_W2: np.ndarray) -> WordsInContext:
    """The words at these positions of a text, each the mean over its tokens; zeros without one."""
    encoding, rows = own.encoding, []
    is_known_W = np.zeros(len(places_W2), np.bool_)
    # A token that is a space alone has no extent, and belongs to the word after it.
    ends_S = np.maximum(encoding.ends, encoding.starts + 1)
    for index, (start, end) in enumerate(places_W2):
        is_inside_S = (encoding.starts < end) & (ends_S > start)
        is_known_W[index] = is_inside_S.any()
        rows.append(own.vectors_SD[is_inside_S].sum(0) / max(1, is_inside_S.sum()))
    width = own.vectors_SD.shape[1]
    return WordsInContext(
        words=[text[start:end] for start, end in places_W2],
        starts=places_W2[:, 0],
        ends=places_W2[:, 1],
        vectors_WD=np.stack(rows) if rows else np.empty((0, width), np.float32),
        is_known_W=is_known_W,
    )


@dataclass(frozen=True)
class Translation:
    """One translation of a text, and its length-normalized log probability."""

    text: str
    score: float

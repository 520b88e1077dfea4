"""Vectors in context from the encoder of a model that translates (CoVe: McCann et al. 2017).

S tokens of a text, its end included, W words, D width. A text longer than the network can see is
read in overlapping windows, never cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.networks.features import WordsInContext, word_spans
from sememe.networks.translation_inputs import text_of
from sememe.networks.windows import windows
from sememe.tasks.translating import placed

if TYPE_CHECKING:
    from sememe.tasks.translate import Translator

_ROWS_AT_ONCE = 64


def encoded(model: Translator, texts: Sequence[str]) -> list[np.ndarray]:
    """What the encoder makes of the tokens of each text, (S, D) each."""
    _, coder = model.trained()
    size = model.config.max_length - 1
    sources = [own.ids for own in coder.encode(texts)]
    cuts = [windows(len(ids), size, size // 4) for ids in sources]
    rows = [
        np.append(ids[window.start : window.end], coder.end_id)
        for ids, own in zip(sources, cuts, strict=True)
        for window in own
    ]
    vectors = iter(_row_vectors(model, rows))
    found = []
    for own in cuts:
        parts = []
        for window in own:
            row_SD = next(vectors)
            parts.append(row_SD[window.first - window.start : window.last - window.start])
        found.append(np.concatenate([*parts, row_SD[-1:]]))
    return found


def _row_vectors(model: Translator, rows: list[np.ndarray]) -> list[np.ndarray]:
    """Send rows through the encoder, those of like length together."""
    network, _ = model.trained()
    found: list[Any] = [None] * len(rows)
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    with placed(model) as device:
        for first in range(0, len(order), _ROWS_AT_ONCE):
            group = order[first : first + _ROWS_AT_ONCE]
            text = text_of([rows[index] for index in group])
            vectors_ND = network.encode(text.to(device)).float().cpu().numpy()
            ends = np.cumsum(text.lengths)
            for index, own in zip(group, np.split(vectors_ND, ends[:-1]), strict=True):
                found[index] = own
    return found


def encoded_words(model: Translator, texts: Sequence[str]) -> list[WordsInContext]:
    """A vector for each word of each text as the tokenizer sees words: the mean over its pieces."""
    _, coder = model.trained()
    found = []
    for text, vectors_SD in zip(texts, encoded(model, texts), strict=True):
        encoding, prepared = coder.encode([text])[0], coder.prepared(text)
        places = word_spans(encoding)
        firsts = np.flatnonzero(encoding.is_word_start)
        counts_W1 = np.diff([*firsts, len(encoding.ids)])[:, None]
        own_TD = vectors_SD[:-1]
        sums_WD = np.add.reduceat(own_TD, firsts, axis=0) if len(firsts) else own_TD
        found.append(
            WordsInContext(
                words=[prepared[start:end].strip() for start, end in places],
                starts=places[:, 0],
                ends=places[:, 1],
                vectors_WD=sums_WD / counts_W1,
            )
        )
    return found

"""Which words of a source a model looks at while it writes each word of the target.

T words of the target, S words of the source, H heads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.networks.translation_inputs import text_of
from sememe.tasks.translating import checked_sources, placed

if TYPE_CHECKING:
    from sememe.tasks.pair_coding import PairCoder
    from sememe.tasks.translate import Translator

END = "⟨end⟩"
_HAN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")


class Alignment(NamedTuple):
    """The words of both texts and the attention between them; each row of weights sums to 1."""

    source: list[str]
    target: list[str]
    weights_TS: np.ndarray
    layer: int
    num_layers: int
    num_heads: int
    translation: str


def align(
    model: Translator,
    source: str,
    target: str | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    tokens: bool | None = None,
) -> Alignment:
    """The attention of one layer, of a head of it or the mean of all, while a target is written.

    A word that is cut into pieces looks with the mean of them, and is looked at with their sum;
    with `tokens` the pieces themselves are shown, as they are in Chinese, which has no spaces.
    """
    _, coder = model.trained()
    if not source.strip():
        raise InputError("A source without words cannot be looked at.")
    target = model.translate(source) if target is None else target
    maps = _maps(model, source, target)
    layer = _checked("layer", layer or len(maps), len(maps))
    heads_HTS = maps[layer - 1]
    if head is None:
        weights_TS = heads_HTS.mean(0)
    else:
        weights_TS = heads_HTS[_checked("head", head, len(heads_HTS)) - 1]
    if tokens is None:
        tokens = bool(_HAN.search(source + target))
    columns, sources = _words(coder, source, tokens)
    rows, targets = _words(coder, target, tokens)
    weights_TS = np.add.reduceat(weights_TS, columns, axis=1)
    counts_T1 = np.diff([*rows, len(heads_HTS[0])])[:, None]
    weights_TS = np.add.reduceat(weights_TS, rows, axis=0) / counts_T1
    return Alignment(
        sources, targets, weights_TS, layer, len(maps), len(heads_HTS), " ".join(target.split())
    )


def _maps(model: Translator, source: str, target: str) -> list[np.ndarray]:
    network, coder = model.trained()
    (own,) = checked_sources(model, [source])
    written = coder.targets([target])[0][:-1]
    if len(written) > model.config.max_length:
        raise InputError(f"The target has more than {model.config.max_length:,} tokens: cut it.")
    with placed(model) as device:
        maps: list[Any] = network.maps(text_of([own]).to(device), text_of([written]).to(device))
    return [weights_BHTS[0].float().cpu().numpy() for weights_BHTS in maps]


def _words(coder: PairCoder, text: str, tokens: bool) -> tuple[list[int], list[str]]:
    """Where the words of a text start among its tokens, its end included, and the words."""
    encoding, prepared = coder.encode([text])[0], coder.prepared(text)
    firsts = np.flatnonzero(encoding.is_word_start | tokens).tolist()
    lasts = [*firsts, len(encoding.ids)][1:]
    words = [
        prepared[encoding.starts[first] : encoding.ends[last - 1]].strip()
        for first, last in zip(firsts, lasts, strict=True)
    ]
    return [*firsts, len(encoding.ids)], [*words, END]


def _checked(name: str, number: int, most: int) -> int:
    if not 1 <= number <= most:
        raise OptionError(f"{name} must lie between 1 and {most} for this network, not {number}.")
    return number

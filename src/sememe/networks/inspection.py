"""Looking inside: where every head of every layer looks, for one text or a pair.

L layers, H heads, T tokens that look, S tokens that are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from sememe.errors import InputError
from sememe.networks.bert import BERTNetwork
from sememe.networks.framing import Network, device_of, frame, stacked
from sememe.tokens.subwords import SubwordTokenizer


class AttentionMaps(NamedTuple):
    """The tokens of a row and the attention between them; each row of weights sums to 1."""

    tokens: list[str]
    segments: list[int]
    weights_LHTS: np.ndarray


@torch.no_grad()
def attention_maps(
    network: Network, tokenizer: SubwordTokenizer, text: str, other: str | None = None
) -> AttentionMaps:
    """The attention of every layer and head over a text, or over a text and another one."""
    if other is not None and not isinstance(network, BERTNetwork):
        raise InputError("A GPT reads one text, not a pair: join the two.")
    second = None if other is None else tokenizer.encode(other).ids
    row = frame(network, tokenizer, tokenizer.encode(text).ids, second)
    if len(row.ids) > network.config.max_length:
        raise InputError(
            f"The text has {len(row.ids):,} tokens, but this network sees no more than "
            f"{network.config.max_length:,} at once: shorten it."
        )
    batch = stacked([row], device_of(network))
    if isinstance(network, BERTNetwork):
        maps = network.maps(*batch)
    else:
        maps = network.maps(batch.ids_BT)
    return AttentionMaps(
        tokens=[_shown(tokenizer, token_id) for token_id in row.ids],
        segments=row.segments,
        weights_LHTS=torch.stack([weights[0] for weights in maps]).float().cpu().numpy(),
    )


def _shown(tokenizer: SubwordTokenizer, token_id: int) -> str:
    """A token as people read it: BPE writes bytes as other characters, a space as Ġ."""
    text = tokenizer.decode([token_id], specials=True) if tokenizer.kind == "bpe" else ""
    # Part of a character of several bytes is no text of its own.
    return text if text and "\ufffd" not in text else tokenizer.token(token_id)

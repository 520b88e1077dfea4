"""What BERT was pre-trained to say: the words behind [MASK], whether one text follows another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.networks.bert import BERTNetwork
from sememe.networks.framing import device_of, frame, room, stacked
from sememe.networks.windows import windows
from sememe.tokens.subwords import SubwordTokenizer


class Guess(NamedTuple):
    """A token that may stand at a hidden place."""

    token: str
    token_id: int
    probability: float


@torch.no_grad()
def fill_masks(
    network: BERTNetwork, tokenizer: SubwordTokenizer, text: str, *, top: int = 5
) -> list[list[Guess]]:
    """The likeliest tokens for every [MASK] of a text, in order; special tokens are left out."""
    _check_head(network, "masked head", "words behind [MASK]")
    if top < 1:
        raise OptionError(f"top must be at least 1, not {top}.")
    ids = tokenizer.encode(text).ids
    if not (ids == tokenizer.mask_id).any():
        raise InputError("The text holds no [MASK]: put [MASK] in place of a word.")
    guesses = []
    for window in windows(len(ids), room(network), room(network) // 2):
        row = frame(network, tokenizer, ids[window.start : window.end])
        places = np.flatnonzero(ids[window.first : window.last] == tokenizer.mask_id)
        hidden_TD = network(*stacked([row], device_of(network)))[0]
        places += window.first - window.start + row.num_before
        logits_MV = network.masked_logits(hidden_TD[torch.from_numpy(places).to(hidden_TD.device)])
        for probabilities_V in logits_MV.float().softmax(-1).cpu().numpy():
            guesses.append(_likeliest(probabilities_V, tokenizer, top))
    return guesses


def _likeliest(probabilities_V: np.ndarray, tokenizer: SubwordTokenizer, top: int) -> list[Guess]:
    # Stable, so that equal probabilities come in the order of ids.
    order = np.argsort(-probabilities_V[: tokenizer.vocab_size], kind="stable")
    chosen = [int(i) for i in order[: top + len(tokenizer.special_ids)]]
    named = [token_id for token_id in chosen if token_id not in tokenizer.special_ids]
    return [
        Guess(tokenizer.token(token_id), token_id, float(probabilities_V[token_id]))
        for token_id in named[:top]
    ]


@torch.no_grad()
def next_probability(
    network: BERTNetwork, tokenizer: SubwordTokenizer, first: str, second: str
) -> float:
    """The probability that the second text follows the first."""
    for head in ("pooler", "next head"):
        _check_head(network, head, "which text follows which")
    first_ids, second_ids = (own.ids for own in tokenizer.encode_batch([first, second]))
    row = frame(network, tokenizer, first_ids, second_ids)
    if len(row.ids) > network.config.max_length:
        raise InputError(
            f"The two texts have {len(row.ids):,} tokens together, but this network sees no more "
            f"than {network.config.max_length:,} at once: give the end of the first and the start "
            "of the second."
        )
    hidden_BTD = network(*stacked([row], device_of(network)))
    logits_2 = network.next_logits(network.pool(hidden_BTD[:, 0]))[0]
    return float(logits_2.float().softmax(-1)[0])


def _check_head(network: BERTNetwork, head: str, what: str) -> None:
    if not isinstance(network, BERTNetwork):
        raise OptionError(f"Only a BERT says {what}; this is a GPT.")
    if head in network.untrained:
        raise ArtifactError(
            f"This model was saved without its {head}, so it cannot say {what}: "
            "open the model as it was pre-trained."
        )

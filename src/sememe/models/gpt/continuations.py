"""How likely GPT finds some continuations of prompts: the basis of classification by prompts.

R prompts, C continuations, T positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from sememe.errors import InputError
from sememe.models.gpt.network import GPTNetwork
from sememe.models.language.features import device_of
from sememe.nn.rows import grouped
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

_TOKENS_AT_ONCE = 8_192  # in one batch, including padding


class _Row(NamedTuple):
    """The tokens of a prompt, or of a prompt with a continuation."""

    prompt: int
    continuation: int  # -1: all of them, which are one token each
    ids: list[int]
    num_given: int


@torch.no_grad()
def continuation_log_probs(
    network: GPTNetwork,
    tokenizer: SubwordTokenizer,
    prompts: Sequence[str],
    continuations: Sequence[str],
) -> np.ndarray:
    """The natural log probability of each continuation after each prompt, (R, C).

    A prompt is the start of a text, after an end-of-text token. Prompts and continuations are
    tokenized apart, so that the same tokens stand for a continuation everywhere.
    """
    tails = [[int(one) for one in tokenizer.encode(text).ids] for text in continuations]
    if not all(tails):
        raise InputError("A continuation has no tokens: give words to be compared.")
    is_single = all(len(tail) == 1 for tail in tails)
    rows = []
    for index, encoding in enumerate(tokenizer.encode_batch(list(prompts))):
        given = [tokenizer.end_id, *(int(one) for one in encoding.ids)]
        if is_single:
            rows.append(_Row(index, -1, given, len(given)))
        else:
            rows += [
                _Row(index, number, given + tail[:-1], len(given))
                for number, tail in enumerate(tails)
            ]
    _check(rows, network.seen_length)
    rows.sort(key=lambda row: len(row.ids))
    network.eval()
    found_RC = np.zeros((len(prompts), len(tails)))
    first_ids = [tail[0] for tail in tails]
    for group in grouped(rows, lambda row: len(row.ids), _TOKENS_AT_ONCE, is_padded=True):
        hidden_RTD = _hidden(network, group)
        for index, row in enumerate(group):
            own_MD = hidden_RTD[index, row.num_given - 1 : len(row.ids)]
            logs_MV = network.next_logits(own_MD)[:, : tokenizer.vocab_size].float().log_softmax(-1)
            if row.continuation < 0:
                found_RC[row.prompt] = logs_MV[0, first_ids].double().cpu().numpy()
            else:
                tail = torch.tensor(tails[row.continuation], device=logs_MV.device)
                chosen_M = logs_MV.gather(1, tail[:, None])[:, 0]
                found_RC[row.prompt, row.continuation] = float(chosen_M.double().sum())
    return found_RC


def _check(rows: list[_Row], most: int) -> None:
    longest = max((len(row.ids) for row in rows), default=0)
    if longest > most:
        raise InputError(
            f"A prompt has {longest:,} tokens with its continuation, but this network has learned "
            f"from rows of {most:,}: give fewer or shorter examples."
        )


def _hidden(network: GPTNetwork, group: list[_Row]) -> torch.Tensor:
    """The vectors of all tokens of some rows; padding comes last, where none can see it."""
    ids_RT = torch.zeros(len(group), max(len(row.ids) for row in group), dtype=torch.int64)
    for own, row in zip(ids_RT, group, strict=True):
        own[: len(row.ids)] = torch.tensor(row.ids)
    found: torch.Tensor = network(ids_RT.to(device_of(network)))
    return found

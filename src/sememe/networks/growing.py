"""More tokens for a network: the table gets rows, all else stays. V vocabulary, D width."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import torch

from sememe.networks.bert import BERTNetwork
from sememe.networks.gpt import GPTNetwork

Network = TypeVar("Network", BERTNetwork, GPTNetwork)


@torch.no_grad()
def with_tokens(network: Network, vocab_size: int, *, seed: int = 1) -> Network:
    """A network of the same weights that knows more tokens; the vectors of the new are drawn."""
    config = replace(network.config, vocab_size=vocab_size)
    grown = type(network)(config, seed=seed)
    old = network.state_dict()
    for name, tensor in grown.state_dict().items():
        if tensor.shape == old[name].shape and not _is_of_tokens(name):
            tensor.copy_(old[name])
        else:  # the rows after the old vocabulary keep what was drawn
            tensor[: network.config.vocab_size] = old[name][: network.config.vocab_size]
    grown.precision, grown.untrained = network.precision, network.untrained
    grown.seen_length = network.seen_length
    return grown.train(network.training)


def _is_of_tokens(name: str) -> bool:
    return name in ("embedding.tokens.weight", "masked_bias")

"""More tokens for a network: the same weights, and vectors for the tokens that are added."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch


@torch.no_grad()
def with_tokens(
    network: Any, vocab_size: int, *, seed: int = 1, pieces: Sequence[Sequence[int]] = ()
) -> Any:
    """A network with the same weights and more tokens, whose vectors are random.

    With `pieces`, the ids that stood for each new token, its input and output vectors are the
    means of theirs (in BERT and GPT both are one table), and so is its bias in the masked head.
    """
    first = network.config.vocab_size
    # A network may have spare rows already.
    config = replace(network.config, vocab_size=max(vocab_size, first))
    grown = type(network)(config, seed=seed)
    old = network.state_dict()
    for name, tensor in grown.state_dict().items():
        is_of_tokens = name in ("embedding.tokens.weight", "masked_bias")
        if tensor.shape == old[name].shape and not is_of_tokens:
            tensor.copy_(old[name])
            continue
        tensor[:first] = old[name][:first]  # the rows after these keep their random values
        for number, ids in enumerate(pieces, vocab_size - len(pieces)):
            tensor[number] = old[name][list(ids)].mean(0)
    grown.precision, grown.untrained = network.precision, network.untrained
    grown.seen_length = network.seen_length
    return grown.train(network.training)

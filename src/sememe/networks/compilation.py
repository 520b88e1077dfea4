"""Compiling a network part by part: one graph serves all its blocks."""

from __future__ import annotations

from typing import Any

import torch

from sememe.networks.bert import BERTNetwork
from sememe.networks.gpt import GPTNetwork


def compile_parts(network: BERTNetwork | GPTNetwork, **options: Any) -> None:
    """Compile the embedding, the blocks and the loss, in place.

    The whole network as one graph trains no faster and takes minutes to compile where this takes
    seconds. Shapes are dynamic, for no two batches have the same number of tokens.
    """
    settings = {"dynamic": True, **options}
    network.embedding.compile(**settings)
    for block in network.stack:
        block.compile(**settings)
    network.head_loss = torch.compile(network.head_loss, **settings)  # type: ignore


def uncompile(network: BERTNetwork | GPTNetwork) -> None:
    """Forget what `compile_parts` made, so that the network can move to another device."""
    for part in (network.embedding, *network.stack):
        part._compiled_call_impl = None
    vars(network).pop("head_loss", None)

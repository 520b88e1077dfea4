"""Folders that `transformers` opens, and its folders opened here.

A folder holds config.json (pure: only what `transformers` knows), model.safetensors, the files of
the tokenizer, and our sememe.json beside them.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sememe.errors import ArtifactError
from sememe.networks.bert import BERTNetwork
from sememe.networks.config import BERTConfig, GPTConfig
from sememe.networks.gpt import GPTNetwork
from sememe.networks.interchange.configs import from_huggingface, to_huggingface
from sememe.networks.interchange.layout import CONFIG, TENSORS
from sememe.networks.interchange.names import Network, places_of, prefix_of, tensors_of
from sememe.networks.interchange.weights import Weights
from sememe.networks.model_folder import FORMAT
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    manifest_in,
    read_json,
    write_folder,
    write_json,
)
from sememe.storage.provenance import provenance
from sememe.storage.tensors import write_tensors
from sememe.tokens.subwords import SubwordTokenizer

# Parts of BERT that a file may lack, because it was saved without them.
HEADS = {"pooler.": "pooler", "cls.predictions.": "masked head", "cls.seq_": "next head"}


class Model(NamedTuple):
    """What a folder holds."""

    network: Network
    tokenizer: SubwordTokenizer


def kind_of(network: Network) -> str:
    """What sememe.json calls the network: bert or gpt."""
    return "bert" if isinstance(network, BERTNetwork) else "gpt"


def save_folder(
    network: Network,
    tokenizer: SubwordTokenizer,
    folder: str | Path,
    manifest: dict[str, Any] | None = None,
) -> None:
    """Write a whole model folder, atomically; `manifest` adds to what sememe.json says."""
    folder = Path(folder)
    check_replaceable(folder, kind_of(network))
    check_vocabulary(network.config, tokenizer, str(folder))
    with write_folder(folder) as scratch:
        write_network(network, scratch)
        tokenizer.save(scratch, max_length=network.config.max_length)
        write_json(scratch / MANIFEST, manifest_of(network) | (manifest or {}))


def manifest_of(network: Network) -> dict[str, Any]:
    """What sememe.json says of a network."""
    return {
        "kind": kind_of(network),
        "format": FORMAT,
        "config": network.config.to_dict(),
        "untrained": sorted(network.untrained),
        "seen_length": network.seen_length,
        "provenance": provenance(),
    }


def write_network(
    network: Network,
    folder: Path,
    *,
    without: Collection[str] = (),
    config: dict[str, Any] | None = None,
    tensors: dict[str, Tensor] | None = None,
) -> None:
    """Write config.json and model.safetensors into a folder that the caller makes atomic.

    Heads named in `without` are left out; `config` and `tensors` are added to what is written.
    """
    write_json(folder / CONFIG, to_huggingface(network.config) | (config or {}))
    own = tensors_of(network)
    left_out = {*network.untrained, *without}
    parts = {
        prefix_of(network, name) + name: place.of(own)
        for name, place in places_of(network).items()
        if head_of(name) not in left_out
    } | (tensors or {})
    arrays = {name: tensor.float().cpu().numpy() for name, tensor in parts.items()}
    write_tensors(folder / TENSORS, arrays, metadata={"format": "pt"})


def head_of(name: str) -> str | None:
    """The head of BERT that a tensor belongs to, or None."""
    return next((head for start, head in HEADS.items() if name.startswith(start)), None)


def load_folder(folder: str | Path) -> Model:
    """Open a model folder, ours or one of `transformers`, with its tokenizer."""
    network = load_network(folder)
    tokenizer = SubwordTokenizer.load(folder)
    check_vocabulary(network.config, tokenizer, str(folder))
    return Model(network, tokenizer)


def load_network(folder: str | Path) -> Network:
    """Open the network of a model folder, ready to be used: dropout is off."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ArtifactError(f"There is no model folder at {folder}.")
    config = _config(folder)
    weights = Weights(folder)
    network = BERTNetwork(config) if isinstance(config, BERTConfig) else GPTNetwork(config)
    fill(network, weights)
    network.seen_length = _seen_length(folder, config)
    return network.eval()


def _seen_length(folder: Path, config: BERTConfig | GPTConfig) -> int:
    """How many positions our own training has taught; others' do not say, nor need sine waves."""
    manifest = manifest_in(folder)
    training = manifest.get("training")  # where folders of early versions say it
    early = training.get("length") if isinstance(training, dict) else None
    length = manifest.get("seen_length", early)
    if not isinstance(length, int) or config.positions == "sinusoidal":
        return config.max_length
    return max(3, min(length, config.max_length))


def _config(folder: Path) -> BERTConfig | GPTConfig:
    config = from_huggingface(read_json(folder / CONFIG), str(folder / CONFIG))
    # Their file cannot say that positions are sine waves, and need not: it holds the table.
    ours = manifest_in(folder).get("config")
    if isinstance(ours, dict) and ours.get("positions") == "sinusoidal":
        return type(config)(**{**config.to_dict(), "positions": "sinusoidal"})
    return config


@torch.no_grad()
def fill(network: Network, weights: Weights) -> None:
    """Copy every tensor of a file to its place; name the first that is missing or does not fit."""
    tensors = tensors_of(network)
    places = places_of(network)
    missing = {name for name in places if name not in weights}
    network.untrained = frozenset(head for name in missing if (head := head_of(name)))
    for name, place in places.items():
        if head_of(name) in network.untrained:
            continue
        if name in missing:
            raise ArtifactError(_missing(network, weights, name))
        _copy(place.of(tensors), weights[name], f"{prefix_of(network, name)}{name}", weights.folder)


def _missing(network: Network, weights: Weights, name: str) -> str:
    if not any(own in weights for own in places_of(network)):
        return f"{weights.folder} holds another model: none of its tensors belongs to this network."
    return (
        f"{weights.folder} lacks the tensor {prefix_of(network, name)}{name}: "
        "the file is damaged, or its config.json belongs to another model."
    )


def _copy(target: Tensor, source: Tensor, name: str, folder: Path) -> None:
    if source.shape != target.shape:
        raise ArtifactError(
            f"{folder}: the tensor {name} is {_shape(source)}, but config.json asks for "
            f"{_shape(target)}."
        )
    target.copy_(source)


def _shape(tensor: Tensor) -> str:
    return " × ".join(f"{extent:,}" for extent in tensor.shape) or "a number"


def check_vocabulary(
    config: BERTConfig | GPTConfig, tokenizer: SubwordTokenizer, place: str
) -> None:
    """Refuse a tokenizer with ids that the network has no vector for."""
    if tokenizer.vocab_size > config.vocab_size:
        raise ArtifactError(
            f"{place}: the tokenizer has {tokenizer.vocab_size:,} tokens, the network "
            f"{config.vocab_size:,}; they do not belong together."
        )

"""Read and write model folders of `transformers`.

A folder has config.json (only fields that `transformers` knows), its tensors, the files of the
tokenizer, and our sememe.json. Tensors are safetensors, in one file or in shards; pickles can only
be converted to safetensors, without running their code.
"""

import os
import pickle
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from sememe.card import card_of, write_manifest
from sememe.errors import ArtifactError, WriteError
from sememe.machine import provenance
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.network import BERTNetwork
from sememe.models.gpt.config import GPTConfig
from sememe.models.gpt.network import GPTNetwork
from sememe.models.huggingface.adapters import START, apply, read_adapter, write_adapter
from sememe.models.huggingface.growing import with_tokens
from sememe.models.huggingface.layout import (
    ADAPTER,
    CONFIG,
    GRAPH,
    INDEX,
    PICKLES,
    TENSORS,
    base_of,
    finetuned_for,
    is_adapter,
    network_config,
    network_kind,
    to_huggingface,
)
from sememe.models.huggingface.onnx import ONNXEngine
from sememe.models.huggingface.places import (
    Network,
    head_of,
    places_of,
    plain_name,
    prefix_of,
    tensors_of,
)
from sememe.models.language.model import FORMAT
from sememe.storage.folder import (
    check_replaceable,
    manifest_in,
    open_regular,
    read_errors,
    read_json,
    verify,
    write_card,
    write_folder,
    write_json,
)
from sememe.storage.tensors import tensor_shapes, write_tensors
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.training.weights import check_finite


class Weights:
    """The tensors of a folder by their plain names, read when needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[str, tuple[Path, str]] = {}  # plain name → file, name there
        for path in _files(folder):
            for name in tensor_shapes(path):
                plain = plain_name(name.removeprefix(START)) if path.name == ADAPTER else name
                self._places[plain_name(plain)] = path, name

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, name: str) -> Tensor:
        path, their_name = self._places[name]
        try:
            with read_errors(path), open_regular(path) as held:
                # The library accepts only UTF-8 names; a file descriptor works for any file.
                is_utf8 = os.fsencode(path).decode("utf-8", "replace") == str(path)
                place = path if is_utf8 else f"/dev/fd/{held.fileno()}"
                with safe_open(place, framework="pt") as file:
                    return file.get_tensor(their_name)
        except SafetensorError as error:
            raise ArtifactError(f"{path} cannot be used: {error}.") from error


def _files(folder: Path) -> list[Path]:
    if is_adapter(folder):
        return [folder / ADAPTER]
    if (folder / TENSORS).is_file():
        return [folder / TENSORS]
    if (folder / INDEX).is_file():
        with read_errors(folder / INDEX):
            names = sorted(set(read_json(folder / INDEX)["weight_map"].values()))
            return [folder / Path(name).name for name in names]
    if any(folder.glob(PICKLES)):
        raise ArtifactError(
            f"{folder} holds its weights as a pickle, which can run any program when it is opened. "
            f"Convert it once: sememe convert {folder} NEW-FOLDER."
        )
    raise ArtifactError(f"{folder / TENSORS} is missing: {folder} is not a complete model.")


def convert_pickles(source: str | Path, target: str | Path) -> int:
    """Copy the folder `source` with safetensors for its pickles; return the number of tensors.

    Only tensors are read (weights_only=True): a pickle that wants to run code is refused.
    """
    source, target = Path(source), Path(target)
    if target.exists() and any(target.iterdir()):
        raise WriteError(f"{target} exists and is not empty; choose another name.")
    tensors: dict[str, Tensor] = {}
    for path in sorted(source.glob(PICKLES)):
        tensors |= _read(path)
    with write_folder(target) as scratch:
        write_tensors(scratch / TENSORS, _arrays(tensors), metadata={"format": "pt"})
        for path in source.iterdir():
            if path.is_file() and path.suffix in (".json", ".txt"):
                shutil.copy(path, scratch)
        (scratch / "pytorch_model.bin.index.json").unlink(missing_ok=True)
        kind = finetuned_for(source) or network_kind(source)
        write_card(scratch, card_of(scratch, {"kind": kind}))
    return len(tensors)


def _read(path: Path) -> dict[str, Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "it is damaged"
        raise ArtifactError(f"{path} is not a file of tensors alone: {reason}") from error
    if not isinstance(content, dict):
        raise ArtifactError(f"{path} holds no tensors by name.")
    return {name: value for name, value in content.items() if isinstance(value, Tensor)}


def _arrays(tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    arrays = {}
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for name, tensor in tensors.items():
        # Tied tensors appear in a pickle under two names; the second is not needed.
        mark = tensor.data_ptr(), tuple(tensor.shape)
        if mark in seen and tensor.numel():
            continue
        seen.add(mark)
        plain = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        arrays[name] = plain.contiguous().numpy()
    return arrays


def kind_of(network: Network) -> str:
    """The network's kind in sememe.json: bert or gpt."""
    return "bert" if isinstance(network, BERTNetwork) else "gpt"


def save_folder(
    network: Network,
    tokenizer: SubwordTokenizer,
    folder: str | Path,
    manifest: dict[str, Any] | None = None,
) -> None:
    """Write a complete model folder atomically; `manifest` adds fields to sememe.json."""
    folder = Path(folder)
    check_replaceable(folder, kind_of(network))
    check_vocabulary(network.config, tokenizer, str(folder))
    with write_folder(folder) as scratch:
        write_network(network, scratch, config=token_fields(network, tokenizer))
        tokenizer.save(
            scratch, max_length=network.config.max_length, has_segments=kind_of(network) != "gpt"
        )
        write_manifest(scratch, manifest_of(network) | (manifest or {}))


def manifest_of(network: Network) -> dict[str, Any]:
    """What sememe.json says about a network."""
    return {
        "kind": kind_of(network),
        "format": FORMAT,
        "config": network.config.to_dict(),
        "untrained": sorted(network.untrained),
        "seen_length": network.seen_length,
        "provenance": provenance(),
    } | ({} if network.adapter is None else {"adapter": network.adapter.manifest()})


def token_fields(network: Network, tokenizer: SubwordTokenizer) -> dict[str, Any]:
    """The ids of special tokens in config.json, by which `transformers` pads, starts and stops."""
    if isinstance(network, GPTNetwork):
        end_id = tokenizer.end_id
        return {"bos_token_id": end_id, "eos_token_id": end_id, "pad_token_id": tokenizer.pad_id}
    if network.config.family == "bert":
        return {}
    first, last = tokenizer.cls_id, tokenizer.sep_id
    roles = {"bos": first, "eos": last, "cls": first, "sep": last}
    if not network.config.first_position:  # where it also says which position is the first
        roles["pad"] = tokenizer.pad_id
    return {f"{role}_token_id": token_id for role, token_id in roles.items()}


def write_network(
    network: Network,
    folder: Path,
    *,
    without: Collection[str] = (),
    config: dict[str, Any] | None = None,
    tensors: dict[str, Tensor] | None = None,
    as_adapter: bool = False,
) -> None:
    """Write config.json and model.safetensors into a folder that the caller makes atomic.

    Heads named in `without` are omitted; `config` and `tensors` are added to what is written. With
    `as_adapter`, a network that has an adapter is written as that adapter.
    """
    own, left_out = tensors_of(network), {*network.untrained, *without}
    content = to_huggingface(network.config, left_out) | (config or {})
    write_json(folder / CONFIG, content)
    if as_adapter and network.adapter is not None:
        architecture = next(iter(content.get("architectures", [])), "")
        write_adapter(network, folder, architecture, tensors or {})
        return
    parts = {
        prefix_of(network, name) + name: place.of(own)
        for name, place in places_of(network).items()
        if head_of(name) not in left_out
    } | (tensors or {})
    arrays = {name: tensor.float().cpu().numpy() for name, tensor in parts.items()}
    write_tensors(folder / TENSORS, arrays, metadata={"format": "pt"})


def load_folder(folder: str | Path) -> tuple[Network, SubwordTokenizer]:
    """Open a model folder, of sememe or `transformers`, with its tokenizer."""
    network = load_network(folder)
    tokenizer = load_tokenizer(Path(folder))
    check_vocabulary(network.config, tokenizer, str(folder))
    return network, tokenizer


def load_tokenizer(folder: Path) -> SubwordTokenizer:
    """The tokenizer of a model folder; an adapter of PEFT may leave it to its base."""
    if is_adapter(folder) and not (folder / "tokenizer.json").is_file():
        folder = base_of(folder)
    return SubwordTokenizer.load(folder)


def load_network(folder: str | Path) -> Network:
    """Open the network of a model folder in evaluation mode."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ArtifactError(f"There is no model folder at {folder}.")
    if is_adapter(folder):
        return _load_adapted(folder)
    config = network_config(folder)
    weights = Weights(folder)
    sizes = [path.stat().st_size for path in _files(folder)]
    # Smaller ones are named by the tensor that does not fit.
    if config.vocab_size * config.width > max(1 << 28, sum(sizes)):
        raise ArtifactError(
            f"{folder / CONFIG} cannot be right: the files hold no {config.vocab_size:,} vectors "
            f"of {config.width:,} dimensions."
        )
    network = BERTNetwork(config) if isinstance(config, BERTConfig) else GPTNetwork(config)
    fill(network, weights)
    network.seen_length = _seen_length(folder, config)
    # Graphs of other programs may have other inputs and outputs, or other weights.
    if (folder / GRAPH).is_file() and "onnx" in manifest_in(folder):
        verify(folder, {GRAPH})  # the library would run a damaged one
        network.engine = ONNXEngine(folder / GRAPH)
    return network.eval()


def _load_adapted(folder: Path) -> Network:
    """The network of an adapter's base with its updates merged."""
    adapter = read_adapter(folder)
    network = load_network(adapter.base)
    num_tokens = network_config(folder).vocab_size
    if num_tokens > network.config.vocab_size:
        network = with_tokens(network, num_tokens)
    apply(network, adapter, folder)
    network.untrained |= frozenset(manifest_in(folder).get("untrained", ()))
    network.engine = None  # that of the base computes with other weights
    return network.eval()


def _seen_length(folder: Path, config: BERTConfig | GPTConfig) -> int:
    """The number of trained positions, if sememe trained it; sine waves need none."""
    manifest = manifest_in(folder)
    training = manifest.get("training")  # where folders of early versions say it
    early = training.get("length") if isinstance(training, dict) else None
    length = manifest.get("seen_length", early)
    if not isinstance(length, int) or config.positions == "sinusoidal":
        return config.max_length
    return max(3, min(length, config.max_length))


@torch.no_grad()
def fill(network: Network, weights: Weights) -> None:
    """Copy every tensor of a file to its place; an error names the first that does not fit."""
    tensors = tensors_of(network)
    places = places_of(network)
    missing = {name for name in places if name not in weights}
    heads = {head for name in missing if (head := head_of(name))}
    if isinstance(network, BERTNetwork) and not network.config.has_next_head:
        heads.add("next head")
    network.untrained = frozenset(heads)
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
            f"{folder}: the tensor {name} is {_shape(source)}, but config.json needs "
            f"{_shape(target)}."
        )
    check_finite(source, name, folder)
    target.copy_(source)


def _shape(tensor: Tensor) -> str:
    return " × ".join(f"{extent:,}" for extent in tensor.shape) or "a number"


def check_vocabulary(
    config: BERTConfig | GPTConfig, tokenizer: SubwordTokenizer, place: str
) -> None:
    """Raise an error for a tokenizer with ids that the network has no vector for."""
    if tokenizer.vocab_size > config.vocab_size:
        raise ArtifactError(
            f"{place}: the tokenizer has {tokenizer.vocab_size:,} tokens, the network "
            f"{config.vocab_size:,}; they do not belong together."
        )

"""LoRA adapters in PEFT's folders: what was added to a model, which they name and do not hold.

A folder has adapter_config.json and adapter_model.safetensors: the two matrices of every update,
and the layers that were trained as a whole (heads). `sememe.json` adds the hash of the model that
it belongs to. In memory the updates are merged: the network is a plain one, with its adapter beside
it for `save`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sememe.errors import ArtifactError, OptionError
from sememe.models.gpt.network import GPTNetwork
from sememe.models.huggingface.layout import ADAPTER, ADAPTER_CONFIG, base_of, is_adapter
from sememe.models.huggingface.places import (
    Network,
    Place,
    class_prefix_of,
    head_of,
    places_of,
    plain_name,
    prefix_of,
    tensors_of,
)
from sememe.nn.lora import AdaptedLinear, LowRankUpdate, adapt, merge
from sememe.storage.folder import manifest_in, read_errors, read_json, write_json
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.training.lora import LoRAOptions
from sememe.training.weights import check_finite

START = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_TOKENS = ".token_adapter.trainable_tokens_delta"
_HEADS = ("classifier.", "score.", "qa_outputs.")
# PEFT's variants that compute something else, with the values that mean plain LoRA.
_PLAIN: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",), "use_dora": (None, False), "bias": (None, "none"),
    "lora_bias": (None, False), "alpha_pattern": (None, {}), "use_qalora": (None, False),
    "init_lora_weights": (None, True, False, "gaussian"), "layer_replication": (None,),
}  # fmt: skip
_QUERIES_AND_VALUES = (0, 2)  # of the three parts of a projection


@dataclass
class Adapter:
    """The updates of a network, by the names of `transformers` for its layers."""

    base: Path
    base_hash: str
    content: dict[str, Any]  # of adapter_config.json
    parts: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)  # A and B
    tokens: Tensor | None = None  # vectors of tokens that the base does not have

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about it."""
        return {
            "base": str(self.base), "base_hash": self.base_hash, "rank": self.content["r"],
            "alpha": self.content["lora_alpha"], "matrices": len(self.parts),
        }  # fmt: skip


# ---- training -----------------------------------------------------------------------------------


def begin(network: Network, base: Path, options: LoRAOptions, seed: int, num_known: int) -> None:
    """Fix all weights of a network and put new updates on its blocks.

    `num_known` is the vocabulary size of the model in the folder `base`; the network may have more.
    """
    network.requires_grad_(False)
    hashed = base_hash(network)
    generator = torch.Generator().manual_seed(seed)
    chosen = _chosen(network, options.lora_targets)
    for name, modules in _by_layer(chosen).items():
        layer: Any = network.get_submodule(name)
        updates = []
        for place in modules.values():
            num_rows = layer.out_features if place.num_rows is None else place.num_rows
            update = LowRankUpdate(
                layer.in_features, slice(place.first_row, place.first_row + num_rows),
                options.lora, scale=options.lora_scale, dropout=options.lora_dropout,
            )  # fmt: skip
            update.initialise(generator)
            updates.append(update)
        adapt(network, name, updates)
    content = {
        "peft_type": "LORA", "base_model_name_or_path": str(base), "r": options.lora,
        "lora_alpha": options.lora_scale * options.lora, "lora_dropout": options.lora_dropout,
        "target_modules": sorted({_ending(module) for module in chosen}), "bias": "none",
        "fan_in_fan_out": isinstance(network, GPTNetwork), "inference_mode": True,
    }  # fmt: skip
    network.adapter = Adapter(base, hashed, content)
    if (num_tokens := network.config.vocab_size) > num_known:
        network.adapter.tokens = tensors_of(network)["embedding.tokens.weight"][
            num_known:num_tokens
        ].clone()


@torch.no_grad()
def finish(network: Network) -> None:
    """Merge the updates of a network into its weights, and note them in its adapter."""
    adapter: Adapter | None = network.adapter
    if adapter is None:
        return
    names = _by_layer(_chosen(network, "all"))
    targets = adapter.content["target_modules"]
    layers: Any = network.named_modules()
    for name, layer in layers:
        if isinstance(layer, AdaptedLinear):
            own = [module for module in names[name] if _ending(module) in targets]
            updates: Any = layer.updates
            for module, update in zip(own, updates, strict=True):
                matrices = update.down.detach().cpu().clone(), update.up.detach().cpu().clone()
                adapter.parts[module] = matrices
    merge(network)


def _chosen(network: Network, targets: str) -> dict[str, Place]:
    """The layers of `transformers` to update, and their places in ours."""
    found = {}
    for name, place in places_of(network).items():
        is_layer = place.name.startswith("stack.blocks.") and name.endswith(".weight")
        kind = place.name.rpartition(".weight")[0].split(".", 3)[-1]
        if not is_layer or kind.endswith("norm"):
            continue
        number = -1 if place.num_rows is None else place.first_row // place.num_rows
        is_attention = kind.startswith("attention.")
        is_asked = {
            "all": True,
            "attention": is_attention,
            "query-value": kind == "attention.projection"
            and (number == -1 or number in _QUERIES_AND_VALUES),
        }[targets]
        if is_asked:
            found[name.removesuffix(".weight")] = place
    return found


def _by_layer(chosen: Mapping[str, Place]) -> dict[str, dict[str, Place]]:
    """The same by the name of our layer."""
    found: dict[str, dict[str, Place]] = {}
    for module, place in chosen.items():
        found.setdefault(place.name.removesuffix(".weight"), {})[module] = place
    return found


def _ending(module: str) -> str:
    """The name of a layer in its block, by which PEFT finds it in every block."""
    parts = module.split(".")
    last = max(index for index, part in enumerate(parts) if part.isdecimal())
    return ".".join(parts[last + 1 :])


def base_hash(network: Network) -> str:
    """A hash of the blocks and positions of a network: of what updates are added to."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in network.state_dict().items():
        if name.startswith(("stack.", "norm.", "embedding.positions")):
            digest.update(name.encode())
            digest.update(tensor.detach().float().cpu().contiguous().numpy())
    return digest.hexdigest()


def summary(network: Network) -> str:
    """How many weights are trained, and what that saves, as a sentence."""
    parts = [own for own in network.modules() if isinstance(own, LowRankUpdate)]
    own = sum(x.numel() for part in parts for x in part.parameters())
    every = sum(x.numel() for x in network.parameters()) - own
    return (
        f"LoRA of rank {len(parts[0].down)} on {len(parts)} matrices: {own:,} weights are trained "
        f"instead of {every:,} ({own / every:.1%}). Gradients and Adam's moments take "
        f"{12 * own / 1e6:.1f} MB instead of {12 * every / 1e6:.1f} MB, the saved updates "
        f"{4 * own / 1e6:.1f} MB instead of {4 * every / 1e6:.1f} MB."
    )


# ---- the folder ---------------------------------------------------------------------------------


_TASK_TYPES = {
    "ForSequenceClassification": "SEQ_CLS", "ForTokenClassification": "TOKEN_CLS",
    "ForQuestionAnswering": "QUESTION_ANS", "LMHeadModel": "CAUSAL_LM",
}  # fmt: skip
_POOLED = ("ForSequenceClassification", "ForMultipleChoice")  # whose heads read the pooler


def write_adapter(
    network: Network, folder: Path, architecture: str, heads: Mapping[str, Tensor]
) -> None:
    """Write an adapter's two files for a class of `transformers`, with its heads.

    The layers of a class with a head have other names than those of the encoder alone.
    """
    adapter: Adapter = network.adapter
    is_encoder = architecture.endswith("Model") and not architecture.endswith("LMHeadModel")

    def named(name: str) -> str:
        prefix = prefix_of(network, name)
        before = prefix.removeprefix(class_prefix_of(network)) if is_encoder else prefix
        return f"{START}{before}{name}"

    tensors = {f"{START}{name}": tensor for name, tensor in heads.items()}
    for module, (down, up) in adapter.parts.items():
        tensors[named(f"{module}{_A}")], tensors[named(f"{module}{_B}")] = down, up
    content = dict(adapter.content)
    content["task_type"] = next(
        (own for ending, own in _TASK_TYPES.items() if architecture.endswith(ending)), None
    )
    saved = {name.split(".")[0] for name in heads}
    if architecture.endswith(_POOLED) and not isinstance(network, GPTNetwork):
        own = tensors_of(network)
        places = {name: x for name, x in places_of(network).items() if name.startswith("pooler")}
        tensors |= {named(name): place.of(own) for name, place in places.items()}
        saved.add("pooler")
    content["modules_to_save"] = sorted(saved) or None
    if adapter.tokens is not None:
        is_gpt2 = getattr(network.config, "norm", "pre") == "pre"
        table = "wte" if is_gpt2 else "tokens_embed"
        last = network.config.vocab_size
        content["trainable_token_indices"] = {table: [*range(last - len(adapter.tokens), last)]}
        tensors[named(f"{table}{_TOKENS}")] = adapter.tokens
    write_json(folder / ADAPTER_CONFIG, content)
    arrays = {name: tensor.detach().float().cpu().numpy() for name, tensor in tensors.items()}
    write_tensors(folder / ADAPTER, arrays, metadata={"format": "pt"})


def check_base(path: Any) -> Path:
    """The folder of the model that an adapter will name; raises an error if there is none."""
    if path is None:
        raise OptionError(
            "LoRA saves what it adds to a model that is in a folder: give that folder, or a model "
            "that sememe.load opened from one."
        )
    if is_adapter(path):
        raise OptionError(
            f"{path} is an adapter itself: merge it into its model first, with "
            f"`sememe convert {path} NEW-FOLDER`."
        )
    return Path(path).absolute()


def read_adapter(folder: Path) -> Adapter:
    """The adapter in a folder, of sememe or PEFT, without the layers trained as a whole."""
    content = read_json(folder / ADAPTER_CONFIG)
    base, told = base_of(folder), manifest_in(folder).get("adapter")
    with read_errors(folder / ADAPTER_CONFIG):
        for name, known in _PLAIN.items():
            if content.get(name) not in known:
                raise ArtifactError(
                    f"{folder} has {name} = {content.get(name)!r}; sememe opens plain LoRA alone. "
                    "Merge it with peft (merge_and_unload) and save the result."
                )
        content["r"], content["lora_alpha"] = int(content["r"]), float(content["lora_alpha"])
    return Adapter(base, str(told["base_hash"]) if told else "", content)


@torch.no_grad()
def apply(network: Network, adapter: Adapter, folder: Path) -> None:
    """Merge the updates of a folder into the network of its base, and copy its whole layers."""
    if adapter.base_hash and adapter.base_hash != base_hash(network):
        raise ArtifactError(
            f"{folder} belongs to a model with other weights than {adapter.base} has now: put back "
            "the model that it was trained from."
        )
    places, ours = places_of(network), tensors_of(network)
    halves: dict[str, dict[str, Tensor]] = {}
    found_heads = set()
    for name, array in read_tensors(folder / ADAPTER).items():
        tensor = torch.from_numpy(np.array(array)).float()
        check_finite(tensor, name, folder / ADAPTER)
        plain = plain_name(name.removeprefix(START))
        for ending in (_A, _B):
            if plain.endswith(ending):
                halves.setdefault(plain.removesuffix(ending), {})[ending] = tensor
                break
        else:
            if plain.endswith(_TOKENS):
                adapter.tokens = tensor
                rows = _token_rows(adapter, network, len(tensor))
                ours["embedding.tokens.weight"][rows] = tensor
            elif plain in places:
                _copy(places[plain].of(ours), tensor, name, folder)
                found_heads.add(head_of(plain))
            elif not plain.startswith(_HEADS):
                raise ArtifactError(f"{folder}: the tensor {name} belongs to no layer of its base.")
    for module, own in halves.items():
        place = places.get(f"{module}.weight")
        if place is None or len(own) != 2:
            raise ArtifactError(f"{folder}: the update of {module} fits no layer of its base.")
        down, up = adapter.parts[module] = own[_A], own[_B]
        target = place._replace(is_transposed=False).of(ours)
        if (len(up), down.shape[1]) != tuple(target.shape) or up.shape[1] != len(down):
            raise ArtifactError(f"{folder}: the update of {module} has other sizes than its base.")
        target += _scale(adapter, len(down)) * (up @ down)
    network.untrained -= {"pooler"} if "pooler" in found_heads else set()
    network.adapter = adapter


def _scale(adapter: Adapter, rank: int) -> float:
    scale: float = adapter.content["lora_alpha"]
    return scale / (rank**0.5 if adapter.content.get("use_rslora") else rank)


def _token_rows(adapter: Adapter, network: Network, size: int) -> list[int]:
    told = adapter.content.get("trainable_token_indices")
    rows = next(iter(told.values())) if isinstance(told, dict) else told
    if not rows or len(rows) != size or max(rows) >= network.config.vocab_size:
        raise ArtifactError(f"The adapter of {adapter.base} does not say which tokens it changes.")
    return [int(row) for row in rows]


def _copy(target: Tensor, source: Tensor, name: str, folder: Path) -> None:
    if source.shape != target.shape:
        raise ArtifactError(f"{folder}: the tensor {name} has other sizes than its base.")
    target.copy_(source)

"""A sentence-transformers or model2vec folder without its tensors: the parts that it names.

Nothing here needs PyTorch: commands use it for every path they are given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import ArtifactError
from sememe.storage.folder import read_json

MODULES = "modules.json"
PROMPTS = "config_sentence_transformers.json"
LENGTH = "sentence_bert_config.json"
# The order in which sentence-transformers concatenates several poolings, and their old names.
_POOLS = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}
_OTHER_POOLS = ("mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid")


class Part(NamedTuple):
    """One module of a sentence-transformers folder: its class, its place and its settings."""

    name: str  # Transformer, StaticEmbedding, Pooling, Dense, Normalize
    folder: Path
    config: dict[str, Any]


def is_sentence_folder(folder: Path) -> bool:
    """Whether a folder is one of sentence-transformers, or of model2vec, which writes the same."""
    return (folder / MODULES).is_file()


def parts_of(folder: Path) -> list[Part]:
    """The modules of a folder in the order in which they are applied."""
    place = folder / MODULES
    found = []
    listed = read_json(place)
    if not isinstance(listed, list) or not listed:
        raise ArtifactError(f"{place} does not list the modules of a sentence encoder.")
    for entry in listed:
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            raise ArtifactError(f"{place} does not say the type of each module.")
        own = Path(str(entry.get("path") or ""))
        if own.is_absolute() or ".." in own.parts:
            raise ArtifactError(f"{place} names {own}, which is outside of the folder.")
        name = entry["type"].rpartition(".")[2]
        found.append(Part(name, folder / own, _config(folder / own / "config.json")))
    first, *others = [part.name for part in found]
    known = {"Transformer", "StaticEmbedding"}, {"Pooling", "Dense", "Normalize", "Dropout"}
    unknown = [*({first} - known[0]), *(name for name in others if name not in known[1])]
    if unknown:
        raise ArtifactError(
            f"{place} has a module {unknown[0]}, which sememe does not compute; it opens "
            "Transformer or StaticEmbedding, followed by Pooling, Dense and Normalize."
        )
    return [part for part in found if part.name != "Dropout"]


def _config(path: Path) -> dict[str, Any]:
    content = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise ArtifactError(f"{path} does not hold the settings of a module.")
    return content


def pools_of(part: Part) -> tuple[str, ...]:
    """The poolings of a Pooling module, whose results are concatenated."""
    config, place = part.config, part.folder / "config.json"
    named = config.get("pooling_mode")  # of later versions: one name, or several
    if named is not None:
        pools = tuple(named) if isinstance(named, list) else (str(named),)
    else:
        if any(config.get(f"pooling_mode_{other}") for other in _OTHER_POOLS):
            pools = ("another",)
        else:
            pools = tuple(pool for pool, old in _POOLS.items() if config.get(f"pooling_mode_{old}"))
    if not pools or not set(pools) <= set(_POOLS):
        raise ArtifactError(f"{place} has a pooling other than {', '.join(_POOLS)}.")
    if config.get("include_prompt") is False:
        raise ArtifactError(f"{place} leaves the prompt out of the pooling, which sememe does not.")
    return pools


def pooling_config(width: int, pools: tuple[str, ...]) -> dict[str, Any]:
    """The settings of a Pooling module: the names that every version reads, if they keep order."""
    if pools != tuple(pool for pool in _POOLS if pool in pools):
        return {"embedding_dimension": width, "pooling_mode": list(pools)}
    modes = {f"pooling_mode_{old}": pool in pools for pool, old in _POOLS.items()}
    return {"word_embedding_dimension": width, **modes}


def activation_of(part: Part) -> str:
    """The activation of a Dense module, by the name of its class in PyTorch."""
    name = str(part.config.get("activation_function", "Tanh")).rpartition(".")[2]
    if name not in ACTIVATIONS:
        raise ArtifactError(
            f"{part.folder / 'config.json'} has the activation {name}; sememe computes "
            f"{', '.join(ACTIVATIONS)}."
        )
    return name


def prompts_of(folder: Path) -> tuple[dict[str, str], str]:
    """What is written before queries, documents and so on, and the name of the default one."""
    content = _config(folder / PROMPTS)
    prompts = content.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(own, str) for own in prompts.values()):
        raise ArtifactError(f"{folder / PROMPTS} does not hold prompts by name.")
    default = content.get("default_prompt_name") or ""
    if default and default not in prompts:
        raise ArtifactError(f"{folder / PROMPTS} names a default prompt that it does not have.")
    return {name: own for name, own in prompts.items() if own}, str(default)


def max_length_of(folder: Path) -> int | None:
    """The number of tokens that the encoder was trained with, if the folder says so."""
    length = _config(folder / LENGTH).get("max_seq_length")
    if length is None:  # later versions
        length = _config(folder / "tokenizer_config.json").get("model_max_length")
    return length if isinstance(length, int) and length > 2 else None

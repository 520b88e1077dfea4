"""Sizes by name: the papers' networks, Google's small ones, and small GPTs of ours."""

from __future__ import annotations

from typing import Any, TypeVar

from sememe.errors import OptionError
from sememe.networks.config import BERTConfig, GPTConfig
from sememe.options import changed


def _size(num_layers: int, width: int, num_heads: int) -> dict[str, Any]:
    return {"num_layers": num_layers, "width": width, "num_heads": num_heads}


# Heads of 64 numbers everywhere. tiny to medium: Turc et al. 2019.
BERT_PRESETS = {
    "tiny": BERTConfig(**_size(2, 128, 2)),
    "mini": BERTConfig(**_size(4, 256, 4)),
    "small": BERTConfig(**_size(4, 512, 8)),
    "medium": BERTConfig(**_size(8, 512, 8)),
    "base": BERTConfig(**_size(12, 768, 12)),
    "large": BERTConfig(**_size(24, 1024, 16)),
}

GPT_PRESETS = {
    "tiny": GPTConfig(**_size(2, 128, 2), max_length=512),
    "mini": GPTConfig(**_size(4, 256, 4), max_length=512),
    "gpt1": GPTConfig(**_size(12, 768, 12), vocab_size=40_478, max_length=512, norm="post"),
    "gpt2": GPTConfig(**_size(12, 768, 12)),
    "gpt2-medium": GPTConfig(**_size(24, 1024, 16)),
    "gpt2-large": GPTConfig(**_size(36, 1280, 20)),
    "gpt2-xl": GPTConfig(**_size(48, 1600, 25)),
}

Sizes = TypeVar("Sizes")


def bert_config(preset: str = "base", **options: Any) -> BERTConfig:
    """The sizes of a preset (tiny, mini, small, medium, base, large), some options replaced."""
    return chosen(BERT_PRESETS, "BERT", preset, options)


def gpt_config(preset: str = "gpt2", **options: Any) -> GPTConfig:
    """The sizes of a preset (tiny, mini, gpt1, gpt2, gpt2-medium …), some options replaced."""
    return chosen(GPT_PRESETS, "GPT", preset, options)


def chosen(presets: dict[str, Sizes], owner: str, preset: str, options: dict[str, Any]) -> Sizes:
    """The sizes of a preset, some options replaced; an unknown preset or option is named."""
    if preset not in presets:
        raise OptionError(f"preset must be one of {', '.join(presets)}, not {preset!r}.")
    return changed(presets[preset], owner, options)

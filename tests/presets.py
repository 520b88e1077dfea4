"""The sizes of BERT and GPT by the names of the papers, for tests that make networks themselves."""

from __future__ import annotations

from typing import Any

from sememe.models.bert.config import BERT_PRESETS, BERTConfig
from sememe.models.gpt.config import GPT_PRESETS, GPTConfig
from sememe.options import changed


def bert_config(preset: str = "base", **options: Any) -> BERTConfig:
    """The sizes of a preset (tiny, mini, small, medium, base, large), some options replaced."""
    return changed(BERT_PRESETS[preset], "BERT", options)


def gpt_config(preset: str = "gpt2", **options: Any) -> GPTConfig:
    """The sizes of a preset (tiny, mini, gpt1, gpt2, gpt2-medium …), some options replaced."""
    return changed(GPT_PRESETS[preset], "GPT", options)

"""Folders of networks that have learned nothing, for commands to open."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_bert(folder: Path, texts: list[str], *, vocab_size: int, **sizes: Any) -> Path:
    """Write a tiny BERT and a tokenizer that was trained on `texts`."""
    from presets import bert_config
    from sememe.models.bert.network import BERTNetwork
    from sememe.models.huggingface.folder import save_folder
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    pieces = SubwordTokenizer.train(texts, kind="wordpiece", vocab_size=vocab_size, min_frequency=1)
    config = bert_config("tiny", vocab_size=pieces.vocab_size, **sizes)
    save_folder(BERTNetwork(config), pieces, folder)
    return folder

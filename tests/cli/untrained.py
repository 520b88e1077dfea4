"""Folders of networks that have learned nothing, for commands to open."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_bert(folder: Path, texts: list[str], *, vocab_size: int, **sizes: Any) -> Path:
    """Write a tiny BERT and a tokenizer that was trained on `texts`."""
    from sememe.networks.bert import BERTNetwork
    from sememe.networks.interchange.huggingface import save_folder
    from sememe.networks.presets import bert_config
    from sememe.tokens.subword_training import train_tokenizer

    pieces = train_tokenizer(texts, kind="wordpiece", vocab_size=vocab_size, min_frequency=1)
    config = bert_config("tiny", vocab_size=pieces.vocab_size, **sizes)
    save_folder(BERTNetwork(config), pieces, folder)
    return folder

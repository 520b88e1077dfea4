"""The files of a Hugging Face folder, and what can be said of one without opening its tensors.

Nothing here needs PyTorch: commands ask it of every path they are given.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

CONFIG = "config.json"
TENSORS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = "pytorch_model*.bin"
_KINDS: dict[str, Literal["bert", "gpt"]] = {"bert": "bert", "gpt2": "gpt", "openai-gpt": "gpt"}


def network_kind(path: str | Path) -> Literal["bert", "gpt"] | None:
    """Whether a path is the folder of a BERT or of a GPT; None when it is neither."""
    try:
        content = json.loads((Path(path) / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return _KINDS.get(str(content.get("model_type"))) if isinstance(content, dict) else None


def is_pickled(path: str | Path) -> bool:
    """Whether a folder is a Hugging Face folder with its weights in pickles alone."""
    folder = Path(path)
    has_tensors = any(folder.glob("*.safetensors"))
    return (folder / CONFIG).is_file() and not has_tensors and any(folder.glob(PICKLES))

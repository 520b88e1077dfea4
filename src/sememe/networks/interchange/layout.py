"""The files of a Hugging Face folder and of the released ELMo, told without opening tensors.

Nothing here needs PyTorch: commands ask it of every path they are given.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from sememe.errors import ArtifactError

CONFIG = "config.json"
TENSORS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = "pytorch_model*.bin"
_HDF5 = (".hdf5", ".h5")
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


def find_bilm(path: Path) -> tuple[Path, Path] | None:
    """The options and the weights that a path stands for: a folder with both, or the weights."""
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix in _HDF5)
        weights = [file for file in found if "weights" in file.name] or found
        return _beside(weights[0]) if weights and not (path / "sememe.json").exists() else None
    return _beside(path) if path.suffix in _HDF5 and path.is_file() else None


def _beside(weights: Path) -> tuple[Path, Path]:
    """The options that belong to weights: of the same name but for one word, or options.json."""
    named = weights.with_name(f"{weights.stem.replace('weights', 'options')}.json")
    for options in (named, weights.with_name("options.json")):
        if options.is_file():
            return options, weights
    raise ArtifactError(
        f"{weights} needs its options beside it: {named.name} or options.json is missing."
    )

"""Folders whose weights are pickles, turned into safetensors without running what they hold."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sememe.errors import ArtifactError, WriteError
from sememe.networks.interchange.layout import PICKLES, TENSORS
from sememe.storage.folder import write_folder
from sememe.storage.tensors import write_tensors


def convert_pickles(source: str | Path, target: str | Path) -> int:
    """Write the folder `source` anew with safetensors for its pickles; give the number of tensors.

    Only tensors are read (weights_only=True): a pickle that wants to run anything is refused.
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
        # Tied tensors lie in a pickle once under two names; the second is not needed.
        mark = tensor.data_ptr(), tuple(tensor.shape)
        if mark in seen and tensor.numel():
            continue
        seen.add(mark)
        plain = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        arrays[name] = plain.contiguous().numpy()
    return arrays

"""What the folders of trained networks share: a checked sememe.json, weights, a curve of the loss.

Nothing here imports PyTorch before it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError
from sememe.progress import History
from sememe.storage.folder import MANIFEST, check_format, read_json

FORMAT = 1
HISTORY, CURVE = "history.json", "loss.png"
WEIGHTS, WORDS = "model.safetensors", "vocabulary.safetensors"


def read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    """What sememe.json says of a model of that kind, in the format of this version."""
    if not folder.is_dir():
        raise ArtifactError(f"There is no model folder at {folder}.")
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("kind") != kind:
        raise ArtifactError(f"{folder} is not a model of kind {kind} that was trained here.")
    check_format(folder, manifest, FORMAT)
    return manifest


def draw_loss(history: History, path: Path, title: str) -> None:
    """Draw the loss over the steps, once there is a line to draw."""
    from sememe.plots.curves import history as draw

    records = [record for record in history if "loss" in record]
    if len(records) > 1:
        draw(records, path, title=f"{title}: loss")


def arrays_of(network: Any) -> dict[str, np.ndarray]:
    """The weights of a network by name."""
    from sememe.training.weights import weights_of

    return {name: tensor.cpu().numpy() for name, tensor in weights_of(network).items()}


def fill(network: Any, arrays: Mapping[str, np.ndarray], place: Path) -> None:
    """Give a network the weights that were read at a place, and put it into use."""
    import torch

    from sememe.training.weights import take_weights

    with torch.no_grad():
        kept = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        take_weights(network.eval(), kept, str(place))

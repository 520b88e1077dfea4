"""The folder of a model that translates: weights, sub-words, history, and what sememe.json says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from sememe.errors import ArtifactError, OptionError
from sememe.progress import History
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    kind_of_folder,
    read_json,
    write_folder,
    write_json,
)  # fmt: skip
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tasks.pair_coding import PairCoder
from sememe.tokens.subwords import SubwordTokenizer
from sememe.training.weights import take_weights, weights_of

if TYPE_CHECKING:
    from sememe.tasks.translate import Translator

FORMAT = 1
HISTORY, WEIGHTS, CURVE = "history.json", "model.safetensors", "loss.png"

Model = TypeVar("Model", bound="Translator")


def save(model: Translator, folder: Path) -> None:
    """Write the folder, atomically."""
    check_replaceable(folder, model.kind)
    if model.network is None or model.coder is None:
        raise OptionError("This model has nothing to save yet: call fit first.")
    with write_folder(folder) as scratch:
        tensors = weights_of(model.network)
        arrays = {name: tensor.float().cpu().numpy() for name, tensor in tensors.items()}
        write_tensors(scratch / WEIGHTS, arrays)
        model.coder.tokenizer.save(scratch, max_length=model.config.max_length)
        model.history.save(scratch / HISTORY)
        _draw(model, scratch / CURVE)
        write_json(scratch / MANIFEST, _manifest(model))


def _draw(model: Translator, path: Path) -> None:
    """Draw the loss over the steps, once there is a line to draw."""
    from sememe.plots.curves import history

    records = [record for record in model.history if "loss" in record]
    if len(records) > 1:
        history(records, path, title=f"{type(model).__name__} {model.preset}: loss")


def _manifest(model: Translator) -> dict[str, Any]:
    return {
        "kind": model.kind,
        "format": FORMAT,
        "preset": model.preset,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "network": model.config.to_dict(),
        "training": model.training.to_dict(),
        "scores": model.scores,
        "figures": model.history.last(),
        "plan": model.plan,
        "provenance": provenance(),
    }


def load(cls: type[Model], folder: Path) -> Model:
    """Open a folder of that kind of model."""
    if not folder.is_dir():
        raise ArtifactError(f"There is no model folder at {folder}.")
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("kind") != cls.kind:
        raise ArtifactError(f"{folder} is not a {cls.kind} model that was trained here.")
    if manifest.get("format") != FORMAT:
        raise ArtifactError(
            f"{folder} has format {manifest.get('format')!r}; this version reads {FORMAT}."
        )
    try:
        # Where it learned says nothing of where it will be asked.
        training = manifest["training"] | {"device": "auto", "workers": 0}
        model = cls(manifest["preset"], **manifest["network"], **training)
        model.scores, model.plan = manifest["scores"], manifest["plan"]
    except (KeyError, TypeError, OptionError) as error:
        raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
    tokenizer = SubwordTokenizer.load(folder)
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ArtifactError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size:,} tokens, the network "
            f"{model.config.vocab_size:,}."
        )
    model.coder = PairCoder(tokenizer, lowercase=model.training.lowercase)
    model.network = model.new_network()
    _fill(model, folder)
    model.network.eval()
    model.history = History.load(folder / HISTORY)
    return model


@torch.no_grad()
def _fill(model: Translator, folder: Path) -> None:
    place = folder / WEIGHTS
    kept = {name: torch.from_numpy(np.array(x)) for name, x in read_tensors(place).items()}
    take_weights(model.network, kept, str(place))


def open_translator(folder: Path, *, device: str = "auto") -> Translator:
    """Open a model of either kind, to compute on that device."""
    from sememe.tasks.translate import KINDS

    if not folder.exists():
        raise ArtifactError(f"There is no model folder at {folder}.")
    kind = kind_of_folder(folder)
    if kind not in KINDS:
        held = f"of kind {kind}" if kind else "no model folder of ours"
        raise ArtifactError(
            f"{folder} is {held}; to translate takes one of {' or '.join(KINDS)}: "
            "sememe train transformer."
        )
    model = KINDS[kind].load(folder)
    model.training = replace(model.training, device=device)
    return model

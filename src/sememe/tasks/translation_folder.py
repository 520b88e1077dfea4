"""The folder of a model that translates: weights, sub-words, history, and what sememe.json says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sememe.errors import ArtifactError, OptionError
from sememe.networks.model_folder import (
    CURVE,
    FORMAT,
    HISTORY,
    WEIGHTS,
    draw_loss,
    fill,
    read_manifest,
)  # fmt: skip
from sememe.progress import History
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    kind_of_folder,
    write_folder,
    write_json,
)
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tasks.pair_coding import PairCoder
from sememe.tokens.subwords import SubwordTokenizer
from sememe.training.weights import weights_of

if TYPE_CHECKING:
    from sememe.tasks.translate import Translator

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
        draw_loss(model.history, scratch / CURVE, f"{type(model).__name__} {model.preset}")
        write_json(scratch / MANIFEST, _manifest(model))


def _manifest(model: Translator) -> dict[str, Any]:
    return {
        "kind": model.kind,
        "format": FORMAT,
        "preset": model.preset,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "network": model.config.to_dict(),
        "training": model.training.to_dict(),
        "precision": model.precision,
        "scores": model.scores,
        "figures": model.history.last(),
        "plan": model.plan,
        "provenance": provenance(),
    }


def load(cls: type[Model], folder: Path) -> Model:
    """Open a folder of that kind of model."""
    manifest = read_manifest(folder, cls.kind)
    try:
        # Where it learned says nothing of where it will be asked.
        training = manifest["training"] | {"device": "auto", "workers": 0}
        model = cls(manifest["preset"], **manifest["network"], **training)
        model.scores, model.plan = manifest["scores"], manifest["plan"]
        model.precision = manifest.get("precision", "")
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
    fill(model.network, read_tensors(folder / WEIGHTS), folder / WEIGHTS)
    model.history = History.load(folder / HISTORY)
    return model


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

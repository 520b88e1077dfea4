"""Opening any language model for a command: n-gram, NNLM or GPT, told by its folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sememe.tokens.prompts import Suggestion

_HOMES = {
    "ngram": ("sememe.static.ngram", "NGram"),
    "nnlm": ("sememe.networks.nnlm_model", "NNLM"),
}


def kind_of(path: Path) -> str | None:
    """What sememe.json says the folder is; None where there is none."""
    from sememe.storage.folder import MANIFEST, read_json

    if not (path / MANIFEST).is_file():
        return None
    manifest = read_json(path / MANIFEST)
    return manifest.get("kind") if isinstance(manifest, dict) else None


def open_word_model(path: Path, wanted: str = "an n-gram or NNLM model") -> Any:
    """Open a model whose words are those of the text: n-gram, its ARPA file, or NNLM."""
    from importlib import import_module

    from sememe.errors import ArtifactError

    if not path.exists():
        raise ArtifactError(f"There is no language model at {path}.")
    kind = "ngram" if path.is_file() else kind_of(path)
    if kind not in _HOMES:
        what = f"is of kind {kind}" if kind else "has no sememe.json"
        raise ArtifactError(f"{path} {what}: this command needs {wanted}.")
    module, name = _HOMES[kind]
    return getattr(import_module(module), name).load(path)


def open_language_model(path: Path) -> Any:
    """Open any model that has `next_words`."""
    if kind_of(path) == "elmo":
        from sememe.networks.elmo_model import ELMo

        return ELMo.load(path)
    if kind_of(path) == "ulmfit":
        from sememe.networks.awd_model import ULMFiT

        return ULMFiT.load(path)
    return open_word_model(path, "a language model")


def suggester(path: Path, device: str = "auto") -> Callable[..., list[Suggestion]]:
    """The `next_words` of any language model: n-gram, NNLM, or GPT, ours or one of Hugging Face."""
    from sememe.networks.interchange.layout import network_kind

    if not path.is_dir() or network_kind(path) != "gpt":
        return open_language_model(path).next_words
    from sememe.cli.opening import open_network

    network, tokenizer = open_network(path, "gpt", device)
    from sememe.networks.suggesting import suggest

    return partial(suggest, network.eval(), tokenizer)

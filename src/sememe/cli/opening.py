"""Opening a BERT or GPT for a command: a folder of ours or of Hugging Face, or a clear refusal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from sememe.tokens.subwords import SubwordTokenizer

Kind = Literal["bert", "gpt"]
NAMES: dict[Kind, str] = {"bert": "BERT", "gpt": "GPT"}

BERTFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Folder of a BERT, ours or one of Hugging Face.")
]
GPTFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Folder of a GPT, ours or one of Hugging Face.")
]
LanguageModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Folder of a language model (n-gram, NNLM, ELMo, ULMFiT, GPT), or an ARPA file.",
    ),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda", "mps"],
    typer.Option(help="Where to compute; auto takes a GPU where there is one."),
]


def open_network(
    folder: Path, kind: Kind | None = None, device: str = "auto"
) -> tuple[Any, SubwordTokenizer]:
    """Open the network and tokenizer of a folder; refuse a model of another kind than asked."""
    from sememe.errors import ArtifactError
    from sememe.networks.installed import need_torch
    from sememe.networks.interchange.layout import CONFIG, network_kind

    found = network_kind(folder)
    # A config.json of another network gets its own words where it is read.
    if (found is None and not (folder / CONFIG).is_file()) or (found and found != (kind or found)):
        raise ArtifactError(_refusal(folder, found, kind))
    need_torch()
    from sememe.networks.interchange.huggingface import load_folder
    from sememe.training.precision import choose_device

    network, tokenizer = load_folder(folder)
    return network.to(choose_device(device)), tokenizer


def _refusal(folder: Path, found: Kind | None, kind: Kind | None) -> str:
    from sememe.storage.folder import kind_of_folder

    if not folder.exists():
        return f"There is no model folder at {folder}."
    needed = "This command needs the folder of a " + (NAMES[kind] if kind else "BERT or GPT")
    if found:
        return f"{folder} is a {NAMES[found]}. {needed}."
    if own := kind_of_folder(folder):
        return f"{folder} is of kind {own}. {needed}."
    return f"{folder} is not one. {needed}, with config.json and model.safetensors in it."

"""The tensor files of a Hugging Face folder: safetensors, whole or in shards; never a pickle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from sememe.errors import ArtifactError
from sememe.networks.interchange.layout import INDEX, PICKLES, TENSORS
from sememe.storage.folder import read_json


class Weights:
    """The tensors of a folder by their plain names, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[str, tuple[Path, str]] = {}  # plain name → file, name there
        for path in _files(folder):
            for name in _names(path):
                self._places[plain_name(name)] = path, name

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, name: str) -> Tensor:
        path, their_name = self._places[name]
        try:
            with safe_open(path, framework="pt") as file:
                return file.get_tensor(their_name)
        except (SafetensorError, OSError) as error:
            raise ArtifactError(f"{path} is not a readable tensor file: {error}.") from error


def plain_name(name: str) -> str:
    """A tensor's name without what differs from file to file.

    Some files were written from inside a larger module, and the first BERTs, which came from
    TensorFlow, call the weights of a normalisation gamma and beta.
    """
    name = re.sub(r"^(module\.)?(bert\.|transformer\.)?", "", name)
    if name.endswith((".gamma", ".beta")):
        return name.replace(".gamma", ".weight").replace(".beta", ".bias")
    # The bias of the tied head goes by two names.
    return name.replace("cls.predictions.decoder.bias", "cls.predictions.bias")


def _files(folder: Path) -> list[Path]:
    if (folder / TENSORS).is_file():
        return [folder / TENSORS]
    if (folder / INDEX).is_file():
        index = read_json(folder / INDEX)
        try:
            names = sorted(set(index["weight_map"].values()))
        except (KeyError, TypeError, AttributeError) as error:
            raise ArtifactError(f"{folder / INDEX} lists no tensors.") from error
        return [folder / Path(name).name for name in names]
    if any(folder.glob(PICKLES)):
        raise ArtifactError(
            f"{folder} holds its weights as a pickle, which can run any program when it is opened. "
            f"Convert it once: sememe convert {folder} NEW-FOLDER."
        )
    raise ArtifactError(f"{folder / TENSORS} is missing: {folder} is not a whole model.")


def _names(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing: {path.parent} is not a whole model.") from None
    except (SafetensorError, OSError) as error:
        raise ArtifactError(f"{path} is not a readable tensor file: {error}.") from error

"""From what a user gives as a model to what it makes of words in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sememe.errors import ArtifactError, OptionError
from sememe.networks.interchange.layout import CONFIG, find_bilm
from sememe.storage.folder import manifest_in
from sememe.text.settings import TextSettings
from sememe.vectors import WordVectors, load

if TYPE_CHECKING:
    from sememe.evaluation.senses.files import Occurrence
    from sememe.evaluation.senses.representations import Representation
    from sememe.progress import Reporter


class Speaker(NamedTuple):
    """A model that was opened: its kind, and the vectors that it gives to words in sentences."""

    kind: str
    represent: Callable[[Sequence[Occurrence]], list[Representation]]


def open_model(
    model: Any, *, layers: Any, language: str, limit: int | None, device: str, reporter: Reporter
) -> Speaker:
    """Open a folder, a vector file or a model in memory; PyTorch is loaded for networks alone."""
    if isinstance(model, str | Path):
        return _open_path(Path(model), layers, language, limit, device, reporter)
    if isinstance(model, WordVectors):
        return _words("vectors", model, None, language)
    if isinstance(vectors := getattr(model, "vectors", None), WordVectors):
        return _words(str(model.kind), vectors, model.text, language)
    if isinstance(model, tuple) and len(model) == 2:
        return _network(*model, layers, reporter)
    if getattr(model, "network", None) is None or not hasattr(model, "kind"):
        raise OptionError(
            "The model must be a folder, a vector file, word vectors, or a model that has learned, "
            f"not {type(model).__name__}."
        )
    if model.kind == "elmo":
        return _elmo(model, layers, language, reporter)
    return _network(model.network, model.tokenizer, layers, reporter)


def _open_path(
    path: Path, layers: Any, language: str, limit: int | None, device: str, reporter: Reporter
) -> Speaker:
    manifest = manifest_in(path)
    if (path / CONFIG).is_file():
        _need_torch()
        from sememe.networks.interchange.huggingface import load_folder
        from sememe.training.precision import choose_device

        network, tokenizer = load_folder(path)
        return _network(network.to(choose_device(device)), tokenizer, layers, reporter)
    if manifest.get("kind") == "elmo" or find_bilm(path):
        _need_torch()
        from sememe.networks.elmo_model import ELMo
        from sememe.training.precision import choose_device

        model = ELMo.load(path)
        model.network.to(choose_device(device))
        return _elmo(model, layers, language, reporter)
    if not path.exists():
        raise ArtifactError(f"{path} does not exist.")
    kept = manifest.get("text")
    settings = TextSettings.from_dict(kept) if isinstance(kept, dict) else None
    kind = str(manifest.get("kind", "vectors"))
    return _words(kind, load(path, limit), settings, language)


def _need_torch() -> None:
    from sememe.networks.installed import need_torch

    need_torch()


def _words(
    kind: str, vectors: WordVectors, settings: TextSettings | None, language: str
) -> Speaker:
    from sememe.evaluation.senses.static import represent_words

    if language:
        own = settings or TextSettings(lowercase=False)
        settings = own if own.language == language else own.for_language(language)
    return Speaker(kind, partial(represent_words, vectors, settings))


def _network(network: Any, tokenizer: Any, layers: Any, reporter: Reporter) -> Speaker:
    from sememe.evaluation.senses.contextual import represent_layers, subword_reader
    from sememe.networks.interchange.huggingface import kind_of

    read, num_layers = subword_reader(network, tokenizer)

    def represent(occurrences: Sequence[Occurrence]) -> list[Representation]:
        return represent_layers(read, num_layers, occurrences, layers, reporter)

    return Speaker(kind_of(network), represent)


def _elmo(model: Any, layers: Any, language: str, reporter: Reporter) -> Speaker:
    from sememe.evaluation.senses.contextual import represent_layers, word_reader

    opened = model.opened
    if language:
        opened = opened._replace(text=opened.text.for_language(language))
    read, num_layers = word_reader(opened)

    def represent(occurrences: Sequence[Occurrence]) -> list[Representation]:
        return represent_layers(read, num_layers, occurrences, layers, reporter)

    return Speaker("elmo", represent)

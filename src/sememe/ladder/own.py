"""Models of one's own beside the line: a path in, a finished rung out."""

from __future__ import annotations

from pathlib import Path

from sememe.ladder.results import Family, Rung
from sememe.ladder.training import folder_size
from sememe.networks.interchange.layout import CONFIG, find_bilm
from sememe.storage.folder import kind_of_folder

_FAMILIES: dict[str, Family] = {
    "onehot": "counts", "counts": "counts", "ngram": "language model", "nnlm": "language model",
    "bert": "contextual", "gpt": "contextual", "elmo": "contextual",
}  # fmt: skip


def own_rung(path: Path, taken: set[str]) -> Rung:
    """A rung that needs no training; its name is that of its folder or file."""
    kind = kind_of_folder(path) if path.is_dir() else None
    family: Family = "contextual" if (path / CONFIG).is_file() or find_bilm(path) else "static"
    name = path.stem if path.is_file() else path.name
    name, number = name or "own", 2
    while name in taken:
        name, number = f"{path.stem or 'own'}-{number}", number + 1
    return Rung(
        name=name,
        title=f"{name} (own)",
        family=_FAMILIES.get(kind or "", family),
        state="done",
        path=str(path),
        megabytes=round(folder_size(path) / 1e6, 2),
    )

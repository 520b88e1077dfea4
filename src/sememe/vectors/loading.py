"""Opening vectors whatever they are kept in: our folders, or any vector file, told by content."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sememe.errors import ArtifactError
from sememe.vectors.folder import load_folder
from sememe.vectors.wordvectors import WordVectors


def load(
    path: str | Path, limit: int | None = None, *, errors: Literal["strict", "replace"] = "strict"
) -> WordVectors:
    """Open a folder of ours or a vector file of any known format, the first `limit` words.

    `errors="replace"` reads what can be read of a damaged file, with warnings.
    """
    from sememe.vectors.formats.reading import check_reading_options, read_vectors

    path = Path(path)
    check_reading_options(limit, errors)
    if not path.exists():
        raise ArtifactError(f"{path} does not exist.")
    if path.is_dir():
        return load_folder(path, limit)
    return read_vectors(path, limit=limit, errors=errors)

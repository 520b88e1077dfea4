"""Opening vectors whatever they are kept in: our folders, or any vector file, told by content."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sememe.errors import ArtifactError, OptionError
from sememe.vectors.folder import load_folder
from sememe.vectors.wordvectors import WordVectors


def load(
    path: str | Path, limit: int | None = None, *, errors: Literal["strict", "replace"] = "strict"
) -> WordVectors:
    """Open a folder of ours or a vector file of any known format, the first `limit` words."""
    path = Path(path)
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise OptionError(f"limit must be a whole number of at least 1, not {limit!r}.")
    if not path.exists():
        raise ArtifactError(f"{path} does not exist.")
    if path.is_dir():
        return load_folder(path, limit)
    raise ArtifactError(f"{path} is not a folder of vectors.")

"""From any vectors to any format: a path in, a path out."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from sememe.errors import OptionError
from sememe.vectors.formats.fasttext.exchange import open_model, vectors_of
from sememe.vectors.formats.fasttext.writing import write_model
from sememe.vectors.formats.layout import FileFormat
from sememe.vectors.formats.rows import Errors
from sememe.vectors.formats.writing import write_vectors
from sememe.vectors.loading import load
from sememe.vectors.wordvectors import WordVectors

TargetFormat = Literal[FileFormat, "folder"]
FORMATS: tuple[TargetFormat, ...] = get_args(TargetFormat)


def convert(
    source: str | Path,
    target: str | Path,
    format: TargetFormat = "folder",
    *,
    limit: int | None = None,
    errors: Errors = "strict",
    space: str | None = None,
    newline: bool = True,
) -> WordVectors:
    """Write the vectors of `source`, whatever it is, to `target`; gives the vectors."""
    if format not in FORMATS:
        raise OptionError(f"format must be one of {', '.join(FORMATS)}, not {format!r}.")
    if format == "fasttext":
        # The model itself rather than its vectors, because it also has options and an output.
        model = open_model(source, limit)
        write_model(target, model)
        return vectors_of(model)
    vectors = load(source, limit, errors=errors)
    if format == "folder":
        vectors.save(target)
    elif not len(vectors) and format != "floret":
        raise OptionError(f"{source} is a compact table without words: there is nothing to write.")
    else:
        write_vectors(vectors, target, format, space=space, newline=newline)
    return vectors

"""The text that a plan reads: all of a small corpus, or some megabytes from all over it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import ArtifactError, InputError
from sememe.machine import cache_dir, key_of
from sememe.storage.folder import read_json, write_file, write_json
from sememe.text import stream
from sememe.text.settings import TextSettings

_WHOLE = 16 << 20  # bytes: a larger corpus is sampled, to about as much
_MOST_READ = 4 << 30  # bytes of a corpus that are read to choose from them
_LOOKED_AT = 4 << 20  # bytes of files that show how much text they hold


class Sample(NamedTuple):
    """What a trial reads instead of a corpus, and how many times as large the corpus is."""

    corpus: Any  # as JSON: a path or several, None for the built-in corpus, or these by language
    text: dict[str, Any]
    scale: float
    num_bytes: int  # of the corpus, as text
    key: str

    @property
    def is_whole(self) -> bool:
        """Whether it is the corpus itself."""
        return self.scale == 1.0


def sample_of(corpus: Any, text: TextSettings) -> Sample:
    """The corpus itself if it is small, or a sample of its documents, saved as a file."""
    if isinstance(corpus, Mapping):
        return _mixed(corpus, text)
    total = stream.total_bytes(corpus)
    if total is None:
        raise InputError(
            "A plan reads the text before the training does, and this one can be read only once: "
            "save it to a file first."
        )
    key = key_of(stream.fingerprint(corpus, text), _WHOLE)
    names = None if corpus is None else [str(name) for name in stream.as_names(corpus) or ()]
    size = _text_size(corpus, text, total)
    if size <= _WHOLE:
        return Sample(names, text.to_dict(), 1.0, size, key)
    place = cache_dir() / "plans" / f"{key}.jsonl"
    facts = _kept(place)
    if facts is None:
        facts = _write(place, corpus, text, total, every=-(-size // _WHOLE))
        write_json(place.with_suffix(".json"), facts)
    own = replace(text, columns={}, encoding="utf-8", errors="strict", layout="auto")
    return Sample([str(place)], own.to_dict(), facts["scale"], facts["num_bytes"], key)


def _mixed(corpus: Mapping[str, Any], text: TextSettings) -> Sample:
    """The samples of the languages of a mix."""
    parts = {name: sample_of(own, text.for_language(name)) for name, own in corpus.items()}
    scales = {part.scale for part in parts.values()}
    if len(scales) > 1:
        # Samples of different shares would change the proportions of the languages.
        raise InputError(
            "A plan of a mix needs languages that are all small, or all equally large: one of "
            f"them is above {_WHOLE >> 20} MB of text. Plan with a part of it."
        )
    num_bytes = sum(part.num_bytes for part in parts.values())
    key = key_of({name: part.key for name, part in parts.items()})
    corpora = {name: part.corpus for name, part in parts.items()}
    return Sample(corpora, text.to_dict(), scales.pop(), num_bytes, key)


def _kept(place: Path) -> dict[str, Any] | None:
    """The facts about a sample that an earlier plan saved."""
    try:
        return read_json(place.with_suffix(".json")) if place.exists() else None
    except (ArtifactError, OSError):
        return None


def _text_size(corpus: Any, text: TextSettings, total: int) -> int:
    """About how many bytes of text are in the files: compressed ones hold more than their bytes."""
    num_text = num_read = 0
    batches: Any = stream.read(corpus, text)
    with closing(batches):
        for batch in batches:
            num_text += len(batch.text)
            num_read += batch.num_bytes
            if num_read >= _LOOKED_AT:
                break
    return round(total * num_text / max(1, num_read))


def _write(place: Path, corpus: Any, text: TextSettings, total: int, every: int) -> dict[str, Any]:
    """Save every n-th batch of documents; returns the amount of text and its scale."""
    num_seen = num_kept = num_read = 0
    batches: Any = stream.read(corpus, text)
    with (
        write_file(place) as scratch,
        scratch.open("w", encoding="utf-8") as file,
        closing(batches),
    ):
        for index, batch in enumerate(batches):
            num_seen += len(batch.text)
            num_read += batch.num_bytes
            if index % every == 0:
                num_kept += len(batch.text)
                for start, end in pairwise([0, *batch.ends.tolist()]):
                    row = {"text": batch.text[start:end].decode("utf-8", "replace")}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            if num_read > _MOST_READ:
                break
    share = num_read / total if num_read > _MOST_READ else 1.0
    num_bytes = round(num_seen / share)
    return {"scale": num_bytes / max(1, num_kept), "num_bytes": num_bytes}

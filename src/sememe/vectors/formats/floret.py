"""Compact tables of the floret program: a header, then numbered rows; no words at all.

The header reads `bucket dim minn maxn hashes seed before after`, the last two being what stands
around a word when it is cut into n-grams.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.storage.folder import write_file
from sememe.tokens.ngrams import Marks
from sememe.vectors.composition import HashedWords
from sememe.vectors.formats.compression import open_for_writing
from sememe.vectors.formats.layout import MAX_DIM, Layout
from sememe.vectors.formats.rows import Rows
from sememe.vectors.formats.text import read_text_rows
from sememe.vectors.subwords import SubwordVectors
from sememe.vectors.wordvectors import WordVectors

_HEADER = re.compile(
    rb"(\d{1,10}) (\d{1,7}) (\d{1,4}) (\d{1,4}) ([1-4]) (\d{1,10}) (\S+) (\S+) ?\r?\n"
)
_NUM_ROWS = 4_096


class Header(NamedTuple):
    """What the first line states, and where the rows start."""

    bucket: int
    dim: int
    minn: int
    maxn: int
    hash_count: int
    seed: int
    marks: Marks
    start: int


def read_header(head: bytes) -> Header | None:
    """The header of a compact table, or None where the file is something else."""
    found = _HEADER.match(head)
    if found is None:
        return None
    numbers = [int(number) for number in found.groups()[:6]]
    return Header(*numbers, Marks(found[7], found[8]), found.end())  # type: ignore[call-arg, arg-type]


def read_floret(path: Path, header: Header, head: bytes, file: BinaryIO) -> SubwordVectors:
    """Read the rows after `head` was read; they must be numbered from 0 on without a gap."""
    if not (1 <= header.dim <= MAX_DIM and header.bucket >= 1 and header.seed < 2**32):
        raise ArtifactError(
            f"{path} is damaged: its header states {header.bucket:,} rows of {header.dim:,} "
            f"numbers and the seed {header.seed:,}."
        )
    # Room for what the file has at most, whatever its header states.
    capacity = min(header.bucket, 1 + (1 << 24) // header.dim)
    rows = Rows(path, header.dim, capacity, None, "strict")
    layout = Layout("word2vec", header.bucket, header.dim, header.start)
    read_text_rows(rows, layout, head[header.start :], file)
    found = rows.finish()
    numbers = (
        [str(number) for number in range(header.bucket)] if len(found) == header.bucket else []
    )
    if list(found) != numbers:
        raise ArtifactError(
            f"{path} is damaged: {header.bucket:,} rows numbered from 0 on were expected."
        )
    return SubwordVectors.hashed(
        found.vectors, minn=header.minn, maxn=header.maxn, hash_count=header.hash_count,
        seed=header.seed, marks=header.marks,
    )  # fmt: skip


def write_floret(vectors: WordVectors, path: Path) -> None:
    """Write a compact table as the floret program does, with every digit."""
    from sememe.vectors.formats.writing import text_rows

    if not isinstance(vectors, SubwordVectors) or not isinstance(vectors.subwords, HashedWords):
        raise OptionError(
            "Only vectors of hashed words have a compact table that a floret file can hold."
        )
    scheme, table = vectors.subwords, np.asarray(vectors.table)
    before, after = scheme.marks
    numbers = (len(table), vectors.dim, scheme.minn, scheme.maxn, scheme.hash_count, scheme.seed)
    with write_file(path) as scratch, open_for_writing(scratch) as file:
        file.write(" ".join(map(str, numbers)).encode() + b" " + before + b" " + after + b"\n")
        for start in range(0, len(table), _NUM_ROWS):
            block = table[start : start + _NUM_ROWS]
            names = [str(start + index).encode() for index in range(len(block))]
            file.write(text_rows(names, block))

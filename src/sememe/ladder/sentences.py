"""The sentences of a document, as they are written."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sememe.text.boundaries import sentence_ends
from sememe.text.settings import TextSettings


def sentences_of(document: str, settings: TextSettings) -> list[str]:
    """Cut a document into its sentences; together they are the document again."""
    data = document.encode("utf-8", "replace")
    if not data:
        return []
    ends = sentence_ends(data, np.array([len(data)], np.int64), settings).tolist()
    cuts = [0, *(end for end in ends if 0 < end < len(data)), len(data)]
    return [data[first:last].decode("utf-8", "replace") for first, last in pairwise(cuts)]

"""Running text from a token store: sentences between <s> and </s>, of some of the documents.

The ids of a model with V words: 0 … V - 1 the words, V <unk>, V + 1 </s>, V + 2 <s>.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sememe.tokens.splits import is_held_out
from sememe.tokens.store import TokenStore


class Block(NamedTuple):
    """A part of the text whose first `num_starts` ids have all that follows them within reach."""

    stream: np.ndarray  # uint32
    num_starts: int
    num_tokens: int  # of the store, own or not, read up to here


def read_blocks(
    store: TokenStore,
    id_map: np.ndarray,
    num_words: int,
    *,
    size: int,
    reach: int = 0,
    share: float = 0.0,
    is_held: bool = False,
) -> Iterator[Block]:
    """Give the documents to learn from, or those held out, in blocks of about `size` words.

    id_map turns ids of the store into ids of the model. The last `reach` ids of a sentence that a
    block cuts are given again at the start of the next one.
    """
    from sememe.static.ngram.kernels import weave

    rest = np.empty(0, np.uint32)
    is_inside, num_sentences, num_tokens = False, 0, 0
    for ids, ends in store.blocks(size):
        sentences = np.arange(num_sentences, num_sentences + len(ends) + 1)
        is_own = _is_own(store, sentences, share, is_held)
        out = np.empty(len(rest) + len(ids) + 2 * len(ends) + 2, np.uint32)
        out[: len(rest)] = rest
        num, start = weave(ids, ends, is_own, id_map, num_words, is_inside, out[len(rest) :])
        stream = out[: len(rest) + num]
        # What is left open at the very end of the text is open in no other block.
        is_inside = start >= 0
        first = len(stream)
        if is_inside:
            first = max(first - reach, 0 if start == 0 and len(rest) else len(rest) + start)
        num_sentences, num_tokens = num_sentences + len(ends), num_tokens + len(ids)
        rest = stream[first:].copy()
        if len(stream):
            yield Block(stream, first, num_tokens)


def _is_own(store: TokenStore, sentences: np.ndarray, share: float, is_held: bool) -> np.ndarray:
    """Whether each sentence belongs to a document of the wanted kind."""
    if not share:
        return np.full(len(sentences), not is_held)
    documents = np.searchsorted(store.document_ends, sentences, "right")
    return is_held_out(documents, share) == is_held

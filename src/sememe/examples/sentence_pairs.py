"""Next-sentence examples: documents in, pairs [CLS] A [SEP] B [SEP] out.

They are cut as the released data program of BERT cuts them (Devlin et al. 2019, A.2). Sentences of
a document are gathered until they fill the row, or in one of ten rows a random part of it. A takes
some of them; B is the rest, or half of the time text from another document, and then the rest goes
back to be used again. A pair that is too long loses tokens at the front or the back of its longer
half. Two things differ: the program draws the short length once for a document, we draw it for
each pair, so that a text of one long document does not become short pairs throughout; and
sentences longer than half a row are cut into pieces instead of losing most of their tokens.
"""

from __future__ import annotations

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.documents import Documents
from sememe.examples.order import DOCUMENTS, PAIRS
from sememe.examples.randomness import stream_key

SHORT_SHARE = 0.1
_SPECIALS = 3
_MIN_LENGTH = 8


class SentencePairs:
    """Plans the pairs of each epoch."""

    def __init__(self, documents: Documents, length: int, seed: int) -> None:
        if length < _MIN_LENGTH:
            raise OptionError(f"length must be at least {_MIN_LENGTH} for pairs, not {length}.")
        if len(documents) < 2:
            where, cure = "is there", "more documents"
            if documents.split == "validation":
                where, cure = "is held out for validation", "a larger validation_share"
            raise InputError(
                "Next-sentence pairs need a second document to take false continuations from, and "
                f"only one {where}. Give {cure} or switch next_sentence off."
            )
        self._documents, self._seed, self._room = documents, seed, length - _SPECIALS
        self._bounds = documents.blocks(self._room)
        self.num_blocks = len(self._bounds) - 1

    def count(self, epoch: int, block: int) -> int:
        """The number of pairs in a block."""
        return self._run(epoch, block, 0)[0]

    def plan(self, epoch: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        """(spans, is_next) of the pairs in a block."""
        return self._run(epoch, block, self.count(epoch, block))[2:]

    def trimmed(self, epoch: int) -> int:
        """Tokens of the text that an epoch leaves out, because sentences seldom fill rows exactly.

        Cuts are random, so that another epoch sees them.
        """
        return sum(self._run(epoch, block, 0)[1] for block in range(self.num_blocks))

    def _run(self, epoch: int, block: int, num: int) -> tuple[int, int, np.ndarray, np.ndarray]:
        from sememe.examples.sentence_pairs_kernels import plan_pairs

        spans, is_next = np.empty((num, 4), np.int64), np.empty(num, np.int8)
        num_found, num_trimmed = plan_pairs(
            self._documents.sentence_ends, self._documents.document_ends, self._documents.indices,
            self._bounds[block], self._bounds[block + 1],
            np.uint64(stream_key(self._seed, DOCUMENTS, epoch)),
            np.uint64(stream_key(self._seed, PAIRS, epoch)),
            self._room, self._room // 2, np.uint64(SHORT_SHARE * 2**32), spans, is_next,
        )  # fmt: skip
        return num_found, num_trimmed, spans, is_next

"""Masked-token examples: which tokens are hidden, what stands in their place.

As in BERT's released program a row of n tokens, [CLS] and [SEP] counted, hides round(0.15 n) of
them, at least one. Special tokens in the text ([UNK] among them) are never hidden, and no random
token is a special or an unused one. B rows, T positions, N hidden tokens.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError
from sememe.examples.masking_config import UNITS, MaskingConfig
from sememe.examples.spans import NO_PHRASES, Trie, detected_trie, lexicon_trie, special_table

if TYPE_CHECKING:
    from sememe.examples.documents import Documents
    from sememe.examples.order import Examples

_UNUSED = re.compile(r"\[unused\d+\]")


class Masker:
    """Hides tokens of rows."""

    def __init__(self, documents: Documents, tokenizer: Any, config: MaskingConfig) -> None:
        self._documents, self._tokenizer, self._config = documents, tokenizer, config
        self._is_special_V = special_table(tokenizer)
        self._replacements = _replacements(tokenizer)
        self._trie = _checked_units(documents, tokenizer, config)

    def hide(
        self, examples: Examples, ids_BT: np.ndarray, lengths_B: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hide tokens in the rows `ids_BT` of `examples`; the answer is (hidden_N, targets_N)."""
        from sememe.examples.masking_kernels import hide_rows

        config, documents = self._config, self._documents
        hidden, targets = np.empty(ids_BT.size, np.int64), np.empty(ids_BT.size, np.int32)
        shares = (config.mask_share, config.mask_share + config.random_share)
        num = hide_rows(
            documents.ids, documents.word_starts, examples.spans_N4, examples.keys_N, lengths_B,
            UNITS.index(config.unit), config.rate,
            *(np.uint64(math.ceil(min(share, 1.0) * 2**32)) for share in shares),
            self._tokenizer.mask_id, self._replacements, self._is_special_V,
            self._tokenizer.is_continuation, self._trie, ids_BT, hidden, targets,
        )  # fmt: skip
        return hidden[:num].copy(), targets[:num].copy()


def _replacements(tokenizer: Any) -> np.ndarray:
    """The ids that may stand in for a hidden token: all that stand for text."""
    special = tokenizer.special_ids
    ids = (index for index in range(tokenizer.vocab_size) if index not in special)
    kept = [index for index in ids if not _UNUSED.fullmatch(tokenizer.token(index))]
    if not kept:
        raise InputError("The tokenizer has nothing but special tokens.")
    return np.array(kept, np.int32)


def _checked_units(documents: Documents, tokenizer: Any, config: MaskingConfig) -> Trie:
    """The phrases to hide; an error where the text has none, or no word of several tokens."""
    from sememe.examples.spans_kernels import find_long_word

    if config.unit == "phrase" and config.lexicon:
        return lexicon_trie(config.lexicon, tokenizer, documents)
    if config.unit == "phrase":
        return detected_trie(tokenizer, documents)
    if config.unit == "word" and find_long_word(documents.word_starts, len(documents.ids)) < 0:
        raise InputError(
            "Whole words cannot be hidden: every word of this text is a single token. "
            "Hide tokens (the unit token), or train a smaller vocabulary."
        )
    return NO_PHRASES

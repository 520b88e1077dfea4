"""BERT's masking of one text, drawn many times: a text in, what the network sees out.

    draws = draw_masks(model, "The quick brown fox jumps over the lazy dog.", num=1_000)
    draws.seen(0), draws.shares()

The rows are those of pretraining (`examples.masking`): the text is one document, and every epoch
masks it again. N draws, T tokens.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.masking.config import MaskingConfig
from sememe.models.bert.model import BERT
from sememe.options import changed
from sememe.tokens.subwords.store import open_or_build_subwords

VISIBLE, MASKED, REPLACED, KEPT = range(4)  # what may happen to a token
_MOST_TOKENS = 510


class MaskDraws(NamedTuple):
    """The tokens of a text with [CLS] and [SEP], and what each draw does to them."""

    tokens: list[str]
    is_word_start_T: np.ndarray
    fates_NT: np.ndarray  # uint8: VISIBLE, or to be predicted: MASKED, REPLACED, KEPT
    seen_NT: np.ndarray  # the ids that the network sees
    tokenizer: Any

    def seen(self, draw: int) -> list[str]:
        """The tokens as the network sees them in one draw."""
        return [self.tokenizer.token(int(token_id)) for token_id in self.seen_NT[draw]]

    def counts(self) -> dict[str, int]:
        """How many tokens of all draws are to be predicted, by what is in their place."""
        found = np.bincount(self.fates_NT.ravel(), minlength=4)
        return {
            "masked": int(found[MASKED]), "replaced": int(found[REPLACED]), "kept": int(found[KEPT])
        }  # fmt: skip

    def shares(self) -> dict[str, float]:
        """The same as shares of all tokens to be predicted."""
        counts = self.counts()
        return {name: num / max(1, sum(counts.values())) for name, num in counts.items()}


def draw_masks(
    model: BERT, text: str, *, num: int = 1_000, seed: int = 1, **options: Any
) -> MaskDraws:
    """Mask a text `num` times as pretraining does, with options of MaskingConfig by name.

    A random token may happen to be the true one: it then counts as kept.
    """
    if model.kind != "bert":
        raise OptionError("Masks are drawn as BERT draws them: choose a BERT.")
    config = changed(MaskingConfig(), "draw_masks", options)
    tokenizer = model.tokenizer
    document = " ".join(text.split())
    if not document:
        raise InputError("The text is empty.")
    with TemporaryDirectory() as folder:
        store = open_or_build_subwords(
            iter([document]), tokenizer, text=replace(model.text, layout="line"),
            path=Path(folder) / "store", workers=1,
        )  # fmt: skip
        store.validation_share = 0.0
        size = store.num_tokens
        if not 0 < size <= _MOST_TOKENS:
            raise InputError(f"The text has {size:,} tokens; 1 to {_MOST_TOKENS} can be masked.")
        starts_T = np.array(store.word_starts, bool)
        if config.unit == "word" and starts_T.all():
            config = replace(config, unit="token")  # every word is one token
        ids_T = np.array(store.ids, np.int64)
        source = MaskedBatches(
            store, tokenizer, config, length=size + 2, batch_size=num, seed=seed,
            next_sentence=False,
        )  # fmt: skip
        batch = source.rows(0, num)
    whole_T = np.array([tokenizer.cls_id, *ids_T, tokenizer.sep_id])
    seen_NT = batch.ids_BT[:, : size + 2].astype(np.int64)
    fates_NT = np.zeros((num, size + 2), np.uint8)
    rows_M, places_M = np.divmod(np.asarray(batch.hidden_N), batch.ids_BT.shape[1])
    found_M = seen_NT[rows_M, places_M]
    fates_NT[rows_M, places_M] = np.where(
        found_M == tokenizer.mask_id, MASKED,
        np.where(found_M == whole_T[places_M], KEPT, REPLACED),
    )  # fmt: skip
    names = [tokenizer.token(int(token_id)) for token_id in whole_T]
    return MaskDraws(names, np.array([True, *starts_T, True]), fates_NT, seen_NT, tokenizer)

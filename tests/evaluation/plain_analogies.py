"""Analogies one at a time, as plainly as they are defined; the tests hold `offsets` to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sememe.evaluation.offsets import NUM_LOOKED_AT, Method, score_words, unit_rows


def best_word(
    vectors_VD: np.ndarray,
    question: Sequence[int],
    *,
    method: Method = "add",
    variants: Mapping[int, Sequence[int]] | None = None,
) -> int:
    """Rank all words, drop a, b and c, and take the first that is no spelling of them."""
    units_VD = unit_rows(vectors_VD)
    scores = score_words(units_VD, units_VD[list(question)], method)
    ranked = [word for word in np.argsort(-scores, kind="stable") if word not in question]
    spellings = {other for word in question for other in (variants or {}).get(word, [word])}
    looked_at = ranked[:NUM_LOOKED_AT]
    for word in looked_at:
        if word not in spellings:
            return int(word)
    return int(looked_at[-1]) if looked_at else -1

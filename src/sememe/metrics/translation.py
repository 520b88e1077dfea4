"""Scores of translations: BLEU and chrF by sacrebleu, each with its interval and signature."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from sememe.errors import InputError, MissingExtraError
from sememe.metrics.comparison import Interval, redrawn_interval
from sememe.text.characters import is_han

Cutting = Literal["auto", "13a", "zh", "char", "intl", "none"]


class TranslationScore(NamedTuple):
    """A score between 0 and 100, its signature, which others need to compare, and its interval."""

    value: float
    signature: str
    interval: Interval  # 95 %, over the texts


def bleu(
    translations: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    cutting: Cutting = "auto",
) -> TranslationScore:
    """BLEU of a set (Papineni et al. 2002; Post 2018), with one reference per text.

    References that are mostly Chinese are tokenized by sacrebleu's rules for it, others by 13a.
    """
    tokenize = cutting_for(references, cutting)
    return _scored("BLEU", translations, references, lowercase=lowercase, tokenize=tokenize)


def chrf(
    translations: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> TranslationScore:
    """ChrF of a set (Popović 2015): overlap of character n-grams."""
    return _scored("CHRF", translations, references, lowercase=lowercase)


def cutting_for(references: Sequence[str], cutting: Cutting = "auto") -> str:
    """The tokenization of these texts for BLEU."""
    if cutting != "auto":
        return cutting
    text = "".join(references[:1_000])
    return "zh" if 3 * sum(map(is_han, text)) > len(text) else "13a"


def _scored(
    name: str, translations: Sequence[str], references: Sequence[str], **options: Any
) -> TranslationScore:
    if len(translations) != len(references) or not references:
        raise InputError(
            f"Each translation needs its reference: {len(translations):,} translations, "
            f"{len(references):,} references."
        )
    try:
        from sacrebleu import metrics
    except ImportError:
        raise MissingExtraError(
            "BLEU and chrF need sacrebleu: pip install 'sememe[neural]'."
        ) from None
    metric = getattr(metrics, name)(**options)
    given = list(translations), [list(references)]
    value = metric.corpus_score(*given).score
    # What each text adds to the score. sacrebleu's own bootstrap would change the signature.
    counts_NK = np.array(metric._extract_corpus_statistics(*given), np.float64)

    def of_sums(sums_RK: np.ndarray) -> np.ndarray:
        return np.array([metric._compute_score_from_stats(own.tolist()).score for own in sums_RK])

    interval = redrawn_interval(counts_NK, of_sums)
    return TranslationScore(float(value), str(metric.get_signature()), interval)

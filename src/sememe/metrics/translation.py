"""Scores of translations: BLEU and chrF as sacrebleu has them, each with its signature."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from sememe.errors import InputError, MissingExtraError

Cutting = Literal["auto", "13a", "zh", "char", "intl", "none"]

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


class TranslationScore(NamedTuple):
    """A score between 0 and 100, and how it was computed: what others need to compare."""

    value: float
    signature: str


def bleu(
    translations: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    cutting: Cutting = "auto",
) -> TranslationScore:
    """BLEU of a whole set (Papineni et al. 2002; Post 2018), one reference a text.

    References that are mostly Chinese are cut by sacrebleu's rules for it, others by 13a.
    """
    _check(translations, references)
    sacrebleu = _sacrebleu()
    metric = sacrebleu.BLEU(lowercase=lowercase, tokenize=cutting_for(references, cutting))
    return _scored(metric, translations, references)


def chrf(
    translations: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> TranslationScore:
    """ChrF of a whole set (Popović 2015): overlap of n-grams of characters."""
    _check(translations, references)
    return _scored(_sacrebleu().CHRF(lowercase=lowercase), translations, references)


def cutting_for(references: Sequence[str], cutting: Cutting = "auto") -> str:
    """How BLEU cuts these texts into words."""
    if cutting != "auto":
        return cutting
    text = "".join(references[:1_000])
    return "zh" if 3 * len(_HAN.findall(text)) > len(text) else "13a"


def _scored(
    metric: Any, translations: Sequence[str], references: Sequence[str]
) -> TranslationScore:
    value = metric.corpus_score(list(translations), [list(references)]).score
    return TranslationScore(float(value), str(metric.get_signature()))


def _check(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references) or not references:
        raise InputError(
            f"Each translation needs its reference: {len(translations):,} translations, "
            f"{len(references):,} references."
        )


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError:
        raise MissingExtraError(
            "BLEU and chrF need sacrebleu: pip install 'sememe[neural]'."
        ) from None
    return metrics

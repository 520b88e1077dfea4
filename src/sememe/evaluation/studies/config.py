"""The options of a study: those of pre-training, with other defaults."""

from __future__ import annotations

from dataclasses import dataclass

from sememe.networks.pretraining_config import BERTTrainingConfig
from sememe.options import option


@dataclass(frozen=True, kw_only=True)
class StudyConfig(BERTTrainingConfig):
    """How each model of a study is trained; the budget is that of one rate."""

    validation_share: float = option(0.1, "Share of the documents that is never trained on.")
    next_sentence: bool = option(False, "Learn from pairs whether B follows A.")

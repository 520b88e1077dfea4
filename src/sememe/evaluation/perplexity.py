"""Perplexity of any language model: a model and a corpus in, scores out."""

import math
from typing import Any

from sememe.errors import ArtifactError, InputError
from sememe.metrics.perplexity import TextScore
from sememe.models.registry import opened
from sememe.progress import SILENT, Reporter


def evaluate_perplexity(
    model: Any, corpus: Any, *, device: str = "auto", progress: Reporter | None = None
) -> TextScore:
    """Compute the perplexity of a text, per word and sentence end.

    `model` is any model that scores texts (n-gram, NNLM, forward ELMo, ULMFiT, GPT), or its path.
    Texts are tokenized like the model's own corpus, and unknown words count as <unk>; a GPT
    predicts all characters, and its perplexity is per word.
    """
    asked = opened(model, device=device, able="score")
    score: TextScore = asked.evaluate(corpus, progress=progress or SILENT)
    if not score.num_words:
        raise InputError("The text holds no words to predict; give one that does.")
    if not math.isfinite(score.log10):
        raise ArtifactError(
            f"The model gives this text no probability (its logarithm is {score.log10}): its "
            "weights are damaged; train or download it again."
        )
    return score

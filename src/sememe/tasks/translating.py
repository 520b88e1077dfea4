"""Translating texts with a trained model, and scoring what it writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sememe.errors import InputError
from sememe.examples.parallel import Pair
from sememe.metrics.translation import Cutting, bleu, chrf
from sememe.networks.grouping import grouped
from sememe.networks.search import search
from sememe.networks.translation_config import SearchConfig
from sememe.progress import SILENT, Reporter
from sememe.training.precision import choose_device, reproducible

if TYPE_CHECKING:
    from sememe.tasks.translate import Translation, Translator

# Tokens of all hypotheses of all sources at a time.
_TOKENS_AT_ONCE = {"cuda": 65_536, "cpu": 4_096, "mps": 16_384}


@contextmanager
def placed(model: Translator) -> Iterator[torch.device]:
    """The network on the device of the options, in float32, without dropout."""
    network, _ = model.trained()
    device = choose_device(model.training.device)
    network.to(device)
    network.eval()
    network.precision = torch.float32
    with reproducible(device, "fp32", model.training.num_workers), torch.no_grad():
        yield device


def translations(
    model: Translator,
    texts: Sequence[str],
    config: SearchConfig,
    *,
    first: int = 1,
    progress: Reporter = SILENT,
) -> list[list[Translation]]:
    """The best translations of each text; those of like length are looked for together.

    `first` is the number of the first text, for what is said of one that is too long.
    """
    from sememe.tasks.translate import Translation

    network, coder = model.trained()
    sources = checked_sources(model, texts, first)
    found = [[Translation("", 0.0)] for _ in texts]
    with placed(model) as device, progress.task("translating", len(texts), "texts") as task:
        num_done = 0
        with_words = [index for index, text in enumerate(texts) if text.strip()]
        # The longest first: memory that suffices for them suffices for all.
        order = sorted(with_words, key=lambda index: -len(sources[index]))
        most = _TOKENS_AT_ONCE[device.type] // config.beam
        for group in grouped(order, lambda index: len(sources[index]), most):
            limits = [
                min(len(sources[index]) + config.max_extra, model.config.max_length - 1)
                for index in group
            ]
            writer = network.writer([sources[index] for index in group], config.beam)
            hypotheses = search(
                writer, limits, config, start_id=coder.start_id, end_id=coder.end_id,
                barred=coder.barred, device=device,
            )  # fmt: skip
            for index, own in zip(group, hypotheses, strict=True):
                found[index] = [Translation(coder.decode(one.ids), one.score) for one in own]
            num_done += len(group)
            task.update(num_done)
    return found


def checked_sources(model: Translator, texts: Sequence[str], first: int = 1) -> list[np.ndarray]:
    """Texts as ids; one that the network cannot see as a whole is refused."""
    _, coder = model.trained()
    sources = coder.sources(texts)
    for number, source in enumerate(sources, first):
        if len(source) > model.config.max_length:
            where = f"Text {number:,}" if len(texts) > 1 or first > 1 else "The text"
            raise InputError(
                f"{where} has {len(source):,} tokens, but this model reads no more than "
                f"{model.config.max_length:,} at once: cut it into sentences."
            )
    return sources


def scored(
    model: Translator,
    pairs: Sequence[Pair],
    config: SearchConfig,
    *,
    cutting: Cutting = "auto",
    lowercase: bool | None = None,
    progress: Reporter = SILENT,
) -> dict[str, Any]:
    """BLEU and chrF of translations of pairs, with their signatures and the translations."""
    references = [pair.target for pair in pairs]
    bleu(references[:1], references[:1])  # says at once if sacrebleu is missing
    found = translations(model, [pair.source for pair in pairs], config, progress=progress)
    written = [own[0].text for own in found]
    scores = scores_of(model, written, references, cutting=cutting, lowercase=lowercase)
    return {**scores, "pairs": len(pairs), "beam": config.beam, "translations": written}


def scores_of(
    model: Translator,
    written: Sequence[str],
    references: Sequence[str],
    *,
    cutting: Cutting = "auto",
    lowercase: bool | None = None,
) -> dict[str, Any]:
    """BLEU and chrF with their signatures; case is ignored where the model knows none."""
    lowercase = model.training.lowercase if lowercase is None else lowercase
    by_words = bleu(written, references, lowercase=lowercase, cutting=cutting)
    by_characters = chrf(written, references, lowercase=lowercase)
    return {
        "bleu": by_words.value,
        "bleu_signature": by_words.signature,
        "chrf": by_characters.value,
        "chrf_signature": by_characters.signature,
    }

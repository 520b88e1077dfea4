"""Does a model keep the meanings of a word apart? A model and files in, scores out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.evaluation.senses.files import Data, Occurrence, SenseSet, find_sets
from sememe.evaluation.senses.opening import open_model
from sememe.evaluation.senses.representations import Representation
from sememe.evaluation.senses.results import SenseScore, SensesResult, WordScore
from sememe.metrics import mean_interval, separation
from sememe.progress import Reporter, as_reporter


def evaluate_senses(
    model: Any,
    data: Data | Sequence[Data] | None = None,
    *,
    layers: Any = "all",
    language: str = "",
    limit: int | None = None,
    device: str = "auto",
    seed: int = 1,
    progress: Reporter | bool | None = None,
) -> SensesResult:
    """Ask whether the nearest other occurrence of a word has the same meaning.

    `model` is a folder, a vector file or a model in memory; `data` are built-in sets by name
    (english, chinese, python, docstrings), or files; all built-in ones if it is left out. `layers`
    is all, or one choice of those that `embed` knows, or several.
    """
    sets = find_sets(data)
    speaker = open_model(
        model, layers=_choices(layers), language=language, limit=limit, device=device,
        reporter=as_reporter(progress),
    )  # fmt: skip
    scores = [
        score_set(own, representation, seed)
        for own in sets
        for representation in speaker.represent(own.occurrences)
    ]
    name = str(model) if isinstance(model, str | Path) else type(model).__name__
    return SensesResult(model=name, kind=speaker.kind, scores=scores, seed=seed)


def _choices(layers: Any) -> list[Any]:
    """The layers to score one by one; none stand for all."""
    chosen = list(layers) if isinstance(layers, list | tuple) else [layers]
    chosen = [int(one) if isinstance(one, str) and _is_number(one) else one for one in chosen]
    if "all" in chosen:
        if len(chosen) > 1:
            raise OptionError("layers is all of them, or some: not both.")
        return []
    return chosen


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def score_set(own: SenseSet, representation: Representation, seed: int = 1) -> SenseScore:
    """Score one way of representing the words of a set; each word counts the same."""
    if not np.isfinite(representation.vectors_ND).all():
        raise ArtifactError(f"The model gives no numbers for “{own.name}”: it is damaged.")
    found = []
    for word in own.words:
        score = _score_word(word, own.occurrences, representation)
        if score is not None:
            found.append(score)
    nearest = [score.nearest for score in found]
    return SenseScore(
        set=own.name,
        name=representation.name,
        role=representation.role,
        is_last=representation.is_last,
        interval=mean_interval(nearest, seed=seed),
        num_words=len(own.words),
        num_occurrences=len(own.occurrences),
        words=found,
    )


def _score_word(
    word: str, occurrences: list[Occurrence], representation: Representation
) -> WordScore | None:
    """Score a word by what is known of it; None where no two meanings are left."""
    known = [
        index
        for index, one in enumerate(occurrences)
        if one.word == word and representation.is_known_N[index]
    ]
    counts = Counter(occurrences[index].sense for index in known)
    # An only occurrence has no like to be near to.
    kept = [index for index in known if counts[occurrences[index].sense] > 1]
    senses = [occurrences[index].sense for index in kept]
    if len(set(senses)) < 2:
        return None
    found = separation(representation.vectors_ND[kept], senses)
    return WordScore(word, *found, len(kept))

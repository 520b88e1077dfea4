"""Kernels are compiled before the clock runs, on a text of a few words.

Once for each version; where they lie in the cache already, this takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sememe.ladder.rungs import SPECS
from sememe.progress import Reporter

_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_FEW: dict[str, dict[str, Any]] = {
    "onehot": {},
    "counts": {"dim": 4},
    "word2vec": {"dim": 4, "epochs": 1},
    "glove": {"dim": 4, "epochs": 1},
    "fasttext": {"dim": 4, "epochs": 1, "bucket": 100},
    "ngram": {"order": 5, "validation_share": 0.0},
}


def warm_up(names: Iterable[str], reporter: Reporter) -> None:
    """Compile the kernels of some rungs, those that this version has not compiled yet."""
    from sememe.compiled import is_first_use

    specs = [SPECS[name] for name in names if SPECS[name].command in _FEW]
    if specs and is_first_use():
        reporter.note("Compiling the kernels: once for this version, about half a minute.")
    sentences = [_WORDS[start:] + _WORDS[:start] for start in range(len(_WORDS))] * 20
    for spec in specs:
        options = {"min_count": 1, "workers": 1, **_FEW[spec.command]}
        if spec.name == "cbow":
            options["architecture"] = "cbow"
        spec.model_class(**options).fit(sentences)

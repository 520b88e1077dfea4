"""Kernels are compiled before the clock runs, on a text of a few words.

Once for each version, by processes beside the ladder, which has text to read meanwhile; where they
lie in the cache already, this takes a quarter of a second.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
_STEP: dict[str, Any] = {
    "steps": 1, "batch_size": 2, "evaluate_batches": 0, "validation_share": 0.0, "device": "cpu",
}  # fmt: skip
_SMALL = {"num_layers": 1, "width": 8, "num_heads": 1, "vocab_size": 300, "length": 16, **_STEP}
_FEW_STEPS: dict[str, dict[str, Any]] = {
    "nnlm": _STEP,
    "elmo": {"num_cells": 8, "width": 8, "input": "words", "length": 8, **_STEP},
    "gpt": _SMALL,
    "bert": _SMALL,
}
# The smallest BERT of a ladder reads running text, a larger one pairs of sentences.
_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "cbow": [{"architecture": "cbow"}],
    "bert": [{"next_sentence": False}, {"next_sentence": True}],
}


@contextmanager
def warmed_up(names: Iterable[str], reporter: Reporter) -> Iterator[None]:
    """Compile the kernels of some rungs beside what is done within; afterwards all are ready."""
    from sememe.compiled import is_first_use

    own = [name for name in names if SPECS[name].command in _FEW | _FEW_STEPS]
    others: list[subprocess.Popen[bytes]] = []
    if own and is_first_use():
        reporter.note("Compiling the kernels: once for this version, about half a minute.")
        # Word vectors share kernels with each other, and language models theirs, and PyTorch.
        words = [name for name in own if SPECS[name].family in ("counts", "static")]
        models = [name for name in own if name not in words]
        others = [_compiling(part) for part in (words, models) if part]
    try:
        yield
        for process in others:
            process.wait()
    finally:
        for process in others:
            process.terminate()
    # Nothing is left of that, unless a process died; networks would take seconds for a look.
    compile_kernels(name for name in own if SPECS[name].command in _FEW)


def compile_kernels(names: Iterable[str]) -> None:
    """Compile the kernels of these rungs, those that this version has not compiled yet."""
    sentences = [_WORDS[start:] + _WORDS[:start] for start in range(len(_WORDS))] * 20
    for spec in (SPECS[name] for name in names):
        for more in _VARIANTS.get(spec.name, [{}]):
            options = {"workers": 1, **(_FEW | _FEW_STEPS)[spec.command], **more}
            if spec.subwords:
                spec.model_class("tiny", **options).fit([" ".join(words) for words in sentences])
            else:
                spec.model_class(min_count=1, **options).fit(sentences)


def _compiling(names: list[str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    # -P: a file of the user's working folder must not shadow a module.
    command = [sys.executable, "-P", "-m", "sememe.ladder.warming", *names]
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)


if __name__ == "__main__":
    gc.disable()  # numba makes few cycles, but many objects, which the collector would walk
    compile_kernels(sys.argv[1:])

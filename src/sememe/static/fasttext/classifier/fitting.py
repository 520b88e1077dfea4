"""How a classifier is fitted: lines are encoded once, checked, and trained on by the one loop."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.rows import Note, silent
from sememe.static.fasttext.classifier.config import FastTextClassifierConfig
from sememe.static.fasttext.classifier.dictionary import Lines, encode
from sememe.static.fasttext.classifier.lines import is_path, read_blocks, source_name
from sememe.static.fasttext.classifier.training import ClassifierRun
from sememe.static.fitting import Request, fit
from sememe.text.documents import find_sources
from sememe.text.settings import TextSettings
from sememe.vectors import WordVectors, load

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier.model import FastTextClassifier


class _Hashed:
    """Passes blocks on and hashes what passes."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._digest = blocks, hashlib.blake2b(digest_size=16)

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._digest.update(block)
            yield block

    @property
    def content(self) -> str:
        return self._digest.hexdigest()


def read_lines(
    source: Any,
    config: FastTextClassifierConfig,
    text: TextSettings,
    start: WordVectors | None,
    note: Note = silent,
) -> tuple[Lines, str]:
    """Encode labelled text, and refuse what nothing can be learned from; (lines, their hash)."""
    blocks = read_blocks(source, text, config.label_prefix, config.num_workers, note=note)
    hashed = _Hashed(blocks)
    lines = encode(hashed, config, start.vocabulary if start is not None else None)
    _check(lines, config, source)
    return lines, hashed.content


def _check(lines: Lines, config: FastTextClassifierConfig, source: Any) -> None:
    name = source_name(source, "The training data")
    if not lines.num_tokens:
        raise InputError(f"{name} is empty: there is nothing to learn from.")
    if not len(lines.labels):
        rare = f" and occurs {config.min_count_label:,} times" if config.min_count_label > 1 else ""
        raise InputError(
            f"{name} has no label: no word of it starts with {config.label_prefix}{rare}. Lines "
            f"look like “{config.label_prefix}good a fine film”; label_prefix can be another."
        )
    if len(lines.labels) == 1:
        raise InputError(
            f"{name} has one label only, {lines.labels[0]}: there is nothing to tell apart."
        )
    if not len(lines):
        raise InputError(
            f"{name} has no line with both a label and a word that occurs {config.min_count:,} "
            "times: lower min_count or add text."
        )


def _open_start(start: Any, config: FastTextClassifierConfig) -> WordVectors | None:
    if start is None:
        return None
    vectors = start if isinstance(start, WordVectors) else load(start)
    if vectors.dim != config.dim:
        raise OptionError(
            f"The vectors to start from have {vectors.dim} numbers; dim is {config.dim}."
        )
    return vectors


def start_rows(lines: Lines, start: WordVectors) -> np.ndarray:
    """The given vectors of the words, (V, dim); NaN for a word that has none."""
    rows = np.full((len(lines.words), start.dim), np.nan, np.float32)
    ids = np.array([start.vocabulary.find(word) for word in lines.words], np.int64)
    rows[ids >= 0] = start.vectors[ids[ids >= 0]]
    return rows


def fit_classifier(
    model: FastTextClassifier, train: Any, validation: Any, request: Request
) -> None:
    """Train `model` on labelled text and score it on the validation set."""
    from sememe.compiled import is_first_use

    reporter, config = request.reporter, model.config
    if is_path(validation):
        find_sources(validation)  # refuses what is not there before an hour of training
    if is_first_use():
        reporter.note("Compiling the kernels: once for this version, about half a minute.")
    start = _open_start(request.start, config)
    with reporter.task("reading", None, "tokens") as task:
        lines, content = read_lines(train, config, model.text, start, reporter.note)
        task.update(lines.num_tokens)

    def begin(run: ClassifierRun) -> None:
        run.begin(start_rows(lines, start) if start is not None else None)

    plan = {"content": content, "text": model.text.to_dict()}
    fit(model, request, plan, lambda: ClassifierRun(config, lines), begin)  # type: ignore[arg-type]
    if validation is not None:
        result = model.evaluate(validation)
        reporter.note(str(result))
        model.history.append(
            {"precision": result.precision, "recall": result.recall, "f1": result.f1}
        )
        if request.out is not None:
            model.save(Path(request.out))

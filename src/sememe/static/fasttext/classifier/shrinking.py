"""Making a classifier smaller: fewer rows, trained again, and each row as a few bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import OptionError
from sememe.progress import History, Reporter
from sememe.static.fasttext.classifier.dictionary import Lines, mix_lines
from sememe.static.fasttext.classifier.lines import read_blocks
from sememe.static.fasttext.classifier.prediction import Predictor
from sememe.static.fasttext.classifier.training import ClassifierRun
from sememe.static.fasttext.classifier.weights import Weights, dense
from sememe.static.fasttext.quantization import quantize_matrix
from sememe.static.loop import Driver
from sememe.tokens.ngrams import LINE_END
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.quantized import NUM_CENTROIDS

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier.model import FastTextClassifier


@dataclass(frozen=True, kw_only=True)
class Shrinking:
    """How a model is made smaller; names as Facebook's program has them."""

    cutoff: int = 0
    qnorm: bool = False
    qout: bool = False
    dsub: int = 2
    epochs: int = 5
    learning_rate: float = 0.05

    def __post_init__(self) -> None:
        """Refuse a cut-off that leaves too little to quantise."""
        if self.cutoff != 0 and self.cutoff < NUM_CENTROIDS:
            raise OptionError(
                f"cutoff must be 0 (keep every row), or {NUM_CENTROIDS} or more, not {self.cutoff}."
            )
        if self.dsub < 1:
            raise OptionError(f"dsub must be 1 or more, not {self.dsub}.")


def shrink(
    model: FastTextClassifier, options: Shrinking, retrain: Any, reporter: Reporter
) -> FastTextClassifier:
    """Make a smaller copy of a model."""
    config, weights = model.config, _listed(model.weights)
    if retrain is not None and not options.cutoff:
        raise OptionError("retrain trains the rows that cutoff keeps: give a cutoff too.")
    small = type(model)(config)
    small.text, small.plan = model.text, model.plan
    small.history = History(model.history)
    if 0 < options.cutoff < weights.num_rows:
        weights = _cut_off(weights, options.cutoff)
        small.adopt(weights)
        if retrain is not None:
            _train_again(small, retrain, options, reporter)
            weights = small.weights
    workers, seed = config.num_workers, config.seed
    with reporter.task("quantising", weights.num_rows, "rows") as task:
        input = quantize_matrix(
            dense(weights.input), part_size=options.dsub, has_norms=options.qnorm, seed=seed,
            workers=workers,
        )  # fmt: skip
        output = weights.output
        if options.qout:
            # Facebook's program takes parts of two numbers here, whatever dsub is.
            output = quantize_matrix(
                dense(output), part_size=min(2, config.dim), has_norms=options.qnorm, seed=seed,
                workers=workers,
            )  # fmt: skip
        task.update(weights.num_rows)
    small.adopt(replace(weights, input=input, output=output))
    reporter.note(
        f"{_megabytes(model.weights.nbytes)} of rows before, {_megabytes(small.weights.nbytes)} "
        f"after: {model.weights.nbytes / small.weights.nbytes:.1f} times smaller"
    )
    return small


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.1f} MB" if num_bytes >= 1e5 else f"{num_bytes / 1e3:,.1f} KB"


def _listed(weights: Weights) -> Weights:
    """Leave n-grams without a row out from now on: a list of buckets is smaller than all."""
    is_listed = weights.buckets is not None and len(weights.buckets) > 0
    return replace(weights, is_pruned=weights.is_pruned or is_listed)


def _cut_off(weights: Weights, cutoff: int) -> Weights:
    """Keep the longest rows, and always that of the line's end, as Facebook's program does."""
    rows = dense(weights.input)
    norms = np.linalg.norm(rows, axis=1)
    line_end = weights.words.find(LINE_END)
    if line_end >= 0:
        norms[line_end] = np.inf
    kept = np.argsort(-norms, kind="stable")[:cutoff]
    num_words = len(weights.words)
    words, ngrams = np.sort(kept[kept < num_words]), kept[kept >= num_words]
    buckets = ngrams - num_words
    if weights.buckets is not None:
        buckets = weights.buckets[buckets]
    counts = np.asarray(weights.words.counts)
    chosen = Vocabulary.from_words(
        [weights.words[index] for index in words.tolist()], counts[words].tolist()
    )
    return replace(
        weights, words=chosen, input=rows[np.concatenate([words, ngrams])],
        buckets=buckets.astype(np.int32), is_pruned=True,
    )  # fmt: skip


def read_known(weights: Weights, model: FastTextClassifier, source: Any) -> Lines:
    """Encode labelled text with a dictionary that stands."""
    predictor = Predictor(weights, model.config)
    blocks = read_blocks(source, model.text, model.config.label_prefix, model.config.num_workers)
    parts = [predictor.read(block) for block in blocks]
    starts = np.cumsum([0, *(len(part.items) for part in parts)])
    label_starts = np.cumsum([0, *(len(part.labels) for part in parts)])
    none = np.empty(0, np.int64)
    ends = np.concatenate([none, *(p.ends + s for p, s in zip(parts, starts, strict=False))])
    label_ends = np.concatenate(
        [none, *(p.label_ends + s for p, s in zip(parts, label_starts, strict=False))]
    )
    sizes = np.diff(ends, prepend=0)
    nothing = np.empty(0, np.int32)
    lines = Lines(
        words=weights.words, labels=weights.labels, num_tokens=int(starts[-1]), ends=ends,
        items=np.concatenate([nothing, *(part.items for part in parts)]),
        label_ends=label_ends,
        label_ids=np.concatenate([nothing, *(part.labels for part in parts)]),
        type_ends=none, type_rows=nothing,
        buckets=weights.buckets if weights.buckets is not None else nothing,
        longest=int(sizes.max(initial=0)),
    )  # fmt: skip
    return mix_lines(lines, model.config)


def _train_again(
    model: FastTextClassifier, source: Any, options: Shrinking, reporter: Reporter
) -> None:
    weights = model.weights
    lines = read_known(weights, model, source)
    if not len(lines):
        raise OptionError("The text to retrain on has no line with a label and a word kept.")
    config = replace(model.config, epochs=options.epochs, learning_rate=options.learning_rate)
    run = ClassifierRun(config, lines)
    dim = config.dim
    run.matrices["input"][:, :dim] = weights.input
    run.matrices["output"][:, :dim] = dense(weights.output)
    history = model.history
    Driver(model, run, reporter).drive()  # type: ignore[arg-type]
    model.history = history
    model.adopt(replace(weights, input=model.weights.input, output=model.weights.output))

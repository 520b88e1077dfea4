"""Compressing a classifier: fewer rows, retrained, and each row as a few bytes.

Product quantization (Jégou et al. 2011) splits the columns into parts; k-means finds 256 centroids
for each part, and a row stores the number of the nearest one. `reference_codes` does the same in
plain NumPy.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import OptionError
from sememe.models.fasttext.classifier.dictionary import Lines, join_lines, mix_lines
from sememe.models.fasttext.classifier.lines import read_blocks
from sememe.models.fasttext.classifier.prediction import Predictor
from sememe.models.fasttext.classifier.training import ClassifierRun
from sememe.models.fasttext.classifier.weights import ClassifierWeights, dense
from sememe.models.fasttext.kernels import assign, cluster
from sememe.models.static.loop import Driver
from sememe.progress import History, Reporter
from sememe.tokens.ngrams import LINE_END
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.subwords import NUM_CENTROIDS, ProductQuantizer, QuantizedMatrix

if TYPE_CHECKING:
    from sememe.models.fasttext.classifier.model import FastTextClassifier

VALIDATED = ("precision", "recall", "f1", "rows")  # what a validation adds to the history
_ROUNDS = 25
_MOST_POINTS = 256 * NUM_CENTROIDS  # a sample of a larger matrix is enough


def quantize_matrix(
    matrix: np.ndarray,
    *,
    part_size: int = 2,
    has_norms: bool = False,
    seed: int = 1,
    workers: int = 1,
) -> QuantizedMatrix:
    """Quantize a matrix of at least 256 rows; with `has_norms`, the rows' norms separately."""
    if len(matrix) < NUM_CENTROIDS:
        raise OptionError(
            f"Quantising takes {NUM_CENTROIDS} rows or more; there are {len(matrix):,}, so nothing "
            "would be gained."
        )
    if not 1 <= part_size <= matrix.shape[1]:
        raise OptionError(
            f"dsub must be between 1 and the dimension {matrix.shape[1]}, not {part_size}."
        )
    rows = np.array(matrix, np.float32)
    if not has_norms:
        return QuantizedMatrix(*_learn(rows, part_size, seed, workers))
    norms = np.linalg.norm(rows, axis=1).astype(np.float32)
    rows /= np.where(norms > 0, norms, 1)[:, None]
    norm_codes, norm_quantizer = _learn(norms[:, None], 1, seed, 1)
    return QuantizedMatrix(
        *_learn(rows, part_size, seed, workers), norm_codes[:, 0].copy(), norm_quantizer
    )


def _learn(
    rows: np.ndarray, part_size: int, seed: int, workers: int
) -> tuple[np.ndarray, ProductQuantizer]:
    """The codes of every row, and the centroids of every part."""

    num_rows, dim = rows.shape
    num_parts = -(-dim // part_size)
    order = np.random.default_rng(seed).permutation(num_rows)
    sample, first = order[:_MOST_POINTS], order[:NUM_CENTROIDS]
    codes = np.empty((num_rows, num_parts), np.uint8)

    def learn_part(part: int) -> np.ndarray:
        columns = np.ascontiguousarray(rows[:, part * part_size : (part + 1) * part_size])
        centroids_SC = np.ascontiguousarray(columns[first].T)
        cluster(columns[sample], centroids_SC, np.empty(len(sample), np.uint8), _ROUNDS)
        part_codes = np.empty(num_rows, np.uint8)
        assign(columns, centroids_SC, part_codes)
        codes[:, part] = part_codes
        return np.ascontiguousarray(centroids_SC.T).reshape(-1)

    with ThreadPoolExecutor(workers) as pool:
        centroids = np.concatenate(list(pool.map(learn_part, range(num_parts))))
    return codes, ProductQuantizer(part_size, centroids)


def reference_codes(rows: np.ndarray, quantizer: ProductQuantizer) -> np.ndarray:
    """The nearest centroid of every part of every row, by exhaustive search."""
    codes = np.empty((len(rows), quantizer.num_parts), np.uint8)
    for part in range(quantizer.num_parts):
        start = part * quantizer.part_size
        centroids = quantizer.part(part)
        columns = rows[:, start : start + centroids.shape[1]]
        codes[:, part] = ((columns[:, None, :] - centroids[None]) ** 2).sum(axis=2).argmin(axis=1)
    return codes


@dataclass(frozen=True, kw_only=True)
class Shrinking:
    """The options of compression, with the names of Facebook's program."""

    cutoff: int = 0
    qnorm: bool = False
    qout: bool = False
    dsub: int = 2
    epochs: int = 5
    learning_rate: float = 0.05

    def __post_init__(self) -> None:
        """Raise an error for a cut-off that leaves too few rows to quantise."""
        if self.cutoff != 0 and self.cutoff < NUM_CENTROIDS:
            raise OptionError(
                f"cutoff must be 0 (keep every row), or {NUM_CENTROIDS} or more, not {self.cutoff}."
            )
        if self.dsub < 1:
            raise OptionError(f"dsub must be 1 or more, not {self.dsub}.")


def shrink(
    model: FastTextClassifier, options: Shrinking, retrain: Any, reporter: Reporter
) -> FastTextClassifier:
    """Create a compressed copy of a model."""
    config, weights = model.config, _listed(model.weights)
    if retrain is not None and not options.cutoff:
        raise OptionError("retrain trains the rows that cutoff keeps: give a cutoff too.")
    small = type(model)(config)
    small.text, small.plan, small.data = model.text, model.plan, model.data
    small.learned = model.learned
    small.history = History(record for record in model.history if not {*record} <= {*VALIDATED})
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


def _listed(weights: ClassifierWeights) -> ClassifierWeights:
    """Drop n-grams without a row: a list of the used buckets is smaller than all."""
    is_listed = weights.buckets is not None and len(weights.buckets) > 0
    return replace(weights, is_pruned=weights.is_pruned or is_listed)


def _cut_off(weights: ClassifierWeights, cutoff: int) -> ClassifierWeights:
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


def read_known(weights: ClassifierWeights, model: FastTextClassifier, source: Any) -> Lines:
    """Encode labelled text with an existing dictionary."""
    predictor = Predictor(weights, model.config)
    config = model.config
    blocks = read_blocks(
        source, model.text, config.label_prefix, config.num_workers, separator=config.separator
    )
    parts = [predictor.read(block) for block in blocks]
    items, ends = join_lines([part.items for part in parts], [part.ends for part in parts])
    label_ids, label_ends = join_lines(
        [part.labels for part in parts], [part.label_ends for part in parts]
    )
    none = np.empty(0, np.int32)
    lines = Lines(
        words=weights.words, labels=weights.labels, num_tokens=len(items), ends=ends, items=items,
        label_ends=label_ends, label_ids=label_ids, type_ends=none.astype(np.int64),
        type_rows=none, buckets=none if weights.buckets is None else weights.buckets,
        longest=int(np.diff(ends, prepend=0).max(initial=0)),
    )  # fmt: skip
    return mix_lines(lines, model.config)


def _train_again(
    model: FastTextClassifier, source: Any, options: Shrinking, reporter: Reporter
) -> None:
    weights = model.weights
    lines = read_known(weights, model, source)
    if not len(lines):
        raise OptionError("The text to retrain on has no line with a label and a word kept.")
    config = replace(
        model.config, epochs=options.epochs, learning_rate=options.learning_rate,
        word_rates="equal",
    )  # fmt: skip
    run = ClassifierRun(config, lines)
    dim = config.dim
    run.matrices["input"][:, :dim] = weights.input
    run.matrices["output"][:, :dim] = dense(weights.output)
    history = model.history
    Driver(model, run, reporter).drive()  # type: ignore[arg-type]
    model.history = history
    model.adopt(replace(weights, input=model.weights.input, output=model.weights.output))

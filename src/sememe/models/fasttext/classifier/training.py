"""Train a classifier: labelled lines in, updated matrices out.

Lines are encoded once, checked, shuffled and split into steps, whose order changes in each epoch as
a function of the seed. With one worker the steps update the matrices directly; with more, see
`kernels`.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.class_weights import class_weights
from sememe.examples.labelled.rows import Note, silent
from sememe.examples.windows import alias_table, build_tree
from sememe.models.fasttext.classifier.calibration import HeldLines, adjust
from sememe.models.fasttext.classifier.config import FastTextClassifierConfig
from sememe.models.fasttext.classifier.defaults import chosen_note, look, with_sizes
from sememe.models.fasttext.classifier.dictionary import Lines, encode, in_parts
from sememe.models.fasttext.classifier.kernels import (
    count_lines,
    find_rows,
    shuffle,
    start_rows,
    train_lines,
)
from sememe.models.fasttext.classifier.lines import (
    is_path,
    label_name,
    read_blocks,
    source_name,
)
from sememe.models.fasttext.classifier.weights import ClassifierWeights
from sememe.models.fitting import Plan, Prepared, Request
from sememe.models.static.loop import Crew, StaticRun, lasting, run_steps
from sememe.models.static.model import matrix
from sememe.models.word2vec.training import take_start
from sememe.randomness import stream_key
from sememe.text.settings import TextSettings
from sememe.text.sources import find_sources
from sememe.vectors import WordVectors, load

if TYPE_CHECKING:
    from sememe.models.fasttext.classifier.model import FastTextClassifier

START, DRAWS, ORDER = 12, 13, 14  # purposes of random streams; 11 mixes the lines
NOISE_EXPONENT = 0.5  # as Facebook's program draws noise labels
_HOT = 64  # words of which each worker has a copy of its own
_MOST_OUTPUTS = 256  # with more labels they are shared: lines rarely change the same
_STEP_TOKENS = 16_384
_MERGE_LINES = 64
_MOST_TRIED = 2_000_000  # tokens that options are tried on
_FEWEST_HELD = 30  # lines that may choose
# The learning rates and epochs to choose from; the gentle one is for labels that barely follow from
# the words, where more training only memorizes the lines (docs/experiments.md).
_CHOICES = ((0.02, 5), (0.05, 10), (0.1, 25))
_USUAL, _THOROUGH = _CHOICES[2], (0.2, 50)  # the second is for few lines, or for many labels
_FEWEST_EPOCHS = 5
_OF_SETS = (0.5, 50)  # one-vs-all of many labels, most of which a line lacks, learns slowly


class ClassifierRun(StaticRun):
    """The state of a training, and the work of one step."""

    def __init__(self, config: FastTextClassifierConfig, lines: Lines) -> None:

        self.config, self.lines = config, lines
        self.num_workers, self.start_rate = config.num_workers, config.learning_rate
        self.tokens_per_epoch = lines.num_tokens
        self.num_outputs = len(lines.labels)
        has_own = self.num_workers > 1 and self.num_outputs <= _MOST_OUTPUTS
        self.num_hot = min(_HOT, len(lines.words)) if has_own else 0
        self.merge_every = max(1, _MERGE_LINES // self.num_workers) if has_own else 0
        num_own = self.num_workers if has_own else 0
        self._input = matrix(lines.num_rows + num_own * self.num_hot, config.dim)
        self._output = matrix(self.num_outputs * (1 + num_own), config.dim)
        self.matrices = {
            "input": self._input[: lines.num_rows],
            "output": self._output[: self.num_outputs],
        }
        num_lines = len(lines)
        tokens_per_line = max(1, lines.num_tokens // max(1, num_lines))
        # A small text still has enough steps for every thread.
        most = max(1, num_lines // (4 * self.num_workers))
        self.step_lines = min(max(1, _STEP_TOKENS // tokens_per_line), most)
        self.steps_per_epoch = -(-num_lines // self.step_lines)
        self.num_steps = self.steps_per_epoch * config.epochs
        self._tree, self._noise = self._prepare_loss()
        self.label_weights, self.word_rates = self._weights(), self._word_rates()
        self._orders: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()
        self._num_spaces = 0

    def _prepare_loss(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        tree = (np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.uint8))
        noise = (np.zeros(1, np.uint64), np.zeros(1, np.int32))
        counts = np.asarray(self.lines.labels.counts)
        if self.config.loss == "hierarchical":
            built = build_tree(counts)
            tree = (built.starts, built.nodes, built.codes)
        elif self.config.loss == "negative":
            noise = alias_table(counts, NOISE_EXPONENT)
        return tree, noise

    def _weights(self) -> np.ndarray:
        """The weight of each label in the loss."""
        lines, prefix = self.lines, self.config.label_prefix
        names = [label_name(word, prefix) for word in lines.labels]
        num_true = np.bincount(lines.label_ids, minlength=len(names)).tolist()
        is_one = self.config.loss != "ova"
        num_rows = sum(num_true) if is_one else len(lines)
        chosen = class_weights(self.config.class_weights, names, num_true, num_rows, is_one=is_one)
        return np.array(chosen, np.float32)

    def _word_rates(self) -> np.ndarray:
        """What multiplies the learning rate of each input row; empty if all have the same.

        It is the square of the row's idf: the rows then learn as those of a model would whose
        inputs are weighted by idf, and hold these weights at the end.
        """
        if self.config.word_rates != "idf":
            return np.empty(0, np.float32)
        lines = self.lines
        counts = np.zeros(lines.num_rows, np.int64)
        count_lines(
            lines.ends, lines.items, lines.type_ends, lines.type_rows, len(lines.words),
            np.full(lines.num_rows, -1, np.int64), counts,
        )  # fmt: skip
        idf = 1 + np.log((1 + len(lines)) / (1 + counts))
        return (idf * idf).astype(np.float32)

    def run_all(self) -> None:
        """Do all steps, without checkpoints or news."""
        crew = Crew(self, 0, self.num_steps, self.num_steps + 1)
        crew.advance(lambda _: True)

    def score(self, lines: Lines) -> float:
        """The accuracy on lines of the same dictionary; micro F1 for one-vs-all."""
        input, output = self.matrices["input"], self.matrices["output"]
        num_right = num_true = num_said = 0
        rows = np.empty(max(1, lines.longest), np.int64)
        for line in range(len(lines)):
            num = find_rows(
                line, lines.ends, lines.items, lines.type_ends, lines.type_rows,
                len(lines.words), 0, 0, 1, rows,
            )  # fmt: skip
            scores = output @ input[rows[:num]].mean(axis=0)
            said = np.flatnonzero(scores > 0) if self.config.loss == "ova" else [scores.argmax()]
            start = int(lines.label_ends[line - 1]) if line else 0
            true = lines.label_ids[start : int(lines.label_ends[line])]
            num_right += int(np.isin(said, true).sum())
            num_true += len(true)
            num_said += len(said)
        return 2 * num_right / max(1, num_true + num_said)

    def begin(self) -> None:
        """Fill the input matrix with noise."""

        lines, dim = self.lines, self.config.dim
        # A bucket's row starts from the same values whichever other buckets occur.
        num_words = len(lines.words)
        ids = np.concatenate([np.arange(num_words), num_words + lines.buckets.astype(np.int64)])
        key = np.uint64(stream_key(self.config.seed, START))
        reach = np.float32(1.0 / dim)
        in_parts(
            self.num_workers,
            lambda first, last: start_rows(
                self._input[first:last], ids[first:last], dim, reach, key
            ),
            len(ids),
        )

    def new_space(self) -> tuple[int, np.ndarray, np.ndarray]:
        """A worker's number, its float buffer and its row buffer for two lines."""
        with self._lock:
            worker, self._num_spaces = self._num_spaces, self._num_spaces + 1
        width = self._input.shape[1]
        num_floats = width * (2 + self.num_hot + self.num_outputs) + self.num_outputs + 16
        rows = np.empty(2 * max(1, self.lines.longest), np.int64)
        return worker % self.num_workers, np.zeros(num_floats, np.float32), rows

    def span(self, step: int) -> tuple[int, int, int]:
        """(epoch, first line, end of the lines) of a step."""

        epoch, part = divmod(step, self.steps_per_epoch)
        with self._lock:
            if epoch not in self._orders:
                order = np.arange(self.steps_per_epoch)
                shuffle(order, np.uint64(stream_key(self.config.seed, ORDER, epoch)))
                self._orders[epoch] = order
                self._orders.pop(epoch - 2, None)
            first = int(self._orders[epoch][part]) * self.step_lines
        return epoch, first, min(first + self.step_lines, len(self.lines))

    def step(self, step: int, space: Any, stats: np.ndarray) -> None:
        """Train on the lines of `step`."""

        worker, floats, rows = space
        epoch, first, last = self.span(step)
        lines, config = self.lines, self.config
        train_lines(
            config.loss_number, first, last, lines.ends, lines.items,
            lines.type_ends, lines.type_rows, len(lines.words), lines.label_ends, lines.label_ids,
            self._input.reshape(-1), self._output.reshape(-1), self._input.shape[1],
            self.num_outputs, *self._tree, *self._noise, config.negatives, self.label_weights,
            np.uint64(stream_key(config.seed, DRAWS, epoch)),
            np.float32(self.rate_at(step)), np.float32(self.rate_at(step + 1)),
            worker, lines.num_rows, self.num_hot, self.merge_every, self.word_rates, floats, rows,
            stats,
        )  # fmt: skip

    def _lines_at(self, step: int) -> int:
        epoch, part = divmod(step, self.steps_per_epoch)
        num_lines = len(self.lines)
        return epoch * num_lines + min(part * self.step_lines, num_lines)

    def words_at(self, step: int) -> int:
        """Tokens before `step`, assuming lines of average length."""
        return self._lines_at(step) * self.lines.num_tokens // len(self.lines)

    def rate_at(self, step: int) -> float:
        """The learning rate at the start of a step: linear decay to 0."""
        total = len(self.lines) * self.config.epochs
        return self.config.learning_rate * (1.0 - self._lines_at(step) / total)

    def hand_over(self, model: Any, *, is_final: bool) -> None:
        """Give the matrices to the model, without padding; copies while training changes them."""
        lines, dim = self.lines, self.config.dim
        input, output = (rows[:, :dim] for rows in self.matrices.values())
        if not is_final:
            input, output = input.copy(), output.copy()
        weights = ClassifierWeights(
            words=lines.words, labels=lines.labels, num_tokens=lines.num_tokens,
            buckets=lines.buckets, input=input, output=output,
        )  # fmt: skip
        model.adopt(weights)

    def start_message(self) -> str:
        """One line that describes the training about to start."""
        lines, config = self.lines, self.config
        return (
            f"{len(lines):,} lines, {len(lines.labels):,} labels, {len(lines.words):,} words"
            f"{f', {len(lines.buckets):,} n-gram rows' if config.has_buckets else ''}, "
            f"{config.epochs} epochs: {config.loss}, {config.dim} dimensions, "
            f"{config.num_workers} workers"
        )


def read_lines(
    source: Any,
    config: FastTextClassifierConfig,
    text: TextSettings,
    start: WordVectors | None,
    note: Note = silent,
    held: HeldLines | None = None,
) -> tuple[Lines, str, FastTextClassifierConfig]:
    """Encode labelled text, and raise an error if it cannot be trained on.

    Returns the lines, their hash, and the options with those that the data chose. With `held`, some
    lines are held out.
    """
    digest = hashlib.blake2b(digest_size=16)
    num_read = 0

    def hashed() -> Iterator[bytes]:
        nonlocal num_read
        for block in read_blocks(
            source, text, config.label_prefix, config.num_workers, separator=config.separator,
            note=note,
        ):  # fmt: skip
            digest.update(block)
            own = held.split(block) if held is not None else block
            num_read += own.count(b"\n") + (not own.endswith(b"\n"))
            yield own

    facts, blocks = look(hashed(), config)
    if start is not None and not config.dim:
        config = replace(config, dim=start.dim)
    sized = with_sizes(config, facts)
    lines = encode(blocks, sized, start.vocabulary if start is not None else None)
    _check(lines, config, source)
    if held is not None:
        held.check()
    if len(lines) < num_read:
        note(f"{num_read - len(lines):,} of {num_read:,} lines have no label or word: left out.")
    chosen = with_steps(sized, lines, note)
    if told := chosen_note(config, chosen):
        note(told)
    return lines, digest.hexdigest(), chosen


def with_steps(
    config: FastTextClassifierConfig, lines: Lines, note: Note
) -> FastTextClassifierConfig:
    """The options with the learning rate and the epochs that were left open."""
    if config.learning_rate and config.epochs:
        return config
    part = lines
    if lines.num_tokens > _MOST_TRIED:
        part = part_of(lines, 0, len(lines) * _MOST_TRIED // lines.num_tokens)
    rate, epochs = _USUAL
    if len(part) // 10 >= _FEWEST_HELD and config.loss in ("softmax", "ova"):
        rate, epochs = _chosen_steps(config, part, note)
    # More lines need fewer passes for as many steps.
    epochs = max(_FEWEST_EPOCHS, round(epochs * len(part) / len(lines)))
    return replace(
        config, learning_rate=config.learning_rate or rate, epochs=config.epochs or epochs
    )


def _chosen_steps(config: FastTextClassifierConfig, lines: Lines, note: Note) -> tuple[float, int]:
    """The learning rate and epochs that score best on a tenth of the lines."""
    num_held, scores = len(lines) // 10, {}

    def score(rate: float, epochs: int) -> None:
        own = config.learning_rate or rate, config.epochs or epochs
        if own not in scores:
            scores[own] = _held_out_score(config, lines, num_held, *own)

    def best() -> tuple[float, int]:  # of equal ones, the most thorough
        return max(scores, key=lambda own: (scores[own], own))

    for choice in (*_CHOICES, *([_OF_SETS] if config.loss == "ova" else [])):
        score(*choice)
    if best() == (config.learning_rate or _USUAL[0], config.epochs or _USUAL[1]):
        score(*_THOROUGH)
    told = ", ".join(
        f"{rate:g} × {epochs}: {scores[rate, epochs]:.3f}" for rate, epochs in sorted(scores)
    )
    note(f"Learning rate × epochs on {num_held:,} held-out lines: {told}.")
    return best()


def _held_out_score(
    config: FastTextClassifierConfig, lines: Lines, num_held: int, rate: float, epochs: int
) -> float:
    """The accuracy, or micro F1, on the last lines of a model of the others: lines are shuffled."""
    # One worker: the same lines always choose the same.
    own = replace(config, learning_rate=rate, epochs=epochs, workers=1)
    run = ClassifierRun(own, part_of(lines, 0, len(lines) - num_held))
    run.begin()
    run.run_all()
    if not np.isfinite(run.matrices["output"]).all():  # too high a rate for these lines
        return 0.0
    return run.score(part_of(lines, len(lines) - num_held, len(lines)))


def part_of(lines: Lines, first: int, last: int) -> Lines:
    """Some of the lines, with the same dictionary."""

    def cut(ends: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        start = int(ends[first - 1]) if first else 0
        stop = int(ends[last - 1]) if last else 0
        return ends[first:last] - start, items[start:stop]

    ends, items = cut(lines.ends, lines.items)
    label_ends, label_ids = cut(lines.label_ends, lines.label_ids)
    share = (last - first) / max(1, len(lines))
    return replace(
        lines, ends=ends, items=items, label_ends=label_ends, label_ids=label_ids,
        num_tokens=max(1, round(share * lines.num_tokens)),
    )  # fmt: skip


def _check(lines: Lines, config: FastTextClassifierConfig, source: Any) -> None:
    name = source_name(source, "The training data")
    if not lines.num_tokens:
        raise InputError(f"{name} is empty: there is no training data.")
    if not len(lines.labels):
        rare = f" and occurs {config.min_count_label:,} times" if config.min_count_label > 1 else ""
        raise InputError(
            f"{name} has no label: no word of it starts with {config.label_prefix}{rare}. Lines "
            f"look like “{config.label_prefix}good a fine film” (label_prefix can be another); a "
            "table with columns is named .csv or .tsv."
        )
    if len(lines.labels) == 1:
        raise InputError(f"{name} has one label only, {lines.labels[0]}: it needs at least two.")
    if not len(lines):
        raise InputError(
            f"{name} has no line with both a label and a word that occurs {config.min_count:,} "
            "times: lower min_count or add text."
        )


def _open_start(start: Any, config: FastTextClassifierConfig) -> WordVectors | None:
    if start is None:
        return None
    vectors = start if isinstance(start, WordVectors) else load(start)
    if config.dim and vectors.dim != config.dim:
        raise OptionError(
            f"The vectors to start from have {vectors.dim} numbers; dim is {config.dim}."
        )
    return vectors


def prepare(model: FastTextClassifier, train: Any, request: Request) -> Prepared:
    """Read labelled text; return the run's plan and the function that trains."""
    reporter, config = request.reporter, model.config
    if is_path(request.dev):
        find_sources(request.dev)  # refuses what is not there before an hour of training
    start = _open_start(request.start, config)
    held = HeldLines(config) if config.holds_out else None
    with reporter.task("reading", None, "tokens") as task:
        lines, content, config = read_lines(train, config, model.text, start, reporter.note, held)
        task.update(lines.num_tokens)
    model.choose(config)
    model.learned = learned_of(lines, config, reporter.note)

    def begin(run: ClassifierRun) -> None:
        run.begin()
        if start is not None:
            take_start(run.matrices["input"], lines.words, start, config.dim)

    plan: Plan = {"config": lasting(config), "content": content, "text": model.text.to_dict()}
    own: Any = model

    def train_and_adjust() -> None:
        run_steps(own, plan, request, lambda: ClassifierRun(config, lines), begin)
        if held is not None:
            adjust(model, held, request)

    sizes = {"rows": len(lines), "tokens": lines.num_tokens}
    return Prepared(plan, train_and_adjust, sizes)


def learned_of(
    lines: Lines, config: FastTextClassifierConfig, note: Note = silent
) -> dict[str, Any]:
    """What the lines tell besides the weights: whether a text may have several labels."""
    num_several = int((np.diff(lines.label_ends, prepend=0) > 1).sum())
    if num_several and config.loss != "ova":
        note(
            f"{num_several:,} of {len(lines):,} lines have several labels, of which {config.loss} "
            "trains one at a time: --loss ova trains all, and predicts any number."
        )
    return {"multi_label": True} if num_several and config.loss == "ova" else {}

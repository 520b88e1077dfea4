"""How a model is fitted: matrices are made, the run is driven, checkpoints are kept.

`Word2Vec` says what can be asked for; `training` knows the steps; this file joins both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError, DivergedError, OptionError
from sememe.progress import History, Reporter
from sememe.static.word2vec.callbacks import Callback, Evaluate
from sememe.static.word2vec.config import Word2VecConfig
from sememe.static.word2vec.model import (
    HISTORY,
    TENSORS,
    Word2Vec,
    check_replaceable,
    trainable_words,
)
from sememe.static.word2vec.training import Crew, Run
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import MANIFEST, read_json, write_json
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors, load

_START = 3  # purpose of the random stream that the first vectors come from
_RECORDS = 200  # about as many records a run leaves in its history
_STATE = "state.json"


def start_rows(rows: np.ndarray, dim: int, seed: int, first: int = 0) -> None:
    """Fill rows (N, padded dim) with the uniform noise that training starts from."""
    from sememe.examples.randomness import fill_uniform, stream_key

    reach = np.float32(0.5 / dim)
    key = np.uint64(stream_key(seed, _START))
    fill_uniform(rows, dim, -reach, reach, key, first)


def _take_start(rows: np.ndarray, vocabulary: Vocabulary, start: Any, dim: int) -> int:
    """Copy the rows of the words that the pretrained vectors know; return how many."""
    vectors = start if isinstance(start, WordVectors) else load(start)
    if vectors.dim != dim:
        raise OptionError(f"The vectors to start from have {vectors.dim} numbers, not {dim}.")
    num_known = 0
    for word_id, word in enumerate(vocabulary):
        if (other := vectors.vocabulary.find(word)) >= 0:
            rows[word_id, :dim] = vectors.vectors[other]
            num_known += 1
    if not num_known:
        raise OptionError("The vectors to start from know none of the words of the text.")
    return num_known


def _num_outputs(config: Word2VecConfig, num_words: int) -> int:
    # A tree has one inner node less than leaves; a lone word still needs a row to map.
    return max(num_words - 1, 1) if config.loss == "hierarchical" else num_words


def check_request(
    config: Word2VecConfig, out: str | Path | None, resume: bool, checkpoint_minutes: float
) -> None:
    """Refuse what cannot come to a good end before any text is read."""
    if resume and out is None:
        raise OptionError("To resume, `out` must say where the model was to be saved.")
    if out is not None:
        check_replaceable(Path(out))
    if not checkpoint_minutes >= 0:
        raise OptionError(
            f"checkpoint_minutes must be 0 (never) or more, not {checkpoint_minutes}."
        )
    if config.loss == "hierarchical" and config.vectors != "input":
        raise OptionError(
            "Hierarchical softmax keeps no output vector for a word: vectors must be input."
        )


def fit(
    model: Word2Vec,
    store: TokenStore,
    *,
    start: Any,
    out: str | Path | None,
    resume: bool,
    checkpoint_minutes: float,
    callbacks: Sequence[Callback],
    reporter: Reporter,
) -> Word2Vec:
    """Train `model` on `store` from the start, or from its last checkpoint."""
    from sememe.static.rows import matrix

    config = model.config
    size = trainable_words(store, config)
    vocabulary = store.vocabulary.cut(size)
    keeper = Checkpoints(Path(f"{Path(out)}.checkpoints")) if out is not None else None
    input = matrix(size, config.dim)
    output = matrix(_num_outputs(config, size), config.dim)
    plan = {
        "config": _lasting(config),
        "content": store.manifest.get("content"),
        "tokens": store.num_tokens,  # fewer where phrases were joined
        "words": size,
    }
    step, seconds, model.history = 0, 0.0, History()
    found = keeper.latest() if keeper is not None and resume else None
    if resume and found is None and out is not None and (Path(out) / MANIFEST).exists():
        reporter.note(f"{out} is finished: there is nothing to resume.")
        return _finished(model, Path(out), plan)
    if found is not None:
        step, seconds, model.history = _restore(found, plan, input, output)
        for callback in callbacks:
            if isinstance(callback, Evaluate):
                callback.restore(model.history)
        reporter.note(f"Resuming at step {step:,} from {found}.")
    else:
        if keeper is not None and keeper.latest() is not None:
            reporter.note(f"Starting anew: the checkpoint in {keeper.folder} is removed.")
            keeper.clear()
        start_rows(input, config.dim, config.seed)
        if start is not None:
            num_known = _take_start(input, vocabulary, start, config.dim)
            reporter.note(f"{num_known:,} of {size:,} words start from the given vectors.")
    id_map = np.full(len(store.vocabulary) + 1, size, np.int32)
    id_map[:size] = np.arange(size, dtype=np.int32)
    run = Run(config, store, id_map, np.asarray(vocabulary.counts), input, output)
    driver = _Driver(model, vocabulary, run, keeper, plan, seconds, callbacks, reporter)
    try:
        driver.drive(step, checkpoint_minutes * 60 or math.inf)
    finally:
        run.close()
    driver.hand_over()
    model.plan = plan
    if out is not None:
        model.save(out)
        if keeper is not None:
            keeper.clear()
    return model


def continue_fit(model: Word2Vec, store: TokenStore, epochs: int, reporter: Reporter) -> Word2Vec:
    """Train a fitted model further on `store`; words it does not know get rows of their own."""
    from sememe.static.rows import matrix

    config = replace(model.config, epochs=epochs)
    known, counts = model.vocabulary, np.array(model.vocabulary.counts)
    size = trainable_words(store, config)
    id_map = np.full(len(store.vocabulary) + 1, -1, np.int32)
    new_words: list[str] = []
    new_counts: list[int] = []
    for word_id, word in enumerate(store.vocabulary[:]):
        row = known.find(word)
        if row < 0 and word_id < size and config.loss != "hierarchical":
            row = len(known) + len(new_words)
            new_words.append(word)
            new_counts.append(int(store.vocabulary.counts[word_id]))
        elif row >= 0 and config.loss != "hierarchical":  # its tree was made from the old counts
            counts[row] += store.vocabulary.counts[word_id]
        id_map[word_id] = row
    num_words = len(known) + len(new_words)
    id_map[id_map < 0] = num_words
    vocabulary = Vocabulary.from_words([*known, *new_words], [*counts.tolist(), *new_counts])
    dim = config.dim
    input = matrix(num_words, dim)
    output = matrix(_num_outputs(config, num_words), dim)
    input[: len(known), :dim] = model.input
    output[: len(model.output), :dim] = model.output
    start_rows(input[len(known) :], dim, config.seed, first=len(known))
    run = Run(config, store, id_map, np.asarray(vocabulary.counts), input, output)
    driver = _Driver(model, vocabulary, run, None, {}, 0.0, (), reporter)
    try:
        driver.drive(0, math.inf)
    finally:
        run.close()
    driver.hand_over()
    return model


def _finished(model: Word2Vec, out: Path, plan: dict[str, Any]) -> Word2Vec:
    """Open what an earlier run finished, after checking that it is the same run."""
    _check_plan(out, read_json(out / MANIFEST).get("plan"), plan)
    other = Word2Vec.load(out)
    model.history, model.plan = other.history, other.plan
    model.adopt(other.vocabulary, other.input, other.output)
    return model


def _check_plan(place: Path, old: Any, plan: dict[str, Any]) -> None:
    """Refuse to go on with what was made with other options or from other text."""
    if not isinstance(old, dict) or not isinstance(old.get("config"), dict):
        raise ArtifactError(f"{place} does not say how it was made; start again without resume.")
    other = [
        f"{name} was {value}, is {plan['config'].get(name)}"
        for name, value in old["config"].items()
        if plan["config"].get(name) != value
    ]
    if other:
        raise OptionError(
            f"{place} was made with other options: {'; '.join(other)}. "
            "Take those again, or start anew without resume."
        )
    if old != plan:
        raise ArtifactError(f"{place} was made from other text; start again without resume.")


def _lasting(config: Word2VecConfig) -> dict[str, Any]:
    """The options that must not change between a run and its continuation."""
    options = config.to_dict()
    del options["workers"], options["vectors"]
    return options


def _restore(
    found: Path, plan: dict[str, Any], input: np.ndarray, output: np.ndarray
) -> tuple[int, float, History]:
    """Read a checkpoint into the matrices, after checking that it belongs to this run."""
    state = read_json(found / _STATE)
    if not isinstance(state, dict):
        raise ArtifactError(f"{found / _STATE} is damaged: start again without resume.")
    _check_plan(found, state.get("plan"), plan)
    tensors = read_tensors(found / TENSORS)
    for name, rows in (("input", input), ("output", output)):
        if name not in tensors or tensors[name].shape != rows.shape:
            raise ArtifactError(f"The checkpoint {found} does not hold the matrices of this run.")
        rows[:] = tensors[name]
    try:
        return int(state["step"]), float(state["seconds"]), History.load(found / HISTORY)
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{found / _STATE} is damaged ({error}).") from error


class _Driver:
    """Drives a run to its end: progress, history, callbacks, checkpoints, Ctrl-C."""

    def __init__(
        self,
        model: Word2Vec,
        vocabulary: Vocabulary,
        run: Run,
        keeper: Checkpoints | None,
        plan: dict[str, Any],
        seconds: float,
        callbacks: Sequence[Callback],
        reporter: Reporter,
    ) -> None:
        self.model, self.vocabulary, self.run, self.keeper = model, vocabulary, run, keeper
        self.plan, self.callbacks, self.reporter = plan, callbacks, reporter
        self._before_s, self._begun_s = seconds, time.monotonic()
        self._recorded = np.zeros(3)
        self._base = np.zeros(3)
        self._stats = np.zeros(3)
        self._every = max(1, run.num_steps // _RECORDS)

    @property
    def seconds(self) -> float:
        """Seconds of training, those before the last checkpoint included."""
        return self._before_s + time.monotonic() - self._begun_s

    def hand_over(self, *, is_final: bool = True) -> None:
        """Give the matrices to the model, without padding; a copy while they still change."""
        dim = self.model.config.dim
        rows = [m.reshape(-1, self.run.width)[:, :dim] for m in (self.run.input, self.run.output)]
        if not is_final:
            rows = [matrix.copy() for matrix in rows]
        self.model.adopt(self.vocabulary, *rows)

    def drive(self, step: int, checkpoint_s: float) -> None:
        """Run every step that is left."""
        run, first = self.run, step
        total = run.words_at(run.num_steps)
        saved_s = time.monotonic()
        self.reporter.note(_greeting(run, self.vocabulary))
        with self.reporter.task("training", total, "words", start=run.words_at(step)) as task:

            def on_tick(crew: Crew) -> bool:
                self._watch(crew, first, task)
                return time.monotonic() - saved_s < checkpoint_s

            try:
                while step < run.num_steps:
                    end = min([run.num_steps, *(self._due(c, step) for c in self.callbacks)])
                    step = run.advance(step, end, self._every, on_tick)
                    self._base = self._stats
                    if step == end and self._call(step):
                        break
                    if time.monotonic() - saved_s >= checkpoint_s and step < run.num_steps:
                        self._checkpoint(step)
                        saved_s = time.monotonic()
            except KeyboardInterrupt:
                self._checkpoint(step if run.reached is None else run.reached)
                raise
        self._record(step, self._stats, first)

    def _due(self, callback: Callback, step: int) -> int:
        """The step after `step` at which a callback is to be asked."""
        words = self.run.words_at(step)
        target = (words // callback.every_words + 1) * callback.every_words
        return max(step + 1, self.run.step_of(target))

    def _call(self, step: int) -> bool:
        """Ask the callbacks that are due; True ends the run."""
        due = [
            callback
            for callback in self.callbacks
            if step == self.run.num_steps
            or self.run.words_at(step) // callback.every_words
            > self.run.words_at(step - 1) // callback.every_words
        ]
        if not due:
            return False
        self.hand_over(is_final=False)
        record = {"words": self.run.words_at(step)}
        answers = [callback(self.model, record) for callback in due]
        self.model.history.append(record)
        return any(answers)

    def _watch(self, crew: Crew, first: int, task: Any) -> None:
        while crew.marks:
            step, stats = crew.marks.pop(0)
            self._record(step, self._base + stats, first)
        self._stats = self._base + crew.stats()
        if not np.isfinite(self._stats[0]):
            raise DivergedError(
                "Training diverged: the loss is not a number any more. Lower learning_rate "
                f"({self.model.config.start_rate})."
            )
        figures = {"learning_rate": self.run.rate_at(crew.next_step)}
        if self.model.history:
            figures["loss"] = float(self.model.history.smooth("loss")[-1])
        task.update(self.run.words_at(crew.next_step), **figures)

    def _record(self, step: int, stats: np.ndarray, first: int) -> None:
        """Keep the figures since the last record, if there are any."""
        since = stats - self._recorded
        if not since[1]:
            return
        self._recorded = stats.copy()
        words = self.run.words_at(step)
        self.model.history.append(
            {
                "words": words,
                "epoch": words / self.run.store.num_tokens,
                "loss": _mean_loss(since),
                "learning_rate": self.run.rate_at(step),
                "seconds": round(self.seconds, 3),
                "words_per_s": (words - self.run.words_at(first))
                / max(time.monotonic() - self._begun_s, 1e-9),
            }
        )

    def _checkpoint(self, step: int) -> None:
        if self.keeper is None:
            return
        width = self.run.width
        with self.keeper.write(step) as folder:
            write_tensors(
                folder / TENSORS,
                {
                    "input": self.run.input.reshape(-1, width),
                    "output": self.run.output.reshape(-1, width),
                },
            )
            write_json(
                folder / _STATE,
                {
                    "step": step,
                    "plan": self.plan,
                    "seconds": self.seconds,
                },
            )
            self.model.history.save(folder / HISTORY)


def _mean_loss(stats: np.ndarray) -> float:
    return float(stats[0] / stats[1]) if stats[1] else math.nan


def _greeting(run: Run, vocabulary: Vocabulary) -> str:
    config = run.config
    return (
        f"{len(vocabulary):,} words, {run.store.num_tokens:,} in the text, {config.epochs} epochs: "
        f"{config.architecture}, {config.loss}, {config.dim} dimensions, "
        f"{config.num_workers} workers"
    )

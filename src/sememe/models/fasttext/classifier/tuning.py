"""Find good options within a given time: trials on a validation set; the best model is kept.

The first trial uses the given options, a few others what often helps, and all later ones vary the
best so far a little. Trial n is a function of the seed, of n and of the best before it, so that
trials are reproducible; the time only limits their number.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import DivergedError, OptionError
from sememe.examples.labelled.rows import silent
from sememe.frames import is_frame
from sememe.models.fasttext.classifier.calibration import HeldLines, adjust
from sememe.models.fasttext.classifier.config import ORIGINAL, FastTextClassifierConfig
from sememe.models.fasttext.classifier.lines import is_path, label_name
from sememe.models.fasttext.classifier.prediction import LabelsResult
from sememe.models.fasttext.classifier.training import ClassifierRun, learned_of, read_lines
from sememe.models.fitting import Request
from sememe.models.static.loop import Crew
from sememe.options import parse_duration
from sememe.progress import format_duration

if TYPE_CHECKING:
    from sememe.models.fasttext.classifier.model import FastTextClassifier
    from sememe.models.fasttext.classifier.weights import ClassifierWeights

_TUNED = ("learning_rate", "epochs", "dim", "word_ngrams", "minn", "maxn", "bucket")
_SUBWORDS = ((0, 0), (2, 5), (3, 6))
# What helped most often on small and on large sets, tried before random options.
_FIRST: tuple[dict[str, Any], ...] = (
    {"learning_rate": 0.5},
    {"learning_rate": 0.5, "epochs": 10, "word_ngrams": 2},
    {"learning_rate": 0.5, "epochs": 10, "minn": 3, "maxn": 6},
    {"learning_rate": 1.0, "epochs": 25, "word_ngrams": 2},
)


@dataclass(frozen=True)
class TuningMetric:
    """The metric to maximize: "f1", "precision" or "recall", "macro_f1", "f1@3", "f1:label"."""

    metric: str
    average: str = "micro"
    k: int = 1
    label: str | None = None

    @classmethod
    def parse(cls, name: str) -> TuningMetric:
        """Read the name of a metric."""
        match = re.fullmatch(
            r"(?:(macro|micro|weighted)_)?(f1|precision|recall)(?:@(\d+))?(?::(.+))?", name
        )
        if match is None or match[3] == "0" or (match[1] and match[4]):
            raise OptionError(
                "metric must be f1, precision or recall, perhaps with macro_ or weighted_ before "
                f"it, or @k or :label after it, not {name!r}."
            )
        return cls(match[2], match[1] or "micro", int(match[3] or 1), match[4])

    def of(self, result: LabelsResult, prefix: str) -> float:
        """The metric in a result."""
        if self.label is None:
            return result.averages[self.average][self.metric]
        name = label_name(self.label, prefix)
        known = {str(score.label): score for score in result.classes}
        if name not in known:
            raise OptionError(
                f"metric names the label {name!r}; there are {', '.join(sorted(known)[:20])}."
            )
        return float(getattr(known[name], self.metric))


def free_options(config: FastTextClassifierConfig) -> set[str]:
    """The options that may be tuned: those that are at their defaults."""
    defaults = {field.name: field.default for field in fields(config)}
    if config.preset == "fasttext":
        defaults |= ORIGINAL
    free = {name for name in _TUNED if getattr(config, name) == defaults[name]}
    if not {"minn", "maxn"} <= free:
        free -= {"minn", "maxn"}
    if not config.bucket:  # n-grams have no rows to be hashed into
        free -= {"word_ngrams", "minn", "maxn"}
    return free


def propose(
    trial: int, first: FastTextClassifierConfig, best: FastTextClassifierConfig
) -> FastTextClassifierConfig:
    """The options of a trial, counted from 0."""
    free = free_options(first)
    if trial == 0:
        return first
    if trial <= len(_FIRST):
        chosen = _FIRST[trial - 1]
    else:
        chosen = _near(best, np.random.default_rng([first.seed, trial]))
    # Options that a trial does not name stay as in the best one.
    return replace(first, **{name: chosen.get(name, getattr(best, name)) for name in free})


def _near(best: FastTextClassifierConfig, draw: np.random.Generator) -> dict[str, Any]:
    """Options near the best ones, each changed with probability one half."""
    near: dict[str, Any] = {name: getattr(best, name) for name in _TUNED}

    def times(value: float, spread: float, low: float, high: float) -> float:
        return float(np.clip(value * 2.0 ** draw.normal(0, spread), low, high))

    is_changed = draw.random(5) < 0.5
    if not is_changed.any():
        is_changed[draw.integers(5)] = True
    if is_changed[0]:
        near["learning_rate"] = float(f"{times(best.learning_rate, 1.0, 0.01, 5.0):.3g}")
    if is_changed[1]:
        near["epochs"] = round(times(best.epochs, 1.0, 1, 100))
    if is_changed[2]:
        near["dim"] = round(times(best.dim, 0.7, 4, 600))
    if is_changed[3]:
        near["word_ngrams"] = int(draw.integers(1, 6))
        near["bucket"] = round(times(best.bucket or 2_000_000, 1.0, 10_000, 10_000_000))
    if is_changed[4]:
        near["minn"], near["maxn"] = _SUBWORDS[int(draw.integers(len(_SUBWORDS)))]
    return near


def tune(
    model: FastTextClassifier,
    train: Any,
    validation: Any,
    duration: str | float,
    metric: str,
    request: Request,
) -> None:
    """Try options for `duration`, keep the best model and save it where the request says so."""
    if validation is None:
        raise OptionError("autotune needs a validation set to compare the trials on.")
    if request.resume:
        raise OptionError("autotune cannot be resumed; it keeps the best model it finds in time.")
    if request.start is not None:
        raise OptionError("autotune cannot begin with given vectors: leave start out.")
    seconds, goal = parse_duration(duration, "autotune"), TuningMetric.parse(metric)
    # Rows may come from a generator, which could be read once only.
    train, validation = (s if is_path(s) or is_frame(s) else list(s) for s in (train, validation))
    search = _TrialSearch(model, train, validation, goal, time.monotonic() + seconds, request)
    with request.reporter.task("tuning", None, "trials") as task:
        try:
            while search.run_trial():
                task.update(search.num_trials, best=search.best_score)
        except KeyboardInterrupt:
            if search.best_weights is None:
                raise
            request.reporter.note("Stopped: the best model so far is kept.")
    search.hand_over()
    if request.out is not None:
        model.save(Path(request.out))


class _TrialSearch:
    """The state of a search: the best options, their model and score."""

    def __init__(
        self,
        model: FastTextClassifier,
        train: Any,
        validation: Any,
        goal: TuningMetric,
        end_s: float,
        request: Request,
    ) -> None:
        self.model, self.train, self.validation = model, train, validation
        self.goal, self.end_s, self.request, self.reporter = goal, end_s, request, request.reporter
        self.first = self.best = model.config
        self.best_score = -1.0
        self.best_weights: ClassifierWeights | None = None
        self.learned: dict[str, Any] = {}
        self.held: HeldLines | None = None
        self.num_trials = 0
        self.trials: list[dict[str, Any]] = []

    def run_trial(self) -> bool:
        """Train and score one set of options; False when the time is over."""
        is_first = self.num_trials == 0
        if not is_first and time.monotonic() >= self.end_s:
            return False
        config = propose(self.num_trials, self.first, self.best)
        self.num_trials += 1
        shown = _shown(config, self.first)
        begun_s = time.monotonic()
        trial = type(self.model)(config)
        trial.text = self.model.text
        try:
            is_done = self._train(trial, is_first)
        except DivergedError:
            self._tell(shown, "diverged", begun_s)
            return True
        if not is_done:
            self._tell(shown, "not finished in time", begun_s)
            return False
        score = self.goal.of(trial.evaluate(self.validation, self.goal.k), config.label_prefix)
        config = trial.config  # with what the data chose
        is_best = score > self.best_score
        if is_best:
            self.best, self.best_score, self.best_weights = config, score, trial.weights
            self.learned = trial.learned
        self.trials.append({**{name: getattr(config, name) for name in _TUNED}, "score": score})
        self._tell(shown, f"{score:.4f}{' (best)' if is_best else ''}", begun_s)
        return True

    def _train(self, trial: FastTextClassifier, is_first: bool) -> bool:
        """Train one model; only the first may take longer than the time left."""
        self.held = HeldLines(trial.config) if trial.config.holds_out else None
        note = self.reporter.note if is_first else silent
        lines, _, trial.config = read_lines(
            self.train, trial.config, trial.text, None, note, self.held
        )
        trial.learned = learned_of(lines, trial.config, note)
        run = ClassifierRun(trial.config, lines)
        run.begin()
        crew = Crew(run, 0, run.num_steps, run.num_steps + 1)

        def is_in_time(crew: Crew) -> bool:
            return is_first or time.monotonic() < self.end_s

        reached = crew.advance(is_in_time)
        if not np.isfinite(crew.stats()[0]):
            raise DivergedError("The loss of a trial became NaN.")
        if reached < run.num_steps:
            return False
        run.hand_over(trial, is_final=True)
        return True

    def _tell(self, options: str, outcome: str, begun_s: float) -> None:
        took = format_duration(time.monotonic() - begun_s)
        self.reporter.note(f"trial {self.num_trials}: {options}: {outcome}, {took}")

    def hand_over(self) -> None:
        """Give the best options and their model to the model being fitted."""
        if self.best_weights is None:
            raise DivergedError("Every trial diverged: lower learning_rate.")
        self.model.config = self.best
        self.model.history.clear()
        self.model.history.extend({"trial": n, **t} for n, t in enumerate(self.trials, 1))
        self.model.adopt(self.best_weights)
        self.model.learned = self.learned
        if self.held is not None:
            adjust(self.model, self.held, self.request)


def _shown(config: FastTextClassifierConfig, first: FastTextClassifierConfig) -> str:
    free = free_options(first)
    return ", ".join(f"{name} {getattr(config, name)}" for name in _TUNED if name in free)

"""The recipe for small sets: labelled rows in; searched options, several seeds, one ensemble out.

A few hundred rows teach little per pass, and one run of them is luck. The recipe

- gives lower layers lower learning rates (Howard & Ruder 2018, 3.3);
- searches the learning rate, then the number of epochs (Mosbach et al. 2021: small sets need more
  of them), each on training rows that are held out of that run, several times if they are few;
- trains to the end of the schedule: dev rows choose nothing, so their score is an honest one;
- trains several seeds on all training rows, and keeps them as one ensemble.

Options that the user gives are kept and not searched.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence as Several
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from sememe.errors import OptionError
from sememe.models.fitting import Request
from sememe.progress import Reporter, as_reporter
from sememe.randomness import stream_key
from sememe.storage.folder import MANIFEST, manifest_in, read_json, write_json
from sememe.tasks.config import FinetuneConfig, grid
from sememe.tasks.task import KIND, Task
from sememe.tasks.training import held_out, open_backbone, read_rows, resolved
from sememe.tasks.trials import Make, fit_trials
from sememe.training.weights import weights_hash

SMALL_DATA = "small-data"
NUM_SEEDS = 5
LAYER_DECAY = 0.9
STEPS = (0.5, 2.0)  # of the learning rate, from the usual one of the network
EPOCHS = 5.0  # of the first candidates; then twice as many, as long as that is better
LEAST_STEPS = 100  # of the first candidates: five epochs of 50 rows teach nothing
_DOUBLINGS = 2
_HELD_SHARE = 0.2  # of the training rows, in each run of the search
_ENOUGH = 400  # held-out rows over all runs of a candidate
_MAX_DRAWS = 2
_DRAWN = 0x516  # the purpose of a random stream


@dataclass(frozen=True)
class Searched:
    """The options that the recipe uses, and what each candidate scored on held-out rows."""

    options: dict[str, Any]
    metric: str = ""
    num_held_out: int = 0  # rows that each candidate was scored on, over all its runs
    trials: tuple[dict[str, Any], ...] = ()  # options, mean score, the score of each run
    key: str = ""  # identifies the rows and the options of the user

    def to_dict(self) -> dict[str, Any]:
        """The fields, and the name of the recipe."""
        return {**vars(self), "recipe": SMALL_DATA, "trials": list(self.trials)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Searched:
        """What `to_dict` gave."""
        own = {name: values[name] for name in ("options", "metric", "num_held_out", "key")}
        return cls(**own, trials=tuple(values["trials"]))

    def __str__(self) -> str:
        """The options in a line."""
        return ", ".join(
            f"{name.replace('_', ' ')} {value:g}"
            for name, value in self.options.items()
            if not isinstance(value, bool)
        )


def fit_small_data(
    make: Make,
    train: Any,
    *,
    dev: Any = None,
    seeds: int = NUM_SEEDS,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Any = None,
    **reading: Any,
) -> Task:
    """Fine-tune `make(options)` by the recipe for small sets; save and return the ensemble.

    `make` returns a new task with some options replaced, as for `fit_trials`. Options that `make`
    sets itself (learning_rate, epochs, layer_decay …) are kept. The task's `searched` says what was
    chosen, and from which candidates.
    """
    reporter = as_reporter(progress)
    request = Request(
        dev=dev, out=out, resume=resume, overwrite=overwrite, reading=reading, reporter=reporter
    )
    request.check(KIND)
    record = None if out is None else Path(f"{out}.search.json")
    reader = make({})
    rows, dev_rows, _ = read_rows(reader, train, replace(request, reporter=Reporter(quiet=True)))
    if seeds > 1 and not dev_rows:
        raise OptionError("An ensemble is scored on dev rows: give dev or dev_share, or seeds=1.")
    searched = search(
        make, rows, kept=_kept(out, record) if resume else None, record=record, reporter=reporter
    )
    reporter.note(f"Recipe small-data: {searched}; {seeds} seeds.")

    def made(own: dict[str, Any]) -> Task:
        task = make({**searched.options, **own})
        task.searched = searched.to_dict()
        return task

    request_by_name: dict[str, Any] = {
        "dev": dev, "out": out, "resume": resume, "overwrite": overwrite, "progress": reporter,
        **reading,
    }  # fmt: skip
    trials = grid(seeds, reader.config.seed)
    if seeds > 1:
        task = fit_trials(made, trials, train, ensemble=True, **request_by_name)
    else:
        task = made(dict(trials[0])).fit(train, **request_by_name)
    if record is not None:
        record.unlink(missing_ok=True)
    return task


def search(
    make: Make,
    rows: Several[Any],
    *,
    kept: Mapping[str, Any] | None = None,
    record: Path | None = None,
    reporter: Reporter,
) -> Searched:
    """Choose the options by the scores of short trainings on parts of the training rows.

    `record` is a file that keeps every finished run of the search; `kept`, what an earlier search
    of the same rows and options left, is not computed again.
    """
    reader = make({})
    config = reader.config
    _check(config)
    # The labels of all rows: a part of them may lack a rare one.
    read_rows(reader, list(rows), Request(dev=False, reporter=Reporter(quiet=True)))
    labels = list(reader.labels) if reader.has_labels else None
    fixed: dict[str, Any] = {"keep_best": False}
    if config.layer_decay is None and not config.is_frozen:
        fixed["layer_decay"] = LAYER_DECAY
    backbone = open_backbone(make({}), Reporter(quiet=True))
    key = _key(rows, config, [weights_hash(backbone.encoder), backbone.fingerprints()])
    kept = kept if kept is not None and kept.get("key") == key else {}
    if kept.get("options"):
        return Searched.from_dict(kept)
    own = _Search(make, list(rows), fixed, key, record, reporter, dict(kept.get("runs", {})))
    own.labels = labels
    has_length = bool(config.epochs or config.steps or config.budget)
    per_epoch = math.ceil((1 - _HELD_SHARE) * len(rows) / config.batch_size)
    few = max(EPOCHS, math.ceil(LEAST_STEPS / max(1, per_epoch)))
    best: dict[str, Any] = {} if has_length else {"epochs": few}
    if not config.learning_rate:
        usual = own.usual_rate(best)
        best = own.best([{"learning_rate": share * usual, **best} for share in (1.0, *STEPS)])
        for share in STEPS:  # further the same way, if that was better
            if best["learning_rate"] == share * usual:
                best = own.best([best, {**best, "learning_rate": share * share * usual}])
    if not has_length:
        for _ in range(_DOUBLINGS):
            longer = own.best([best, {**best, "epochs": 2 * best["epochs"]}])
            if longer == best:
                break
            best = longer
    return Searched({**best, **fixed}, own.metric, own.num_held_out, tuple(own.trials), key)


def _check(config: FinetuneConfig) -> None:
    """Refuse options that contradict the recipe."""
    if config.patience:
        raise OptionError(
            "The recipe small-data trains for a number of epochs that it searches, and dev rows "
            "choose nothing: leave out patience, or the recipe."
        )


class _Search:
    """Candidates, each trained on parts of the rows and scored on the rest of them."""

    def __init__(
        self,
        make: Make,
        rows: list[Any],
        fixed: dict[str, Any],
        key: str,
        record: Path | None,
        reporter: Reporter,
        runs: dict[str, list[float]],
    ) -> None:
        self.make, self.rows, self.fixed, self.key = make, rows, fixed, key
        self.record, self.reporter, self.runs = record, reporter, runs
        num_held = max(1, round(_HELD_SHARE * len(rows)))
        self.num_draws = min(_MAX_DRAWS, math.ceil(_ENOUGH / num_held))
        self.num_held_out = 0
        self.labels: list[str] | None = None
        self.metric = ""
        self.trials: list[dict[str, Any]] = []

    def usual_rate(self, length: dict[str, Any]) -> float:
        """The learning rate that the network would have without the recipe."""
        task = self.make(length)
        return resolved(task.config, open_backbone(task, Reporter(quiet=True))).learning_rate

    def best(self, candidates: Several[dict[str, Any]]) -> dict[str, Any]:
        """The candidate with the best mean score; of equal ones that with the lowest loss."""
        return max(candidates, key=self._rank)

    def _rank(self, options: dict[str, Any]) -> tuple[float, float]:
        """The mean score of a candidate over its draws, and its loss; undefined is the worst."""
        known = next((one for one in self.trials if one["options"] == options), None)
        if known is None:
            runs = [self._run(options, draw) for draw in range(self.num_draws)]
            values, losses = ([run[index] for run in runs] for index in range(2))
            known = {
                "options": options, "mean": fmean(values), "values": values, "loss": fmean(losses)
            }  # fmt: skip
            self.trials.append(known)
        ranks = known["mean"], -known["loss"]
        return tuple(value if math.isfinite(value) else -math.inf for value in ranks)  # type: ignore[return-value]

    def _run(self, options: dict[str, Any], draw: int) -> list[float]:
        """Train a candidate on some of the rows; its score and its loss on the others."""
        train, held = held_out(self.rows, _HELD_SHARE, stream_key(1, _DRAWN, draw))
        if not held:
            raise OptionError(
                f"The recipe small-data searches on held-out rows, and {len(self.rows)} training "
                "rows are too few for that: give learning_rate and epochs, or more rows."
            )
        self.num_held_out = len(held) * self.num_draws
        name = "-".join(f"{key}-{value:g}" for key, value in options.items()) + f"-draw-{draw}"
        # One validation, at the end: what is scored is the last step of the schedule.
        task = self.make({**options, **self.fixed, "evaluate_every": 10**9, "baselines": False})
        task.given_labels = task.given_labels or self.labels
        self.metric = task.config.metric or task.main_metric
        if name in self.runs:
            return self.runs[name]
        said = ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in options.items())
        self.reporter.note(
            f"Search: {said or 'the given options'}, on {len(held):,} held-out training rows "
            f"({draw + 1} of {self.num_draws})"
        )
        task.config = replace(task.config, tensorboard="")
        task.fit(train, dev=held, progress=self.reporter)
        assert task.scores is not None
        self.metric = task.scores.main_metric
        self.runs[name] = [task.scores.value, task.history.last().get("validation_loss", math.nan)]
        if self.record is not None:
            write_json(self.record, {"key": self.key, "runs": self.runs})
        return self.runs[name]


def _key(rows: Several[Any], config: FinetuneConfig, start: Any) -> str:
    """A hash of rows, options and the model's weights: nothing of another run is reused."""
    own = [sorted(config.lasting().items()), start]
    digest = hashlib.blake2b(repr(own).encode(), digest_size=16)
    for row in rows:
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _kept(out: str | Path | None, record: Path | None) -> Mapping[str, Any] | None:
    """What an earlier search left: in a finished model, or in its record."""
    if record is not None and record.is_file():
        found = read_json(record)
        return found if isinstance(found, dict) else None
    if out is not None and (Path(out) / MANIFEST).is_file():
        found = manifest_in(Path(out)).get("searched")
        return found if isinstance(found, dict) else None
    return None

"""Several runs of one task: seeds, or a grid of options; which was best, and by how much they vary.

Runs lie beside the folder to be while they go on, so that a stopped call can be resumed.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Several
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from sememe import metrics
from sememe.errors import InputError, OptionError
from sememe.progress import as_reporter
from sememe.storage.folder import MANIFEST, check_replaceable
from sememe.tasks.preparing import Request, make_ready, read_rows
from sememe.tasks.scores import Scores
from sememe.tasks.task import Task

Options = Mapping[str, Any]

# What the paper searched (Devlin et al. 2019, A.3).
PAPER_GRID: dict[str, tuple[Any, ...]] = {
    "batch_size": (16, 32), "learning_rate": (5e-5, 3e-5, 2e-5), "epochs": (2, 3, 4),
}  # fmt: skip


class Trial(NamedTuple):
    """One run: the options that it had of its own, and its scores on the dev rows."""

    options: dict[str, Any]
    scores: Scores

    def to_dict(self) -> dict[str, Any]:
        """All of it, fit for JSON."""
        return {"options": self.options, "scores": self.scores.to_dict()}


class Setting(NamedTuple):
    """Options without their seeds, and the figure that decides over those seeds."""

    options: dict[str, Any]
    values: list[float]
    mean: float
    deviation: float  # of the sample; NaN for one seed


def grid(seeds: int = 1, first_seed: int = 1, **choices: Several[Any]) -> list[dict[str, Any]]:
    """Every combination of the choices, each with every seed."""
    if seeds < 1:
        raise OptionError(f"seeds must be 1 or more, not {seeds}.")
    found = []
    for values in product(*choices.values()):
        options = dict(zip(choices, values, strict=True))
        found += [{**options, "seed": first_seed + number} for number in range(seeds)]
    return found


def settings_of(trials: Several[Trial]) -> list[Setting]:
    """The trials by their options, seeds together; mean and standard deviation of each."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for trial in trials:
        key = tuple(item for item in trial.options.items() if item[0] != "seed")
        values.setdefault(key, []).append(trial.scores.value)
    found = []
    for key, own in values.items():
        is_whole = all(map(math.isfinite, own))  # scores that are all alike correlate with nothing
        mean, deviation, _ = metrics.spread(own) if is_whole else (math.nan, math.nan, 0)
        found.append(Setting(dict(key), own, mean, deviation))
    return found


def fit_trials(
    make: Callable[[dict[str, Any]], Task],
    trials: Several[Options],
    train: Any,
    *,
    dev: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Any = None,
    ensemble: bool = False,
    **reading: Any,
) -> Task:
    """Run `make(options).fit(…)` for each of the options; give the best, saved where `out` says.

    Of a grid with several seeds each, the setting with the best mean is chosen, and of its runs
    the best. An ensemble is all the runs of that setting as one task: the mean of what they say.
    The trials are in `trials` of the task that comes back.
    """
    reporter = as_reporter(progress)
    if out is not None:
        check_replaceable(Path(out), Task.kind)
    place = None if out is None else Path(f"{out}.trials")
    if resume and place is not None and not place.exists():
        request = Request(dev=dev, out=Path(str(out)), reading=reading)
        if (finished := _finished(make, trials, train, request, ensemble)) is not None:
            reporter.note(f"{out} is finished already.")
            return finished
    done: list[tuple[Trial, Task | Path]] = []
    for number, options in enumerate(trials, 1):
        said = ", ".join(f"{name} {value}" for name, value in options.items())
        reporter.note(f"Run {number} of {len(trials)}: {said}")
        folder = None if place is None else place / name_of(options)
        task = make(dict(options))
        task.config = task.config.one_of_several(name_of(options))
        task.fit(train, dev=dev, out=folder, resume=resume, progress=reporter, **reading)
        if task.scores is None:
            raise InputError("Several runs are compared by their dev scores: give dev rows.")
        # A grid of large networks would not fit into memory; what is saved need not stay there.
        done.append((Trial(dict(options), task.scores), folder or task))
    task = _chosen(done, ensemble)
    if ensemble:
        _, dev_rows = read_rows(task, train, Request(dev=dev, reading=reading))
        items = task.encode(dev_rows)
        outputs = task.activated(items)
        task.settle(dev_rows, task.decoded(dev_rows, items, outputs))
        task.scores = task.scored(dev_rows, task.decoded(dev_rows, items, outputs))
    task.trials = [trial.to_dict() for trial, _ in done]
    if out is not None and place is not None:
        task.save(out)
        shutil.rmtree(place, ignore_errors=True)
    return task


def _finished(
    make: Callable[[dict[str, Any]], Task],
    trials: Several[Options],
    train: Any,
    request: Request,
    is_ensemble: bool,
) -> Task | None:
    """What the same runs left before, chosen and saved; None if there is nothing, or of others."""
    assert request.out is not None
    if not (request.out / MANIFEST).is_file():
        return None
    kept = Task.load(request.out)
    if [one["options"] for one in kept.trials] != [dict(options) for options in trials]:
        return None

    def is_own(options: Options) -> bool:
        return all(getattr(kept.config, name) == value for name, value in options.items())

    own = next((options for options in trials if is_own(options)), None)
    if own is None:
        return None
    siblings = [o for o in trials if is_own({**o, "seed": own["seed"]})]
    if len(kept.others) + 1 != (len(siblings) if is_ensemble else 1):
        return None
    task = make(dict(own))
    make_ready(task, train, request)
    return kept if task.plan == kept.plan else None


def name_of(options: Options) -> str:
    """The folder of a run."""
    return "-".join(f"{name}-{value}" for name, value in options.items())


def _chosen(done: Several[tuple[Trial, Task | Path]], is_ensemble: bool) -> Task:
    def rank(value: float) -> float:
        return value if math.isfinite(value) else -math.inf

    settings = settings_of([trial for trial, _ in done])
    best = max(settings, key=lambda setting: rank(setting.mean)).options
    runs = [
        (trial, where)
        for trial, where in done
        if all(trial.options[name] == value for name, value in best.items())
    ]
    runs.sort(key=lambda run: -rank(run[0].scores.value))
    task = _opened(runs[0][1])
    if is_ensemble:
        members = [_opened(where).objective for _, where in runs[1:]]
        task.others = [member for member in members if member is not None]
        coder: Any = task.coder
        for member in task.others:
            if hasattr(member.encoder, "share"):  # words have one number in all members
                member.encoder.share(coder.lexicon)
    return task


def _opened(where: Task | Path) -> Task:
    return where if isinstance(where, Task) else Task.load(where)

"""Several runs of one task: seeds, or a grid of options; the best one, and how much they vary.

Runs are saved next to the output folder, so that a stopped call can be resumed.
"""

import math
import shutil
from collections.abc import Callable, Mapping, Sequence as Several
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sememe import metrics
from sememe.errors import InputError
from sememe.models.fitting import Request
from sememe.progress import as_reporter
from sememe.storage.folder import MANIFEST
from sememe.tasks.objective import Encoded
from sememe.tasks.scores import Scores
from sememe.tasks.task import KIND, Task
from sememe.tasks.training import read_rows

Options = Mapping[str, Any]
Make = Callable[[dict[str, Any]], Task]  # a new task, with these options replaced


class Setting(NamedTuple):
    """Options without the seed, and the main metric of each seed."""

    options: dict[str, Any]
    values: list[float]
    mean: float
    deviation: float  # of the sample; NaN for one seed


def settings_of(trials: Several[Options]) -> list[Setting]:
    """The trials of a task grouped by options; mean and standard deviation over seeds."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for trial in trials:
        key = tuple(item for item in trial["options"].items() if item[0] != "seed")
        values.setdefault(key, []).append(Scores.from_dict(trial["scores"]).value)
    found = []
    for key, own in values.items():
        is_whole = all(map(math.isfinite, own))  # equal scores correlate with nothing
        mean, deviation, _ = metrics.spread(own) if is_whole else (math.nan, math.nan, 0)
        found.append(Setting(dict(key), own, mean, deviation))
    return found


def fit_trials(
    make: Make,
    trials: Several[Options],
    train: Any,
    *,
    dev: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Any = None,
    ensemble: bool = False,
    **reading: Any,
) -> Task:
    """Run `make(options).fit(…)` for each of the options; return the best, saved to `out`.

    Of a grid with several seeds each, the setting with the best mean is chosen, and of its runs the
    best. With `ensemble`, all runs of that setting become one task that averages their outputs. The
    task's `trials` lists all runs.
    """
    reporter = as_reporter(progress)
    request = Request(dev=dev, out=out, resume=resume, overwrite=overwrite, reading=reading)
    request.check(KIND)
    place = None if out is None else Path(f"{out}.trials")
    finished = None
    if resume and place is not None and not place.exists():
        finished = _finished(make, trials, train, request, ensemble)
    if finished is not None:
        reporter.note(f"{out} is finished already.")
        return finished
    done: list[tuple[dict[str, Any], Task | Path]] = []
    for number, options in enumerate(trials, 1):
        said = ", ".join(f"{name} {value}" for name, value in options.items())
        reporter.note(f"Run {number} of {len(trials)}: {said}")
        folder = None if place is None else place / name_of(options)
        task = make(dict(options))
        task.config = task.config.one_of_several(name_of(options))
        task.fit(
            train, dev=dev, out=folder, resume=resume, overwrite=True, progress=reporter, **reading
        )
        if task.scores is None:
            raise InputError("Several runs are compared by their dev scores: give dev rows.")
        # Not kept in memory, which a grid of large networks would fill; saved runs can be reopened.
        trial = {"options": dict(options), "scores": task.scores.to_dict()}
        done.append((trial, folder or task))
    task = _chosen(done, ensemble)
    if ensemble:
        _, *others = read_rows(task, train, request)
        dev, held = (Encoded(rows, task.encode(rows) if rows else []) for rows in others)
        if held.rows:
            task.adjust(held, dev, reporter.note)
        task.settle_by(*dev)
    task.trials = [trial for trial, _ in done]
    if task.scores is not None:
        task.scores = replace(task.scores, seeds=task.seeds)
    if out is not None and place is not None:
        task.save(out)
        shutil.rmtree(place, ignore_errors=True)
    return task


def _finished(
    make: Make,
    trials: Several[Options],
    train: Any,
    request: Request,
    is_ensemble: bool,
) -> Task | None:
    """The saved result of the same runs, or None if there is none."""
    out = Path(str(request.out))
    if not (out / MANIFEST).is_file():
        return None
    kept = Task.load(out)
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
    return kept if task.prepare(train, request).plan == kept.plan else None


def name_of(options: Options) -> str:
    """The folder of a run."""
    return "-".join(f"{name}-{value}" for name, value in options.items())


def _chosen(done: Several[tuple[dict[str, Any], Task | Path]], is_ensemble: bool) -> Task:
    def rank(value: float) -> float:
        return value if math.isfinite(value) else -math.inf

    settings = settings_of([trial for trial, _ in done])
    best = max(settings, key=lambda setting: rank(setting.mean)).options
    runs = [
        (trial, where)
        for trial, where in done
        if all(trial["options"][name] == value for name, value in best.items())
    ]
    runs.sort(key=lambda run: -rank(Scores.from_dict(run[0]["scores"]).value))
    task = _opened(runs[0][1])
    if is_ensemble:
        members = [_opened(where).objective for _, where in runs[1:]]
        task.others = [member for member in members if member is not None]
        for member in task.others:
            task.backbone.share_words(member.encoder)
    return task


def _opened(where: Task | Path) -> Task:
    return where if isinstance(where, Task) else Task.load(where)

"""How a task is fitted: what `preparing` made ready, through the loop, into a folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sememe.errors import OptionError
from sememe.tasks.config import FinetuneConfig
from sememe.tasks.items import Item, ItemBatches
from sememe.tasks.objective import TaskObjective, say
from sememe.tasks.preparing import Ready, Request, make_ready
from sememe.training.best import Best
from sememe.training.distributed import Processes
from sememe.training.loop import Loop
from sememe.training.optimizers import RateGroup
from sememe.training.places import finished_before, keeper_of, save_finished
from sememe.training.run import Run, started

if TYPE_CHECKING:
    from sememe.tasks.task import Task


def fit(task: Task, train: Any, request: Request) -> None:
    """Train `task` and save it where the request says so."""
    with started(request, task.config) as (own, processes):
        _fit(task, train, own, processes)


def _fit(task: Task, train: Any, request: Request, processes: Processes) -> None:
    ready = make_ready(task, train, request)
    if (finished := finished_before(task, request, task.plan)) is not None:
        _take_over(task, finished)
        return
    request.reporter.note(_greeting(task, ready))
    loop = Loop(ready.objective, _run(task, ready, request, processes))
    task.history, task.precision = loop.train(), loop.precision
    ready.objective.encoder.uncompile()
    task.objective = ready.objective.eval()
    dev_rows, dev_items = ready.dev_rows, ready.dev_items
    if not dev_rows:
        task.settle([], [])
    else:
        outputs = task.activated(dev_items)
        task.settle(dev_rows, task.decoded(dev_rows, dev_items, outputs))
        task.scores = task.scored(dev_rows, task.decoded(dev_rows, dev_items, outputs))
    save_finished(task, request, processes)


def _take_over(task: Task, finished: Task) -> None:
    """Become what another task of the same kind is, but for the options."""
    task.objective, task.coder = finished.objective, finished.coder
    task.history, task.scores = finished.history, finished.scores
    task.precision = finished.precision
    task.learned, task.trials, task.others = finished.learned, finished.trials, finished.others


def _greeting(task: Task, ready: Ready) -> str:
    config = task.config
    num_rows, num_dev = len(ready.rows), len(ready.dev_rows)
    labels = f", {len(task.labels):,} labels" if task.labels else ""
    frozen = "frozen, " if config.is_frozen else ""
    return (
        f"{ready.opened.description}: {frozen}{num_rows:,} rows to learn from, {num_dev:,} dev "
        f"rows{labels}; batches of {config.batch_size}, learning rate {config.learning_rate:g}"
    )


# ---- the run ------------------------------------------------------------------------------------


def _run(task: Task, ready: Ready, request: Request, processes: Processes) -> Run:
    config, dev_rows = task.config, ready.dev_rows
    source = ItemBatches(
        ready.items, batch_size=config.batch_size, seed=config.seed,
        sort_batches=config.sort_batches,
    )  # fmt: skip
    metric = config.metric or task.main_metric
    epochs = config.epochs or config.steps / source.batches_per_epoch
    best = Best(metric, config.patience) if dev_rows and config.keep_best else None
    if config.patience and best is None:
        raise OptionError("patience needs dev rows and keep_best: it waits for a better score.")
    has_rates = config.layer_decay < 1 or config.unfreeze_every
    return Run(
        source=source,
        config=config,
        validation=_dev_figures(task, dev_rows, ready.dev_items) if dev_rows else None,
        num_validations=max(1, round(epochs)) if epochs else 10,
        best=best,
        rate_groups=rate_groups(ready.objective, source, config) if has_rates else None,
        watches_rises=False,  # batches are small, and their losses jump
        shown=(f"validation_{metric}",),
        reporter=request.reporter,
        keeper=keeper_of(request, config.keep),
        resume=request.resume,
        plan=task.plan,
        processes=processes,
    )


def _dev_figures(
    task: Task, rows: list[Any], items: list[Item]
) -> Callable[[Any, Any, Processes], dict[str, float]]:
    """A function that scores dev rows with the weights of the moment; every process does."""
    config = task.config
    if config.evaluate_batches:
        rows = rows[: config.evaluate_batches * config.batch_size]
        items = [item for item in items if item.row_index < len(rows)]

    def figures(objective: Any, device: Any, processes: Processes) -> dict[str, float]:
        said = say(objective, items, device)
        outputs = [task.activate(output) for output in said.outputs]
        scores = task.scored(rows, task.decoded(rows, items, outputs))
        return {"loss": said.loss, **scores.figures}

    return figures


def rate_groups(
    objective: TaskObjective, source: ItemBatches, config: FinetuneConfig
) -> Callable[[int], list[RateGroup]]:
    """A function that gives the layers as groups: lower ones learn more slowly, or later.

    Layer-wise decay and gradual unfreezing, one layer more from the top down each time
    (Howard & Ruder 2018, 3.3); the head learns from the start.
    """
    encoder = objective.encoder
    top = encoder.num_depths - 1

    def factor_at(depth: int) -> Callable[[int], float]:
        share = config.layer_decay ** (top - depth)
        first_step = config.unfreeze_every * (top - depth) * source.batches_per_epoch
        return lambda step: share if step >= first_step else 0.0

    def groups(num_steps: int) -> list[RateGroup]:
        by_depth: dict[int, list[Any]] = {}
        for name, parameter in encoder.named_parameters():
            by_depth.setdefault(encoder.depth_of(name), []).append(parameter)
        by_depth.setdefault(top, []).extend(objective.head.parameters())
        return [RateGroup(own, factor_at(depth)) for depth, own in sorted(by_depth.items())]

    return groups
